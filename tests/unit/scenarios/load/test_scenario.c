/* Scenario files: what is read, and what of it holds. */
#include "tests/unit/fixtures/scenario_fixture.h"

static void
test_read(void)
{
    g_autoptr(ZpScenario) scenario = scenario_fixture_parse("# a comment\n"
                                                            "[scenario]\n"
                                                            "name = first  # behind a value\n"
                                                            "\n" MODEL "[training]\n"
                                                            "  micro_batch   =  4\r\n"
                                                            "sequence=4096\n"
                                                            "[zero]\n"
                                                            "\tstage = 2\n"
                                                            "bucket = 2e8 elements\n"
                                                            "overlap = no\n"
                                                            "wrap = model\n"
                                                            "[world]\n"
                                                            "ranks = 64\n"
                                                            "shard_group = 16\n"
                                                            "[precision]\n"
                                                            "parameter = float16\n"
                                                            "reduce = fp32\n"
                                                            "[device]\n"
                                                            "memory = 80 GB\n"
                                                            "contingency = 5 %\n"
                                                            "[simulation]\n"
                                                            "jitter = 2 %\n"
                                                            "ranks = all\n"
                                                            "slow_rank = 3\n"
                                                            "slow_factor = 1.25",
                                                            NULL);
    const ZpJob *job = &scenario->job;
    g_assert_cmpstr(scenario->name, ==, "first");
    g_assert_cmpstr(scenario->path, ==, "t.ini");
    g_assert_cmpint(scenario->model->n_elements, ==, 7000000000);
    g_assert_cmpuint(scenario->model->layers->len, ==, 32);
    g_assert_true(job->model == scenario->model);
    g_assert_cmpint(job->training.micro_batch, ==, 4);
    g_assert_cmpint(job->training.sequence, ==, 4096);
    g_assert_cmpint(job->zero.stage, ==, 2);
    g_assert_cmpint(job->zero.bucket_elements, ==, 200000000);
    g_assert_cmpint(job->zero.wrap, ==, ZP_WRAP_MODEL);
    g_assert_false(job->zero.overlap);
    g_assert_cmpint(job->world.ranks, ==, 64);
    g_assert_cmpint(job->world.shard_group, ==, 16);
    g_assert_cmpint(job->precision.parameter, ==, ZP_DTYPE_FP16);
    g_assert_cmpint(job->precision.gradient, ==, ZP_DTYPE_FP16);
    g_assert_cmpint(job->precision.gathered, ==, ZP_DTYPE_FP16);
    g_assert_cmpint(job->precision.reduce, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->precision.master, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->device.capacity_bytes, ==, 80000000000);
    g_assert_cmpfloat(job->device.contingency, ==, 0.05);
    g_assert_cmpint(job->simulation.jitter_ppm, ==, 20000);
    g_assert_cmpint(job->simulation.simulated_ranks, ==, 64);
    g_assert_cmpint(job->simulation.slow_rank, ==, 3);
    g_assert_cmpint(job->simulation.slow_ppm, ==, 1250000);
    g_assert_cmpstr(job->runtime, ==, "ideal");
    g_assert_cmpstr(job->optimizer->name, ==, "adamw");
    g_assert_cmpfloat(job->device.flops_per_s, >, 1e12);
    g_assert_cmpint(job->network.gpus_per_node, >=, 1);
}

static void
test_origins(void)
{
    const char *sets[] = {"zero.stage=1", "sequence = 128", NULL};
    g_autoptr(ZpScenario) scenario =
        scenario_fixture_parse(MODEL "[training]\nmicro_batch = 2\n[zero]\nstage = 3\n", sets);
    scenario_fixture_check(scenario, "model", "total_parameters", "7e9 elements", "t.ini:2");
    scenario_fixture_check(scenario, "training", "micro_batch", "2 sequences", "t.ini:5");
    scenario_fixture_check(scenario, "training", "sequence", "128 tokens", "--set");
    scenario_fixture_check(scenario, "training", "accumulation", "1", "default");
    scenario_fixture_check(scenario, "zero", "stage", "1", "--set");
    scenario_fixture_check(scenario, "precision", "gradient", "bf16",
                           "auto: same as parameter; bf16 below 16 bits");
    scenario_fixture_check(scenario, "device", "memory", NULL, "catalogue: A100-SXM-80");
    scenario_fixture_check(scenario, "scenario", "name", "t",
                           "auto: the file's name without its ending");
    g_assert_null(scenario_fixture_find(scenario, "model", "hidden"));
    g_assert_null(scenario_fixture_find(scenario, "sweep", "limit"));
    g_assert_cmpint(scenario->job.zero.stage, ==, 1);
}

/* "auto" takes a key back, also against the file. */
static void
test_auto(void)
{
    const char *sets[] = {"model.total_parameters=auto", "pieces=auto", "layer.x.parameters=5",
                          NULL};
    g_autoptr(GError) error = NULL;
    g_assert_null(
        zp_scenario_parse(MODEL "[layer x]\nparameters = 3\n", -1, "t.ini", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_CONFLICT);
    g_autoptr(ZpScenario) scenario =
        scenario_fixture_parse(MODEL "[layer x]\nparameters = 3\n", sets);
    g_assert_cmpint(scenario->model->n_elements, ==, 5);
    scenario_fixture_check(scenario, "layer x", "parameters", "5 elements", "--set");
    scenario_fixture_check(scenario, "layer x", "flops_per_token", "10 FLOP",
                           "auto: 2 x parameters");
}

static void
test_layers(void)
{
    g_autoptr(ZpScenario) scenario =
        scenario_fixture_parse("[layer first]\nparameters = 100\n"
                               "[layer block]\nparameters = 1e6\nrepeat = 3\n"
                               "flops_per_token = 5e6\n"
                               "activation_bytes_per_token = 34 kB\n"
                               "checkpoint_bytes_per_token = 2 kB\n"
                               "[layer last.one]\nparameters = 7\n",
                               NULL);
    const ZpModel *model = scenario->model;
    g_assert_cmpuint(model->layers->len, ==, 5);
    g_assert_cmpint(model->n_elements, ==, 3000107);
    g_assert_cmpstr(zp_model_layer(model, 2)->name, ==, "block.1");
    g_assert_cmpint(zp_model_layer(model, 2)->flops_per_token, ==, 5000000);
    const ZpModelPolicyBytes *held =
        zp_model_activation(model, zp_model_layer(model, 2)->activation)->policies;
    g_assert_cmpint(held[ZP_CHECKPOINTING_NONE].kept.bytes_per_token, ==, 34000);
    g_assert_cmpint(held[ZP_CHECKPOINTING_FULL].kept.bytes_per_token, ==, 2000);
    g_assert_cmpint(zp_model_layer(model, 4)->flops_per_token, ==, 14);
    scenario_fixture_check(scenario, "layer last.one", "parameters", "7 elements", "t.ini:10");
}

/* Bytes that the first block keeps under the scenario's policy. */
static gint64
block_kept(const char *text, const char *set)
{
    const char *sets[] = {set, NULL};
    g_autoptr(ZpScenario) scenario = scenario_fixture_parse(text, sets);
    gint64 sum = 0;
    for (gint32 l = 1; l <= 2; l++) {
        gint32 index = zp_model_layer(scenario->model, l)->activation;
        int policy = (int)scenario->job.training.checkpointing;
        sum += zp_model_activation(scenario->model, index)->policies[policy].kept.bytes_per_token;
    }
    return sum;
}

/* Each key that says how layers are computed shows in what they keep. */
static void
test_activation_keys(void)
{
    const char *llama = "[model]\ncatalog = Llama-3.2-1B\n";
    const gint64 h = 2048, q = 2048, kv = 512, f = 8192, heads = 32;
    const gint64 rest = 4 * q + 4 * kv + 8 * f + 4 * heads + 8;
    g_assert_cmpint(block_kept(llama, NULL), ==, 16 * h + rest);
    g_assert_cmpint(block_kept(llama, "model.norm_kernel=fused"), ==, 8 * h + rest);
    g_assert_cmpint(block_kept(llama, "model.attention=flash_repeated"), ==,
                    16 * h + rest + 4 * (q - kv));
    g_assert_cmpint(block_kept(llama, "model.attention=eager"), ==, 16 * h + 8 * q + 8 * f + 8);
    g_assert_cmpint(block_kept("[model]\ncatalog = Llama-3.2-1B\n[precision]\nparameter = fp32\n",
                               "training.autocast=true"),
                    ==, 26 * h + rest);
    /* Over 16-bit weights there is nothing to cast but norms that are one operator. */
    g_assert_cmpint(block_kept(llama, "training.autocast=true"), ==, 16 * h + rest);
    g_assert_cmpint(block_kept(llama, "model.dropout=yes"), ==, 18 * h + rest);
    g_assert_cmpint(block_kept(llama, "training.checkpointing=full"), ==, 2 * h);
    const char *selective = "[model]\ncatalog = Llama-3.2-1B\n"
                            "[training]\ncheckpointing = selective\n";
    g_assert_cmpint(block_kept(selective, NULL), ==, 16 * h + rest);
    g_assert_cmpint(block_kept(selective, "training.selective=every_second_product"), ==,
                    4 * h + 4 * q + 2 * kv + 2 * f + 4 * heads);
}

static gboolean
warns(const ZpScenario *scenario, const char *words)
{
    for (guint i = 0; i + 1 < scenario->warnings->len; i++) { /* the last one is NULL */
        if (strstr(g_ptr_array_index(scenario->warnings, i), words) != NULL)
            return TRUE;
    }
    return FALSE;
}

static void
test_idle_activation_keys(void)
{
    const char *idle = "[training]\nselective = products\nreentrant = true\nloss_chunks = 4\n";
    g_autofree char *known = g_strconcat("[model]\ncatalog = GPT-2\n", idle, NULL);
    g_autoptr(ZpScenario) scenario = scenario_fixture_parse(known, NULL);
    g_assert_true(warns(scenario, "selective: has an effect under checkpointing = selective"));
    g_assert_true(warns(scenario, "reentrant: has an effect under checkpointing = full"));
    g_assert_true(warns(scenario, "loss_chunks: has an effect with a chunked loss"));
    /* Without operators none of them has, whatever the policy. */
    const char *policies[] = {"none", "selective", "full"};
    for (guint p = 0; p < G_N_ELEMENTS(policies); p++) {
        g_autofree char *set = g_strconcat("training.checkpointing=", policies[p], NULL);
        const char *sets[] = {set, NULL};
        g_autoptr(ZpScenario) total = scenario_fixture_parse(
            MODEL "[training]\nselective = products\nreentrant = true\nloss_chunks = 4\n"
                  "loss = chunked\n",
            sets);
        const char *keys[] = {"selective", "reentrant", "loss_chunks", "loss"};
        for (guint k = 0; k < G_N_ELEMENTS(keys); k++) {
            g_autofree char *words =
                g_strconcat(keys[k], ": has no effect on a model described in this way", NULL);
            g_assert_true(warns(total, words));
        }
        g_assert_false(warns(total, "has an effect"));
    }
}

/* Over 16-bit weights a LayerNorm is in fp32: its input is copied, and its output cast again. */
static void
test_autocast_of_16_bits(void)
{
    const char *text = "[model]\ncatalog = GPT-2\n";
    const gint64 h = 768, f = 3072;
    gint64 more = block_kept(text, "training.autocast=true") - block_kept(text, NULL);
    g_assert_cmpint(more, ==, 2 * 4 * h - 2 * 2 * h + 6 * f); /* and GELU's power in fp32 */
}

/* Another policy is another model; another batch is not. */
static void
test_activation_keys_shape(void)
{
    g_autoptr(ZpScenario) base = scenario_fixture_parse("[model]\ncatalog = Llama-3.2-1B\n", NULL);
    const char *batch[] = {"training.micro_batch=2", NULL};
    const char *loss[] = {"training.loss=raw", NULL};
    const char *chunks[] = {"training.loss=chunked", "training.loss_chunks=4", NULL};
    const char *reentrant[] = {"training.reentrant=true", "training.checkpointing=full", NULL};
    const char *cast[] = {"training.autocast=true", "precision.parameter=fp32", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) same = zp_scenario_with(base, batch, &error);
    g_assert_no_error(error);
    g_assert_true(same->model == base->model);
    const char *const *all[] = {loss, chunks, reentrant};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(ZpScenario) other = zp_scenario_with(base, (const char **)all[i], &error);
        g_assert_no_error(error);
        g_assert_true(other->model != base->model);
    }
    g_autoptr(ZpScenario) casting = zp_scenario_with(base, cast, &error);
    g_assert_no_error(error);
    scenario_fixture_check(
        casting, "precision", "compute", "bf16",
        "auto: same as gathered; bf16 below 8 bits, for integers and with autocast");
    g_assert_cmpint(casting->job.precision.gathered, ==, ZP_DTYPE_FP32);
}

static void
test_warnings(void)
{
    g_autoptr(ZpScenario) scenario = scenario_fixture_parse(
        MODEL "[zero]\nstage = 1\nprefetch = 2\nwrap = size\nwrap_blocks = 2\n", NULL);
    g_assert_cmpuint(scenario->warnings->len, ==, 3);
    g_assert_nonnull(strstr(g_ptr_array_index(scenario->warnings, 0), "t.ini:6: [zero] prefetch"));
    g_assert_nonnull(strstr(g_ptr_array_index(scenario->warnings, 1), "wrap_blocks"));
    g_assert_null(g_ptr_array_index(scenario->warnings, 2));
}

/* The runtime's overhead has named parts until a measured value replaces them. */
static void
test_overheads(void)
{
    g_autoptr(ZpScenario) catalogue = scenario_fixture_parse(MODEL, NULL);
    const ZpDevice *device = &catalogue->job.device;
    gint64 sum = 0;
    g_assert_cmpint(device->n_overheads, ==, 3);
    for (int i = 0; i < device->n_overheads; i++) {
        g_assert_cmpstr(device->overheads[i].evidence.source, !=, "");
        sum += device->overheads[i].bytes;
    }
    g_assert_cmpint(sum, ==, device->overhead_bytes);
    const char *sets[] = {"device.overhead=1 GiB", NULL};
    g_autoptr(ZpScenario) measured = scenario_fixture_parse(MODEL, sets);
    g_assert_cmpint(measured->job.device.n_overheads, ==, 0);
    g_assert_cmpint(measured->job.device.overhead_bytes, ==, 1 << 30);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scenario/read", test_read);
    g_test_add_func("/scenario/origins", test_origins);
    g_test_add_func("/scenario/auto", test_auto);
    g_test_add_func("/scenario/layers", test_layers);
    g_test_add_func("/scenario/activation-keys", test_activation_keys);
    g_test_add_func("/scenario/idle-activation-keys", test_idle_activation_keys);
    g_test_add_func("/scenario/activation-keys-shape", test_activation_keys_shape);
    g_test_add_func("/scenario/autocast-of-16-bits", test_autocast_of_16_bits);
    g_test_add_func("/scenario/overheads", test_overheads);
    g_test_add_func("/scenario/warnings", test_warnings);
    return g_test_run();
}
