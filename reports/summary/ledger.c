#include <string.h>

#include "reports/summary/parts_internal.h"
#include "reports/summary/summary.h"
#include "reports/text/format.h"
#include "reports/text/words.h"

static void
heads(ZpTable *table, const char *const *texts)
{
    zp_table_header(table);
    for (; *texts != NULL; texts++)
        zp_table_cell(table, *texts);
}

/* The number of a note, 1-based, made if need be; 0 for no text. */
static gsize
note_of(GPtrArray *notes, const char *text)
{
    guint index = 0;
    if (text == NULL || text[0] == '\0')
        return 0;
    if (!g_ptr_array_find_with_equal_func(notes, text, g_str_equal, &index)) {
        index = notes->len;
        g_ptr_array_add(notes, (gpointer)text);
    }
    return index + 1;
}

/* "  [1] text", broken between words. */
static void
wrapped(GString *out, int number, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_append_printf(line, "  [%d]", number);
    for (char **word = words; *word != NULL; word++) {
        glong length = g_utf8_strlen(line->str, -1) + 1 + g_utf8_strlen(*word, -1);
        if (length > ZP_SUMMARY_COLUMNS) {
            g_string_append_printf(out, "%s\n", line->str);
            g_string_assign(line, "     ");
        }
        g_string_append_printf(line, " %s", *word);
    }
    g_string_append_printf(out, "%s\n", line->str);
}

static void
rows(const ZpLedger *ledger, gboolean color, GString *out)
{
    static const char *const titles[] = {"Stored per rank", "dtype", "B/element", "copies",
                                         "owners",          "GB",    "GiB",       "share",
                                         "evidence",        NULL};
    g_autoptr(ZpTable) table = zp_table_new("llrrrrrrl", 0);
    g_autoptr(GPtrArray) notes = g_ptr_array_new();
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
        gsize note = note_of(notes, row->evidence);
        if (note > 0)
            g_string_append_printf(zp_table_open_cell(table), "[%d]", (int)note);
    }
    zp_table_print(table, color, out);
    for (guint n = 0; n < notes->len; n++)
        wrapped(out, (int)n + 1, g_ptr_array_index(notes, n));
}

/* What lies outside the allocator, entry by entry; nothing where it was stated as a whole. */
static void
overheads(const ZpDevice *device, gboolean color, GString *out)
{
    static const char *const titles[] = {
        "Outside the allocator", "GB", "GiB", "share", "evidence", NULL};
    if (device->n_overheads == 0)
        return;
    g_autoptr(ZpTable) table = zp_table_new("lrrrl", 0);
    g_autoptr(GPtrArray) notes = g_ptr_array_new();
    heads(table, titles);
    for (int i = 0; i < device->n_overheads; i++) {
        const ZpOverhead *entry = &device->overheads[i];
        zp_table_row(table);
        zp_table_cell(table, entry->name);
        zp_summary_bytes_cells(table, entry->bytes, device->overhead_bytes);
        g_string_append_printf(zp_table_open_cell(table), "[%d] %s",
                               (int)note_of(notes, entry->evidence.source),
                               entry->evidence.confidence);
    }
    zp_table_print(table, color, out);
    for (guint n = 0; n < notes->len; n++)
        wrapped(out, (int)n + 1, g_ptr_array_index(notes, n));
    g_string_append(out, "  device.overhead replaces them by a measured value\n\n");
}

static void
bound(const ZpLedger *ledger, gboolean is_bound, gboolean color, GString *out)
{
    const char *const titles[] = {is_bound ? "Upper bound" : "Textbook sum", "GB", "GiB", "share",
                                  NULL};
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
    overheads(&run->job->device, color, out);
    gboolean is_bound = strcmp(run->job->runtime, "ideal") == 0;
    bound(ledger, is_bound, color, out);
    g_string_append_c(out, '\n');
    if (!is_bound) {
        g_string_append_printf(
            out,
            "These are the rules of the ideal runtime, no bound for %s, which keeps\n"
            "other buffers: 'zeropeak run' simulates them and gives the verdict.\n",
            run->job->runtime);
        return;
    }
    ZpSummaryVerdict verdict = {
        .verdict = ledger->capacity_bytes == 0 ? ZP_VERDICT_NONE
                   : ledger->fits              ? ZP_VERDICT_FITS
                                               : ZP_VERDICT_DOES_NOT_FIT,
        .capacity_bytes = ledger->capacity_bytes,
        .contingency_bytes = ledger->contingency_bytes,
        .headroom_bytes = ledger->headroom_bytes,
    };
    zp_summary_verdict(&verdict, color, out);
}
