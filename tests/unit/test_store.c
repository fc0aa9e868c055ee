#include <sqlite3.h>

#include "report_fixture.h"
#include "reports/store.h"
#include "reports/store_internal.h"

typedef struct {
    ReportFixture report;
    char *folder, *path;
} Fixture;

static void
setup(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    report_fixture_init(&fx->report);
    fx->folder = report_fixture_folder();
    fx->path = g_build_filename(fx->folder, "runs.db", NULL);
}

static void
teardown(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    report_fixture_clear(&fx->report);
    report_fixture_remove(fx->folder);
    g_free(fx->folder);
    g_free(fx->path);
}

static ZpStore *
open_store(Fixture *fx, ZpStoreMode mode)
{
    g_autoptr(GError) error = NULL;
    ZpStore *store = zp_store_open(fx->path, mode, &error);
    g_assert_no_error(error);
    g_assert_nonnull(store);
    return store;
}

static gint64
add_run(Fixture *fx, ZpStore *store)
{
    g_autoptr(GError) error = NULL;
    gint64 id = zp_store_add_run(store, &fx->report.run, fx->report.recorder, &error);
    g_assert_no_error(error);
    return id;
}

/* All rows of a query, columns by '|', rows by newlines. */
static char *
query(ZpStore *store, const char *sql)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpStatement) statement = zp_store_prepare(store, sql, &error);
    g_assert_no_error(error);
    GString *out = g_string_new(NULL);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(statement); c++) {
            const char *text = (const char *)sqlite3_column_text(statement, c);
            g_string_append_printf(out, "%s%s", c > 0 ? "|" : "", text != NULL ? text : "NULL");
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}

static void
run_query(ZpStore *store, const char *sql)
{
    g_free(query(store, sql));
}

static void
assert_query(ZpStore *store, const char *sql, const char *expected)
{
    g_autofree char *actual = query(store, sql);
    g_assert_cmpstr(actual, ==, expected);
}

static void
test_round_trip(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    g_assert_cmpint(add_run(fx, store), ==, 1);
    g_clear_pointer(&store, zp_store_free);
    store = open_store(fx, ZP_STORE_READ);
    assert_query(store, "PRAGMA integrity_check", "ok\n");
    assert_query(store, "PRAGMA foreign_key_check", "");
    assert_query(store, "SELECT section, key, value, origin FROM input WHERE run = 1",
                 "model|name|two, units|two.ini:2\nzero|stage|3|--set\n"
                 "device|capacity|700 MB|default\n");
    assert_query(store,
                 "SELECT name, runtime, step_ps, exposed_ps, peak_bytes, persistent_bytes, fits "
                 "FROM run",
                 "two units|ideal|8000000000|3000000000|580000000|150000000|1\n");
    assert_query(store, "SELECT text FROM warning", "the network's efficiency is assumed\n");
    assert_query(store, "SELECT n.text, u.elements FROM unit u JOIN name n ON n.id = u.name",
                 "block.0|100000000\nblock.1|100000000\n");
    assert_query(store, "SELECT count(*), sum(delta_bytes) FROM memory", "10|150000000\n");
    assert_query(store, "SELECT sum(bytes) FROM ledger_bound",
                 "638000000\n"); /* the ledger's total */
}

static void
test_views(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, store);
    assert_query(store,
                 "SELECT run, name, step_ms, exposed_ms, peak_unit, peak_phase FROM run_summary",
                 "1|two units|8.0|3.0|block.1|forward\n");
    assert_query(store, "SELECT class, bytes FROM peak_composition WHERE run = 1",
                 "gathered parameter|400000000\nmomentum|100000000\nparameter|50000000\n"
                 "activation|30000000\n");
    assert_query(store, "SELECT class, role, unit, bytes FROM peak_buffers LIMIT 3",
                 "gathered parameter|all-gather output|block.0|200000000\n"
                 "gathered parameter|all-gather output|block.1|200000000\n"
                 "momentum|optimizer state|block.0|50000000\n");
    assert_query(store,
                 "SELECT time_ms, class_bytes FROM memory_timeline WHERE run = 1 AND space = "
                 "'device' AND class = 'gathered parameter'",
                 "0.0|200000000\n3.0|400000000\n5.0|200000000\n8.0|0\n");
    assert_query(store, "SELECT unit, phase, kind, exposed_ms, busy_ms FROM exposed_by_unit",
                 "block.0|forward|all-gather|2.0|2.0\nblock.1|backward|all-gather|1.0|3.0\n");
    assert_query(store, "SELECT kind, phase, count, wire_bytes FROM collectives",
                 "all-gather|backward|1|175000000\nall-gather|forward|1|175000000\n");
    assert_query(store, "SELECT kind, ranks, rule, count, bytes, busy_ms, bus_gb_per_s FROM prices",
                 "all-gather|8|ring inside a node|2|400000000|5.0|70.0\n"
                 "forward|1|roofline of the device|1|0|3.0|0.0\n"
                 "backward|1|roofline of the device|1|0|2.0|0.0\n");
    assert_query(store,
                 "SELECT class, simulated_bytes, ledger_bytes FROM persistent_against_ledger",
                 "momentum|100000000|100000000\nparameter|50000000|50000000\n");
    assert_query(store,
                 "SELECT stream, category, kind, unit, start_ms, end_ms, rule FROM operations "
                 "LIMIT 2",
                 "gather|communication|all-gather|block.0|0.0|2.0|ring inside a node\n"
                 "compute|compute|forward|block.0|2.0|5.0|roofline of the device\n");
}

static void
test_allocator(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, store);
    fx->report.summary.has_allocator = TRUE;
    fx->report.summary.allocator.peak = (ZpAllocatorBytes){1, 2, 3 << 10, 4 << 10};
    const ZpObserver *observer = zp_recorder_observer(fx->report.recorder);
    ZpObserverPools pools = {ZP_TIME_PER_MS, 100, 200, 300, 4};
    observer->pools(fx->report.tape, &pools, observer->data);
    add_run(fx, store);
    assert_query(store, "SELECT id, allocated_bytes, active_bytes, reserved_bytes FROM run",
                 "1|NULL|NULL|NULL\n2|2|3072|4096\n");
    assert_query(store,
                 "SELECT run, time_ms, allocated_bytes, active_bytes, reserved_bytes FROM "
                 "allocator_timeline",
                 "2|1.0|100|200|300\n");
}

/* The examples that the schema's comment offers must work: each one is run as it stands. */
static void
test_documented_queries(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree char *path = g_build_filename(ZP_SOURCE_DIR, "reports/schema.sql", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, store);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) sql = g_string_new(NULL);
    int n = 0;
    for (char **line = lines; *line != NULL && g_str_has_prefix(*line, "--"); line++) {
        if (!g_str_has_prefix(*line, "--     "))
            continue;
        g_string_append_printf(sql, "%s\n", *line + 2);
        if (!g_str_has_suffix(*line, ";"))
            continue;
        g_autofree char *rows = query(store, sql->str);
        g_assert_nonnull(rows);
        g_string_truncate(sql, 0);
        n++;
    }
    g_assert_cmpint(n, >=, 10);
}

static void
test_append_and_find(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    for (int i = 0; i < 3; i++) {
        g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
        fx->report.run.name = i == 1 ? "other" : "two units";
        g_assert_cmpint(add_run(fx, store), ==, i + 1);
    }
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_READ);
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
    assert_query(store, "SELECT count(*) FROM name WHERE text = 'block.0'", "1\n");
}

static void
assert_same_bytes(const char *a, gsize a_length, const char *b, gsize b_length)
{
    g_assert_cmpuint(a_length, ==, b_length);
    g_assert_cmpint(memcmp(a, b, a_length), ==, 0);
}

/* The same runs give the same bytes: no clock, no order of a hash table. */
static void
test_deterministic(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autofree char *other = g_build_filename(fx->folder, "again.db", NULL);
    g_autofree char *first = g_strdup(fx->path);
    char *contents[2];
    gsize lengths[2];
    for (int i = 0; i < 2; i++) {
        g_free(fx->path);
        fx->path = g_strdup(i == 0 ? first : other);
        g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
        add_run(fx, store);
        g_clear_pointer(&store, zp_store_free);
        g_assert_true(g_file_get_contents(fx->path, &contents[i], &lengths[i], NULL));
    }
    assert_same_bytes(contents[0], lengths[0], contents[1], lengths[1]);
    g_free(contents[0]);
    g_free(contents[1]);
}

static void
assert_refused(Fixture *fx, const char *bytes, gsize length, int code)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents(fx->path, bytes, (gssize)length, NULL));
    for (int mode = ZP_STORE_APPEND; mode <= ZP_STORE_READ; mode++) {
        g_autoptr(ZpStore) store = zp_store_open(fx->path, (ZpStoreMode)mode, &error);
        g_assert_null(store);
        g_assert_error(error, ZP_STORE_ERROR, code);
        g_assert_nonnull(strstr(error->message, fx->path));
        g_clear_error(&error);
    }
    g_autofree char *after = NULL;
    gsize after_length;
    g_assert_true(g_file_get_contents(fx->path, &after, &after_length, NULL));
    assert_same_bytes(after, after_length, bytes, length);
    g_autofree char *journal = g_strconcat(fx->path, "-journal", NULL);
    g_assert_false(g_file_test(journal, G_FILE_TEST_EXISTS));
}

static void
test_foreign(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    const char text[] = "[model]\nname = Llama-3-8B\n";
    assert_refused(fx, text, sizeof text - 1, ZP_STORE_ERROR_FOREIGN);
    assert_refused(fx, "x", 1, ZP_STORE_ERROR_FOREIGN);

    /* Somebody else's database, with an application_id of 0 and of its own. */
    const char *const scripts[] = {"CREATE TABLE t (a); INSERT INTO t VALUES (1)",
                                   "PRAGMA application_id = 7; CREATE TABLE run (id)",
                                   "PRAGMA journal_mode = WAL; CREATE TABLE run (id)"};
    for (gsize i = 0; i < G_N_ELEMENTS(scripts); i++) {
        sqlite3 *db;
        g_remove(fx->path);
        g_assert_cmpint(sqlite3_open(fx->path, &db), ==, SQLITE_OK);
        g_assert_cmpint(sqlite3_exec(db, scripts[i], NULL, NULL, NULL), ==, SQLITE_OK);
        sqlite3_close(db);
        g_autofree char *bytes = NULL;
        gsize length;
        g_assert_true(g_file_get_contents(fx->path, &bytes, &length, NULL));
        assert_refused(fx, bytes, length, ZP_STORE_ERROR_FOREIGN);
    }
}

static void
test_newer_schema(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, store);
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_store_exec(store, "PRAGMA user_version = 3", &error));
    g_clear_pointer(&store, zp_store_free);
    g_autofree char *bytes = NULL;
    gsize length;
    g_assert_true(g_file_get_contents(fx->path, &bytes, &length, NULL));
    assert_refused(fx, bytes, length, ZP_STORE_ERROR_VERSION);
}

static void
test_missing(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_store_open(fx->path, ZP_STORE_READ, &error));
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_OPEN);
    g_assert_false(g_file_test(fx->path, G_FILE_TEST_EXISTS));
    g_clear_error(&error);
    g_autofree char *nowhere = g_build_filename(fx->folder, "no", "such", "folder.db", NULL);
    g_assert_null(zp_store_open(nowhere, ZP_STORE_APPEND, &error));
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_OPEN);
    g_clear_error(&error);
    g_assert_null(zp_store_open(fx->folder, ZP_STORE_APPEND, &error));
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_OPEN);
}

static void
test_reading_store_refuses_to_write(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) writer = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, writer);
    g_clear_pointer(&writer, zp_store_free);
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_READ);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_store_add_run(store, &fx->report.run, NULL, &error), ==, -1);
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_WRITE);
    assert_query(store, "SELECT count(*) FROM run", "1\n");
}

/* A disk that fills up while a run is written: SQLite's page limit stands for it. */
static void
test_full_disk(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, store);
    g_autofree char *pages = query(store, "PRAGMA page_count");
    g_autofree char *limit =
        g_strdup_printf("PRAGMA max_page_count = %d", (int)g_ascii_strtoll(pages, NULL, 10) + 1);
    run_query(store, limit);
    g_autoptr(GError) error = NULL;
    int failed = 0;
    for (int i = 0; i < 100 && !failed; i++)
        failed = zp_store_add_run(store, &fx->report.run, fx->report.recorder, &error) < 0;
    g_assert_true(failed);
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_WRITE);
    g_assert_nonnull(strstr(error->message, "full"));
    /* Whole runs only, and the store is usable again when there is room. */
    assert_query(store, "PRAGMA integrity_check", "ok\n");
    assert_query(store,
                 "SELECT count(*) FROM run r WHERE (SELECT count(*) FROM memory m WHERE "
                 "m.run = r.id) <> 10 OR (SELECT count(*) FROM operation o WHERE o.run = "
                 "r.id) <> 4",
                 "0\n");
    run_query(store, "PRAGMA max_page_count = 1000000");
    g_assert_cmpint(add_run(fx, store), >, 1);
}

/* A crash: the process stops in the middle of a transaction that already reached the disk. */
static void
test_crash(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    add_run(fx, store);
    g_autoptr(GError) error = NULL;
    /* A cache of one page makes SQLite write to the file before the commit. */
    run_query(store, "PRAGMA cache_size = 1");
    g_assert_true(zp_store_begin(store, &error));
    g_assert_true(
        zp_store_exec(store,
                      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                      "WHERE i < 5000) INSERT INTO name (text) SELECT 'word ' || i FROM n",
                      &error));
    /* What a crash leaves: the file and its journal as they are now. */
    g_autofree char *crashed = g_build_filename(fx->folder, "crashed.db", NULL);
    g_autofree char *journal = g_strconcat(fx->path, "-journal", NULL);
    g_autofree char *crashed_journal = g_strconcat(crashed, "-journal", NULL);
    const char *const pairs[][2] = {{fx->path, crashed}, {journal, crashed_journal}};
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *bytes = NULL;
        gsize length;
        g_assert_true(g_file_get_contents(pairs[i][0], &bytes, &length, NULL));
        g_assert_true(g_file_set_contents(pairs[i][1], bytes, (gssize)length, NULL));
    }
    g_clear_pointer(&store, zp_store_free);
    g_free(fx->path);
    fx->path = g_steal_pointer(&crashed);
    store = open_store(fx, ZP_STORE_READ);
    assert_query(store, "PRAGMA integrity_check", "ok\n");
    assert_query(store, "SELECT count(*) FROM run", "1\n");
    assert_query(store, "SELECT count(*) FROM name WHERE text LIKE 'word %'", "0\n");
}

static void
add_point(ZpStore *store, const char *stage, const char *ranks, gint64 peak, ZpTime step,
          const char *refused)
{
    g_autoptr(GError) error = NULL;
    ZpStepSummary summary = {.step_ps = step, .peak_bytes = peak, .fits = peak < 500};
    summary.peak_by_class[ZP_CLASS_PARAMETER] = peak;
    const char *const values[] = {stage, ranks};
    ZpReportPoint point = {values, refused == NULL ? &summary : NULL, refused};
    zp_store_add_point(store, &point, &error);
    g_assert_no_error(error);
}

static void
test_sweep(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    static const char *const axes[] = {"zero.stage", "world.ranks"};
    ZpReportSweep sweep = {.name = "stages",
                           .source = "stages.ini",
                           .inputs = fx->report.run.inputs,
                           .n_inputs = fx->report.run.n_inputs,
                           .axes = axes,
                           .n_axes = 2};
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_store_begin_sweep(store, &sweep, &error), ==, 1);
    add_point(store, "0", "8", 900, 100, NULL);
    add_point(store, "1", "8", 400, 120, NULL);
    add_point(store, "2", "8", 400, 110, NULL); /* beats the one above */
    add_point(store, "3", "7", 0, 0, "7 ranks do not divide");
    add_point(store, "3", "8", 100, 300, NULL);
    add_point(store, "3", "16", 100, 300, NULL); /* equal: the first counts */
    g_assert_true(zp_store_end_sweep(store, &error));
    assert_query(store,
                 "SELECT point, \"values\", peak_bytes, fits, error FROM sweep_table LIMIT 4",
                 "0|zero.stage=0 world.ranks=8|900|0|NULL\n"
                 "1|zero.stage=1 world.ranks=8|400|1|NULL\n"
                 "2|zero.stage=2 world.ranks=8|400|1|NULL\n"
                 "3|zero.stage=3 world.ranks=7|NULL|NULL|7 ranks do not divide\n");
    assert_query(store, "SELECT point FROM pareto WHERE sweep = 1", "4\n2\n0\n");
    assert_query(store, "SELECT complete FROM sweep", "1\n");
    assert_query(store, "SELECT count(*) FROM sweep_input", "3\n");
    assert_query(store, "SELECT bytes FROM sweep_peak WHERE point = 2", "400\n");
    assert_query(store, "PRAGMA foreign_key_check", "");
}

/* A sweep that stops keeps whole thousands of points and says that it is not complete. */
static void
test_sweep_stopped(Fixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    static const char *const axes[] = {"zero.stage", "world.ranks"};
    ZpReportSweep sweep = {.name = "stopped", .axes = axes, .n_axes = 2};
    g_autoptr(ZpStore) store = open_store(fx, ZP_STORE_APPEND);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_store_begin_sweep(store, &sweep, &error), ==, 1);
    for (int i = 0; i < 2500; i++)
        add_point(store, "3", "8", 100 + i, 300, NULL);
    g_clear_pointer(&store, zp_store_free);
    store = open_store(fx, ZP_STORE_READ);
    assert_query(store, "SELECT complete FROM sweep", "0\n");
    assert_query(store, "SELECT count(*), max(point) FROM sweep_point", "2000|1999\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) g_test_add("/store/" path, Fixture, NULL, setup, test, teardown)
    ADD("round-trip", test_round_trip);
    ADD("views", test_views);
    ADD("allocator", test_allocator);
    ADD("documented-queries", test_documented_queries);
    ADD("append-and-find", test_append_and_find);
    ADD("deterministic", test_deterministic);
    ADD("foreign", test_foreign);
    ADD("newer-schema", test_newer_schema);
    ADD("missing", test_missing);
    ADD("read-only", test_reading_store_refuses_to_write);
    ADD("full-disk", test_full_disk);
    ADD("crash", test_crash);
    ADD("sweep", test_sweep);
    ADD("sweep-stopped", test_sweep_stopped);
    return g_test_run();
}
