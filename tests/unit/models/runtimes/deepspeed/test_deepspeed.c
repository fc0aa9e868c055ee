/* The DeepSpeed runtime as a whole: players, options, offload, the job's life beside the step. */
#include "models/runtimes/deepspeed/lifecycle.h"
#include "sim/players/maxplus.h"
#include "tests/unit/fixtures/deepspeed_fixture.h"

/* Every stage and the usual options: the tape keeps its rules, both players agree to finish it,
 * and steps repeat. */
static void
test_plays(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("GPT-2");
    for (int variant = 0; variant < 24; variant++) {
        DsFixture f;
        int stage = variant % 4;
        ds_fixture_init(&f, model, 16, stage);
        f.job.simulation.steps = 2;
        f.job.training.accumulation = 1 + variant / 12;
        f.job.training.checkpointing =
            variant / 4 % 3 == 1 ? ZP_CHECKPOINTING_FULL : ZP_CHECKPOINTING_NONE;
        f.settings.overlap_comm = variant / 4 % 3 == 2;
        f.settings.cold = variant % 8 < 4;
        if (stage > 0 && variant >= 12)
            f.settings.offload_optimizer.device = ZP_DS_CPU;
        if (stage == 3 && variant >= 16) {
            f.settings.offload_param.device = ZP_DS_CPU;
            f.settings.hpz_partition_ranks = 8;
        }
        ds_fixture_compile(&f);
        ZpPlayConfig config = {.n_ranks = 1, .launch_overhead_ps = 5000000};
        g_auto(ZpPlayResult) events = {0}, sweep = {0};
        g_autoptr(GError) error = NULL;
        g_assert_true(zp_player_play(f.tape, &config, &events, &error));
        g_assert_true(zp_maxplus_play(f.tape, &config, &sweep, &error));
        g_assert_cmpint(events.end, >=, sweep.end);
        g_assert_cmpint(sweep.end, >, 0);
        const ZpMemory *memory = &events.ranks[0].memory[ZP_TAPE_SPACE_DEVICE];
        g_assert_cmpint(memory->bytes[ZP_CLASS_ACTIVATION], ==, 0);
        g_assert_cmpint(memory->bytes[ZP_CLASS_LOGITS], ==, 0);
        g_assert_cmpint(memory->bytes[ZP_CLASS_GATHERED], ==, 0);
        g_assert_cmpint(memory->bytes[ZP_CLASS_OPTIMIZER_TEMPORARY], ==, 0);
        ds_fixture_clear(&f);
    }
}

/* A tape that starts in steady state holds the last of the steps of one that starts cold. */
static void
test_warm_is_cold_later(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("GPT-2");
    for (int variant = 0; variant < 16; variant++) {
        DsFixture cold, warm;
        int stage = variant % 4;
        ds_fixture_init(&cold, model, 8, stage);
        cold.job.training.accumulation = 1 + variant / 4 % 2;
        if (stage > 0 && variant >= 8)
            cold.settings.offload_optimizer.device = ZP_DS_CPU;
        if (stage == 3 && variant < 8)
            cold.settings.hpz_partition_ranks = 4;
        warm = cold;
        warm.tape = zp_tape_new(zp_vocabulary_get());
        cold.settings.cold = TRUE;
        cold.job.simulation.steps = 4;
        ds_fixture_compile(&cold);
        ds_fixture_compile(&warm);
        gint32 last = cold.tape->step_begin[3], first = warm.tape->step_begin[0];
        g_assert_cmpint(cold.tape->n_instrs - last, ==, warm.tape->n_instrs - first);
        for (gint32 i = 0; i < warm.tape->n_instrs - first; i++) {
            const ZpTapeInstr *a = &cold.tape->instrs[last + i];
            const ZpTapeInstr *b = &warm.tape->instrs[first + i];
            g_assert_cmpint(a->op, ==, b->op);
            g_assert_cmpint(a->phase, ==, b->phase);
            if (a->op == ZP_TAPE_ALLOC || a->op == ZP_TAPE_FREE)
                g_assert_cmpint(cold.tape->buffers[a->a].bytes, ==, warm.tape->buffers[b->a].bytes);
        }
        DsMemory after_cold, after_warm;
        ds_play_memory(cold.tape, cold.tape->n_instrs, &after_cold);
        ds_play_memory(warm.tape, warm.tape->n_instrs, &after_warm);
        for (int space = 0; space < ZP_TAPE_N_SPACES; space++)
            g_assert_cmpint(after_cold.total[space], ==, after_warm.total[space]);
        ds_fixture_clear(&cold);
        ds_fixture_clear(&warm);
    }
}

static ZpDsLifePeaks
life(DsFixture *f, ZpDsLife what)
{
    ZpDsLifePeaks peaks;
    g_autoptr(GError) error = NULL;
    f->job.optimizer = &f->optimizer;
    f->job.deepspeed = &f->settings;
    gboolean ok = zp_ds_lifecycle_peaks(&f->job, what, f->tape, &peaks, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return peaks;
}

/* Construction ends with what the first step finds, on the device and in host memory. */
static void
test_construction(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("GPT-2");
    for (int variant = 0; variant < 24; variant++) {
        DsFixture f;
        int stage = variant % 4, offload = variant / 4 % 3;
        ds_fixture_init(&f, model, 8, stage);
        f.settings.cold = TRUE;
        f.settings.zero_init = variant >= 12;
        f.settings.pinned_power_of_two = variant >= 12;
        f.settings.sub_group_elements = 3000000;
        if (stage > 0 && offload > 0)
            f.settings.offload_optimizer.device =
                stage == 3 && offload == 2 ? ZP_DS_NVME : ZP_DS_CPU;
        if (stage == 3 && offload > 0)
            f.settings.offload_param.device = offload == 2 ? ZP_DS_NVME : ZP_DS_CPU;
        if (offload == 2) {
            f.settings.offload_param.max_in_cpu_elements = 4000000;
            f.settings.offload_param.buffer_count = 200;
            f.settings.offload_param.buffer_elements = 5000000;
            f.settings.hpz_partition_ranks = 4;
        }
        ds_fixture_compile(&f);
        DsMemory memory;
        ds_play_memory(f.tape, f.tape->step_begin[0], &memory);
        ZpDsLifePeaks peaks = life(&f, ZP_DS_LIFE_CONSTRUCT);
        g_assert_cmpint(peaks.device_after_bytes, ==, memory.total[ZP_TAPE_SPACE_DEVICE]);
        g_assert_cmpint(peaks.host_after_bytes, ==, memory.total[ZP_TAPE_SPACE_HOST]);
        g_assert_cmpint(peaks.device_peak_bytes, >=, peaks.device_after_bytes);
        if (!f.settings.zero_init || stage < 3) {
            /* The whole fp32 model is in host memory once, and on the device in bf16. */
            g_assert_cmpint(peaks.host_peak_bytes, >=, 4 * model->n_elements);
            g_assert_cmpint(peaks.device_peak_bytes, >=, 2 * model->n_elements);
        }
        ds_fixture_clear(&f);
    }
}

static void
test_life(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("Llama-2-7B");
    DsFixture f;
    ds_fixture_init(&f, model, 64, 3);
    ZpDsLifePeaks without = life(&f, ZP_DS_LIFE_CONSTRUCT);
    f.settings.zero_init = TRUE;
    ZpDsLifePeaks with = life(&f, ZP_DS_LIFE_CONSTRUCT);
    g_assert_cmpint(without.device_peak_bytes, >=, 2 * model->n_elements);
    /* One embedding table in fp32 and bf16, beside the partitions. */
    g_assert_cmpint(with.device_peak_bytes, <, without.device_peak_bytes);
    g_assert_cmpint(with.host_peak_bytes, <, without.host_peak_bytes);
    gint64 partitions = with.device_after_bytes;
    ZpDsLifePeaks first = life(&f, ZP_DS_LIFE_FIRST_STEP);
    ZpDsLifePeaks later = life(&f, ZP_DS_LIFE_LATER_STEP);
    g_assert_cmpint(first.device_after_bytes, ==, later.device_after_bytes);
    g_assert_cmpint(first.device_after_bytes, >, partitions);
    ZpDsLifePeaks sharded = life(&f, ZP_DS_LIFE_SAVE);
    ZpDsLifePeaks whole = life(&f, ZP_DS_LIFE_SAVE_16BIT);
    ZpDsLifePeaks load = life(&f, ZP_DS_LIFE_LOAD);
    g_assert_cmpint(sharded.device_peak_bytes, ==, later.device_after_bytes);
    g_assert_cmpint(whole.host_peak_bytes, ==, 2 * model->n_elements);
    /* One table of 131072000 elements is gathered beside the state, persistent ones released. */
    g_assert_cmpint(whole.device_peak_bytes, ==,
                    later.device_after_bytes - 2 * 266240 + 2 * 131072000);
    gint64 shard = zp_ds_partition_elements(model->n_elements, 64);
    g_assert_cmpint(load.host_peak_bytes, ==, (2 + 4 + 8) * shard);
    g_assert_cmpint(load.device_after_bytes, ==, later.device_after_bytes);
    f.job.zero.stage = 2;
    g_autoptr(GError) error = NULL;
    ZpDsLifePeaks none;
    g_assert_false(zp_ds_lifecycle_peaks(&f.job, ZP_DS_LIFE_SAVE_16BIT, f.tape, &none, &error));
    g_assert_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED);
    ds_fixture_clear(&f);
}

/* Leaf modules, MiCS, quantised weights and the like compile and end where they began. */
static void
test_options(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("Llama-2-7B");
    gint64 peaks[8];
    for (int variant = 0; variant < 8; variant++) {
        DsFixture f;
        ds_fixture_init(&f, model, 16, 3);
        f.job.simulation.steps = 3;
        f.settings.mics_shard_ranks = variant == 0 ? 16 : 0;
        f.settings.mics_hierarchical = variant == 0;
        f.settings.memory_efficient_linear = variant != 6; /* 7: all defaults */
        f.settings.quantized_weights = variant == 1;
        f.settings.allgather_sequential = variant == 2;
        f.settings.all_reduce_for_fetch = variant == 3;
        f.settings.reduce_scatter = variant != 4;
        f.settings.module_granularity = variant == 5 ? 1000000000 : 0;
        f.settings.max_live_elements = 30000000;
        f.settings.prefetch_bucket_elements = 10000000;
        ds_fixture_compile(&f);
        DsMemory one, three;
        ds_play_memory(f.tape, f.tape->step_begin[1], &one);
        ds_play_memory(f.tape, f.tape->n_instrs, &three);
        for (int c = 0; c < ZP_N_CLASSES; c++)
            g_assert_cmpint(one.now[ZP_TAPE_SPACE_DEVICE][c], ==,
                            three.now[ZP_TAPE_SPACE_DEVICE][c]);
        g_assert_cmpint(one.now[ZP_TAPE_SPACE_DEVICE][ZP_CLASS_GATHERED], ==, 0);
        peaks[variant] = three.peak[ZP_TAPE_SPACE_DEVICE];
        ds_fixture_clear(&f);
    }
    g_assert_cmpint(peaks[6], >, peaks[7]);
}

/* One rank: nothing is gathered and nothing is sent. */
static void
test_one_rank(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("GPT-2");
    for (int stage = 0; stage <= 3; stage++) {
        DsFixture f;
        ds_fixture_init(&f, model, 1, stage);
        f.settings.cold = TRUE;
        ds_fixture_compile(&f);
        for (gint32 w = 0; w < f.tape->n_works; w++)
            g_assert_cmpint(f.tape->works[w].category, !=, ZP_TAPE_COMMUNICATION);
        for (gint32 b = 0; b < f.tape->n_buffers; b++)
            g_assert_cmpint(f.tape->buffers[b].class_id, !=, ZP_CLASS_GATHERED);
        ds_fixture_clear(&f);
    }
}

/* NVMe: state leaves host memory, pools come instead, and the step reads and writes it. */
static void
test_nvme(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("Llama-2-7B");
    DsFixture f;
    ds_fixture_init(&f, model, 8, 3);
    f.settings.sub_group_elements = 100000000;
    f.settings.offload_optimizer.device = ZP_DS_NVME;
    ds_fixture_compile(&f);
    gint64 moved[2] = {0, 0};
    for (gint32 w = 0; w < f.tape->n_works; w++) {
        if (f.tape->works[w].kind == (gint16)ZP_KIND_NVME_READ)
            moved[0] += f.tape->works[w].bytes;
        if (f.tape->works[w].kind == (gint16)ZP_KIND_NVME_WRITE)
            moved[1] += f.tape->works[w].bytes;
    }
    gint64 owned = 842301952;
    g_assert_cmpint(moved[0], ==, 16 * owned); /* master, gradient, two moments */
    g_assert_cmpint(moved[1], ==, 16 * owned); /* the gradient in backward, the rest after */
    DsMemory memory;
    ds_play_memory(f.tape, f.tape->n_instrs, &memory);
    g_assert_cmpint(memory.now[ZP_TAPE_SPACE_HOST][ZP_CLASS_MOMENTUM], ==, 0);
    g_assert_cmpint(memory.now[ZP_TAPE_SPACE_HOST][ZP_CLASS_MASTER], <, 4 * owned);
    ds_fixture_clear(&f);
}

/* NVMe parameters: each use reads the partition once, ahead of its gather where buffers allow. */
static void
test_nvme_parameters(void)
{
    g_autoptr(ZpModel) model = ds_catalogue("Llama-2-7B");
    DsFixture f;
    ds_fixture_init(&f, model, 8, 3);
    f.settings.offload_optimizer.device = ZP_DS_CPU;
    f.settings.offload_param.device = ZP_DS_NVME;
    f.settings.offload_param.max_in_cpu_elements = 0;
    f.settings.offload_param.buffer_count = 12;
    /* What stays gathered keeps its host buffer. */
    f.settings.max_reuse_distance_elements = 0;
    f.settings.max_live_elements = 300000000;
    f.settings.sub_group_elements = 100000000;
    ds_fixture_compile(&f);
    gint64 read = 0, gathered = 0;
    for (gint32 i = f.tape->step_begin[0]; i < f.tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &f.tape->instrs[i];
        if (instr->op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &f.tape->works[instr->a];
        if (work->kind == (gint16)ZP_KIND_NVME_READ)
            read += work->bytes;
        /* Persistent parameters are too small for NVMe. */
        if (work->kind == (gint16)ZP_KIND_ALL_GATHER && work->bytes > 2 * 100000)
            gathered += work->bytes / 8;
    }
    g_assert_cmpint(read, >, 0);
    g_assert_cmpint(read, ==, gathered);
    f.settings.offload_param.buffer_count = 1;
    f.settings.module_granularity = 50000000; /* leaf modules of several parameters */
    g_autoptr(GError) error = NULL;
    zp_tape_clear(f.tape);
    g_assert_false(zp_runtime_deepspeed.compile(&f.job, NULL, f.tape, &error));
    g_assert_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED);
    ds_fixture_clear(&f);
}

/* Pinned host buffers are rounded up to powers of two when torch allocates them. */
static void
test_pinned_rounding(void)
{
    g_autoptr(ZpModel) model = ds_model_m();
    gint64 pinned[2] = {0, 0};
    for (int rounded = 0; rounded < 2; rounded++) {
        DsFixture f;
        ds_fixture_init(&f, model, 4, 3);
        f.settings.offload_optimizer.device = ZP_DS_CPU;
        f.settings.pinned_power_of_two = rounded;
        ds_fixture_compile(&f);
        for (gint32 b = 0; b < f.tape->n_buffers; b++)
            pinned[rounded] += f.tape->buffers[b].pinned ? f.tape->buffers[b].bytes : 0;
        ds_fixture_clear(&f);
    }
    g_assert_cmpint(pinned[0], ==, 378 * 2 + 378 * 4);
    g_assert_cmpint(pinned[1], ==, 1024 + 2048);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/deepspeed/plays", test_plays);
    g_test_add_func("/deepspeed/warm-is-cold-later", test_warm_is_cold_later);
    g_test_add_func("/deepspeed/construction", test_construction);
    g_test_add_func("/deepspeed/life", test_life);
    g_test_add_func("/deepspeed/options", test_options);
    g_test_add_func("/deepspeed/one-rank", test_one_rank);
    g_test_add_func("/deepspeed/nvme", test_nvme);
    g_test_add_func("/deepspeed/nvme-parameters", test_nvme_parameters);
    g_test_add_func("/deepspeed/pinned-rounding", test_pinned_rounding);
    return g_test_run();
}
