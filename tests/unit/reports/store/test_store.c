/* The run database: what is written is read back, by its views and the queries it documents. */
#include "tests/unit/fixtures/store_fixture.h"

static void
test_round_trip(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    g_assert_cmpint(store_fixture_add(fx, store), ==, 1);
    g_clear_pointer(&store, zp_store_free);
    store = store_fixture_open(fx, ZP_STORE_READ);
    store_fixture_assert(store, "PRAGMA integrity_check", "ok\n");
    store_fixture_assert(store, "PRAGMA foreign_key_check", "");
    store_fixture_assert(store, "SELECT section, key, value, origin FROM input WHERE run = 1",
                         "model|name|two, units|two.ini:2\nzero|stage|3|--set\n"
                         "device|capacity|700 MB|default\n");
    store_fixture_assert(
        store,
        "SELECT name, runtime, step_ps, exposed_ps, peak_bytes, persistent_bytes, fits "
        "FROM run",
        "two units|ideal|8000000000|3000000000|580000000|150000000|1\n");
    store_fixture_assert(store, "SELECT text FROM warning",
                         "the network's efficiency is assumed\n");
    store_fixture_assert(store,
                         "SELECT n.text, u.elements FROM unit u JOIN name n ON n.id = u.name",
                         "block.0|100000000\nblock.1|100000000\n");
    store_fixture_assert(store, "SELECT count(*), sum(delta_bytes) FROM memory", "10|150000000\n");
    store_fixture_assert(store, "SELECT sum(bytes) FROM ledger_bound",
                         "638000000\n"); /* the ledger's total */
}

static void
test_views(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, store);
    store_fixture_assert(
        store, "SELECT run, name, step_ms, exposed_ms, peak_unit, peak_phase FROM run_summary",
        "1|two units|8.0|3.0|block.1|forward\n");
    store_fixture_assert(store, "SELECT class, bytes FROM peak_composition WHERE run = 1",
                         "gathered parameter|400000000\nmomentum|100000000\nparameter|50000000\n"
                         "activation|30000000\n");
    store_fixture_assert(store, "SELECT class, role, unit, bytes FROM peak_buffers LIMIT 3",
                         "gathered parameter|all-gather output|block.0|200000000\n"
                         "gathered parameter|all-gather output|block.1|200000000\n"
                         "momentum|optimizer state|block.0|50000000\n");
    store_fixture_assert(
        store,
        "SELECT time_ms, class_bytes FROM memory_timeline WHERE run = 1 AND space = "
        "'device' AND class = 'gathered parameter'",
        "0.0|200000000\n3.0|400000000\n5.0|200000000\n8.0|0\n");
    store_fixture_assert(
        store, "SELECT unit, phase, kind, exposed_ms, busy_ms FROM exposed_by_unit",
        "block.0|forward|all-gather|2.0|2.0\nblock.1|backward|all-gather|1.0|3.0\n");
    store_fixture_assert(store, "SELECT kind, phase, count, wire_bytes FROM collectives",
                         "all-gather|backward|1|175000000\nall-gather|forward|1|175000000\n");
    store_fixture_assert(
        store, "SELECT kind, ranks, rule, count, bytes, busy_ms, bus_gb_per_s FROM prices",
        "all-gather|8|ring inside a node|2|400000000|5.0|70.0\n"
        "forward|1|roofline of the device|1|0|3.0|0.0\n"
        "backward|1|roofline of the device|1|0|2.0|0.0\n");
    store_fixture_assert(
        store, "SELECT class, simulated_bytes, ledger_bytes FROM persistent_against_ledger",
        "momentum|100000000|100000000\nparameter|50000000|50000000\n");
    store_fixture_assert(
        store,
        "SELECT stream, category, kind, unit, start_ms, end_ms, rule FROM operations "
        "LIMIT 2",
        "gather|communication|all-gather|block.0|0.0|2.0|ring inside a node\n"
        "compute|compute|forward|block.0|2.0|5.0|roofline of the device\n");
}

static void
test_allocator(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, store);
    fx->report.summary.has_allocator = TRUE;
    fx->report.summary.allocator.peak = (ZpAllocatorBytes){1, 2, 3 << 10, 4 << 10};
    const ZpObserver *observer = zp_recorder_observer(fx->report.recorder);
    ZpObserverPools pools = {ZP_TIME_PER_MS, 100, 200, 300, 4};
    observer->pools(fx->report.tape, &pools, observer->data);
    store_fixture_add(fx, store);
    store_fixture_assert(store, "SELECT id, allocated_bytes, active_bytes, reserved_bytes FROM run",
                         "1|NULL|NULL|NULL\n2|2|3072|4096\n");
    store_fixture_assert(store,
                         "SELECT run, time_ms, allocated_bytes, active_bytes, reserved_bytes FROM "
                         "allocator_timeline",
                         "2|1.0|100|200|300\n");
}

/* The examples that the schema's comment offers must work: each one is run as it stands. */
static void
test_documented_queries(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree char *path = g_build_filename(ZP_SOURCE_DIR, "reports/store/schema.sql", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, store);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) sql = g_string_new(NULL);
    int n = 0;
    for (char **line = lines; *line != NULL && g_str_has_prefix(*line, "--"); line++) {
        if (!g_str_has_prefix(*line, "--     "))
            continue;
        g_string_append_printf(sql, "%s\n", *line + 2);
        if (!g_str_has_suffix(*line, ";"))
            continue;
        g_autofree char *rows = store_fixture_query(store, sql->str);
        g_assert_nonnull(rows);
        g_string_truncate(sql, 0);
        n++;
    }
    g_assert_cmpint(n, >=, 10);
}

static void
test_append_and_find(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    for (int i = 0; i < 3; i++) {
        g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
        fx->report.run.name = i == 1 ? "other" : "two units";
        g_assert_cmpint(store_fixture_add(fx, store), ==, i + 1);
    }
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_READ);
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) runs = zp_store_list_runs(store, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(runs->len, ==, 3);
    g_assert_cmpstr(g_array_index(runs, ZpStoreEntry, 1).name, ==, "other");
    g_assert_cmpint(zp_store_find_run(store, NULL, &error), ==, 3);
    g_assert_cmpint(zp_store_find_run(store, "2", &error), ==, 2);
    g_assert_cmpint(zp_store_find_run(store, "two units", &error), ==, 3);
    g_assert_cmpint(zp_store_find_run(store, "9", &error), ==, -1);
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING);
    g_assert_nonnull(strstr(error->message, "2 'other'"));
    g_clear_error(&error);
    g_assert_cmpint(zp_store_find_sweep(store, NULL, &error), ==, -1);
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING);
    /* Words of three runs are stored once. */
    store_fixture_assert(store, "SELECT count(*) FROM name WHERE text = 'block.0'", "1\n");
}

/* The same runs give the same bytes: no clock, no order of a hash table. */
static void
test_deterministic(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree char *other = g_build_filename(fx->folder, "again.db", NULL);
    g_autofree char *first = g_strdup(fx->path);
    char *contents[2];
    gsize lengths[2];
    for (int i = 0; i < 2; i++) {
        g_free(fx->path);
        fx->path = g_strdup(i == 0 ? first : other);
        g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
        store_fixture_add(fx, store);
        g_clear_pointer(&store, zp_store_free);
        g_assert_true(g_file_get_contents(fx->path, &contents[i], &lengths[i], NULL));
    }
    store_fixture_assert_same(contents[0], lengths[0], contents[1], lengths[1]);
    g_free(contents[0]);
    g_free(contents[1]);
}

static void
add_point(ZpStore *store, const char *stage, const char *ranks, gint64 peak, ZpTime step,
          const char *refused)
{
    g_autoptr(GError) error = NULL;
    ZpStepSummary summary = {.step_ps = step,
                             .peak_bytes = peak,
                             .fits = peak < 500,
                             .verdict = peak < 500 ? ZP_VERDICT_FITS : ZP_VERDICT_DOES_NOT_FIT};
    summary.peak_by_class[ZP_CLASS_PARAMETER] = peak;
    const char *const values[] = {stage, ranks};
    ZpReportPoint point = {values, refused == NULL ? &summary : NULL, refused};
    zp_store_add_point(store, &point, &error);
    g_assert_no_error(error);
}

static void
test_sweep(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    static const char *const axes[] = {"zero.stage", "world.ranks"};
    ZpReportSweep sweep = {.name = "stages",
                           .source = "stages.ini",
                           .inputs = fx->report.run.inputs,
                           .n_inputs = fx->report.run.n_inputs,
                           .axes = axes,
                           .n_axes = 2};
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_store_begin_sweep(store, &sweep, &error), ==, 1);
    add_point(store, "0", "8", 900, 100, NULL);
    add_point(store, "1", "8", 400, 120, NULL);
    add_point(store, "2", "8", 400, 110, NULL); /* beats the one above */
    add_point(store, "3", "7", 0, 0, "7 ranks do not divide");
    add_point(store, "3", "8", 100, 300, NULL);
    add_point(store, "3", "16", 100, 300, NULL); /* equal: the first counts */
    g_assert_true(zp_store_end_sweep(store, &error));
    store_fixture_assert(
        store, "SELECT point, \"values\", peak_bytes, fits, error FROM sweep_table LIMIT 4",
        "0|zero.stage=0 world.ranks=8|900|0|NULL\n"
        "1|zero.stage=1 world.ranks=8|400|1|NULL\n"
        "2|zero.stage=2 world.ranks=8|400|1|NULL\n"
        "3|zero.stage=3 world.ranks=7|NULL|NULL|7 ranks do not divide\n");
    /* The first does not fit, and so is not ranked. */
    store_fixture_assert(store, "SELECT point FROM pareto WHERE sweep = 1", "4\n2\n");
    store_fixture_assert(store, "SELECT complete FROM sweep", "1\n");
    store_fixture_assert(store, "SELECT count(*) FROM sweep_input", "3\n");
    store_fixture_assert(store, "SELECT bytes FROM sweep_peak WHERE point = 2", "400\n");
    store_fixture_assert(store, "PRAGMA foreign_key_check", "");
}

/* A sweep that stops keeps whole thousands of points and says that it is not complete. */
static void
test_sweep_stopped(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    static const char *const axes[] = {"zero.stage", "world.ranks"};
    ZpReportSweep sweep = {.name = "stopped", .axes = axes, .n_axes = 2};
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_store_begin_sweep(store, &sweep, &error), ==, 1);
    for (int i = 0; i < 2500; i++)
        add_point(store, "3", "8", 100 + i, 300, NULL);
    g_clear_pointer(&store, zp_store_free);
    store = store_fixture_open(fx, ZP_STORE_READ);
    store_fixture_assert(store, "SELECT complete FROM sweep", "0\n");
    store_fixture_assert(store, "SELECT count(*), max(point) FROM sweep_point", "2000|1999\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) \
    g_test_add("/store/" path, StoreFixture, NULL, store_fixture_init, test, store_fixture_clear)
    ADD("round-trip", test_round_trip);
    ADD("views", test_views);
    ADD("allocator", test_allocator);
    ADD("documented-queries", test_documented_queries);
    ADD("append-and-find", test_append_and_find);
    ADD("deterministic", test_deterministic);
    ADD("sweep", test_sweep);
    ADD("sweep-stopped", test_sweep_stopped);
    return g_test_run();
}
