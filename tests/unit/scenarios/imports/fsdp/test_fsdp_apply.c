#include "models/families/catalog.h"
#include "scenarios/imports/fsdp/config.h"
#include "tests/unit/fixtures/job_fixture.h"

#include <string.h>

typedef struct {
    JobFixture base;
    ZpModel *model;
    ZpFsdp settings;
    ZpDeepspeed deepspeed;
} Fixture;

static void
fixture_init(Fixture *fixture)
{
    static const ZpArchitecture shape = {
        .family = "llama",
        .layers = 4,
        .hidden = 512,
        .heads = 8,
        .kv_heads = 8,
        .head_size = 64,
        .ffn = 1024,
        .vocabulary = 2048,
        .gated = TRUE,
        .final_norm = TRUE,
        .norms_per_block = 2,
    };
    static const ZpArchitectureOptions options = {
        .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    job_fixture_init(&fixture->base, 1000, 4);
    fixture->model = zp_architecture_build(&shape, &options, "small", &error);
    g_assert_no_error(error);
    fixture->base.job.model = fixture->model;
}

static void
fixture_clear(Fixture *fixture)
{
    zp_model_free(fixture->model);
    job_fixture_clear(&fixture->base);
}

static gboolean
apply(Fixture *fixture, ZpFsdpSource source, const char *text, GError **error)
{
    g_autoptr(ZpFsdpConfig) config = zp_fsdp_config_parse(source, "f", text, strlen(text), NULL);
    return zp_fsdp_apply_job(config, &fixture->settings, &fixture->base.job, error);
}

#define FSDP "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n"
#define BY_CLASS "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"

static gint64
peak_of(ZpFsdpSource source, const char *text)
{
    Fixture fixture;
    fixture_init(&fixture);
    g_autoptr(GError) error = NULL;
    gboolean ok = apply(&fixture, source, text, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_autoptr(ZpStep) step = zp_step_new();
    gint64 peak = job_fixture_run(&fixture.base, step).peak_bytes;
    fixture_clear(&fixture);
    return peak;
}

/* What the settings mean shows in the peak: less is gathered at once when blocks are units, and
 * less is kept when they are freed after forward. */
static void
test_peaks(void)
{
    gint64 blocks = peak_of(ZP_FSDP_ACCELERATE, FSDP "  fsdp_version: 2\n" BY_CLASS);
    gint64 whole = peak_of(ZP_FSDP_ACCELERATE, FSDP "  fsdp_version: 2\n");
    gint64 kept = peak_of(ZP_FSDP_ACCELERATE,
                          FSDP "  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n" BY_CLASS);
    gint64 host = peak_of(ZP_FSDP_ACCELERATE,
                          FSDP "  fsdp_version: 2\n  fsdp_offload_params: true\n" BY_CLASS);
    g_assert_cmpint(blocks, <, kept);
    g_assert_cmpint(blocks, <, whole);
    g_assert_cmpint(host, <, blocks);
    gint64 one = peak_of(ZP_FSDP_ACCELERATE, FSDP BY_CLASS);
    gint64 none = peak_of(ZP_FSDP_ACCELERATE, FSDP "  fsdp_sharding_strategy: NO_SHARD\n" BY_CLASS);
    g_assert_cmpint(one, <, none);
    gint64 trainer =
        peak_of(ZP_FSDP_TRAINER, "{\"fsdp\": \"full_shard auto_wrap\", \"bf16\": true}");
    g_assert_cmpint(trainer, ==, one);
}

static void
test_titan(void)
{
    Fixture fixture;
    fixture_init(&fixture);
    g_autoptr(GError) error = NULL;
    g_assert_true(apply(&fixture, ZP_FSDP_TORCHTITAN,
                        "[training]\nlocal_batch_size = 2\nseq_len = 256\n[parallelism]\n"
                        "data_parallel_replicate_degree = 2\n[activation_checkpoint]\n"
                        "mode = 'full'\n",
                        &error));
    const ZpJob *job = &fixture.base.job;
    g_assert_cmpstr(job->runtime, ==, "fsdp2");
    g_assert_cmpint(job->world.shard_group, ==, 4);
    g_assert_cmpint(job->training.micro_batch, ==, 2);
    g_assert_cmpint(job->training.sequence, ==, 256);
    g_assert_cmpint(job->training.checkpointing, ==, ZP_CHECKPOINTING_FULL);
    g_assert_cmpint(job->precision.parameter, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->precision.gathered, ==, ZP_DTYPE_BF16);
    g_assert_cmpint(job->precision.reduce, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->zero.outer, ==, ZP_OUTER_OWN);
    g_assert_cmpint(job->training.selective, ==, ZP_SELECTIVE_ATTENTION_CORE);
    g_assert_true(apply(&fixture, ZP_FSDP_TORCHTITAN,
                        "[activation_checkpoint]\nmode = 'selective'\n"
                        "selective_ac_option = 'op'\n",
                        &error));
    g_assert_cmpint(job->training.checkpointing, ==, ZP_CHECKPOINTING_SELECTIVE);
    g_assert_cmpint(job->training.selective, ==, ZP_SELECTIVE_EVERY_SECOND_PRODUCT);
    fixture_clear(&fixture);
}

/* accelerate wraps the model in DistributedDataParallel with its defaults. */
static void
test_data_parallel(void)
{
    Fixture fixture;
    fixture_init(&fixture);
    g_autoptr(GError) error = NULL;
    g_assert_true(apply(&fixture, ZP_FSDP_ACCELERATE,
                        "distributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precision: bf16\n"
                        "gradient_accumulation_steps: 2\n",
                        &error));
    g_assert_no_error(error);
    const ZpJob *job = &fixture.base.job;
    g_assert_cmpstr(job->runtime, ==, "ddp");
    g_assert_cmpint(job->zero.stage, ==, 0);
    g_assert_cmpint(job->world.ranks, ==, 4);
    g_assert_cmpint(job->training.accumulation, ==, 2);
    g_assert_cmpint(job->precision.parameter, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->precision.gradient, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->precision.gathered, ==, ZP_DTYPE_BF16);
    g_autoptr(ZpStep) step = zp_step_new();
    gint64 n = fixture.base.job.model->n_elements;
    /* parameters, gradients, buckets, two moments */
    g_assert_cmpint(job_fixture_run(&fixture.base, step).peak_bytes, >=, 5 * 4 * n);
    fixture_clear(&fixture);
}

static void
test_offload(void)
{
    Fixture fixture;
    fixture_init(&fixture);
    g_autoptr(GError) error = NULL;
    g_assert_true(
        apply(&fixture, ZP_FSDP_ACCELERATE, FSDP "  fsdp_offload_params: true\n", &error));
    g_assert_cmpstr(fixture.base.job.runtime, ==, "fsdp1");
    g_assert_true(fixture.settings.cpu_offload);
    fixture_clear(&fixture);
}

static void
test_refusals(void)
{
    static const struct {
        ZpFsdpSource source;
        const char *text;
        ZpFsdpApplyError error;
    } cases[] = {
        {ZP_FSDP_ACCELERATE, FSDP "  fsdp_version: 7\n", ZP_FSDP_APPLY_ERROR_REFUSED},
        {ZP_FSDP_ACCELERATE, "distributed_type: MEGATRON_LM\n", ZP_FSDP_APPLY_ERROR_UNSUPPORTED},
        {ZP_FSDP_TORCHTITAN, "[parallelism]\ndata_parallel_shard_degree = 3\n",
         ZP_FSDP_APPLY_ERROR_UNSUPPORTED},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fixture fixture;
        fixture_init(&fixture);
        g_autoptr(GError) error = NULL;
        g_assert_false(apply(&fixture, cases[i].source, cases[i].text, &error));
        g_assert_error(error, ZP_FSDP_APPLY_ERROR, (int)cases[i].error);
        fixture_clear(&fixture);
    }
}

static void
test_deepspeed(void)
{
    static const char text[] = "{\"train_micro_batch_size_per_gpu\": \"auto\", \"bf16\": "
                               "{\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, "
                               "\"reduce_bucket_size\": \"auto\"}}";
    Fixture fixture;
    fixture_init(&fixture);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpDsConfig) open = zp_ds_config_parse("ds.json", text, strlen(text), NULL);
    g_assert_false(zp_ds_apply_job(open, &fixture.deepspeed, &fixture.base.job, &error));
    g_assert_error(error, ZP_DS_APPLY_ERROR, ZP_DS_APPLY_ERROR_OPEN);
    g_assert_nonnull(strstr(error->message, "reduce_bucket_size"));
    g_clear_error(&error);
    ZpDsContext context = {.hidden = 512};
    g_autoptr(ZpDsConfig) filled = zp_ds_config_parse("ds.json", text, strlen(text), &context);
    g_assert_true(zp_ds_apply_job(filled, &fixture.deepspeed, &fixture.base.job, &error));
    g_assert_cmpint(fixture.deepspeed.reduce_bucket_elements, ==, 512 * 512);
    g_assert_cmpint(fixture.base.job.training.micro_batch, ==, 1); /* the job's own */
    g_assert_cmpint(fixture.base.job.zero.stage, ==, 3);
    g_autoptr(ZpStep) step = zp_step_new();
    g_assert_cmpint(job_fixture_run(&fixture.base, step).peak_bytes, >, 0);
    fixture_clear(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/apply/peaks", test_peaks);
    g_test_add_func("/apply/titan", test_titan);
    g_test_add_func("/apply/data_parallel", test_data_parallel);
    g_test_add_func("/apply/offload", test_offload);
    g_test_add_func("/apply/refusals", test_refusals);
    g_test_add_func("/apply/deepspeed", test_deepspeed);
    return g_test_run();
}
