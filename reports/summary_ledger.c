#include "reports/format.h"
#include "reports/summary.h"
#include "reports/summary_parts.h"
#include "reports/words.h"

static void
heads(ZpTable *table, const char *const *texts)
{
    zp_table_header(table);
    for (; *texts != NULL; texts++)
        zp_table_cell(table, *texts);
}

static void
rows(const ZpLedger *ledger, gboolean color, GString *out)
{
    static const char *const titles[] = {"Stored per rank", "dtype", "B/element", "copies",
                                         "owners",          "GB",    "GiB",       "share",
                                         "evidence",        NULL};
    g_autoptr(ZpTable) table = zp_table_new("llrrrrrrl", 0);
    zp_table_set_limit(table, ZP_SUMMARY_COLUMNS, 8);
    heads(table, titles);
    for (int i = 0; i < ledger->n_rows; i++) {
        const ZpLedgerRow *row = &ledger->rows[i];
        zp_table_row(table);
        zp_table_cell(table, row->name);
        zp_table_cell(table, zp_dtype_name(row->dtype));
        char bytes[G_ASCII_DTOSTR_BUF_SIZE];
        zp_table_cell(table, g_ascii_formatd(bytes, sizeof bytes, "%.6g", row->bytes_per_element));
        zp_format_count(zp_table_open_cell(table), row->copies);
        zp_format_count(zp_table_open_cell(table), row->owners);
        zp_summary_bytes_cells(table, row->persistent_bytes, ledger->persistent_bytes);
        zp_table_cell(table, row->evidence != NULL ? row->evidence : "");
    }
    zp_table_print(table, color, out);
}

static void
bound(const ZpLedger *ledger, gboolean color, GString *out)
{
    static const char *const titles[] = {"Upper bound", "GB", "GiB", "share", NULL};
    ZpWordsPart parts[ZP_WORDS_N_PARTS];
    zp_words_parts(ledger, parts);
    g_autoptr(ZpTable) table = zp_table_new("lrrr", 0);
    heads(table, titles);
    for (int i = 0; i < ZP_WORDS_N_PARTS; i++) {
        zp_table_row(table);
        zp_table_cell(table, parts[i].name);
        zp_summary_bytes_cells(table, parts[i].bytes, ledger->total_bytes);
    }
    zp_table_rule(table);
    zp_table_row(table);
    zp_table_cell(table, "total (the parts need not coincide)");
    zp_summary_bytes_cells(table, ledger->total_bytes, ledger->total_bytes);
    zp_table_print(table, color, out);
}

void
zp_summary_ledger(const ZpReportRun *run, gboolean color, GString *out)
{
    const ZpLedger *ledger = run->ledger;
    zp_summary_head(run, color, out);
    rows(ledger, color, out);
    g_string_append_c(out, '\n');
    bound(ledger, color, out);
    g_string_append_c(out, '\n');
    zp_summary_verdict(ledger->fits, ledger->capacity_bytes, ledger->contingency_bytes,
                       ledger->headroom_bytes, color, out);
}
