/* The numbered statements about DeepSpeed computed by hand: partitions, gathers, reductions and the
 * step of stages 1 to 3 on micro-model M. */
#include "models/runtimes/deepspeed/modules/flat.h"
#include "models/runtimes/deepspeed/stages/zero3.h"
#include "tests/unit/fixtures/deepspeed_statements.h"

static void
test_01_flat(void)
{
    g_auto(ZpDsFlatGroup) group = {0};
    zp_ds_flat_group_init(&group, m_sizes, 3, 4, FALSE);
    g_assert_cmpint(group.flat_elements, ==, 1512);
    g_assert_cmpint(group.slice_elements, ==, 378);
    gint64 last = zp_ds_flat_group_inside(&group, 1, 3) + zp_ds_flat_group_inside(&group, 2, 3);
    g_assert_cmpint(group.slice_elements - last, ==, 4);
}

static void
test_02_touching(void)
{
    static const gint64 expected[] = {1000, 1000, 1501, 508};
    g_auto(ZpDsFlatGroup) group = {0};
    zp_ds_flat_group_init(&group, m_sizes, 3, 4, FALSE);
    for (gint32 rank = 0; rank < 4; rank++) {
        g_assert_cmpint(zp_ds_flat_group_touching_elements(&group, rank), ==, expected[rank]);
        DsFixture f;
        fixture_m(&f, 2);
        f.settings.rank = rank;
        ds_fixture_compile(&f);
        g_assert_cmpint(role_peak(f.tape, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT), ==,
                        2 * expected[rank]);
        ds_fixture_clear(&f);
    }
    /* The worst rank is the default. */
    DsFixture f;
    fixture_m(&f, 2);
    f.settings.rank = -1;
    ds_fixture_compile(&f);
    g_assert_cmpint(role_peak(f.tape, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT), ==, 2 * 1501);
    ds_fixture_clear(&f);
}

static void
test_03_steady_bytes(void)
{
    for (int stage = 1; stage <= 2; stage++) {
        DsFixture f;
        fixture_m(&f, stage);
        f.settings.cold = TRUE;
        ds_fixture_compile(&f);
        g_assert_cmpint(live_before_steps(&f), ==, 4536);
        g_assert_cmpint(live_after_step(&f), ==, 2 * 1512 + 4 * 378 + 8 * 378);
        ds_fixture_clear(&f);
    }
}

static void
test_04_partitions(void)
{
    static const gint64 expected[] = {250, 126, 2};
    gint64 sum = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(m_sizes); i++) {
        g_assert_cmpint(zp_ds_partition_elements(m_sizes[i], 4), ==, expected[i]);
        sum += expected[i];
    }
    g_assert_cmpint(sum, ==, 378);
    g_assert_cmpint(501 - 3 * zp_ds_partition_elements(501, 4), ==, 123); /* rank 3 of p1 */
}

static void
test_05_stage3_steady(void)
{
    DsFixture f;
    fixture_m(&f, 3);
    f.settings.reduce_bucket_elements = 1200;
    f.settings.cold = TRUE;
    ds_fixture_compile(&f);
    g_assert_cmpint(live_before_steps(&f), ==, 8 * 378 + 2400);
    g_assert_cmpint(live_after_step(&f), ==, 16 * 378 + 2400);
    ds_fixture_clear(&f);
}

/* A gather of some parameters of M on an empty tape: bytes at its peak and after the flat. */
static void
gather_m(const gint32 *ids, gint32 n, gint64 elements, gint64 flat, gint64 *peak, gint64 *after)
{
    DsFixture f;
    fixture_m(&f, 3);
    ZpDs ds = {0};
    g_autoptr(GError) error = NULL;
    f.job.optimizer = &f.optimizer;
    g_assert_true(zp_ds_init(&ds, &f.job, &f.settings, f.tape, &error));
    g_autoptr(ZpDsTree) tree = zp_ds_tree_new_from_model(f.owned);
    g_auto(ZpDsGathers) gathers = {0};
    zp_ds_gathers_init(&gathers, &ds, tree);
    ZpDsEvent event = {
        .kind = ZP_DS_GATHER, .ids = ids, .n_ids = n, .elements = elements, .flat_elements = flat};
    zp_ds_gathers_handle(&gathers, &event);
    event.kind = ZP_DS_WAIT;
    zp_ds_gathers_handle(&gathers, &event);
    event.kind = ZP_DS_FLAT_FREED;
    if (n > 1)
        zp_ds_gathers_handle(&gathers, &event);
    DsMemory memory;
    ds_play_memory(f.tape, f.tape->n_instrs, &memory);
    *peak = memory.peak[ZP_TAPE_SPACE_DEVICE] / 2;
    *after = memory.total[ZP_TAPE_SPACE_DEVICE] / 2;
    ds_fixture_clear(&f);
}

static void
test_06_gather_memory(void)
{
    static const gint32 p1[] = {1}, both[] = {1, 2};
    gint64 peak, after;
    gather_m(p1, 1, 501, 504, &peak, &after);
    g_assert_cmpint(peak, ==, 504);
    g_assert_cmpint(after, ==, 504);
    gather_m(both, 2, 508, 512, &peak, &after);
    g_assert_cmpint(peak, ==, 1020);
    g_assert_cmpint(after, ==, 508);
}

static void
expect_persistent(gint64 parameter, gint64 total, gboolean p0, gboolean p1, gboolean p2)
{
    g_autoptr(ZpModel) model = ds_model_m();
    g_autoptr(ZpDsTree) tree = zp_ds_tree_new_from_model(model);
    zp_ds_tree_mark_persistent(tree, parameter, total);
    g_assert_cmpint(zp_ds_tree_parameter(tree, 0)->persistent, ==, p0);
    g_assert_cmpint(zp_ds_tree_parameter(tree, 1)->persistent, ==, p1);
    g_assert_cmpint(zp_ds_tree_parameter(tree, 2)->persistent, ==, p2);
}

static void
test_07_persistence(void)
{
    expect_persistent(501, G_MAXINT64, FALSE, TRUE, TRUE);
    expect_persistent(501, 505, FALSE, TRUE, FALSE);
    expect_persistent(500, G_MAXINT64, FALSE, FALSE, TRUE);
}

static void
test_08_reduce_scatter(void)
{
    static const gint64 expected[] = {512, 1000};
    DsFixture f;
    fixture_m(&f, 3);
    f.settings.reduce_bucket_elements = 1200;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_REDUCE_SCATTER, ZP_N_PHASES, 2, 2, expected);
    g_assert_cmpint(role_peak(f.tape, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_INPUT), ==, 2 * 512);
    ds_fixture_clear(&f);
}

static void
test_09_oversize_gradient(void)
{
    static const gint64 expected[] = {512, 1000};
    DsFixture f;
    fixture_m(&f, 3);
    f.settings.reduce_bucket_elements = 600;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_REDUCE_SCATTER, ZP_N_PHASES, 2, 2, expected);
    g_assert_cmpint(role_peak(f.tape, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET), ==, 1200);
    /* p0's gradient is not copied: it lives until its own reduce-scatter, the last of backward. */
    gint32 gradient = -1, reduce = -1, freed = -1;
    for (gint32 i = f.tape->step_begin[0]; i < f.tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &f.tape->instrs[i];
        if (instr->op == ZP_TAPE_ALLOC && f.tape->buffers[instr->a].role == ZP_ROLE_GRADIENT &&
            f.tape->buffers[instr->a].bytes == 2000)
            gradient = instr->a;
        if (instr->op == ZP_TAPE_LAUNCH &&
            f.tape->works[instr->a].kind == (gint16)ZP_KIND_REDUCE_SCATTER)
            reduce = i;
        if (instr->op == ZP_TAPE_FREE && instr->a == gradient)
            freed = i;
    }
    g_assert_cmpint(freed, >, reduce);
    ds_fixture_clear(&f);
}

static void
test_10_stage2_all_reduce(void)
{
    static const gint64 expected[] = {508, 1000};
    DsFixture f;
    fixture_m(&f, 2);
    f.settings.reduce_bucket_elements = 1200;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_ALL_REDUCE, ZP_PHASE_BACKWARD, 2, 2, expected);
    gint64 total = 0;
    for (gint32 b = 0; b < f.tape->n_buffers; b++)
        if (f.tape->buffers[b].role == ZP_ROLE_ALL_REDUCE_INPUT)
            total += f.tape->buffers[b].bytes;
    g_assert_cmpint(total, ==, 2 * (508 + 1000));
    ds_fixture_clear(&f);
}

static void
test_11_small_bucket(void)
{
    static const gint64 together[] = {508, 756, 244};
    static const gint64 apart[] = {374, 134, 378, 378, 244};
    static const char *const owners[] = {"bf16 to 3", "bf16 to 2", "bf16 to 0", "bf16 to 1",
                                         "bf16 to 2"};
    DsFixture f;
    fixture_m(&f, 2);
    f.settings.reduce_bucket_elements = 600;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_ALL_REDUCE, ZP_PHASE_BACKWARD, 2, 3, together);
    f.settings.multi_rank_bucket = FALSE;
    ds_fixture_compile(&f);
    expect_sizes(&f, ZP_KIND_REDUCE, ZP_PHASE_BACKWARD, 2, 5, apart);
    int n = 0;
    for (gint32 w = 0; w < f.tape->n_works; w++)
        if (f.tape->works[w].kind == (gint16)ZP_KIND_REDUCE)
            g_assert_cmpstr(g_ptr_array_index(f.tape->labels, (guint)f.tape->works[w].label), ==,
                            owners[n++]);
    ds_fixture_clear(&f);
}

static void
test_12_bucket_buffers(void)
{
    for (int overlap = -1; overlap <= 1; overlap++) {
        DsFixture f;
        fixture_m(&f, 2);
        f.settings.reduce_bucket_elements = 600;
        f.settings.overlap_comm = overlap;
        ds_fixture_compile(&f);
        g_assert_cmpint(role_peak(f.tape, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET), ==,
                        overlap == 1 ? 2400 : 1200);
        DsMemory memory;
        ds_play_memory(f.tape, f.tape->n_instrs, &memory);
        g_assert_cmpint(memory.now[ZP_TAPE_SPACE_DEVICE][ZP_CLASS_COMMUNICATION], ==, 0);
        ds_fixture_clear(&f);
    }
}

static void
test_13_one_gather(void)
{
    static const gint64 expected[] = {1512};
    for (int stage = 1; stage <= 2; stage++) {
        DsFixture f;
        fixture_m(&f, stage);
        f.settings.allgather_bucket_elements = 10;
        ds_fixture_compile(&f);
        expect_sizes(&f, ZP_KIND_ALL_GATHER, ZP_N_PHASES, 2, 1, expected);
        f.settings.allgather_bucket_elements = 11;
        g_autoptr(GError) error = NULL;
        zp_tape_clear(f.tape);
        g_assert_false(zp_runtime_deepspeed.compile(&f.job, NULL, f.tape, &error));
        g_assert_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED);
        ds_fixture_clear(&f);
    }
}

static void
test_14_sub_groups(void)
{
    static const gint64 partitions[] = {250, 126, 2};
    gint32 member[3];
    g_assert_cmpint(zp_ds_sub_groups(partitions, 3, 300, member), ==, 2);
    g_assert_cmpint(member[0], ==, 0);
    g_assert_cmpint(member[1], ==, 0);
    g_assert_cmpint(member[2], ==, 1);
    g_assert_cmpint(zp_ds_sub_groups(partitions, 3, 378, member), ==, 1);
}

static void
test_15_step_transient(void)
{
    gint64 cast, during;
    DsFixture f;
    fixture_m(&f, 3);
    f.settings.sub_group_elements = 300;
    ds_fixture_compile(&f);
    step_transient(&f, &cast, &during);
    g_assert_cmpint(cast, ==, 376 * (2 + 4));
    g_assert_cmpint(during, ==, 376 * 4);
    static const gint64 norms[] = {1, 1};
    expect_sizes(&f, ZP_KIND_ALL_REDUCE, ZP_PHASE_OPTIMIZER, 8, 2, norms);
    f.settings.gradient_accumulation = ZP_DTYPE_FP32;
    ds_fixture_compile(&f);
    step_transient(&f, &cast, &during);
    g_assert_cmpint(during, ==, 376 * 4);
    g_assert_cmpint(cast, ==, 8 * 250); /* the norm's copy is larger than 1504 here */
    ds_fixture_clear(&f);
}

static void
test_16_gradient_flat(void)
{
    DsFixture f;
    fixture_m(&f, 3);
    DsMemory memory;
    ds_fixture_compile(&f);
    ds_play_memory(f.tape, f.tape->n_instrs, &memory);
    g_assert_cmpint(memory.now[ZP_TAPE_SPACE_DEVICE][ZP_CLASS_GRADIENT], ==, 378 * 2);
    f.settings.gradient_accumulation = ZP_DTYPE_FP32;
    ds_fixture_compile(&f);
    ds_play_memory(f.tape, f.tape->n_instrs, &memory);
    g_assert_cmpint(memory.now[ZP_TAPE_SPACE_DEVICE][ZP_CLASS_GRADIENT], ==, 378 * 4);
    ds_fixture_clear(&f);
}

typedef struct {
    int persisted, gathered, broadcasts;
} Counts;

static void
count(const ZpDsEvent *event, gpointer data)
{
    Counts *counts = data;
    counts->persisted += event->kind == ZP_DS_PERSIST;
    counts->gathered += event->kind == ZP_DS_GATHER ? event->n_ids : 0;
    counts->broadcasts += event->kind == ZP_DS_CHECK ? 2 : 0;
}

/* One iteration of M under the coordinator. */
static Counts
iterate(ZpDsCoordinator *coordinator, ZpDsWalk *walk, gboolean overflow)
{
    Counts counts = {0};
    zp_ds_coordinator_listen(coordinator, count, &counts);
    zp_ds_walk_forward(walk);
    zp_ds_walk_backward(walk);
    zp_ds_coordinator_leftovers(coordinator);
    zp_ds_coordinator_step(coordinator);
    if (!overflow)
        zp_ds_coordinator_persist(coordinator);
    return counts;
}

static void
test_30_31_overflow_and_checks(void)
{
    g_autoptr(ZpModel) model = ds_model_m();
    g_autoptr(ZpDsTree) tree = zp_ds_tree_new_from_model(model);
    zp_ds_tree_mark_persistent(tree, 501, G_MAXINT64);
    ZpDsCoordinatorConfig config = {.max_live_elements = 1000000000,
                                    .max_reuse_distance_elements = 0,
                                    .ranks = 4,
                                    .secondary_ranks = 1};
    g_autoptr(ZpDsCoordinator) coordinator = zp_ds_coordinator_new(tree, &config);
    g_auto(ZpDsWalk) walk = {0};
    zp_ds_walk_init(&walk, tree, coordinator);
    static const int broadcasts[] = {2, 6, 0, 0};
    Counts counts = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(broadcasts); i++) {
        counts = iterate(coordinator, &walk, FALSE);
        g_assert_cmpint(counts.broadcasts, ==, broadcasts[i]);
        g_assert_cmpint(counts.persisted, ==, 2);
    }
    int usual = counts.gathered;
    counts = iterate(coordinator, &walk, TRUE);
    g_assert_cmpint(counts.persisted, ==, 0);
    counts = iterate(coordinator, &walk, FALSE);
    g_assert_cmpint(counts.gathered, ==, usual + 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/deepspeed-statements/01", test_01_flat);
    g_test_add_func("/deepspeed-statements/02", test_02_touching);
    g_test_add_func("/deepspeed-statements/03", test_03_steady_bytes);
    g_test_add_func("/deepspeed-statements/04", test_04_partitions);
    g_test_add_func("/deepspeed-statements/05", test_05_stage3_steady);
    g_test_add_func("/deepspeed-statements/06", test_06_gather_memory);
    g_test_add_func("/deepspeed-statements/07", test_07_persistence);
    g_test_add_func("/deepspeed-statements/08", test_08_reduce_scatter);
    g_test_add_func("/deepspeed-statements/09", test_09_oversize_gradient);
    g_test_add_func("/deepspeed-statements/10", test_10_stage2_all_reduce);
    g_test_add_func("/deepspeed-statements/11", test_11_small_bucket);
    g_test_add_func("/deepspeed-statements/12", test_12_bucket_buffers);
    g_test_add_func("/deepspeed-statements/13", test_13_one_gather);
    g_test_add_func("/deepspeed-statements/14", test_14_sub_groups);
    g_test_add_func("/deepspeed-statements/15", test_15_step_transient);
    g_test_add_func("/deepspeed-statements/16", test_16_gradient_flat);
    g_test_add_func("/deepspeed-statements/30-31", test_30_31_overflow_and_checks);
    return g_test_run();
}
