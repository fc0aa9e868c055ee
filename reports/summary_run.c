#include "reports/event.h"
#include "reports/format.h"
#include "reports/summary.h"
#include "reports/summary_parts.h"

#define LIVE_ROWS 20

static void
times(const ZpReportRun *run, GString *out)
{
    const ZpStepSummary *s = run->summary;
    double seconds = zp_time_to_seconds(s->step_ps);
    g_autoptr(ZpTable) table = zp_table_new("lrl", 0);
    zp_table_row(table);
    zp_table_cell(table, "Step time");
    zp_format_time(zp_table_open_cell(table), s->step_ps);
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
    if (s->host_peak_bytes > 0) {
        g_string_append(out, "Host memory per rank: ");
        zp_format_bytes(out, s->host_peak_bytes);
        g_string_append(out, " at its peak\n");
    }
    zp_summary_verdict(s->fits, s->capacity_bytes, s->contingency_bytes, s->headroom_bytes, color,
                       out);
}

/* Live buffers that a reader would call by one name. */
typedef struct {
    guint8 class_id, role;
    gint32 unit;
    gint64 bytes;
    int count;
} LiveGroup;

static gint
by_group_bytes(gconstpointer pa, gconstpointer pb)
{
    const LiveGroup *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->class_id != b->class_id)
        return a->class_id - b->class_id;
    if (a->role != b->role)
        return a->role - b->role;
    return (a->unit > b->unit) - (a->unit < b->unit);
}

/* Buffers that were there before the first step. */
static gboolean *
find_lasting(const ZpTape *tape)
{
    gboolean *lasting = g_new0(gboolean, (gsize)tape->n_buffers + 1);
    gint32 end = tape->n_steps > 0 ? tape->step_begin[0] : tape->n_instrs;
    for (gint32 i = 0; i < end; i++) {
        if (tape->instrs[i].op == ZP_TAPE_ALLOC)
            lasting[tape->instrs[i].a] = TRUE;
    }
    return lasting;
}

/* Lasting shards of all units say one thing and are one group; what lives for a while is told
 * apart by unit. */
static GArray *
group_live(const ZpReportRun *run)
{
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(LiveGroup));
    g_autofree gboolean *lasting = find_lasting(run->tape);
    for (guint i = 0; i < run->live_set->len; i++) {
        const ZpPlayLive *live = &g_array_index(run->live_set, ZpPlayLive, i);
        const ZpTapeBuffer *buffer = &run->tape->buffers[live->buffer];
        LiveGroup group = {live->class_id, buffer->role,
                           lasting[live->buffer] ? ZP_TAPE_NONE : buffer->unit, buffer->bytes, 1};
        guint g = 0;
        while (g < groups->len) {
            LiveGroup *have = &g_array_index(groups, LiveGroup, g);
            if (have->class_id == group.class_id && have->role == group.role &&
                have->unit == group.unit) {
                have->bytes += group.bytes;
                have->count++;
                break;
            }
            g++;
        }
        if (g == groups->len)
            g_array_append_val(groups, group);
    }
    g_array_sort(groups, by_group_bytes);
    return groups;
}

static void
group_row(const ZpReportRun *run, ZpTable *table, const LiveGroup *group)
{
    const ZpTapeVocabulary *words = run->tape->vocabulary;
    zp_table_row(table);
    zp_table_cell(table, words->classes[group->class_id]);
    zp_table_cell(table, words->roles[group->role]);
    zp_table_cell(table, group->unit == ZP_TAPE_NONE
                             ? (group->count > 1 ? "all units" : "")
                             : g_ptr_array_index(run->tape->unit_names, (guint)group->unit));
    zp_format_count(zp_table_open_cell(table), group->count);
    zp_summary_bytes_cells(table, group->bytes, run->summary->peak_bytes);
}

static void
live_table(const ZpReportRun *run, GString *out)
{
    g_autoptr(GArray) groups = group_live(run);
    g_autoptr(ZpTable) table = zp_table_new("lllrrrr", 0);
    zp_table_set_limit(table, ZP_SUMMARY_COLUMNS, 2);
    const char *const heads[] = {
        "Live at the peak", "what", "unit", "buffers", "GB", "GiB", "share"};
    zp_table_header(table);
    for (gsize i = 0; i < G_N_ELEMENTS(heads); i++)
        zp_table_cell(table, heads[i]);
    gint64 rest = 0;
    int n_rest = 0;
    for (guint i = 0; i < groups->len; i++) {
        const LiveGroup *group = &g_array_index(groups, LiveGroup, i);
        if (i < LIVE_ROWS) {
            group_row(run, table, group);
            continue;
        }
        rest += group->bytes;
        n_rest += group->count;
    }
    if (n_rest > 0) {
        zp_table_row(table);
        zp_table_cell(table, "smaller ones");
        zp_table_cell(table, "");
        zp_table_cell(table, "");
        zp_format_count(zp_table_open_cell(table), n_rest);
        zp_summary_bytes_cells(table, rest, run->summary->peak_bytes);
    }
    zp_table_print(table, FALSE, out);
}

void
zp_summary_why(const ZpReportRun *run, GString *out)
{
    g_string_append(out, "\nWhy this peak\n\n");
    where(run, out);
    if (run->live_set == NULL || run->live_set->len == 0)
        return;
    g_string_append_c(out, '\n');
    live_table(run, out);
}
