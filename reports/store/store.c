#include "reports/store/sql.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "reports/text/data.h"

G_DEFINE_QUARK(zp_store_error_quark, zp_store_error)

#define HEADER_BYTES 100 /* of an SQLite file; https://www.sqlite.org/fileformat2.html */

static ZpStoreError
error_class(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return ZP_STORE_ERROR_WRITE;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ZP_STORE_ERROR_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ZP_STORE_ERROR_CORRUPT;
    case SQLITE_CANTOPEN:
        return ZP_STORE_ERROR_OPEN;
    default:
        return ZP_STORE_ERROR_QUERY;
    }
}

gboolean
zp_store_fail(ZpStore *store, const char *what, GError **error)
{
    int code = sqlite3_extended_errcode(store->db);
    g_set_error(error, ZP_STORE_ERROR, (int)error_class(code), "%s: cannot %s: %s", store->path,
                what, sqlite3_errmsg(store->db));
    return FALSE;
}

gboolean
zp_store_exec(ZpStore *store, const char *sql, GError **error)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return zp_store_fail(store, "write", error);
    return TRUE;
}

gboolean
zp_store_begin(ZpStore *store, GError **error)
{
    g_assert(!store->in_transaction);
    store->in_transaction = zp_store_exec(store, "BEGIN IMMEDIATE", error);
    return store->in_transaction;
}

gboolean
zp_store_commit(ZpStore *store, GError **error)
{
    g_assert(store->in_transaction);
    if (!zp_store_exec(store, "COMMIT", error))
        return FALSE;
    store->in_transaction = FALSE;
    store->n_commits++;
    return TRUE;
}

void
zp_store_rollback(ZpStore *store)
{
    /* SQLite may have rolled back by itself on a full disk: then this one fails, rightly. */
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->in_transaction = FALSE;
    g_hash_table_remove_all(store->names);
}

ZpStatement *
zp_store_prepare(ZpStore *store, const char *sql, GError **error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        zp_store_fail(store, "use its tables", error);
        return NULL;
    }
    return statement;
}

/* FALSE: a name could not be made. */
static gboolean
bind_value(ZpStore *store, ZpStatement *statement, int at, const ZpStoreValue *value,
           GError **error)
{
    gint64 id;
    switch (value->type) {
    case ZP_STORE_VALUE_INT:
        sqlite3_bind_int64(statement, at, value->integer);
        break;
    case ZP_STORE_VALUE_REAL:
        sqlite3_bind_double(statement, at, value->real);
        break;
    case ZP_STORE_VALUE_TEXT:
        sqlite3_bind_text(statement, at, value->text, -1, SQLITE_STATIC);
        break;
    case ZP_STORE_VALUE_NAME:
        id = zp_store_name(store, value->text, error);
        if (id < 0)
            return FALSE;
        if (id > 0)
            sqlite3_bind_int64(statement, at, id);
        else
            sqlite3_bind_null(statement, at);
        break;
    case ZP_STORE_VALUE_NULL:
        sqlite3_bind_null(statement, at);
        break;
    }
    return TRUE;
}

gboolean
zp_store_insert_row(ZpStore *store, ZpStatement *statement, GError **error,
                    const ZpStoreValue *values, gsize n)
{
    for (int i = 0; i < (int)n; i++) {
        if (!bind_value(store, statement, i + 1, &values[i], error))
            return FALSE;
    }
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE)
        zp_store_fail(store, "write", error);
    sqlite3_reset(statement);
    return code == SQLITE_DONE;
}

/* One query of one integer; -1 when there is no row, -2 on error. */
static gint64
query_integer(ZpStore *store, const char *sql, const char *text, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(store, sql, error);
    if (statement == NULL)
        return -2;
    if (text != NULL)
        sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
        return sqlite3_column_int64(statement, 0);
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        return -1;
    zp_store_fail(store, "read", error);
    return -2;
}

gint64
zp_store_name(ZpStore *store, const char *text, GError **error)
{
    if (text == NULL)
        return 0;
    const gint64 *known = g_hash_table_lookup(store->names, text);
    if (known != NULL)
        return *known;
    gint64 id = query_integer(store, "SELECT id FROM name WHERE text = ?1", text, error);
    if (id == -2)
        return -1;
    if (id == -1) {
        g_autoptr(ZpStatement) insert =
            zp_store_prepare(store, "INSERT INTO name (text) VALUES (?1)", error);
        if (insert == NULL || !zp_store_insert(store, insert, error, ZP_TEXT(text)))
            return -1;
        id = sqlite3_last_insert_rowid(store->db);
    }
    g_hash_table_insert(store->names, g_strdup(text), g_memdup2(&id, sizeof id));
    return id;
}

static guint32
big_endian(const guint8 *bytes)
{
    guint32 value;
    memcpy(&value, bytes, sizeof value);
    return GUINT32_FROM_BE(value);
}

/* Reads the file's header without SQLite, which might recover or convert a stranger's file.
 * `*empty`: missing or of no bytes. */
static gboolean
check_header(const char *path, gboolean *empty, GError **error)
{
    *empty = FALSE;
    struct stat info;
    if (stat(path, &info) != 0 && errno == ENOENT) {
        *empty = TRUE;
        return TRUE;
    }
    /* Opening a pipe would wait for its other end. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_FOREIGN,
                    "%s: not a run database of zeropeak; nothing was written", path);
        return FALSE;
    }
    FILE *file = fopen(path, "rb");
    guint8 header[HEADER_BYTES] = {0};
    gsize n = file != NULL ? fread(header, 1, sizeof header, file) : 0;
    gboolean failed = file == NULL || ferror(file);
    int saved_errno = errno;
    if (file != NULL)
        fclose(file);
    if (failed) {
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_OPEN, "%s: cannot open: %s", path,
                    g_strerror(saved_errno));
        return FALSE;
    }
    if (n == 0) {
        *empty = TRUE;
        return TRUE;
    }
    if (n < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) != 0 ||
        big_endian(header + 68) != ZP_STORE_APPLICATION_ID) {
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_FOREIGN,
                    "%s: not a run database of zeropeak; nothing was written", path);
        return FALSE;
    }
    guint32 schema = big_endian(header + 60);
    if (schema != ZP_STORE_SCHEMA) {
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_VERSION,
                    "%s: its schema is version %u, this program reads and writes version %d", path,
                    schema, ZP_STORE_SCHEMA);
        return FALSE;
    }
    return TRUE;
}

/* Two processes may create the same file: who comes second finds the tables and keeps them. */
static gboolean
create_schema(ZpStore *store, GError **error)
{
    if (!zp_store_begin(store, error))
        return FALSE;
    gint64 tables = query_integer(store, "SELECT count(*) FROM sqlite_master", NULL, error);
    g_autofree char *sql = g_strdup_printf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                           ZP_STORE_APPLICATION_ID, ZP_STORE_SCHEMA);
    if (tables == -2 ||
        (tables == 0 && (!zp_store_exec(store, sql, error) ||
                         !zp_store_exec(store, zp_data_text("schema.sql"), error))) ||
        !zp_store_commit(store, error)) {
        zp_store_rollback(store);
        return FALSE;
    }
    return TRUE;
}

gboolean
zp_store_check(const char *path, GError **error)
{
    gboolean empty;
    if (!check_header(path, &empty, error))
        return FALSE;
    g_autofree char *folder = g_path_get_dirname(path);
    if (*path != '\0' && g_file_test(folder, G_FILE_TEST_IS_DIR) &&
        g_access(g_file_test(path, G_FILE_TEST_EXISTS) ? path : folder, W_OK) == 0)
        return TRUE;
    g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_OPEN, "%s: cannot be written", path);
    return FALSE;
}

ZpStore *
zp_store_open(const char *path, ZpStoreMode mode, GError **error)
{
    gboolean empty;
    if (!check_header(path, &empty, error))
        return NULL;
    if (empty && mode == ZP_STORE_READ) {
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_OPEN,
                    "%s: no such database; 'zeropeak run' makes one", path);
        return NULL;
    }
    g_autoptr(ZpStore) store = g_new0(ZpStore, 1);
    store->path = g_strdup(path);
    store->created = !g_file_test(path, G_FILE_TEST_EXISTS);
    store->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    /* Reading may have to finish a crashed writer's rollback: never SQLITE_OPEN_READONLY. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (mode == ZP_STORE_APPEND)
        flags |= SQLITE_OPEN_CREATE;
    /* A relative path beginning with "file:" must not become a URI. */
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    if (sqlite3_open_v2(absolute, &store->db, flags, NULL) != SQLITE_OK) {
        zp_store_fail(store, "open", error);
        return NULL;
    }
    sqlite3_busy_timeout(store->db, 5000);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    /* Foreign keys are declared for readers and not enforced here: each key was looked up or made
     * by this very transaction, and checking it again costs half as much as the write itself. */
    const char *pragmas = "PRAGMA foreign_keys = OFF; PRAGMA cell_size_check = ON;"
                          "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;";
    if (!zp_store_exec(store, pragmas, error) ||
        (mode == ZP_STORE_READ && !zp_store_exec(store, "PRAGMA query_only = ON", error)) ||
        (empty && !create_schema(store, error)))
        return NULL;
    return g_steal_pointer(&store);
}

void
zp_store_free(ZpStore *store)
{
    if (store == NULL)
        return;
    if (store->in_transaction)
        zp_store_rollback(store);
    sqlite3_finalize(store->insert_point);
    sqlite3_finalize(store->insert_value);
    sqlite3_finalize(store->insert_peak);
    sqlite3_close(store->db);
    /* A file that this store made and could write nothing into is no database: a full disk.  One
     * with bytes in it is another process', which was faster. */
    GStatBuf info;
    if (store->created && store->n_commits == 0 && g_stat(store->path, &info) == 0 &&
        info.st_size == 0)
        (void)g_unlink(store->path);
    g_hash_table_unref(store->names);
    g_free(store->path);
    g_free(store);
}
