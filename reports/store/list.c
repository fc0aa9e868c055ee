#include "reports/store/sql.h"

#include <string.h>

static void
clear_entry(gpointer data)
{
    ZpStoreEntry *entry = data;
    g_free(entry->name);
}

static GArray *
list(ZpStore *store, const char *sql, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(store, sql, error);
    if (statement == NULL)
        return NULL;
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(ZpStoreEntry));
    g_array_set_clear_func(entries, clear_entry);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        ZpStoreEntry entry = {.id = sqlite3_column_int64(statement, 0),
                              .name = g_strdup(name != NULL ? name : "")};
        g_array_append_val(entries, entry);
    }
    if (code != SQLITE_DONE) {
        zp_store_fail(store, "read", error);
        return NULL;
    }
    return g_steal_pointer(&entries);
}

GArray *
zp_store_list_runs(ZpStore *store, GError **error)
{
    return list(store, "SELECT id, name FROM run ORDER BY id", error);
}

GArray *
zp_store_list_sweeps(ZpStore *store, GError **error)
{
    return list(store, "SELECT id, name FROM sweep ORDER BY id", error);
}

/* An id wins over a name; of equal names the latest wins. */
static gint64
find(ZpStore *store, GArray *entries, const char *wanted, const char *what, GError **error)
{
    if (wanted == NULL && entries->len > 0)
        return g_array_index(entries, ZpStoreEntry, entries->len - 1).id;
    gint64 id = 0, by_name = -1;
    gboolean numeric =
        wanted != NULL && g_ascii_string_to_signed(wanted, 10, 1, G_MAXINT64, &id, NULL);
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < entries->len; i++) {
        const ZpStoreEntry *entry = &g_array_index(entries, ZpStoreEntry, i);
        if (numeric && entry->id == id)
            return id;
        if (wanted != NULL && strcmp(entry->name, wanted) == 0)
            by_name = entry->id;
        if (i < 10)
            g_string_append_printf(known, "%s%" G_GINT64_FORMAT " '%s'", i > 0 ? ", " : "",
                                   entry->id, entry->name);
        else if (i == 10)
            g_string_append(known, ", ...");
    }
    if (by_name < 0 && entries->len == 0)
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING, "%s: holds no %s", store->path,
                    what);
    else if (by_name < 0)
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING, "%s: no %s '%s'; there is %s",
                    store->path, what, wanted, known->str);
    return by_name;
}

gint64
zp_store_find_run(ZpStore *store, const char *id_or_name, GError **error)
{
    g_autoptr(GArray) entries = zp_store_list_runs(store, error);
    return entries == NULL ? -1 : find(store, entries, id_or_name, "run", error);
}

gint64
zp_store_find_sweep(ZpStore *store, const char *id_or_name, GError **error)
{
    g_autoptr(GArray) entries = zp_store_list_sweeps(store, error);
    return entries == NULL ? -1 : find(store, entries, id_or_name, "sweep", error);
}
