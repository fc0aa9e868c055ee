/* The numbered statements about DeepSpeed computed by hand: stage 0, the bf16 optimizer, ZeRO++,
 * offload, and LLaMA-7B on eight ranks. */
#include "models/runtimes/deepspeed/stages/zero3.h"
#include "models/runtimes/deepspeed/stages/zeropp_internal.h"
#include "tests/unit/fixtures/deepspeed_statements.h"

static void
test_17_stage0(void)
{
    for (gint32 ranks = 2; ranks <= 8; ranks *= 2) {
        DsFixture f;
        fixture_m(&f, 0);
        f.job.world = (ZpWorld){.ranks = ranks, .shard_group = ranks};
        f.settings.cold = TRUE;
        ds_fixture_compile(&f);
        g_assert_cmpint(live_before_steps(&f), ==, 14 * 1508);
        DsMemory memory;
        ds_play_memory(f.tape, f.tape->n_instrs, &memory);
        g_assert_cmpint(memory.peak[ZP_TAPE_SPACE_DEVICE], ==, 24 * 1508);
        ds_fixture_clear(&f);
    }
}

static void
test_18_stage0_buckets(void)
{
    static const gint64 expected[] = {600000000, 600000000};
    ZpModel *model = zp_model_new("four");
    zp_model_add_layer(model, "layer", 300000000, 4, -1, 0, 0);
    zp_model_finish(model);
    DsFixture f;
    ds_fixture_init(&f, model, 4, 0);
    f.owned = model;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_ALL_REDUCE, ZP_N_PHASES, 2, 2, expected);
    ds_fixture_clear(&f);
}

static void
test_19_bf16_optimizer(void)
{
    DsFixture f;
    fixture_m(&f, 1);
    f.settings.gradient_accumulation = ZP_DTYPE_FP32;
    ds_fixture_compile(&f);
    g_assert_cmpint(live_after_step(&f), ==, 2 * 1512 + 4 * 1512 + 4 * 378 + 8 * 378);
    ds_fixture_clear(&f);
}

static void
test_20_hpz(void)
{
    g_assert_cmpint(zp_ds_partition_elements(1000, 8), ==, 125);
    g_assert_cmpint(zp_ds_secondary_elements(1000, 8, 4), ==, 250);
    g_assert_cmpint(zp_ds_partition_elements(1001, 8), ==, 126);
    g_assert_cmpint(zp_ds_secondary_elements(1001, 8, 4), ==, 252);
    /* The secondary partitions are alive from the forward's releases to the step. */
    DsFixture f;
    fixture_m(&f, 3);
    f.settings.hpz_partition_ranks = 2;
    f.settings.max_reuse_distance_elements = 0;
    f.settings.prefetch_bucket_elements = 0;
    ds_fixture_compile(&f);
    gint64 secondary = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(m_sizes); i++)
        secondary += zp_ds_secondary_elements(m_sizes[i], 4, 2);
    g_assert_cmpint(role_peak(f.tape, ZP_CLASS_PARAMETER, ZP_ROLE_SECONDARY_SHARD), ==,
                    2 * secondary);
    g_assert_cmpint(live_after_step(&f), ==, 16 * 378 + 2 * f.settings.reduce_bucket_elements);
    ds_fixture_clear(&f);
}

static void
test_21_qwz(void)
{
    g_assert_cmpint(zp_ds_quantizer_groups(2097152), ==, 512);
    g_assert_cmpint(zp_ds_quantizer_groups(16384000), ==, 2048);
    g_assert_cmpint(16384000 / zp_ds_quantizer_groups(16384000), ==, 8000);
    g_assert_cmpint(zp_ds_quantizer_groups(4097), ==, -1);
}

/* One 4096 x 4096 matrix in one module. */
static ZpModel *
matrix_model(void)
{
    ZpModel *model = zp_model_new("matrix");
    zp_model_add_layer(model, "layer", 4096 * 4096, 1, -1, 0, 0);
    ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, 0);
    parameter->shape[0] = parameter->shape[1] = 4096;
    parameter->n_dims = 2;
    zp_model_finish(model);
    return model;
}

static void
test_22_qgz(void)
{
    static const gint64 shape[] = {4096, 4096};
    ZpDsQuantizedSizes sizes = zp_ds_quantized_sizes(4096 * 4096, shape, 2, 16, 8);
    g_assert_cmpint(sizes.intra_bytes, ==, 8388608);
    g_assert_cmpint(sizes.intra_scale_bytes, ==, 16384);
    g_assert_cmpint(sizes.inter_bytes, ==, 1048576);
    g_assert_cmpint(sizes.inter_scale_bytes, ==, 2048);
    g_assert_cmpint(sizes.result_elements, ==, 1048576);
    static const gint64 expected[] = {8388608, 16384, 1048576, 2048};
    static const gint64 plain[] = {4096 * 4096};
    ZpModel *model = matrix_model();
    DsFixture f;
    ds_fixture_init(&f, model, 16, 3);
    f.owned = model;
    f.settings.quantized_gradients = TRUE;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_ALL_TO_ALL, ZP_N_PHASES, 1, 4, expected);
    f.job.network.gpus_per_node = 16;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_ALL_TO_ALL, ZP_N_PHASES, 1, 0, NULL);
    expect_sizes(&f, ZP_KIND_REDUCE_SCATTER, ZP_N_PHASES, 2, 1, plain);
    ds_fixture_clear(&f);
}

static void
test_23_llama_stage3(void)
{
    ZpModel *model = ds_catalogue("Llama-2-7B");
    DsFixture f;
    ds_fixture_init(&f, model, 8, 3);
    f.owned = model;
    ds_fixture_compile(&f);
    g_assert_cmpint(live_after_step(&f), ==, G_GINT64_CONSTANT(13476831232) + 1000000000 + 532480);
    gint64 cast, during;
    step_transient(&f, &cast, &during);
    g_assert_cmpint(cast, ==, G_GINT64_CONSTANT(5053811712));
    ds_fixture_clear(&f);
}

static void
test_24_llama_stage2(void)
{
    ZpModel *model = ds_catalogue("Llama-2-7B");
    DsFixture f;
    ds_fixture_init(&f, model, 8, 2);
    f.owned = model;
    ds_fixture_compile(&f);
    g_assert_cmpint(live_after_step(&f), ==,
                    G_GINT64_CONSTANT(13476831232) + G_GINT64_CONSTANT(10107623424));
    ds_fixture_clear(&f);
}

static void
test_25_llama_buckets(void)
{
    ZpModel *model = ds_catalogue("Llama-2-7B");
    DsFixture f;
    ds_fixture_init(&f, model, 8, 3);
    f.owned = model;
    ds_fixture_compile(&f);
    g_autoptr(GArray) sizes = ds_collectives(f.tape, ZP_KIND_REDUCE_SCATTER, ZP_N_PHASES, 2);
    g_assert_cmpuint(sizes->len, ==, 14);
    g_assert_cmpint(g_array_index(sizes, gint64, 0), ==, 485507072);
    gint64 largest = 0;
    for (guint i = 0; i < sizes->len; i++)
        largest = MAX(largest, g_array_index(sizes, gint64, i));
    g_assert_cmpint(largest, ==, 494948352);
    f.settings.reduce_bucket_elements = 4096 * 4096;
    ds_fixture_compile(&f);
    g_autoptr(GArray) many = ds_collectives(f.tape, ZP_KIND_REDUCE_SCATTER, ZP_N_PHASES, 2);
    gint64 sum = 0;
    for (guint i = 0; i < many->len; i++)
        sum += g_array_index(many, gint64, i);
    g_assert_cmpint(sum, ==, G_GINT64_CONSTANT(6738415616));
    g_assert_cmpuint(many->len, ==, 291);
    ds_fixture_clear(&f);
}

static void
test_26_defaults(void)
{
    ZpDeepspeed settings;
    zp_deepspeed_init(&settings);
    g_assert_true(zp_deepspeed_overlap(&settings, 3));
    for (int stage = 0; stage <= 2; stage++)
        g_assert_false(zp_deepspeed_overlap(&settings, stage));
    g_assert_true(settings.offload_optimizer.pin_memory);
    g_assert_true(settings.offload_param.pin_memory);
    g_assert_cmpfloat(settings.gradient_clipping, ==, 1.0);
}

static void
test_28_nvme(void)
{
    g_assert_cmpint(zp_ds3_nvme_aligned_elements(ZP_DTYPE_BF16, 100000000), ==, 100000256);
    g_assert_false(zp_ds3_nvme_swaps(262144 * 2));
    g_assert_true(zp_ds3_nvme_swaps(524288 * 2));
    DsFixture f;
    fixture_m(&f, 3);
    f.settings.offload_param.device = ZP_DS_NVME;
    f.settings.offload_optimizer.device = ZP_DS_CPU;
    ds_fixture_compile(&f);
    gint64 pool = 0;
    for (gint32 b = 0; b < f.tape->n_buffers; b++)
        if (f.tape->buffers[b].space == ZP_TAPE_SPACE_HOST &&
            f.tape->buffers[b].class_id == ZP_CLASS_PARAMETER &&
            f.tape->buffers[b].role == ZP_ROLE_PINNED)
            pool += f.tape->buffers[b].bytes;
    g_assert_cmpint(pool, ==, 1000002560);
    ds_fixture_clear(&f);
}

static gint64
transferred(const ZpTape *tape, ZpKind kind)
{
    gint64 sum = 0;
    for (gint32 i = tape->step_begin[tape->n_steps - 1]; i < tape->n_instrs; i++)
        if (tape->instrs[i].op == ZP_TAPE_LAUNCH &&
            tape->works[tape->instrs[i].a].kind == (gint16)kind)
            sum += tape->works[tape->instrs[i].a].bytes;
    return sum;
}

static void
test_29_offload_traffic(void)
{
    for (gint64 accumulation = 1; accumulation <= 4; accumulation += 3) {
        DsFixture f;
        fixture_m(&f, 3);
        f.settings.offload_optimizer.device = ZP_DS_CPU;
        f.job.training.accumulation = accumulation;
        ds_fixture_compile(&f);
        /* Rank 0 owns real elements alone: 378 of them. */
        g_assert_cmpint(transferred(f.tape, ZP_KIND_DEVICE_TO_HOST), ==,
                        378 * (accumulation * 2 + 4));
        g_assert_cmpint(transferred(f.tape, ZP_KIND_HOST_TO_DEVICE), ==,
                        378 * (accumulation * 2 + 2));
        ds_fixture_clear(&f);
    }
}

static void
test_32_nothing_left(void)
{
    static const gint64 thresholds[] = {0, 7, 501, 1000};
    static const gint64 persistent[] = {0, 8, 512, 1512};
    for (gsize i = 0; i < G_N_ELEMENTS(thresholds); i++) {
        DsFixture f;
        fixture_m(&f, 3);
        f.settings.param_persistence_elements = thresholds[i];
        f.job.simulation.steps = 3;
        ds_fixture_compile(&f);
        DsMemory memory;
        ds_play_memory(f.tape, f.tape->n_instrs, &memory);
        g_assert_cmpint(memory.now[ZP_TAPE_SPACE_DEVICE][ZP_CLASS_GATHERED], ==, 0);
        g_assert_cmpint(memory.now[ZP_TAPE_SPACE_DEVICE][ZP_CLASS_PARAMETER], ==,
                        2 * (378 + persistent[i]));
        ds_fixture_clear(&f);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/deepspeed-statements/17", test_17_stage0);
    g_test_add_func("/deepspeed-statements/18", test_18_stage0_buckets);
    g_test_add_func("/deepspeed-statements/19", test_19_bf16_optimizer);
    g_test_add_func("/deepspeed-statements/20", test_20_hpz);
    g_test_add_func("/deepspeed-statements/21", test_21_qwz);
    g_test_add_func("/deepspeed-statements/22", test_22_qgz);
    g_test_add_func("/deepspeed-statements/23", test_23_llama_stage3);
    g_test_add_func("/deepspeed-statements/24", test_24_llama_stage2);
    g_test_add_func("/deepspeed-statements/25", test_25_llama_buckets);
    g_test_add_func("/deepspeed-statements/26", test_26_defaults);
    g_test_add_func("/deepspeed-statements/28", test_28_nvme);
    g_test_add_func("/deepspeed-statements/29", test_29_offload_traffic);
    g_test_add_func("/deepspeed-statements/32", test_32_nothing_left);
    return g_test_run();
}
