/* Statements about PyTorch's runtimes with their numbers: TOY (fsdp_fixture.h) with d = 1024, six
 * blocks, eight ranks, bf16 parameters and fp32 reduction, AdamW foreach, a steady step.  The
 * numbers were measured on PyTorch 2.14.1; activations (a row of 1024) are left out. */
#include "tests/unit/fixtures/fsdp_fixture.h"

static Figures
figures_of_toy(const Toy *toy, void (*adjust)(ZpFsdp *settings))
{
    g_autoptr(ZpFsdpPlan) plan = toy_plan(toy);
    if (adjust)
        adjust(&plan->settings);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    g_autoptr(GError) error = NULL;
    zp_fsdp2_compile(plan, NULL, 2, tape);
    g_assert_true(zp_tape_check(tape, FALSE, 0, &error));
    return figures_of(tape);
}

static void
assert_peaks(const Toy *toy, gint64 forward, gint64 backward)
{
    Figures figures = figures_of_toy(toy, NULL);
    if (forward)
        g_assert_cmpint(figures.peak_bytes[ZP_PHASE_FORWARD], ==, forward);
    if (backward)
        g_assert_cmpint(figures.peak_bytes[ZP_PHASE_BACKWARD], ==, backward);
    figures_clear(&figures);
}

static void
assert_counts(const Toy *toy, int all_gathers, int reduce_scatters, int all_reduces)
{
    Figures figures = figures_of_toy(toy, NULL);
    g_assert_cmpint(figures.count[ZP_KIND_ALL_GATHER], ==, all_gathers);
    g_assert_cmpint(figures.count[ZP_KIND_REDUCE_SCATTER], ==, reduce_scatters);
    g_assert_cmpint(figures.count[ZP_KIND_ALL_REDUCE], ==, all_reduces);
    figures_clear(&figures);
}

static void
use_fused(ZpFsdp *settings)
{
    settings->optimizer = ZP_FSDP_OPTIMIZER_FUSED;
}

/* 1-7, 34, 35 */
static void
test_plain(void)
{
    Toy toy = toy_default();
    Figures figures = figures_of_toy(&toy, NULL);
    g_assert_cmpint(figures.start_bytes, ==, 22020096);
    g_assert_cmpint(figures.peak_bytes[ZP_PHASE_FORWARD], ==, 38797312);
    g_assert_cmpint(figures.end_bytes[ZP_PHASE_FORWARD], ==, 26214400);
    g_assert_cmpint(figures.peak_bytes[ZP_PHASE_BACKWARD], ==, 53477376);
    g_assert_cmpint(figures.peak_bytes[ZP_PHASE_OPTIMIZER], ==, 36700160);
    g_assert_cmpint(figures.end_bytes[ZP_PHASE_ZERO_GRAD], ==, 22020096);
    g_assert_cmpint(figures.count[ZP_KIND_ALL_GATHER], ==, 13);
    g_assert_cmpint(figures.count[ZP_KIND_REDUCE_SCATTER], ==, 7);
    g_assert_cmpint(figures.bytes[ZP_KIND_ALL_GATHER], ==, 52 * MIB);
    g_assert_cmpint(figures.bytes[ZP_KIND_REDUCE_SCATTER], ==, 56 * MIB);
    g_assert_cmpstr(figures.collectives->str, ==,
                    "all-gather ls.5, all-gather ls.4, reduce-scatter ls.5, all-gather ls.3, "
                    "reduce-scatter ls.4, all-gather ls.2, reduce-scatter ls.3, all-gather ls.1, "
                    "reduce-scatter ls.2, all-gather ls.0, reduce-scatter ls.1, "
                    "reduce-scatter ls.0, reduce-scatter root");
    figures_clear(&figures);
    Figures fused = figures_of_toy(&toy, use_fused);
    g_assert_cmpint(fused.end_bytes[ZP_PHASE_BACKWARD], ==, 29360128); /* nothing in the step */
    g_assert_cmpint(fused.peak_bytes[ZP_PHASE_OPTIMIZER], ==, 0);
    figures_clear(&fused);
}

/* 8-10 */
static void
test_precision(void)
{
    Toy toy = toy_default();
    toy.reduce_bytes = 0;
    assert_peaks(&toy, 0, 49283072);
    toy.param_bytes = 0;
    assert_peaks(&toy, 53 * MIB, 69 * MIB);
    Figures full = figures_of_toy(&toy, NULL);
    g_assert_cmpint(full.role_peak_bytes[ZP_ROLE_CAST], ==, 0);
    figures_clear(&full);
    toy.stored_bytes = 2;
    Figures pure = figures_of_toy(&toy, NULL);
    g_assert_cmpint(pure.start_bytes, ==, 21 * MIB / 2);
    g_assert_cmpint(pure.peak_bytes[ZP_PHASE_BACKWARD], ==, 69 * MIB / 2);
    figures_clear(&pure);
}

/* 11-13, 24 */
static void
test_resharding(void)
{
    Toy toy = toy_default();
    toy.reshard_after_forward = 0;
    assert_counts(&toy, 7, 7, 0);
    assert_peaks(&toy, 59768832, 62914560);
    toy = toy_default();
    toy.root_reshard = 1;
    assert_counts(&toy, 14, 7, 0);
    assert_peaks(&toy, 38797312, 53477376);
    toy = toy_default();
    toy.own_ends = TRUE;
    assert_counts(&toy, 15, 8, 0);
    toy.e_unshard_in_backward = FALSE;
    assert_counts(&toy, 14, 8, 0);
    toy = toy_default();
    toy.reshard_after_forward = 2;
    assert_counts(&toy, 13, 7, 0);
    Figures two = figures_of_toy(&toy, NULL);
    g_assert_cmpint(two.role_peak_bytes[ZP_ROLE_POST_FORWARD_SHARD], ==, 6 * 2 * MIB);
    g_assert_cmpint(two.peak_bytes[ZP_PHASE_FORWARD] - two.start_bytes, ==, 26 * MIB);
    figures_clear(&two);
    toy.reshard_after_forward = 4;
    Figures four = figures_of_toy(&toy, NULL);
    g_assert_cmpint(four.peak_bytes[ZP_PHASE_FORWARD] - four.start_bytes, ==, 21 * MIB);
    figures_clear(&four);
}

static void
keep_two(ZpFsdp *settings)
{
    settings->reduce_scatter_max_input_buffers = 2;
}

static void
keep_three(ZpFsdp *settings)
{
    settings->reduce_scatter_max_input_buffers = 3;
}

/* 14-17 */
static void
test_prefetch_and_retention(void)
{
    Toy toy = toy_default();
    Figures two = figures_of_toy(&toy, keep_two), three = figures_of_toy(&toy, keep_three);
    g_assert_cmpint(two.peak_bytes[ZP_PHASE_BACKWARD], ==, 53477376 + 8 * MIB);
    g_assert_cmpint(three.peak_bytes[ZP_PHASE_BACKWARD], ==, 53477376 + 16 * MIB);
    figures_clear(&two);
    figures_clear(&three);
    toy.forward_prefetch = 1;
    assert_peaks(&toy, 38797312 + MIB / 2, 0);
    toy.forward_prefetch = 2;
    assert_peaks(&toy, 38797312 + 9 * MIB / 2, 0);
    toy = toy_default();
    toy.backward_prefetch = 1;
    assert_peaks(&toy, 0, 53477376);
    toy.backward_prefetch = 2;
    assert_peaks(&toy, 0, 56623104);
    for (int outside = 0; outside < 2; outside++) {
        toy = toy_default();
        toy.checkpointed = TRUE;
        toy.checkpoint_outside = outside;
        assert_counts(&toy, 13, 7, 0);
        assert_peaks(&toy, 38797312, 53477376);
    }
}

/* 18-21 */
static void
test_accumulation(void)
{
    Toy toy = toy_default();
    toy.micro_batches = 2;
    toy.sync = FALSE;
    Figures figures = figures_of_toy(&toy, NULL);
    g_assert_cmpint(figures.role_peak_bytes[ZP_ROLE_GRADIENT_ACCUMULATOR], ==, 56 * MIB);
    g_assert_cmpint(figures.first_end_bytes[ZP_PHASE_BACKWARD] - figures.start_bytes, ==, 56 * MIB);
    figures_clear(&figures);
    assert_counts(&toy, 26, 7, 0);
    toy.reshard_after_backward = FALSE;
    assert_counts(&toy, 19, 7, 0);
    Figures kept = figures_of_toy(&toy, NULL);
    g_assert_cmpint(kept.first_end_bytes[ZP_PHASE_BACKWARD] - kept.start_bytes, ==,
                    (56 + 28) * MIB);
    figures_clear(&kept);
    toy.reshard_after_forward = 0;
    assert_counts(&toy, 7, 7, 0);
    toy = toy_default();
    toy.micro_batches = 2;
    toy.sync = FALSE;
    toy.reduce_bytes = 0;
    Figures low = figures_of_toy(&toy, NULL);
    g_assert_cmpint(low.first_end_bytes[ZP_PHASE_BACKWARD] - low.start_bytes, ==, 28 * MIB);
    figures_clear(&low);
}

/* 22, 23 */
static void
test_hybrid(void)
{
    Toy toy = toy_default();
    toy.shard = 4;
    toy.replicate = 2;
    Figures figures = figures_of_toy(&toy, NULL);
    g_assert_cmpint(figures.start_bytes, ==, 42 * MIB);
    g_assert_cmpint(figures.bytes[ZP_KIND_ALL_REDUCE], ==, 7 * 2 * MIB);
    gint64 peak = figures.peak_bytes[ZP_PHASE_BACKWARD];
    figures_clear(&figures);
    assert_counts(&toy, 13, 7, 7);
    toy.reduce_bytes = 0; /* the all-reduce buffers are retained: nothing is saved */
    assert_peaks(&toy, 0, peak);
}

/* 25-27 */
static void
test_sizes(void)
{
    Toy toy = toy_default();
    toy.shard = 1;
    assert_counts(&toy, 0, 0, 0);
    Figures alone = figures_of_toy(&toy, NULL);
    g_assert_cmpint(alone.start_bytes, ==, 168 * MIB);
    g_assert_cmpint(alone.role_peak_bytes[ZP_ROLE_UNSHARDED], >, 0);
    g_assert_cmpint(alone.role_peak_bytes[ZP_ROLE_REDUCE_INPUT], ==, 8 * MIB);
    figures_clear(&alone);
    toy = toy_default();
    toy.inner = 1001;
    Figures uneven = figures_of_toy(&toy, NULL);
    g_assert_cmpint(uneven.bytes[ZP_KIND_ALL_GATHER], ==, 4 * MIB + 12 * 4114432);
    g_assert_cmpint(uneven.bytes[ZP_KIND_REDUCE_SCATTER], ==, 8 * MIB + 6 * 8228864);
    g_assert_cmpint(uneven.start_bytes, ==, 21660728 - 56 /* host scalars */);
    figures_clear(&uneven);
}

/* A weight of 9 rows on 8 ranks: padded shards everywhere, states by what a rank owns. */
static void
test_nine_rows(void)
{
    static const struct {
        gint32 rank;
        gint64 state_bytes;
    } ranks[] = {{0, 16384}, {4, 8192}, {7, 0}};
    for (gsize i = 0; i < G_N_ELEMENTS(ranks); i++) {
        Toy toy = toy_default();
        toy.n_blocks = 0;
        toy.rank = ranks[i].rank;
        g_autoptr(ZpFsdpPlan) plan = toy_plan(&toy);
        for (guint p = 0; p < 2; p++)
            g_array_index(plan->parameters, ZpFsdpParameter, p).rows = p == 0 ? 9 : 8;
        g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
        zp_fsdp2_compile(plan, NULL, 1, tape);
        Figures figures = figures_of(tape);
        gint64 eight_rows = 8 * 1024 * 4 / 8; /* a shard of the second weight */
        g_assert_cmpint(figures.role_peak_bytes[ZP_ROLE_UNSHARDED], ==, 32768 + 16384);
        g_assert_cmpint(figures.role_peak_bytes[ZP_ROLE_ALL_GATHER], ==, 32768 + 16384);
        g_assert_cmpint(figures.role_peak_bytes[ZP_ROLE_GRADIENT], ==, 18432 + 16384);
        g_assert_cmpint(figures.role_peak_bytes[ZP_ROLE_REDUCE_INPUT], ==, 65536 + 32768);
        g_assert_cmpint(figures.role_peak_bytes[ZP_ROLE_REDUCE_OUTPUT], ==, 8192 + 4096);
        /* Two moments each; the shard of nine rows takes 8192 bytes on every rank. */
        g_assert_cmpint(figures.start_bytes, ==,
                        8192 + eight_rows + ranks[i].state_bytes + 2 * eight_rows);
        figures_clear(&figures);
    }
}

static Figures
flat_figures(const Toy *toy, ZpFsdpStrategy strategy, ZpFsdpPrefetch prefetch, gboolean forward)
{
    g_autoptr(ZpFsdpPlan) plan = toy_plan(toy);
    plan->strategy = strategy;
    plan->settings.prefetch = prefetch;
    plan->settings.next_forward_prefetch = forward;
    if (strategy == ZP_FSDP_STRATEGY_NO_SHARD) {
        plan->replicate = plan->shard;
        plan->shard = 1;
    }
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    g_autoptr(GError) error = NULL;
    zp_fsdp1_compile(plan, NULL, 2, tape);
    g_assert_true(zp_tape_check(tape, FALSE, 0, &error));
    return figures_of(tape);
}

/* 28, 29; what the recordings add (4 bytes a flat parameter, rows of activations) is left out. */
static void
test_flat_parameters(void)
{
    Toy toy = toy_default();
    Figures full = flat_figures(&toy, ZP_FSDP_STRATEGY_FULL_SHARD, ZP_FSDP_PREFETCH_PRE, FALSE);
    g_assert_cmpint(full.peak_bytes[ZP_PHASE_FORWARD], ==, 30932992);
    g_assert_cmpint(full.peak_bytes[ZP_PHASE_BACKWARD], ==, 50331648);
    g_assert_cmpint(full.count[ZP_KIND_ALL_GATHER], ==, 13);
    g_assert_cmpint(full.count[ZP_KIND_REDUCE_SCATTER], ==, 7);
    figures_clear(&full);
    Figures post = flat_figures(&toy, ZP_FSDP_STRATEGY_FULL_SHARD, ZP_FSDP_PREFETCH_POST, FALSE);
    g_assert_cmpint(post.peak_bytes[ZP_PHASE_BACKWARD], ==, 50331648);
    figures_clear(&post);
    Figures none = flat_figures(&toy, ZP_FSDP_STRATEGY_FULL_SHARD, ZP_FSDP_PREFETCH_NONE, FALSE);
    g_assert_cmpint(none.peak_bytes[ZP_PHASE_BACKWARD], <, 47190052);
    g_assert_cmpint(none.peak_bytes[ZP_PHASE_BACKWARD], >, 47190052 - 32768);
    figures_clear(&none);
    Figures ahead = flat_figures(&toy, ZP_FSDP_STRATEGY_FULL_SHARD, ZP_FSDP_PREFETCH_PRE, TRUE);
    g_assert_cmpint(ahead.peak_bytes[ZP_PHASE_FORWARD], ==, 30932992 + 4 * MIB);
    g_assert_cmpint(ahead.peak_bytes[ZP_PHASE_BACKWARD], ==, 55 * MIB);
    figures_clear(&ahead);
    Figures grad = flat_figures(&toy, ZP_FSDP_STRATEGY_SHARD_GRAD_OP, ZP_FSDP_PREFETCH_PRE, FALSE);
    g_assert_cmpint(grad.count[ZP_KIND_ALL_GATHER], ==, 7);
    g_assert_cmpint(grad.peak_bytes[ZP_PHASE_FORWARD], ==, (21 + 28) * MIB + MIB / 2);
    g_assert_cmpint(grad.peak_bytes[ZP_PHASE_BACKWARD], ==, 60 * MIB);
    figures_clear(&grad);
    Figures whole = flat_figures(&toy, ZP_FSDP_STRATEGY_NO_SHARD, ZP_FSDP_PREFETCH_PRE, FALSE);
    g_assert_cmpint(whole.count[ZP_KIND_ALL_REDUCE], ==, 7);
    g_assert_cmpint(whole.start_bytes, ==, 168 * MIB);
    figures_clear(&whole);
}

/* 30: ten weights of 4 MiB. */
static void
test_ddp(void)
{
    Toy toy = toy_default();
    toy.n_blocks = 4;
    toy.own_ends = TRUE;
    toy.param_bytes = toy.reduce_bytes = 0;
    for (int view = 0; view < 2; view++) {
        g_autoptr(ZpFsdpPlan) plan = toy_plan(&toy);
        plan->settings.gradient_as_bucket_view = view;
        plan->settings.first_step = TRUE;
        g_autoptr(ZpTape) first = zp_tape_new(zp_vocabulary_get());
        zp_ddp_compile(plan, NULL, FALSE, 1, first);
        Figures one = figures_of(first);
        g_assert_cmpint(one.count[ZP_KIND_ALL_REDUCE], ==, 1);
        g_assert_cmpint(one.bytes[ZP_KIND_ALL_REDUCE], ==, 40 * MIB);
        g_assert_cmpint(one.end_bytes[ZP_PHASE_OPTIMIZER], ==, (view ? 160 : 200) * MIB);
        figures_clear(&one);
        g_autoptr(ZpTape) later = zp_tape_new(zp_vocabulary_get());
        zp_ddp_compile(plan, NULL, FALSE, 3, later);
        Figures steady = figures_of(later);
        g_assert_cmpint(steady.start_bytes, ==, 160 * MIB);
        g_assert_cmpint(steady.peak_bytes[ZP_PHASE_BACKWARD], ==, (view ? 164 : 200) * MIB);
        g_assert_cmpstr(steady.collectives->str, ==,
                        "all-reduce bucket0, all-reduce bucket1, all-reduce bucket2");
        figures_clear(&steady);
        plan->settings.bucket_cap_bytes = 25 * MIB;
        g_autoptr(ZpTape) explicit = zp_tape_new(zp_vocabulary_get());
        zp_ddp_compile(plan, NULL, FALSE, 3, explicit);
        Figures capped = figures_of(explicit);
        g_assert_cmpint(capped.count[ZP_KIND_ALL_REDUCE], ==, 2);
        figures_clear(&capped);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/statements/plain", test_plain);
    g_test_add_func("/statements/precision", test_precision);
    g_test_add_func("/statements/resharding", test_resharding);
    g_test_add_func("/statements/prefetch-and-retention", test_prefetch_and_retention);
    g_test_add_func("/statements/accumulation", test_accumulation);
    g_test_add_func("/statements/hybrid", test_hybrid);
    g_test_add_func("/statements/sizes", test_sizes);
    g_test_add_func("/statements/nine-rows", test_nine_rows);
    g_test_add_func("/statements/flat-parameters", test_flat_parameters);
    g_test_add_func("/statements/ddp", test_ddp);
    return g_test_run();
}
