/* Opening any file as a run database, and reading what the views give: an error or rows, never a
 * crash; a file that is refused keeps its bytes. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <string.h>

#include "reports/store/sql.h"
#include "reports/store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_all(ZpStore *store)
{
    static const char *const queries[] = {
        "SELECT * FROM run_summary",  "SELECT * FROM memory_timeline", "SELECT * FROM operations",
        "SELECT * FROM peak_buffers", "SELECT * FROM exposed_by_unit", "SELECT * FROM sweep_table",
        "SELECT * FROM pareto",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(queries); i++) {
        g_autoptr(ZpStatement) statement = zp_store_prepare(store, queries[i], NULL);
        int rows = 0;
        while (statement != NULL && rows++ < 10000 && sqlite3_step(statement) == SQLITE_ROW)
            (void)sqlite3_column_text(statement, 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *folder = g_dir_make_tmp("fuzz-store-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "x.db", NULL);
    g_assert_true(g_file_set_contents(path, (const char *)data, (gssize)size, NULL));
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpStore) store = zp_store_open(path, ZP_STORE_READ, &error);
    g_assert_true((store == NULL) == (error != NULL));
    if (store != NULL) {
        g_autoptr(GArray) runs = zp_store_list_runs(store, NULL);
        g_autoptr(GArray) sweeps = zp_store_list_sweeps(store, NULL);
        (void)runs, (void)sweeps;
        read_all(store);
    } else {
        g_autofree char *after = NULL;
        gsize length = 0;
        g_assert_true(g_file_get_contents(path, &after, &length, NULL));
        g_assert_true(length == size && memcmp(after, data, size) == 0);
    }
    g_clear_pointer(&store, zp_store_free);
    g_remove(path);
    g_autofree char *journal = g_strconcat(path, "-journal", NULL);
    g_remove(journal);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
    return 0;
}
