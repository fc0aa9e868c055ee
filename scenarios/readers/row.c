#include "scenarios/readers/row.h"
#include "scenarios/readers/message.h"

void
zp_import_row_free(gpointer data)
{
    ZpImportRow *row = data;
    g_free(row->key);
    g_free(row->value);
    g_free(row->unit);
    g_free(row->effect);
    g_free(row->origin);
    g_free(row->reason);
    g_free(row);
}

GPtrArray *
zp_import_row_list_new(void)
{
    return g_ptr_array_new_with_free_func(zp_import_row_free);
}

static char *
copy(const char *text)
{
    return zp_import_message_clean(text ? text : "");
}

ZpImportRow *
zp_import_row_add(GPtrArray *rows, const char *key, const char *value, const char *unit,
                  const char *effect, const char *origin, const char *reason, int line)
{
    ZpImportRow *row = g_new0(ZpImportRow, 1);
    row->key = copy(key);
    row->value = copy(value);
    row->unit = copy(unit);
    row->effect = copy(effect);
    row->origin = copy(origin);
    row->reason = copy(reason);
    row->line = line;
    g_ptr_array_add(rows, row);
    return row;
}
