#include "reports/summary/parts_internal.h"
#include "reports/summary/summary.h"
#include "reports/text/event.h"
#include "reports/text/format.h"

#include <string.h>

/* How far it can be wrong, and what it rests on. */
static void
band_cell(const ZpReportRun *run, GString *cell)
{
    const ZpStepSummary *s = run->summary;
    zp_format_time(cell, s->step_low_ps);
    g_string_append(cell, " to ");
    zp_format_time(cell, s->step_high_ps);
    g_string_append_printf(cell, " (90 %%: constants %s, %s)", zp_grade_name(s->grade),
                           strcmp(run->job->runtime, "ideal") == 0 ? "no framework's own order"
                                                                   : "the framework's own order");
}

static void
times(const ZpReportRun *run, GString *out)
{
    const ZpStepSummary *s = run->summary;
    double seconds = zp_time_to_seconds(s->step_ps);
    g_autoptr(ZpTable) table = zp_table_new("lrl", 0);
    zp_table_row(table);
    zp_table_cell(table, "Step time");
    zp_format_time(zp_table_open_cell(table), s->step_ps);
    band_cell(run, zp_table_open_cell(table));
    zp_table_row(table);
    zp_table_cell(table, "Exposed communication");
    zp_format_time(zp_table_open_cell(table), s->exposed_ps);
    GString *share = zp_table_open_cell(table);
    zp_format_share(share, (double)s->exposed_ps, (double)s->step_ps);
    g_string_append(share, " of the step");
    zp_table_row(table);
    zp_table_cell(table, "Tokens per second");
    GString *rate = zp_table_open_cell(table);
    if (seconds > 0.0 && (double)s->tokens_per_step / seconds < 9e18)
        zp_format_count(rate, (gint64)((double)s->tokens_per_step / seconds));
    else
        g_string_append_c(rate, '-');
    GString *mfu = zp_table_open_cell(table);
    g_string_append(mfu, "all ranks; MFU ");
    zp_format_share(mfu, s->mfu, 1.0);
    zp_table_print(table, FALSE, out);
}

typedef struct {
    int class_id;
    gint64 bytes;
} ClassBytes;

static gint
by_bytes(gconstpointer pa, gconstpointer pb)
{
    const ClassBytes *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->class_id - b->class_id;
}

static void
classes(const ZpReportRun *run, gboolean color, GString *out)
{
    const ZpStepSummary *s = run->summary;
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(ClassBytes));
    for (int c = 0; c < ZP_N_CLASSES; c++) {
        ClassBytes row = {c, s->peak_by_class[c]};
        if (row.bytes != 0 || s->persistent_by_class[c] != 0)
            g_array_append_val(rows, row);
    }
    g_array_sort(rows, by_bytes);
    g_autoptr(ZpTable) table = zp_table_new("lrrrrr", 0);
    zp_table_header(table);
    const char *const heads[] = {"Memory per rank", "peak GB",           "peak GiB",
                                 "share",           "after the step GB", "GiB"};
    for (gsize i = 0; i < G_N_ELEMENTS(heads); i++)
        zp_table_cell(table, heads[i]);
    for (guint i = 0; i < rows->len; i++) {
        const ClassBytes *row = &g_array_index(rows, ClassBytes, i);
        gint64 persistent = s->persistent_by_class[row->class_id];
        zp_table_row(table);
        zp_table_cell(table, zp_vocabulary_class_name((ZpClass)row->class_id));
        zp_summary_bytes_cells(table, row->bytes, s->peak_bytes);
        zp_summary_amount_cells(table, persistent);
    }
    zp_table_rule(table);
    zp_table_row(table);
    zp_table_cell(table, "total");
    zp_summary_bytes_cells(table, s->peak_bytes, s->peak_bytes);
    zp_summary_amount_cells(table, s->persistent_bytes);
    zp_table_print(table, color, out);
}

static void
where(const ZpReportRun *run, GString *out)
{
    const ZpStepSummary *s = run->summary;
    if (s->peak_instr == ZP_TAPE_NONE)
        return;
    ZpEvent event;
    zp_event_fill(run->tape, s->peak_instr, &event);
    g_string_append(out, "Peak at ");
    zp_format_time(out, s->peak_time);
    g_string_append_printf(out, " in %s", event.phase);
    if (event.unit != NULL)
        g_string_append_printf(out, " of %s", event.unit);
    if (event.micro_batch > 0)
        g_string_append_printf(out, ", micro-batch %d", event.micro_batch);
    g_string_append_printf(out, ":\n  %s of ", event.op);
    zp_format_bytes(out, event.bytes);
    if (event.class_name != NULL)
        g_string_append_printf(out, " %s", event.class_name);
    if (event.role != NULL && event.role[0] != '\0')
        g_string_append_printf(out, " (%s)", event.role);
    if (event.kind != NULL)
        g_string_append_printf(out, " for %s", event.kind);
    g_string_append_printf(out, " on stream %s\n", event.stream);
}

void
zp_summary_run(const ZpReportRun *run, gboolean color, GString *out)
{
    const ZpStepSummary *s = run->summary;
    zp_summary_head(run, color, out);
    times(run, out);
    g_string_append_c(out, '\n');
    classes(run, color, out);
    g_string_append_c(out, '\n');
    where(run, out);
    zp_summary_parts(run, color, out);
    zp_summary_prices(run, color, out);
    gint64 node_ranks = MIN(run->job->world.ranks, run->job->network.gpus_per_node);
    if (s->host_peak_bytes > 0) {
        g_string_append(out, "Host memory per rank: ");
        zp_format_bytes(out, s->host_peak_bytes);
        g_string_append_printf(out,
                               " at its peak; %" G_GINT64_FORMAT " ranks of a node: ", node_ranks);
        zp_format_bytes(out, node_ranks * s->host_peak_bytes);
        g_string_append_c(out, '\n');
    }
    zp_summary_allocator(run, out);
    ZpSummaryVerdict verdict = {
        .verdict = s->verdict,
        .capacity_bytes = s->capacity_bytes,
        .contingency_bytes = s->contingency_bytes,
        .headroom_bytes = s->headroom_bytes,
        .n_flushes = s->has_allocator ? s->allocator.n_flushes : 0,
    };
    verdict.low_bytes = s->needed_low_bytes;
    verdict.high_bytes = s->needed_high_bytes;
    zp_summary_verdict(&verdict, color, out);
}

void
zp_summary_why(const ZpReportRun *run, GString *out)
{
    g_string_append(out, "\nWhy this peak\n\n");
    if (run->live_set == NULL || run->live_set->len == 0) {
        g_string_append(out, "The buffers live at the peak are not known.\n");
        return;
    }
    zp_summary_live(run, out);
}
