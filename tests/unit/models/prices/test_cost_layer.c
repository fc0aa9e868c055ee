/* Layers by shape, and calibration files. */
#include <math.h>
#include <string.h>

#include "models/families/architecture.h"
#include "models/families/catalog.h"
#include "models/prices/layer.h"
#include "models/step/step.h"
#include "tests/unit/fixtures/cost_fixture.h"

/* 8192 x 4096 x 1024 by hand, on tiles of 128 x 256. */
static void
test_product(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const ZpCalibration *c = &fixture->calibration;
    double work = 2.0 * 8192 * 4096 * 1024 / (312e12 * c->gemm_efficiency * c->gemm_sustained);
    work *= 1.0 + c->gemm_tile * 108.0 / (64.0 * 16.0);
    work *= 1.0 + c->gemm_depth / 1024.0;
    double expected = work + zp_time_to_seconds(c->gemm_latency_ps);
    g_assert_cmpfloat_with_epsilon(
        zp_cost_gemm_seconds(&fixture->job.device, 8192, 4096, 1024) / expected, 1.0, 1e-12);
    /* A tile more than a full one is another tile; nothing costs nothing. */
    g_assert_cmpfloat(zp_cost_gemm_seconds(&fixture->job.device, 129, 256, 1024), <,
                      zp_cost_gemm_seconds(&fixture->job.device, 257, 256, 1024));
    g_assert_cmpfloat(zp_cost_gemm_seconds(&fixture->job.device, 0, 256, 1024), ==, 0.0);
}

/* A product as long as `heat` is slowed half as much as a long one; a short one hardly. */
static void
test_heat(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    ZpCalibration *c = &fixture->calibration;
    ZpDevice *device = &fixture->job.device;
    c->gemm_latency_ps = 0;
    c->gemm_sustained = 1.0;
    double cold = zp_cost_gemm_seconds(device, 8192, 4096, 4096);
    c->gemm_sustained = 0.5;
    g_assert_cmpfloat_with_epsilon(zp_cost_gemm_seconds(device, 8192, 4096, 4096) / cold, 2.0,
                                   1e-9);
    c->gemm_heat_ps = zp_time_from_seconds(cold);
    g_assert_cmpfloat_with_epsilon(zp_cost_gemm_seconds(device, 8192, 4096, 4096) / cold, 1.5,
                                   1e-6);
    g_autofree char *text = zp_calibration_print(c, NULL);
    g_autoptr(ZpCalibration) again = zp_calibration_parse(text, NULL);
    g_assert_nonnull(again);
    g_assert_cmpfloat_with_epsilon((double)again->gemm_heat_ps / (double)c->gemm_heat_ps, 1.0,
                                   1e-5);
}

/* The MLP of a block: three products forward, six backward, and the bytes of norm, residual and
 * gate: 2 x 21 h + 2 x 3 h + 2 x 8.5 f. */
static void
test_mlp(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const ZpDevice *device = &fixture->job.device;
    const ZpModelLayer *mlp = layer_of(fixture, ZP_LAYER_MLP);
    ZpCostParts forward = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_FORWARD);
    ZpCostParts backward = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_BACKWARD);
    double t = 8192, h = 1024, f = 4096;
    double up = zp_cost_gemm_seconds(device, t, f, h), down = zp_cost_gemm_seconds(device, t, h, f);
    g_assert_cmpfloat_with_epsilon(forward.products / (2.0 * up + down), 1.0, 1e-9);
    double inputs =
        2.0 * zp_cost_gemm_seconds(device, t, h, f) + zp_cost_gemm_seconds(device, t, f, h);
    double weights =
        2.0 * zp_cost_gemm_seconds(device, h, f, t) + zp_cost_gemm_seconds(device, f, h, t);
    g_assert_cmpfloat_with_epsilon(backward.products / (inputs + weights), 1.0, 1e-9);
    double bytes = (48.0 * h + 17.0 * f) * t;
    double expected = bytes / (2e12 * fixture->calibration.memory_efficiency);
    g_assert_cmpfloat_with_epsilon(forward.elementwise / expected, 1.0, 1e-9);
    g_assert_cmpfloat_with_epsilon(backward.elementwise / forward.elementwise,
                                   fixture->calibration.elementwise_backward, 1e-9);
    g_assert_cmpfloat(forward.attention, ==, 0.0);
}

/* Causal attention, head size 128, sequence 2048: the measured 155 TFLOP/s. */
static void
test_attention(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const ZpModelLayer *attention = layer_of(fixture, ZP_LAYER_ATTENTION);
    ZpCostParts forward = zp_cost_layer_parts(&fixture->job, attention, ZP_KIND_FORWARD);
    ZpCostParts backward = zp_cost_layer_parts(&fixture->job, attention, ZP_KIND_BACKWARD);
    double flops = 2.0 * 1024 * 4.0 * 2048.0 * 2048.0; /* half of 4 s^2 h, four sequences */
    g_assert_cmpfloat_with_epsilon(forward.attention / (flops / 155e12), 1.0, 1e-9);
    g_assert_cmpfloat_with_epsilon(backward.attention / forward.attention, 2.5, 1e-9);
    const ZpCalibration *c = &fixture->calibration;
    g_assert_cmpfloat_with_epsilon(zp_calibration_attention(c, TRUE, 4096, 64), 156e12, 1e3);
    g_assert_cmpfloat_with_epsilon(zp_calibration_attention(c, FALSE, 512, 96), 141.5e12, 1e3);
    g_assert_cmpfloat_with_epsilon(zp_calibration_attention(c, TRUE, 1 << 20, 256), 189e12, 1e3);
    g_assert_cmpfloat_with_epsilon(zp_calibration_attention(c, TRUE, 256, 128), 49.5e12, 1e3);
}

static void
test_recompute(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const ZpModelLayer *mlp = layer_of(fixture, ZP_LAYER_MLP);
    ZpCalibration *c = &fixture->calibration;
    fixture->job.training.checkpointing = ZP_CHECKPOINTING_FULL;
    c->recompute_stops_early = FALSE;
    ZpCostParts forward = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_FORWARD);
    ZpCostParts again = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_RECOMPUTE);
    g_assert_cmpfloat_with_epsilon(again.products, forward.products, 1e-15);
    c->recompute_stops_early = TRUE;
    again = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_RECOMPUTE);
    double last = zp_cost_gemm_seconds(&fixture->job.device, 8192, 1024, 4096);
    g_assert_cmpfloat_with_epsilon(again.products, forward.products - last, 1e-12);
    c->recompute_share = 0.5;
    ZpCostParts half = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_RECOMPUTE);
    g_assert_cmpfloat_with_epsilon(half.products, again.products / 2.0, 1e-15);
    /* Fused attention keeps nothing that selective checkpointing could drop. */
    fixture->job.training.checkpointing = ZP_CHECKPOINTING_SELECTIVE;
    ZpCostParts none = zp_cost_layer_parts(&fixture->job, mlp, ZP_KIND_RECOMPUTE);
    g_assert_cmpfloat(none.products + none.attention + none.elementwise, ==, 0.0);
}

static void
assert_repeats_less(const ZpJob *base, const char *name, ZpArchitectureOptions options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_catalog_build(name, &options, &error);
    g_assert_no_error(error);
    ZpJob job = *base;
    job.model = model;
    for (guint l = 0; l < model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, (gint32)l);
        if (layer->block == ZP_MODEL_NONE)
            continue;
        job.training.checkpointing = ZP_CHECKPOINTING_FULL;
        ZpCostParts full = zp_cost_layer_parts(&job, layer, ZP_KIND_RECOMPUTE);
        job.training.checkpointing = ZP_CHECKPOINTING_SELECTIVE;
        ZpCostParts some = zp_cost_layer_parts(&job, layer, ZP_KIND_RECOMPUTE);
        g_assert_cmpfloat(some.products, <=, full.products * (1.0 + 1e-9));
        g_assert_cmpfloat(some.attention, <=, full.attention * (1.0 + 1e-9));
        g_assert_cmpfloat(some.elementwise, <=, full.elementwise * (1.0 + 1e-9));
        if (options.selective == ZP_SELECTIVE_ATTENTION)
            g_assert_cmpfloat_with_epsilon(some.products, full.products, 1e-12);
    }
}

/* A policy that keeps some of a block repeats no more than one that keeps its input alone. */
static void
test_selective(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    gsize n = 0;
    const ZpCatalogEntry *entries = zp_catalog_entries(&n);
    fixture->calibration.recompute_stops_early = TRUE;
    for (gsize e = 0; e < n; e++) {
        for (int policy = 0; policy <= ZP_SELECTIVE_EVERY_SECOND_PRODUCT; policy++) {
            ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
            options.selective = (ZpSelective)policy;
            assert_repeats_less(&fixture->job, entries[e].name, options);
            options.attention = ZP_ATTENTION_EAGER;
            options.grouped_experts = ZP_TRAIT_NO;
            assert_repeats_less(&fixture->job, entries[e].name, options);
        }
    }
}

/* A token alone is bound by the host's launches, however fast the GPU. */
static void
test_host(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const ZpModelLayer *mlp = layer_of(fixture, ZP_LAYER_MLP);
    fixture->job.training.sequence = 1;
    fixture->calibration.host_kernel_ps = 50 * ZP_TIME_PER_US;
    ZpTime forward = zp_cost_layer(&fixture->job, mlp, ZP_KIND_FORWARD);
    g_assert_cmpint(forward, ==, 22 * 50 * ZP_TIME_PER_US);
    g_assert_cmpint(zp_cost_layer(&fixture->job, mlp, ZP_KIND_BACKWARD), ==, 4 * forward);
    fixture->calibration.host_kernel_ps = 0;
    g_assert_cmpint(zp_cost_layer(&fixture->job, mlp, ZP_KIND_FORWARD), <, forward);
}

/* 512 tokens of a 1.2B Llama on B200 are launch-bound: 8.1 ms forward, 48.8 ms with recomputation
 * and backward; 8192 tokens are not (stas00/ml-engineering). */
static void
test_launch_bound(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    ZpArchitecture a = {.family = "llama",
                        .layers = 16,
                        .hidden = 2048,
                        .heads = 32,
                        .kv_heads = 8,
                        .ffn = 8192,
                        .vocabulary = 128256,
                        .gated = TRUE,
                        .tied = TRUE,
                        .final_norm = TRUE};
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_architecture_build(&a, &options, "1.2B", &error);
    g_assert_no_error(error);
    ZpJob job = fixture->job;
    job.model = model;
    job.device.calibration = zp_calibration_find("B200-SXM-180");
    job.device.flops_per_s = 2250e12;
    job.device.memory_bytes_per_s = 8e12;
    job.training =
        (ZpTraining){.micro_batch = 1, .sequence = 512, .checkpointing = ZP_CHECKPOINTING_FULL};
    double ms[2] = {0.0, 0.0};
    for (guint l = 0; l < model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, (gint32)l);
        double forward = zp_time_to_seconds(zp_cost_layer(&job, layer, ZP_KIND_FORWARD)) * 1e3;
        double backward = zp_time_to_seconds(zp_cost_layer(&job, layer, ZP_KIND_BACKWARD)) * 1e3;
        ms[0] += forward;
        ms[1] += forward * (layer->block == ZP_MODEL_NONE ? 1.0 : 2.0) + backward;
    }
    g_assert_cmpfloat_with_epsilon(ms[0] / 8.1, 1.0, 0.1);
    g_assert_cmpfloat_with_epsilon(ms[1] / 48.8, 1.0, 0.1);
    job.training.sequence = 8192;
    const ZpModelLayer *attention = zp_model_layer(model, 1);
    ZpCostParts parts = zp_cost_layer_parts(&job, attention, ZP_KIND_FORWARD);
    g_assert_cmpfloat(parts.host, <, parts.products + parts.attention + parts.elementwise);
}

/* A collective at link speed takes `overlap_loss` of its time from computation; one bound by slow
 * NICs leans less on the GPU. */
static void
test_interference(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    g_autoptr(GError) error = NULL;
    fixture->job.network.link_tau_ps = 0;
    g_assert_true(zp_step_simulate(step, &fixture->job, NULL, NULL, &summary, &error));
    gint32 ppm[ZP_TAPE_N_CATEGORIES][ZP_TAPE_N_CATEGORIES] = {{0}};
    zp_cost_interference(&fixture->job, zp_step_tape(step), ppm);
    double rate = ppm[ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] / 1e6;
    double lost = 1.0 - ppm[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] / 1e6;
    g_assert_cmpfloat_with_epsilon(rate, fixture->calibration.overlap_rate, 1e-3);
    g_assert_cmpfloat_with_epsilon(lost / rate, fixture->calibration.overlap_loss, 1e-3);
    ZpTime slowed = summary.step_ps;
    /* A node that gives the GPU a quarter of what its links can do: a quarter of the loss. */
    ZpNetwork network = fixture->job.network;
    fixture->job.device.own_link_bytes_per_s = network.link_bytes_per_s;
    fixture->job.network.link_bytes_per_s /= 4.0;
    g_assert_true(zp_step_simulate(step, &fixture->job, NULL, NULL, &summary, &error));
    gint32 less[ZP_TAPE_N_CATEGORIES][ZP_TAPE_N_CATEGORIES] = {{0}};
    zp_cost_interference(&fixture->job, zp_step_tape(step), less);
    double quarter = 1.0 - (1.0 - fixture->calibration.overlap_rate) / 4.0;
    g_assert_cmpfloat_with_epsilon(less[ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] / 1e6, quarter,
                                   1e-3);
    g_assert_cmpfloat_with_epsilon(1.0 - less[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] / 1e6,
                                   fixture->calibration.overlap_loss * quarter / 4.0, 1e-3);
    fixture->job.network = network;
    fixture->job.world = (ZpWorld){.ranks = 16, .shard_group = 16};
    fixture->job.network.network_bytes_per_s = 10e9;
    g_assert_true(zp_step_simulate(step, &fixture->job, NULL, NULL, &summary, &error));
    gint32 slow[ZP_TAPE_N_CATEGORIES][ZP_TAPE_N_CATEGORIES] = {{0}};
    zp_cost_interference(&fixture->job, zp_step_tape(step), slow);
    g_assert_cmpint(slow[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION], >, 900000);
    fixture->job.world = (ZpWorld){.ranks = 8, .shard_group = 8};
    fixture->calibration.overlap_loss = 0.0;
    fixture->calibration.overlap_rate = 1.0;
    g_assert_true(zp_step_simulate(step, &fixture->job, NULL, NULL, &summary, &error));
    g_assert_cmpint(summary.step_ps, <, slowed);
}

/* Every runtime pays the same for the same layers, however it cuts them up. */
static void
test_runtimes(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const char *const runtimes[] = {"ideal", "fsdp1", "fsdp2", "deepspeed"};
    const ZpKind kinds[] = {ZP_KIND_FORWARD, ZP_KIND_BACKWARD, ZP_KIND_RECOMPUTE};
    fixture->job.training.checkpointing = ZP_CHECKPOINTING_FULL;
    fixture->job.precision.parameter = fixture->job.precision.gradient = ZP_DTYPE_FP32;
    fixture->job.precision.master = ZP_DTYPE_NONE;
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        g_autoptr(ZpStep) step = zp_step_new();
        ZpStepSummary summary;
        g_autoptr(GError) error = NULL;
        fixture->job.runtime = runtimes[r];
        g_assert_true(zp_step_simulate(step, &fixture->job, NULL, NULL, &summary, &error));
        const ZpTape *tape = zp_step_tape(step);
        for (gsize k = 0; k < G_N_ELEMENTS(kinds); k++) {
            double priced = 0.0, launched = 0.0, table = 0.0;
            for (guint l = 0; l < fixture->model->layers->len; l++) {
                const ZpModelLayer *layer = zp_model_layer(fixture->model, (gint32)l);
                if (kinds[k] == ZP_KIND_BACKWARD && layer->kind == ZP_LAYER_EMBEDDING)
                    table += (double)zp_cost_layer(&fixture->job, layer, kinds[k]);
                else if (kinds[k] != ZP_KIND_RECOMPUTE || layer->block != ZP_MODEL_NONE)
                    priced += (double)zp_cost_layer(&fixture->job, layer, kinds[k]);
            }
            for (gint32 i = 0; i < tape->n_instrs; i++) {
                const ZpTapeInstr *instr = &tape->instrs[i];
                if (instr->op == ZP_TAPE_LAUNCH && tape->works[instr->a].kind == (gint16)kinds[k])
                    launched += (double)tape->works[instr->a].solo_ps;
            }
            g_test_message("%s, %s: %.0f priced, %.0f launched", runtimes[r],
                           zp_vocabulary_kind_name(kinds[k]), priced, launched);
            /* Some leave out the scatter of the embedding's gradient. */
            if (launched > priced * (1.0 + 1e-6))
                launched -= table;
            g_assert_cmpfloat_with_epsilon(launched / priced, 1.0, 1e-6);
        }
    }
}

/* In fp32 the device is slower than its 16-bit attention kernels were when measured. */
static void
test_attention_of_slow_formats(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    const ZpModelLayer *attention = zp_model_layer(fixture->model, 1);
    g_assert_cmpint(attention->kind, ==, ZP_LAYER_ATTENTION);
    fixture->job.device.flops_per_s = 19.5e12;
    double tokens = 4.0 * 2048.0, pairs = tokens * 2048.0;
    ZpCostParts parts = zp_cost_layer_parts(&fixture->job, attention, ZP_KIND_FORWARD);
    double rate = (double)attention->flops_per_pair * pairs / parts.attention;
    g_assert_cmpfloat_with_epsilon(rate, 19.5e12 * fixture->calibration.gemm_efficiency, 1.0);
}

/* A head whose chunks are checkpointed runs forward again in its backward, under every price. */
static void
test_runs_again(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    ZpModelLayer *head =
        &g_array_index(fixture->model->layers, ZpModelLayer, fixture->model->layers->len - 1);
    g_assert_cmpint(head->kind, ==, ZP_LAYER_HEAD);
    g_assert_cmpfloat(zp_model_backward_passes(head, 0.0), ==, 2.0);
    ZpCostParts forward = zp_cost_layer_parts(&fixture->job, head, ZP_KIND_FORWARD);
    ZpCostParts once = zp_cost_layer_parts(&fixture->job, head, ZP_KIND_BACKWARD);
    head->runs_again = TRUE;
    ZpCostParts again = zp_cost_layer_parts(&fixture->job, head, ZP_KIND_BACKWARD);
    g_assert_cmpfloat_with_epsilon(again.products, once.products + forward.products, 1e-12);
    g_assert_cmpfloat_with_epsilon(again.elementwise, once.elementwise + forward.elementwise,
                                   1e-12);
    g_assert_cmpfloat(zp_model_backward_passes(head, 0.0), ==, 3.0);
}

static void
test_file(Fixture *fixture, gconstpointer unused G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = zp_calibration_print(&fixture->calibration, "one\ntwo");
    g_assert_true(g_str_has_prefix(text, "# one\n# two\n[gpu]\n"));
    g_autoptr(ZpCalibration) again = zp_calibration_parse(text, &error);
    g_assert_no_error(error);
    g_autofree char *same = zp_calibration_print(again, "one\ntwo");
    g_assert_cmpstr(text, ==, same);
    g_assert_cmpfloat(again->gemm_tile, ==, fixture->calibration.gemm_tile);
    g_assert_cmpint(again->host_kernel_ps, ==, fixture->calibration.host_kernel_ps);
    const struct {
        const char *from, *to, *says;
        int code;
    } broken[] = {
        {"depth=", "depht=", "[gemm] depth is missing", ZP_CALIBRATION_ERROR_KEY},
        {"loss=", "loss=x", "[overlap] loss = x", ZP_CALIBRATION_ERROR_RANGE},
        {"loss=", "loss=nan", "[overlap] loss = nan", ZP_CALIBRATION_ERROR_RANGE},
        {"causal-64=", "causal-64=1;", "[attention] causal-64", ZP_CALIBRATION_ERROR_KEY},
        {"sequences=512;", "sequences=4096;", "ascend", ZP_CALIBRATION_ERROR_RANGE},
        {"[gpu]", "[gpu", "", ZP_CALIBRATION_ERROR_SYNTAX},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_auto(GStrv) parts = g_strsplit(text, broken[i].from, 2);
        g_assert_cmpuint(g_strv_length(parts), ==, 2);
        g_autofree char *bad = g_strjoin(broken[i].to, parts[0], parts[1], NULL);
        g_autoptr(GError) why = NULL;
        g_assert_null(zp_calibration_parse(bad, &why));
        g_assert_error(why, ZP_CALIBRATION_ERROR, broken[i].code);
        g_assert_nonnull(strstr(why->message, broken[i].says));
    }
    g_assert_null(zp_calibration_find("Abacus"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name, function) \
    g_test_add("/cost-layer/" name, Fixture, NULL, setup, function, teardown)
    ADD("product", test_product);
    ADD("heat", test_heat);
    ADD("mlp", test_mlp);
    ADD("attention", test_attention);
    ADD("recompute", test_recompute);
    ADD("selective", test_selective);
    ADD("host", test_host);
    ADD("launch-bound", test_launch_bound);
    ADD("interference", test_interference);
    ADD("runtimes", test_runtimes);
    ADD("attention-of-slow-formats", test_attention_of_slow_formats);
    ADD("runs-again", test_runs_again);
    ADD("file", test_file);
    return g_test_run();
}
