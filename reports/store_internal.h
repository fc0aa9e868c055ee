/* Inside the store: statements, names, transactions.  Not for other floors. */
#pragma once

#include <sqlite3.h>

#include "reports/store.h"

struct _ZpStore {
    sqlite3 *db;
    char *path;
    GHashTable *names; /* interned text -> id, as committed or in this transaction */
    /* The open sweep. */
    gint64 sweep;
    gsize n_axes;
    gint64 n_points;
    sqlite3_stmt *insert_point, *insert_value, *insert_peak;
    gboolean in_transaction;
    gboolean created; /* the file did not exist before */
    gint64 n_commits;
};

/* Fails with the message and class of the last SQLite error. */
gboolean zp_store_fail(ZpStore *store, const char *what, GError **error);
gboolean zp_store_exec(ZpStore *store, const char *sql, GError **error);
gboolean zp_store_begin(ZpStore *store, GError **error);
gboolean zp_store_commit(ZpStore *store, GError **error);
void zp_store_rollback(ZpStore *store);

typedef sqlite3_stmt ZpStatement;
static inline void
zp_store_finalize(ZpStatement *statement)
{
    sqlite3_finalize(statement);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpStatement, zp_store_finalize)

ZpStatement *zp_store_prepare(ZpStore *store, const char *sql, GError **error);
/* One row to write: `format` has a letter per parameter: 'i' gint64, 'd' double, 't' text (NULL
 * allowed; must live until the call returns), 'n' name id as gint64 (0: NULL). */
gboolean zp_store_insert(ZpStore *store, ZpStatement *statement, GError **error, const char *format,
                         ...);
/* The id of a name, made if need be; 0 for NULL, -1 on error. */
gint64 zp_store_name(ZpStore *store, const char *text, GError **error);

gboolean zp_store_write_inputs(ZpStore *store, const char *table, gint64 owner,
                               const ZpReportInput *inputs, gsize n_inputs, GError **error);
/* Operations and memory changes. */
gboolean zp_store_write_recorder(ZpStore *store, gint64 run, const ZpTape *tape,
                                 const ZpRecorder *recorder, GError **error);
