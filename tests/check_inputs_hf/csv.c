#include "csv.h"

#include <string.h>

GPtrArray *
csv_split(const char *line)
{
    GPtrArray *fields = g_ptr_array_new_with_free_func(g_free);
    GString *field = g_string_new(NULL);
    gboolean quoted = FALSE;
    for (const char *p = line; *p != '\0' && *p != '\n' && *p != '\r'; p++) {
        if (*p == '"' && quoted && p[1] == '"')
            g_string_append_c(field, *++p);
        else if (*p == '"')
            quoted = !quoted;
        else if (*p == ',' && !quoted) {
            g_ptr_array_add(fields, g_string_free(field, FALSE));
            field = g_string_new(NULL);
        } else
            g_string_append_c(field, *p);
    }
    g_ptr_array_add(fields, g_string_free(field, FALSE));
    return fields;
}

const char *
csv_field(const GPtrArray *header, const GPtrArray *record, const char *column)
{
    for (guint i = 0; i < header->len && i < record->len; i++)
        if (strcmp(g_ptr_array_index(header, i), column) == 0)
            return g_ptr_array_index(record, i);
    return "";
}
