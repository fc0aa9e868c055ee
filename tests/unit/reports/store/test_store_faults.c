/* The run database faces foreign and newer files, full disks and crashes. */
#include "tests/unit/fixtures/store_fixture.h"

static void
assert_refused(StoreFixture *fx, const char *bytes, gsize length, int code)
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
    store_fixture_assert_same(after, after_length, bytes, length);
    g_autofree char *journal = g_strconcat(fx->path, "-journal", NULL);
    g_assert_false(g_file_test(journal, G_FILE_TEST_EXISTS));
}

static void
test_foreign(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
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
test_newer_schema(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, store);
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_store_exec(store, "PRAGMA user_version = 99", &error));
    g_clear_pointer(&store, zp_store_free);
    g_autofree char *bytes = NULL;
    gsize length;
    g_assert_true(g_file_get_contents(fx->path, &bytes, &length, NULL));
    assert_refused(fx, bytes, length, ZP_STORE_ERROR_VERSION);
}

static void
test_missing(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
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
test_reading_store_refuses_to_write(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) writer = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, writer);
    g_clear_pointer(&writer, zp_store_free);
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_READ);
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_store_add_run(store, &fx->report.run, NULL, &error), ==, -1);
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_WRITE);
    store_fixture_assert(store, "SELECT count(*) FROM run", "1\n");
}

/* A disk that fills up while a run is written: SQLite's page limit stands for it. */
static void
test_full_disk(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, store);
    g_autofree char *pages = store_fixture_query(store, "PRAGMA page_count");
    g_autofree char *limit =
        g_strdup_printf("PRAGMA max_page_count = %d", (int)g_ascii_strtoll(pages, NULL, 10) + 1);
    store_fixture_run(store, limit);
    g_autoptr(GError) error = NULL;
    int failed = 0;
    for (int i = 0; i < 100 && !failed; i++)
        failed = zp_store_add_run(store, &fx->report.run, fx->report.recorder, &error) < 0;
    g_assert_true(failed);
    g_assert_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_WRITE);
    g_assert_nonnull(strstr(error->message, "full"));
    /* Whole runs only, and the store is usable again when there is room. */
    store_fixture_assert(store, "PRAGMA integrity_check", "ok\n");
    store_fixture_assert(store,
                         "SELECT count(*) FROM run r WHERE (SELECT count(*) FROM memory m WHERE "
                         "m.run = r.id) <> 10 OR (SELECT count(*) FROM operation o WHERE o.run = "
                         "r.id) <> 4",
                         "0\n");
    store_fixture_run(store, "PRAGMA max_page_count = 1000000");
    g_assert_cmpint(store_fixture_add(fx, store), >, 1);
}

/* A crash: the process stops in the middle of a transaction that already reached the disk. */
static void
test_crash(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    g_autoptr(ZpStore) store = store_fixture_open(fx, ZP_STORE_APPEND);
    store_fixture_add(fx, store);
    g_autoptr(GError) error = NULL;
    /* A cache of one page makes SQLite write to the file before the commit. */
    store_fixture_run(store, "PRAGMA cache_size = 1");
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
    store = store_fixture_open(fx, ZP_STORE_READ);
    store_fixture_assert(store, "PRAGMA integrity_check", "ok\n");
    store_fixture_assert(store, "SELECT count(*) FROM run", "1\n");
    store_fixture_assert(store, "SELECT count(*) FROM name WHERE text LIKE 'word %'", "0\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, test) \
    g_test_add("/store/" path, StoreFixture, NULL, store_fixture_init, test, store_fixture_clear)
    ADD("foreign", test_foreign);
    ADD("newer-schema", test_newer_schema);
    ADD("missing", test_missing);
    ADD("read-only", test_reading_store_refuses_to_write);
    ADD("full-disk", test_full_disk);
    ADD("crash", test_crash);
    return g_test_run();
}
