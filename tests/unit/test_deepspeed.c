/* The DeepSpeed runtime as a whole: gather counts of known models, players, checkpointing,
 * evaluation between training steps, the job's life beside the step. */
#include "models/runtimes/deepspeed_lifecycle.h"
#include "sim/maxplus.h"
#include "tests/unit/deepspeed_fixture.h"

typedef struct {
    ZpDsGathers *gathers;
    gint64 launches, parameters, elements;
} Counted;

static void
listen(const ZpDsEvent *event, gpointer data)
{
    Counted *counted = data;
    zp_ds_gathers_handle(counted->gathers, event);
    if (event->kind != ZP_DS_GATHER)
        return;
    counted->launches++;
    counted->parameters += event->n_ids;
    counted->elements += event->elements;
}

/* A coordinator over a tree with its memory on a tape. */
typedef struct {
    DsFixture fixture;
    ZpDs ds;
    ZpDsTree *tree;
    ZpDsCoordinator *coordinator;
    ZpDsGathers gathers;
    ZpDsWalk walk;
    Counted counted;
    gint32 scanned;
    gint64 live, peak; /* elements */
} Trace;

static void
trace_init(Trace *t, ZpDsTree *tree, const ZpModel *model, gint32 ranks,
           const ZpDsCoordinatorConfig *config, gint64 threshold)
{
    *t = (Trace){.tree = tree};
    ds_fixture_init(&t->fixture, model, ranks, 3);
    g_autoptr(GError) error = NULL;
    g_assert_true(
        zp_ds_init(&t->ds, &t->fixture.job, &t->fixture.settings, t->fixture.tape, &error));
    zp_ds_tree_mark_persistent(tree, threshold, G_MAXINT64);
    ZpDsCoordinatorConfig full = *config;
    full.ranks = ranks;
    full.secondary_ranks = 1;
    t->coordinator = zp_ds_coordinator_new(tree, &full);
    zp_ds_gathers_init(&t->gathers, &t->ds, tree);
    zp_ds_walk_init(&t->walk, tree, t->coordinator);
    t->counted.gathers = &t->gathers;
    zp_ds_coordinator_listen(t->coordinator, listen, &t->counted);
}

static void
trace_clear(Trace *t)
{
    zp_ds_walk_clear(&t->walk);
    zp_ds_gathers_clear(&t->gathers);
    zp_ds_coordinator_free(t->coordinator);
    zp_ds_tree_free(t->tree);
    ds_fixture_clear(&t->fixture);
}

static void
trace_run(Trace *t, gboolean train, gboolean step)
{
    t->counted.launches = t->counted.parameters = t->counted.elements = 0;
    zp_ds_walk_forward(&t->walk);
    if (train)
        zp_ds_walk_backward(&t->walk);
    zp_ds_coordinator_leftovers(t->coordinator);
    if (step) {
        zp_ds_coordinator_step(t->coordinator);
        zp_ds_coordinator_persist(t->coordinator);
    }
    t->peak = t->live;
    const ZpTape *tape = t->fixture.tape;
    for (; t->scanned < tape->n_instrs; t->scanned++) {
        const ZpTapeInstr *instr = &tape->instrs[t->scanned];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        gint64 elements = tape->buffers[instr->a].bytes / 2;
        t->live += instr->op == ZP_TAPE_ALLOC ? elements : -elements;
        t->peak = MAX(t->peak, t->live);
    }
    g_assert_null(zp_ds_coordinator_error(t->coordinator));
}

static void
expect(const Trace *t, gint64 launches, gint64 parameters, gint64 elements, gint64 peak)
{
    g_assert_cmpint(t->counted.launches, ==, launches);
    g_assert_cmpint(t->counted.parameters, ==, parameters);
    g_assert_cmpint(t->counted.elements, ==, elements);
    g_assert_cmpint(t->peak, ==, peak);
}

/* root -> [emb, b0 -> [n, l1, l2], b1 -> [n, l1, l2], head] */
static ZpDsTree *
toy(gboolean checkpointed)
{
    static const struct {
        const char *module, *parameter;
        gint64 elements;
        gint32 parent;
    } spec[] = {
        {"emb", "E", 1000, 0},   {"b0", NULL, 0, 0},      {"b0.n", "n0", 10, 2},
        {"b0.l1", "A0", 401, 2}, {"b0.l2", "B0", 400, 2}, {"b1", NULL, 0, 0},
        {"b1.n", "n1", 10, 6},   {"b1.l1", "A1", 401, 6}, {"b1.l2", "B1", 400, 6},
        {"head", "H", 1000, 0},
    };
    ZpDsTree *tree = zp_ds_tree_new();
    zp_ds_tree_add_module(tree, g_intern_static_string("root"), ZP_MODEL_NONE);
    zp_ds_tree_module(tree, 0)->no_post_backward = TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(spec); i++) {
        gint32 m =
            zp_ds_tree_add_module(tree, g_intern_static_string(spec[i].module), spec[i].parent);
        zp_ds_tree_module(tree, m)->no_post_backward = i == 0;
        zp_ds_tree_module(tree, m)->checkpointed = checkpointed && spec[i].parameter == NULL;
        if (spec[i].parameter != NULL)
            zp_ds_tree_add_parameter(tree, m, g_intern_static_string(spec[i].parameter),
                                     spec[i].elements, TRUE);
    }
    zp_ds_tree_finish(tree);
    return tree;
}

static void
test_toy(void)
{
    static const struct {
        gint64 prefetch, reuse, live, threshold;
        gboolean checkpointed;
        gint64 first[4], steady[4];
    } rows[] = {
        {0, 0, 1000000000, 0, FALSE, {16, 16, 7244, 1000}, {16, 16, 7244, 1000}},
        {500, 0, 1000000000, 0, FALSE, {16, 16, 7244, 1000}, {5, 10, 4632, 4445}},
        {500, 0, 900, 0, FALSE, {16, 16, 7244, 1000}, {10, 16, 7244, 2238}},
        {0, 1000000000, 1000000000, 0, FALSE, {16, 16, 7244, 1000}, {8, 8, 3622, 3632}},
        {0, 0, 1000000000, 0, TRUE, {22, 22, 8866, 1000}, {22, 22, 8866, 1000}},
        {0, 1000000000, 1000000000, 0, TRUE, {22, 22, 8866, 1000}, {8, 8, 3622, 3632}},
        {500, 0, 2000, 10, FALSE, {16, 16, 7244, 1000}, {6, 9, 5403, 3433}},
        {0, 2500, 1000000000, 0, FALSE, {16, 16, 7244, 1000}, {14, 14, 5844, 1400}},
        {50000000, 1000000000, 1000000000, 0, FALSE, {16, 16, 7244, 1000}, {1, 8, 3622, 7254}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        ZpDsCoordinatorConfig config = {.prefetch_bucket_elements = rows[i].prefetch,
                                        .max_live_elements = rows[i].live,
                                        .max_reuse_distance_elements = rows[i].reuse};
        Trace t;
        trace_init(&t, toy(rows[i].checkpointed), NULL, 4, &config, rows[i].threshold);
        trace_run(&t, TRUE, TRUE);
        expect(&t, rows[i].first[0], rows[i].first[1], rows[i].first[2], rows[i].first[3]);
        for (int k = 0; k < 3; k++) {
            trace_run(&t, TRUE, TRUE);
            if (k > 0 || rows[i].threshold == 0)
                expect(&t, rows[i].steady[0], rows[i].steady[1], rows[i].steady[2],
                       rows[i].steady[3]);
        }
        trace_clear(&t);
    }
}

static ZpModel *
catalogue(const char *name)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_catalog_build(name, &options, &error);
    g_assert_no_error(error);
    return model;
}

static ZpDsTree *
llama_tree(const ZpModel *model, gboolean checkpointed)
{
    ZpDsTree *tree = zp_ds_tree_new_from_model(model);
    for (guint m = 0; m < model->modules->len; m++)
        zp_ds_tree_module(tree, (gint32)m)->checkpointed =
            checkpointed && zp_model_module(model, (gint32)m)->is_block;
    return tree;
}

static void
test_llama(void)
{
    static const struct {
        gint64 prefetch, live, reuse, threshold;
        gint64 plain[4], checkpointed[4];
    } rows[] = {
        {50000000,
         1000000000,
         1000000000,
         100000,
         {395, 422, 12490637312, 1126436864},
         {315, 423, 12535726080, 1126436864}},
        {50000000,
         1000000000,
         0,
         100000,
         {395, 422, 12490637312, 1126436864},
         {315, 423, 12535726080, 1126436864}},
        {50000000,
         50000000,
         0,
         100000,
         {386, 452, 13476298752, 180621312},
         {577, 644, 18509463552, 176427008}},
        {50000000,
         0,
         0,
         100000,
         {452, 452, 13476298752, 131338240},
         {676, 676, 19952304128, 131338240}},
        {0,
         1000000000,
         1000000000,
         100000,
         {439, 439, 12974030848, 502534144},
         {444, 444, 13142851584, 333713408}},
        {15099494,
         1000000000,
         1000000000,
         40960,
         {422, 422, 12490637312, 1126436864},
         {423, 423, 12535726080, -1}},
    };
    g_autoptr(ZpModel) model = catalogue("Llama-2-7B");
    for (gsize i = 0; i < 2 * G_N_ELEMENTS(rows); i++) {
        gboolean checkpointed = i % 2 == 1;
        const gint64 *steady = checkpointed ? rows[i / 2].checkpointed : rows[i / 2].plain;
        ZpDsCoordinatorConfig config = {.prefetch_bucket_elements = rows[i / 2].prefetch,
                                        .max_live_elements = rows[i / 2].live,
                                        .max_reuse_distance_elements = rows[i / 2].reuse};
        Trace t;
        trace_init(&t, llama_tree(model, checkpointed), model, 8, &config, rows[i / 2].threshold);
        trace_run(&t, TRUE, TRUE);
        if (checkpointed)
            expect(&t, 870, 870, 19953098752, 131072000);
        else
            expect(&t, 582, 582, 13476831232, 131072000);
        trace_run(&t, TRUE, TRUE);
        trace_run(&t, TRUE, TRUE);
        expect(&t, steady[0], steady[1], steady[2], steady[3] < 0 ? t.peak : steady[3]);
        trace_clear(&t);
    }
}

static void
test_accumulation_and_evaluation(void)
{
    g_autoptr(ZpModel) model = catalogue("Llama-2-7B");
    ZpDsCoordinatorConfig config = {.prefetch_bucket_elements = 50000000,
                                    .max_live_elements = 1000000000,
                                    .max_reuse_distance_elements = 1000000000};
    Trace t;
    trace_init(&t, llama_tree(model, FALSE), model, 8, &config, 100000);
    trace_run(&t, TRUE, FALSE);
    g_assert_cmpint(t.counted.launches, ==, 582);
    trace_run(&t, TRUE, TRUE); /* persistent parameters are still fetched on demand */
    g_assert_cmpint(t.counted.launches, ==, 395);
    g_assert_cmpint(t.counted.parameters, ==, 487);
    trace_run(&t, TRUE, TRUE);
    g_assert_cmpint(t.counted.parameters, ==, 422);
    trace_run(&t, FALSE, FALSE);
    g_assert_cmpint(t.live, ==, 1031016448);
    trace_run(&t, FALSE, FALSE);
    g_assert_cmpint(t.live, ==, 1997803520);
    g_assert_cmpint(t.peak, ==, 2087981056);
    trace_run(&t, TRUE, TRUE);
    g_assert_cmpint(t.peak, ==, 2110001152);
    trace_run(&t, TRUE, TRUE);
    g_assert_cmpint(t.peak, ==, 1126436864);
    trace_clear(&t);
    /* Evaluation first: one iteration invalidates the trace, one records it, then stale memoised
     * releases cost gathers for ever. */
    trace_init(&t, llama_tree(model, FALSE), model, 8, &config, 100000);
    trace_run(&t, FALSE, FALSE);
    trace_run(&t, FALSE, FALSE);
    for (int i = 0; i < 5; i++)
        trace_run(&t, TRUE, TRUE);
    g_assert_cmpint(t.counted.launches, ==, 421);
    trace_clear(&t);
}

/* Every stage and the usual options: the tape keeps its rules, both players agree to finish it,
 * and steps repeat. */
static void
test_plays(void)
{
    g_autoptr(ZpModel) model = catalogue("GPT-2");
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
    g_autoptr(ZpModel) model = catalogue("GPT-2");
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
    g_autoptr(ZpModel) model = catalogue("GPT-2");
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
    g_autoptr(ZpModel) model = catalogue("Llama-2-7B");
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
    g_autoptr(ZpModel) model = catalogue("Llama-2-7B");
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
    g_autoptr(ZpModel) model = catalogue("GPT-2");
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
    g_autoptr(ZpModel) model = catalogue("Llama-2-7B");
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
    g_autoptr(ZpModel) model = catalogue("Llama-2-7B");
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
    g_test_add_func("/deepspeed/toy", test_toy);
    g_test_add_func("/deepspeed/llama", test_llama);
    g_test_add_func("/deepspeed/accumulation-and-evaluation", test_accumulation_and_evaluation);
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
