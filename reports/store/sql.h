/* Statements, names and transactions of an open store, for the rooms of reports that read it. */
#pragma once

#include <sqlite3.h>

#include "reports/store/store.h"

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
/* One row to write, a value per parameter: zp_store_insert(store, statement, error, ZP_INT(run),
 * ZP_NAME(unit)).  Texts may be NULL and must live until the call returns; a name is written as its
 * id, made if need be; a ZP_ID of 0 becomes NULL. */
typedef struct {
    enum {
        ZP_STORE_VALUE_INT,
        ZP_STORE_VALUE_REAL,
        ZP_STORE_VALUE_TEXT,
        ZP_STORE_VALUE_NAME,
        ZP_STORE_VALUE_NULL,
    } type;
    gint64 integer;
    double real;
    const char *text;
} ZpStoreValue;
#define ZP_INT(value)                                          \
    {                                                          \
        .type = ZP_STORE_VALUE_INT, .integer = (gint64)(value) \
    }
#define ZP_ID(value)                                                                               \
    {                                                                                              \
        .type = (value) > 0 ? ZP_STORE_VALUE_INT : ZP_STORE_VALUE_NULL, .integer = (gint64)(value) \
    }
#define ZP_REAL(value)                               \
    {                                                \
        .type = ZP_STORE_VALUE_REAL, .real = (value) \
    }
#define ZP_TEXT(value)                               \
    {                                                \
        .type = ZP_STORE_VALUE_TEXT, .text = (value) \
    }
#define ZP_NAME(value)                               \
    {                                                \
        .type = ZP_STORE_VALUE_NAME, .text = (value) \
    }
#define ZP_FLAG_UNLESS(unknown, value)                                                           \
    {                                                                                            \
        .type = (unknown) ? ZP_STORE_VALUE_NULL : ZP_STORE_VALUE_INT, .integer = (value) ? 1 : 0 \
    }
#define zp_store_insert(store, statement, error, ...)                                 \
    zp_store_insert_row(store, statement, error, (const ZpStoreValue[]){__VA_ARGS__}, \
                        sizeof((const ZpStoreValue[]){__VA_ARGS__}) / sizeof(ZpStoreValue))
gboolean zp_store_insert_row(ZpStore *store, ZpStatement *statement, GError **error,
                             const ZpStoreValue *values, gsize n);
/* The id of a name, made if need be; 0 for NULL, -1 on error. */
gint64 zp_store_name(ZpStore *store, const char *text, GError **error);

gboolean zp_store_write_inputs(ZpStore *store, const char *table, gint64 owner,
                               const ZpReportInput *inputs, gsize n_inputs, GError **error);
/* Operations and memory changes. */
gboolean zp_store_write_recorder(ZpStore *store, gint64 run, const ZpTape *tape,
                                 const ZpRecorder *recorder, GError **error);
