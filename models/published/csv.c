#include "models/published/csv.h"

#include <math.h>
#include <string.h>

G_DEFINE_QUARK(zp - validate - error - quark, zp_validate_error)

/* Reads one field from *in; sets *ended at the end of the record. */
static char *
read_field(const char **in, int *line, gboolean *ended, GError **error)
{
    g_autoptr(GString) field = g_string_new(NULL);
    const char *at = *in;
    int start = *line;
    gboolean quoted = *at == '"';
    if (quoted)
        at++;
    while (*at != '\0') {
        if (quoted && *at == '"' && at[1] == '"')
            at++;
        else if (quoted ? *at == '"' : (*at == ',' || *at == '\n' || *at == '\r'))
            break;
        *line += *at == '\n';
        g_string_append_c(field, *at++);
    }
    if (quoted && *at != '"') {
        g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_SYNTAX,
                    "line %d: a quote is never closed", start);
        return NULL;
    }
    if (quoted)
        at++;
    if (*at == '\r' && at[1] == '\n')
        at++;
    if (*at != ',' && *at != '\n' && *at != '\0') {
        g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_SYNTAX,
                    "line %d: text after a closing quote", *line);
        return NULL;
    }
    *ended = *at != ',';
    *line += *at == '\n';
    *in = *at == '\0' ? at : at + 1;
    return g_string_free(g_steal_pointer(&field), FALSE);
}

static GPtrArray *
read_record(const char **in, int *line, GError **error)
{
    g_autoptr(GPtrArray) record = g_ptr_array_new_with_free_func(g_free);
    gboolean ended = FALSE;
    while (!ended) {
        char *field = read_field(in, line, &ended, error);
        if (field == NULL)
            return NULL;
        g_ptr_array_add(record, field);
    }
    return g_steal_pointer(&record);
}

ZpValidateCsv *
zp_validate_csv_parse(const char *text, GError **error)
{
    g_autoptr(ZpValidateCsv) csv = g_new0(ZpValidateCsv, 1);
    csv->records = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    csv->lines = g_array_new(FALSE, FALSE, sizeof(gint));
    int line = 1;
    csv->names = read_record(&text, &line, error);
    if (csv->names == NULL)
        return NULL;
    while (*text != '\0') {
        int start = line;
        GPtrArray *record = read_record(&text, &line, error);
        if (record == NULL)
            return NULL;
        if (record->len == 1 && *(char *)g_ptr_array_index(record, 0) == '\0') {
            g_ptr_array_unref(record); /* a blank line */
            continue;
        }
        g_ptr_array_add(csv->records, record);
        g_array_append_val(csv->lines, start);
        if (record->len > csv->names->len) {
            g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_SYNTAX,
                        "line %d: %u fields, the header names %u", start, record->len,
                        csv->names->len);
            return NULL;
        }
        while (record->len < csv->names->len)
            g_ptr_array_add(record, g_strdup(""));
    }
    return g_steal_pointer(&csv);
}

void
zp_validate_csv_free(ZpValidateCsv *csv)
{
    if (csv == NULL)
        return;
    g_clear_pointer(&csv->names, g_ptr_array_unref);
    g_clear_pointer(&csv->records, g_ptr_array_unref);
    g_clear_pointer(&csv->lines, g_array_unref);
    g_free(csv);
}

const char *
zp_validate_csv_get(const ZpValidateCsv *csv, guint record, const char *name)
{
    for (guint c = 0; c < csv->names->len; c++) {
        if (strcmp(g_ptr_array_index(csv->names, c), name) == 0) {
            const GPtrArray *fields = g_ptr_array_index(csv->records, record);
            return g_ptr_array_index(fields, c);
        }
    }
    return "";
}

double
zp_validate_csv_number(const ZpValidateCsv *csv, guint record, const char *name, double missing)
{
    const char *text = zp_validate_csv_get(csv, record, name);
    char *end = NULL;
    double value = g_ascii_strtod(text, &end);
    return end != text && *end == '\0' && isfinite(value) ? value : missing;
}
