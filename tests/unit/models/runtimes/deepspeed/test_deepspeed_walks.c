/* Stage 3's coordinator with its memory: gather counts of known models, accumulation, evaluation
 * between training steps. */
#include "tests/unit/fixtures/deepspeed_fixture.h"

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
    g_autoptr(ZpModel) model = ds_catalogue("Llama-2-7B");
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
    g_autoptr(ZpModel) model = ds_catalogue("Llama-2-7B");
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

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/deepspeed/toy", test_toy);
    g_test_add_func("/deepspeed/llama", test_llama);
    g_test_add_func("/deepspeed/accumulation-and-evaluation", test_accumulation_and_evaluation);
    return g_test_run();
}
