/* A run to record and a folder for its database; queries as text. */
#pragma once

#include <sqlite3.h>

#include "reports/store.h"
#include "reports/store_internal.h"
#include "tests/unit/report_fixture.h"

typedef struct {
    ReportFixture report;
    char *folder, *path;
} StoreFixture;

static inline void
store_fixture_init(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    report_fixture_init(&fx->report);
    fx->folder = report_fixture_folder();
    fx->path = g_build_filename(fx->folder, "runs.db", NULL);
}

static inline void
store_fixture_clear(StoreFixture *fx, gconstpointer data G_GNUC_UNUSED)
{
    report_fixture_clear(&fx->report);
    report_fixture_remove(fx->folder);
    g_free(fx->folder);
    g_free(fx->path);
}

static inline ZpStore *
store_fixture_open(StoreFixture *fx, ZpStoreMode mode)
{
    g_autoptr(GError) error = NULL;
    ZpStore *store = zp_store_open(fx->path, mode, &error);
    g_assert_no_error(error);
    g_assert_nonnull(store);
    return store;
}

static inline gint64
store_fixture_add(StoreFixture *fx, ZpStore *store)
{
    g_autoptr(GError) error = NULL;
    gint64 id = zp_store_add_run(store, &fx->report.run, fx->report.recorder, &error);
    g_assert_no_error(error);
    return id;
}

/* All rows of a query, columns by '|', rows by newlines. */
static inline char *
store_fixture_query(ZpStore *store, const char *sql)
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

static inline void
store_fixture_run(ZpStore *store, const char *sql)
{
    g_free(store_fixture_query(store, sql));
}

static inline void
store_fixture_assert(ZpStore *store, const char *sql, const char *expected)
{
    g_autofree char *actual = store_fixture_query(store, sql);
    g_assert_cmpstr(actual, ==, expected);
}

static inline void
store_fixture_assert_same(const char *a, gsize a_length, const char *b, gsize b_length)
{
    g_assert_cmpuint(a_length, ==, b_length);
    g_assert_cmpint(memcmp(a, b, a_length), ==, 0);
}
