#include "reports/summary/knobs.h"

#include "reports/text/format.h"
#include "reports/text/table.h"
#include "reports/text/words.h"

static void
signed_cell(ZpTable *table, gint64 delta, void (*format)(GString *, gint64))
{
    GString *cell = zp_table_open_cell(table);
    if (delta == 0) {
        g_string_append(cell, "same");
        return;
    }
    g_string_append_c(cell, delta < 0 ? '-' : '+');
    format(cell, delta < 0 ? -delta : delta);
}

void
zp_summary_knobs(const GArray *rows, GString *out)
{
    g_string_append(out, "\nWhat each knob would change\n\n");
    g_autoptr(ZpTable) table = zp_table_new("llrrl", 0);
    zp_table_header(table);
    const char *const heads[] = {"knob", "to", "peak", "step time", "fits"};
    for (gsize h = 0; h < G_N_ELEMENTS(heads); h++)
        zp_table_cell(table, heads[h]);
    for (guint i = 0; i < rows->len; i++) {
        const ZpKnobsRow *row = &g_array_index(rows, ZpKnobsRow, i);
        zp_table_row(table);
        zp_table_cell(table, row->knob);
        zp_table_cell(table, row->change);
        signed_cell(table, row->peak_delta_bytes, zp_format_bytes);
        signed_cell(table, row->step_delta_ps, zp_format_time);
        zp_table_cell(table, zp_words_verdict(row->verdict));
    }
    zp_table_print(table, FALSE, out);
}
