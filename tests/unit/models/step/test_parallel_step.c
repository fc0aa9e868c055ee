/* Cuts of a model: what one rank sends and waits for, by sums done by hand and as published. */
#include <string.h>

#include "models/families/architecture.h"
#include "models/parallel/parallel.h"
#include "models/published/validate.h"
#include "models/step/prices.h"
#include "tests/unit/fixtures/job_fixture.h"

/* A model whose layers are known by hand, on 8 ranks of which `tensor` share a replica. */
static void
init_cut_job(JobFixture *fixture, ZpParallel parallel, int stage, const char *runtime)
{
    job_fixture_init(fixture, 1000, 1);
    zp_model_free(fixture->model);
    const ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16,
                                           .causal = TRUE,
                                           .tensor_parallel = parallel.tensor,
                                           .sequence_parallel = parallel.sequence};
    const ZpArchitecture shape = {.family = "llama",
                                  .layers = 4,
                                  .hidden = 256,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .ffn = 512,
                                  .gated = TRUE,
                                  .vocabulary = 1024};
    fixture->model = zp_architecture_build(&shape, &options, "small", NULL);
    fixture->job.model = fixture->model;
    fixture->job.runtime = runtime;
    fixture->job.zero.stage = stage;
    fixture->job.world.parallel = parallel;
    fixture->job.training.sequence = 1024;
    g_assert_true(zp_parallel_check(&fixture->job, 8, NULL));
    zp_parallel_place(&fixture->job, 8);
    fixture->job.world.shard_group = fixture->job.world.ranks;
    g_assert_true(zp_parallel_cut(fixture->model, &parallel, ZP_DTYPE_BF16, NULL));
}

typedef struct {
    int count[ZP_N_KINDS];
    gint64 bytes[ZP_N_KINDS];
} Said;

/* What the tape says under a label. */
static Said
said(const ZpTape *tape, const char *label)
{
    Said sum = {0};
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        if (tape->instrs[i].op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &tape->works[tape->instrs[i].a];
        if (work->label == ZP_TAPE_NONE ||
            strcmp(g_ptr_array_index(tape->labels, (guint)work->label), label) != 0)
            continue;
        sum.count[work->kind]++;
        sum.bytes[work->kind] += work->bytes;
    }
    return sum;
}

static Said
run_and_listen(const char *runtime, int stage, ZpParallel parallel, ZpCheckpointing policy,
               const char *label)
{
    JobFixture fixture;
    init_cut_job(&fixture, parallel, stage, runtime);
    fixture.job.training.checkpointing = policy;
    g_autoptr(ZpStep) step = zp_step_new();
    job_fixture_run(&fixture, step);
    Said sum = said(zp_step_tape(step), label);
    job_fixture_clear(&fixture);
    return sum;
}

static const struct {
    const char *runtime;
    int stage;
} runtimes[] = {{"ideal", 0}, {"ideal", 3},     {"fsdp2", 3},    {"fsdp1", 3},
                {"ddp", 0},   {"deepspeed", 1}, {"deepspeed", 3}};

/* Two all-reduces of a block forward and two backward, one of the embedding, one of the head, three
 * small ones of the loss; all runtimes alike. */
static void
test_all_reduces(void)
{
    gint64 stream = 1024 * 256 * 2;
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        Said sum = run_and_listen(runtimes[r].runtime, runtimes[r].stage, (ZpParallel){.tensor = 2},
                                  ZP_CHECKPOINTING_NONE, "tensor");
        g_assert_cmpint(sum.count[ZP_KIND_ALL_REDUCE], ==, 4 * 4 + 2 + 3);
        g_assert_cmpint(sum.bytes[ZP_KIND_ALL_REDUCE], ==, (4 * 4 + 2) * stream + 3 * 1024 * 4);
        g_assert_cmpint(sum.count[ZP_KIND_ALL_GATHER], ==, 0);
        sum = run_and_listen(runtimes[r].runtime, runtimes[r].stage, (ZpParallel){.tensor = 2},
                             ZP_CHECKPOINTING_FULL, "tensor");
        g_assert_cmpint(sum.count[ZP_KIND_ALL_REDUCE], ==, 4 * 6 + 2 + 3);
    }
}

/* A simulated rank stands for its tensor parallel neighbours: the prices say how many talk. */
static void
test_ranks_of_prices(void)
{
    for (gint32 tensor = 2; tensor <= 4; tensor *= 2) {
        JobFixture fixture;
        init_cut_job(&fixture, (ZpParallel){.tensor = tensor}, 0, "ideal");
        g_autoptr(ZpStep) step = zp_step_new();
        job_fixture_run(&fixture, step);
        g_autoptr(GArray) prices = zp_step_prices(zp_step_tape(step));
        gint64 bytes[9] = {0};
        for (guint i = 0; i < prices->len; i++) {
            const ZpStepPrice *price = &g_array_index(prices, ZpStepPrice, i);
            g_assert_cmpint(price->ranks, <=, 8);
            if (price->kind == ZP_KIND_ALL_REDUCE)
                bytes[price->ranks] += price->bytes;
        }
        gint64 gradients = fixture.model->n_elements * 2, own = tensor == 2 ? 4 : 2;
        gint64 spoken = (4 * 4 + 2) * 1024 * 256 * 2 + 3 * 1024 * 4;
        g_assert_cmpint(bytes[1], ==, 0);
        g_assert_cmpint(bytes[2] + bytes[4], ==, spoken + gradients);
        g_assert_cmpint(bytes[own], ==, gradients);
        job_fixture_clear(&fixture);
    }
}

/* Each of them is a gather and a scatter with sequence parallelism. */
static void
test_sequence_parallelism(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        Said sum = run_and_listen(runtimes[r].runtime, runtimes[r].stage,
                                  (ZpParallel){.tensor = 2, .sequence = TRUE},
                                  ZP_CHECKPOINTING_NONE, "tensor");
        g_assert_cmpint(sum.count[ZP_KIND_ALL_GATHER], ==, 4 * 4 + 2);
        g_assert_cmpint(sum.count[ZP_KIND_REDUCE_SCATTER], ==, 4 * 4 + 2);
        g_assert_cmpint(sum.count[ZP_KIND_ALL_REDUCE], ==, 3);
    }
}

/* Keys and values of the whole sequence, of the rank's key heads. */
static void
test_context_parallelism(void)
{
    gint64 keys = 2 * 1024 * 2 * 32 * 2; /* k and v, tokens, heads left, head size, bytes */
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        Said sum = run_and_listen(runtimes[r].runtime, runtimes[r].stage,
                                  (ZpParallel){.tensor = 2, .context = 2}, ZP_CHECKPOINTING_NONE,
                                  "context");
        g_assert_cmpint(sum.count[ZP_KIND_ALL_GATHER], ==, 8);
        g_assert_cmpint(sum.bytes[ZP_KIND_ALL_GATHER], ==, 8 * keys);
        g_assert_cmpint(sum.count[ZP_KIND_REDUCE_SCATTER], ==, 4);
    }
    /* Work and tokens are cut alike: attention of half the tokens over all of the sequence. */
    JobFixture whole, half;
    init_cut_job(&whole, (ZpParallel){0}, 0, "ideal");
    init_cut_job(&half, (ZpParallel){.context = 2}, 0, "ideal");
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary a = job_fixture_run(&whole, step), b = job_fixture_run(&half, step);
    g_assert_cmpfloat_with_epsilon(a.model_flops, 2.0 * b.model_flops, 1.0);
    g_assert_cmpint(a.tokens_per_step, ==, 2 * b.tokens_per_step); /* half the copies */
    job_fixture_clear(&whole);
    job_fixture_clear(&half);
}

/* Layers of 1 ms forward and 2 ms backward, one a stage: a step of m micro-batches takes m + p - 1
 * times 3 ms when nothing costs but them. */
static ZpStepSummary
run_pipeline(gint32 pipeline, gint64 micro_batches, ZpStep *step)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000, 4);
    ZpJob *job = &fixture.job;
    job->zero.stage = 0;
    job->network.link_latency_ps = job->network.network_latency_ps = 0;
    job->training.accumulation = micro_batches;
    job->world.parallel.pipeline = pipeline;
    g_assert_true(zp_parallel_check(job, 8, NULL));
    zp_parallel_place(job, 8);
    job->world.shard_group = job->world.ranks;
    g_autoptr(ZpModel) last = NULL;
    if (pipeline > 1)
        last = zp_parallel_cut_stage(fixture.model, pipeline, NULL);
    job->last_stage = last;
    ZpStepSummary summary = job_fixture_run(&fixture, step);
    job_fixture_clear(&fixture);
    return summary;
}

/* The bubble is a row of its own, so that the others' times are of what they send. */
static void
assert_pipeline_prices(const ZpTape *tape, gint32 pipeline, double waiting_ms)
{
    g_autoptr(GArray) prices = zp_step_prices(tape);
    gboolean sends = FALSE, waits = FALSE;
    for (guint i = 0; i < prices->len; i++) {
        const ZpStepPrice *price = &g_array_index(prices, ZpStepPrice, i);
        double ms = zp_time_to_seconds(price->busy_ps) * 1e3;
        if (price->kind == ZP_KIND_WAIT) {
            g_assert_cmpfloat_with_epsilon(ms, waiting_ms, 0.01);
            g_assert_cmpint(price->ranks, ==, 1);
            g_assert_cmpint(price->bytes, ==, 0);
            waits = TRUE;
        } else if (price->kind == ZP_KIND_SEND) {
            g_assert_cmpint(price->ranks, ==, 2);
            g_assert_cmpfloat(ms, <, 0.01);
            sends = TRUE;
        }
    }
    g_assert_cmpint(sends, ==, pipeline > 1);
    g_assert_cmpint(waits, ==, pipeline > 1);
}

static void
test_pipeline_time(void)
{
    g_autoptr(ZpStep) step = zp_step_new();
    const struct {
        gint32 pipeline;
        gint64 micro_batches;
    } cases[] = {{1, 8}, {2, 8}, {4, 8}, {4, 4}, {4, 2}, {4, 1}, {2, 1}};
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        ZpStepSummary summary = run_pipeline(cases[c].pipeline, cases[c].micro_batches, step);
        double stage = 3.0 * 4.0 / cases[c].pipeline; /* ms a micro-batch */
        double expected = stage * (double)(cases[c].micro_batches + cases[c].pipeline - 1);
        double ms = zp_time_to_seconds(summary.step_ps) * 1e3;
        g_assert_cmpfloat_with_epsilon(ms, expected, 0.01);
        Said sends = said(zp_step_tape(step), "pipeline");
        g_assert_cmpint(sends.count[ZP_KIND_SEND], ==,
                        cases[c].pipeline > 1 ? 2 * (gint)cases[c].micro_batches : 0);
        assert_pipeline_prices(zp_step_tape(step), cases[c].pipeline,
                               stage * (double)(cases[c].pipeline - 1));
    }
}

/* The first stage keeps min(p, m) micro-batches of its layers: 100 bytes a token and layer. */
static void
test_pipeline_memory(void)
{
    g_autoptr(ZpStep) step = zp_step_new();
    const struct {
        gint32 pipeline;
        gint64 micro_batches, kept;
    } cases[] = {{1, 8, 1}, {2, 8, 2}, {4, 8, 4}, {4, 3, 3}};
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        ZpStepSummary summary = run_pipeline(cases[c].pipeline, cases[c].micro_batches, step);
        gint64 layers = 4 / cases[c].pipeline;
        g_assert_cmpint(summary.peak_by_class[ZP_CLASS_ACTIVATION], ==,
                        cases[c].kept * layers * 100 * 1000);
        g_assert_cmpint(summary.persistent_by_class[ZP_CLASS_PARAMETER], ==, layers * 1000 * 2);
    }
}

/* Megatron-LM on B200, which nothing was fitted to: tensor, context and pipeline parallelism.
 * Reached with norms and rotary embedding as Megatron's own kernels: 6.5 % of time, 20.6 % at most
 * (written out: 4.9 and 10.1, but then Megatron on A100 and H100 comes out 11 % too slow, now 2).
 */
static void
test_published(void)
{
    g_autofree char *path = g_build_filename(ZP_SOURCE_DIR, "tests/reference/runs.csv", NULL);
    g_autofree char *csv = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_get_contents(path, &csv, NULL, &error));
    g_autoptr(ZpValidation) validation = zp_validate_run(csv, NULL, "ref", &error);
    g_assert_no_error(error);
    ZpValidateFigures figures = zp_validate_figures(validation, "ref", "B200", "SM", FALSE);
    g_assert_cmpint(figures.n, ==, 31);
    g_assert_cmpfloat(figures.mean, <=, 0.07);
    g_assert_cmpfloat(figures.max, <=, 0.21);
    /* InternLM's with tensor parallelism, 8 to 1,024 GPUs, beside four without. */
    figures = zp_validate_figures(validation, "ref", "A100-80GB", "IL", FALSE);
    g_assert_cmpint(figures.n, ==, 20);
    g_assert_cmpfloat(figures.mean, <=, 0.07);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parallel/all-reduces", test_all_reduces);
    g_test_add_func("/parallel/ranks-of-prices", test_ranks_of_prices);
    g_test_add_func("/parallel/sequence", test_sequence_parallelism);
    g_test_add_func("/parallel/context", test_context_parallelism);
    g_test_add_func("/parallel/pipeline/time", test_pipeline_time);
    g_test_add_func("/parallel/pipeline/memory", test_pipeline_memory);
    g_test_add_func("/parallel/published", test_published);
    return g_test_run();
}
