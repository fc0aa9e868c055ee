#include "reports/pictures/plot.h"
#include "reports/pictures/plot_internal.h"
#include "tests/unit/fixtures/report_fixture.h"

typedef struct {
    ReportFixture report;
    char *folder;
    ZpStore *store;
} Fixture;

static void
add_point(ZpStore *store, const char *blocks, const char *ranks, gint64 peak_mb, ZpTime step_ms,
          const char *refused)
{
    g_autoptr(GError) error = NULL;
    ZpStepSummary summary = {.step_ps = step_ms * ZP_TIME_PER_MS,
                             .peak_bytes = peak_mb * FIXTURE_MB,
                             .capacity_bytes = 700 * FIXTURE_MB,
                             .fits = peak_mb <= 700,
                             .verdict = peak_mb <= 700 ? ZP_VERDICT_FITS : ZP_VERDICT_DOES_NOT_FIT};
    summary.peak_by_class[ZP_CLASS_PARAMETER] = summary.peak_bytes / 2;
    summary.peak_by_class[ZP_CLASS_GATHERED] = summary.peak_bytes - summary.peak_bytes / 2;
    const char *const values[] = {blocks, ranks};
    ZpReportPoint point = {values, refused == NULL ? &summary : NULL, refused};
    zp_store_add_point(store, &point, &error);
    g_assert_no_error(error);
}

static void
setup(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    static const char *const axes[] = {"zero.wrap_blocks", "world.ranks"};
    ZpReportSweep sweep = {.name = "wrapping", .axes = axes, .n_axes = 2};
    g_autoptr(GError) error = NULL;
    report_fixture_init(&fx->report);
    fx->folder = report_fixture_folder();
    g_autofree char *path = g_build_filename(fx->folder, "runs.db", NULL);
    fx->store = zp_store_open(path, ZP_STORE_APPEND, &error);
    g_assert_no_error(error);
    for (int i = 0; i < 2; i++) {
        fx->report.run.name = i == 0 ? "first" : "it's `second`";
        zp_store_add_run(fx->store, &fx->report.run, fx->report.recorder, &error);
        g_assert_no_error(error);
    }
    zp_store_begin_sweep(fx->store, &sweep, &error);
    g_assert_no_error(error);
    add_point(fx->store, "1", "8", 300, 90, NULL);
    add_point(fx->store, "2", "8", 400, 60, NULL);
    add_point(fx->store, "4", "8", 0, 0, "4 blocks do not divide");
    add_point(fx->store, "8", "8", 800, 50, NULL);
    add_point(fx->store, "1", "16", 200, 120, NULL);
    add_point(fx->store, "8", "16", 750, 70, NULL);
    zp_store_end_sweep(fx->store, &error);
    g_assert_no_error(error);
}

static void
teardown(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    zp_store_free(fx->store);
    report_fixture_clear(&fx->report);
    report_fixture_remove(fx->folder);
    g_free(fx->folder);
}

/* A request that draws something for each kind. */
static ZpPlotRequest
request_of(ZpPlotKind kind)
{
    static const gint64 runs[] = {1, 2};
    ZpPlotRequest request = {.kind = kind, .runs = runs, .n_runs = 1};
    if (kind == ZP_PLOT_RUNS || kind == ZP_PLOT_STAGES)
        request.n_runs = 2;
    if (zp_plot_kind_needs_sweep(kind))
        request.sweep = 1;
    return request;
}

static void
test_scripts(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    for (int kind = 0; kind < ZP_PLOT_N_KINDS; kind++) {
        g_autoptr(GError) error = NULL;
        ZpPlotRequest request = request_of((ZpPlotKind)kind);
        g_autofree char *script = zp_plot_script(fx->store, &request, &error);
        g_assert_no_error(error);
        g_autofree char *name = g_strdup_printf("plot-%s.gp", zp_plot_kind_name((ZpPlotKind)kind));
        report_fixture_golden(name, script);
    }
    ZpPlotRequest request = {.kind = ZP_PLOT_STAGES, .sweep = 1, .axis = "world.ranks"};
    g_autoptr(GError) error = NULL;
    g_autofree char *script = zp_plot_script(fx->store, &request, &error);
    g_assert_no_error(error);
    report_fixture_golden("plot-stages-sweep.gp", script);
}

static void
test_pictures(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    static const char *const extensions[] = {"svg", "PNG"};
    static const char *const begins[] = {"<?xml", "\211PNG"};
    for (int kind = 0; kind < ZP_PLOT_N_KINDS; kind++) {
        for (gsize e = 0; e < G_N_ELEMENTS(extensions); e++) {
            g_autoptr(GError) error = NULL;
            ZpPlotRequest request = request_of((ZpPlotKind)kind);
            g_autofree char *path =
                g_strdup_printf("%s/it's %d.%s", fx->folder, kind, extensions[e]);
            gboolean ok = zp_plot_draw(fx->store, &request, path, &error);
            g_assert_no_error(error);
            g_assert_true(ok);
            g_autofree char *picture = NULL;
            gsize length;
            g_assert_true(g_file_get_contents(path, &picture, &length, NULL));
            g_assert_cmpuint(length, >, 5000);
            g_assert_true(strncmp(picture, begins[e], strlen(begins[e])) == 0);
        }
    }
}

/* Words of the run stand in the picture as they are, whatever gnuplot would make of them. */
static void
test_hostile_names(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *trap = g_build_filename(fx->folder, "trap", NULL);
    g_autofree char *title =
        g_strdup_printf("it's'; system('touch %s'); `touch %s` $x {/Bold_y}\n\nEOD", trap, trap);
    for (int kind = 0; kind < ZP_PLOT_N_KINDS; kind++) {
        ZpPlotRequest request = request_of((ZpPlotKind)kind);
        request.title = title;
        g_autofree char *path = g_strdup_printf("%s/%d.svg", fx->folder, kind);
        gboolean ok = zp_plot_draw(fx->store, &request, path, &error);
        g_assert_no_error(error);
        g_assert_true(ok);
        g_autofree char *picture = NULL;
        g_assert_true(g_file_get_contents(path, &picture, NULL, NULL));
        g_assert_nonnull(strstr(picture, "{/Bold_y}"));
    }
    g_assert_false(g_file_test(trap, G_FILE_TEST_EXISTS));
}

static void
assert_refused(Fixture *fx, const ZpPlotRequest *request, const char *name, GQuark domain, int code)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(fx->folder, name, NULL);
    g_assert_false(zp_plot_draw(fx->store, request, path, &error));
    g_assert_error(error, domain, code);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

static void
test_refusals(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    ZpPlotRequest memory = request_of(ZP_PLOT_MEMORY), sweep = request_of(ZP_PLOT_SWEEP);
    assert_refused(fx, &memory, "x.pdf", ZP_PLOT_ERROR, ZP_PLOT_ERROR_FORMAT);
    assert_refused(fx, &memory, "svg", ZP_PLOT_ERROR, ZP_PLOT_ERROR_FORMAT);
    assert_refused(fx, &memory, "no/such/folder/x.svg", ZP_PLOT_ERROR, ZP_PLOT_ERROR_WRITE);
    memory.n_runs = 2;
    assert_refused(fx, &memory, "x.svg", ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA);
    memory.n_runs = 1;
    const gint64 missing = 99;
    memory.runs = &missing;
    assert_refused(fx, &memory, "x.svg", ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING);
    sweep.axis = "zero.stage";
    assert_refused(fx, &sweep, "x.svg", ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA);
    sweep.sweep = 0;
    assert_refused(fx, &sweep, "x.svg", ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA);
    /* A run without a recorder has nothing to draw over time. */
    g_autoptr(GError) error = NULL;
    gint64 bare = zp_store_add_run(fx->store, &fx->report.run, NULL, &error);
    g_assert_no_error(error);
    memory.runs = &bare;
    assert_refused(fx, &memory, "x.svg", ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA);
    ZpPlotKind kind;
    g_assert_false(zp_plot_kind_parse("pie", &kind, &error));
    g_assert_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_KIND);
    g_assert_nonnull(strstr(error->message, "memory, streams"));
}

/* Without gnuplot on the path: an error that says so, an existing picture untouched. */
static void
test_missing_gnuplot(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(fx->folder, "kept.svg", NULL);
    g_autofree char *old_path = g_strdup(g_getenv("PATH"));
    g_assert_true(g_file_set_contents(path, "old", -1, NULL));
    g_setenv("PATH", fx->folder, TRUE);
    ZpPlotRequest request = request_of(ZP_PLOT_MEMORY);
    g_assert_false(zp_plot_draw(fx->store, &request, path, &error));
    g_setenv("PATH", old_path, TRUE);
    g_assert_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_GNUPLOT);
    g_assert_nonnull(strstr(error->message, "gnuplot"));
    g_autofree char *kept = NULL;
    g_assert_true(g_file_get_contents(path, &kept, NULL, NULL));
    g_assert_cmpstr(kept, ==, "old");
}

/* Thinning out a long timeline keeps its extremes, its order and its end. */
static void
test_thinning(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    ZpRecorder *recorder = fx->report.recorder;
    zp_recorder_clear(recorder);
    const ZpObserver *observer = zp_recorder_observer(recorder);
    gint64 total = 0, highest = 0;
    for (int i = 0; i < 20000; i++) {
        gint64 delta = i == 13579 ? 1000000000 : g_rand_int_range(rand, 1, 1000);
        if (i % 2 == 1 && i != 13579)
            delta = -MIN(total, g_rand_int_range(rand, 1, 1000));
        if (i == 13580)
            delta = -1000000000;
        total += delta;
        ZpObserverChange change = {.time = i / 2 * 100, /* two changes an instant */
                                   .delta_bytes = delta,
                                   .total_bytes = total,
                                   .class_bytes = total,
                                   .class_id = ZP_CLASS_ACTIVATION};
        observer->change(fx->report.tape, &change, observer->data);
        highest = MAX(highest, total);
    }
    g_autoptr(GError) error = NULL;
    gint64 id = zp_store_add_run(fx->store, &fx->report.run, recorder, &error);
    g_assert_no_error(error);
    g_autoptr(GArray) states = zp_plot_read_timeline(fx->store, id, 300, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(states->len, <=, 300);
    g_assert_cmpuint(states->len, >=, 100);
    gint64 kept_highest = 0;
    for (guint i = 0; i < states->len; i++) {
        const ZpPlotState *state = &g_array_index(states, ZpPlotState, i);
        kept_highest = MAX(kept_highest, state->total_bytes);
        g_assert_cmpint(state->bytes[ZP_CLASS_ACTIVATION], ==, state->total_bytes);
        g_assert_true(i == 0 || state[-1].time <= state->time);
    }
    g_assert_cmpint(kept_highest, ==, highest);
    g_assert_cmpint(g_array_index(states, ZpPlotState, states->len - 1).total_bytes, ==, total);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) g_test_add("/plot/" path, Fixture, NULL, setup, test, teardown)
    ADD("scripts", test_scripts);
    ADD("pictures", test_pictures);
    ADD("hostile-names", test_hostile_names);
    ADD("refusals", test_refusals);
    ADD("missing-gnuplot", test_missing_gnuplot);
    ADD("thinning", test_thinning);
    return g_test_run();
}
