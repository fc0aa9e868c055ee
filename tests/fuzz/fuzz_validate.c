/* Any text as a table of runs: it is refused with its line, or each of its rows becomes a result or
 * says why not. */
#include <math.h>
#include <stdint.h>

#include "models/validate.h"
#include "tests/unit/interned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_table(const ZpValidateCsv *csv)
{
    g_assert_cmpuint(csv->records->len, ==, csv->lines->len);
    int line = 1;
    for (guint r = 0; r < csv->records->len; r++) {
        const GPtrArray *record = g_ptr_array_index(csv->records, r);
        g_assert_cmpuint(record->len, ==, csv->names->len);
        g_assert_cmpint(g_array_index(csv->lines, gint, r), >, line);
        line = g_array_index(csv->lines, gint, r);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, &error);
    if (csv == NULL) {
        g_assert_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_SYNTAX);
        return 0;
    }
    check_table(csv);
    if (csv->records->len > 4)
        return 0;
    g_autoptr(ZpValidation) validation = zp_validate_run(text, NULL, NULL, &error);
    g_assert_no_error(error);
    for (guint r = 0; r < validation->rows->len; r++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, r);
        g_assert_true(row->simulated_ms > 0.0 ? isfinite(row->error) : row->reason != NULL);
    }
    g_autofree char *table = zp_validate_table(validation);
    g_autofree char *summary = zp_validate_summary(validation);
    g_assert_true(table != NULL && summary != NULL);
    return 0;
}
