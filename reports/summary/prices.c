#include "models/step/prices.h"
#include "reports/summary/parts_internal.h"
#include "reports/summary/summary.h"
#include "reports/text/format.h"
#include "reports/text/table.h"

enum { RULE_COLUMN = 6 };

static void
bytes_cell(ZpTable *table, gint64 bytes)
{
    GString *cell = zp_table_open_cell(table);
    if (bytes == 0)
        g_string_append_c(cell, '-');
    else
        zp_format_gb(cell, bytes);
}

/* Bus bandwidth of what went over a link, else the speed of what was computed. */
static void
rate_cell(ZpTable *table, const ZpStepPrice *price)
{
    GString *cell = zp_table_open_cell(table);
    double seconds = zp_time_to_seconds(price->busy_ps);
    if (price->wire_bytes > 0 && seconds > 0.0) {
        zp_format_double(cell, zp_step_price_bus_bytes_per_s(price) / 1e9, 1);
        g_string_append(cell, " GB/s");
    } else if (price->flops > 0.0 && seconds > 0.0) {
        zp_format_double(cell, price->flops / seconds / 1e12, 1);
        g_string_append(cell, " TFLOP/s");
    } else {
        g_string_append_c(cell, '-');
    }
}

void
zp_summary_prices(const ZpReportRun *run, gboolean color, GString *out)
{
    static const char *const heads[] = {"Alone, a step", "ranks", "count",    "GB",
                                        "time",          "rate",  "priced by"};
    g_autoptr(GArray) prices = zp_step_prices(run->tape);
    if (prices->len == 0)
        return;
    g_autoptr(ZpTable) table = zp_table_new("lrrrrrl", 0);
    zp_table_set_limit(table, ZP_SUMMARY_COLUMNS, RULE_COLUMN);
    zp_table_header(table);
    for (gsize h = 0; h < G_N_ELEMENTS(heads); h++)
        zp_table_cell(table, heads[h]);
    for (guint i = 0; i < prices->len; i++) {
        const ZpStepPrice *price = &g_array_index(prices, ZpStepPrice, i);
        zp_table_row(table);
        zp_table_cell(table, zp_vocabulary_kind_name(price->kind));
        zp_format_count(zp_table_open_cell(table), price->ranks);
        zp_format_count(zp_table_open_cell(table), price->count);
        bytes_cell(table, price->bytes);
        zp_format_time(zp_table_open_cell(table), price->busy_ps);
        rate_cell(table, price);
        zp_table_cell(table, price->rule != NULL ? price->rule : "-");
    }
    g_string_append_c(out, '\n');
    zp_table_print(table, color, out);
    g_string_append_c(out, '\n');
}
