#include "reports/summary/parts_internal.h"
#include "reports/summary/summary.h"
#include "reports/text/format.h"

#define LIVE_ROWS 20
/* Up to so many units with equal buffers are listed one by one. */
#define MAX_ALIKE 4

/* Live buffers that a reader would call by one name. */
typedef struct {
    guint8 class_id, role;
    gint32 unit;  /* the first of them */
    gint64 bytes; /* all together */
    int count;    /* buffers */
    int n_units;  /* units alike, 1 unless merged */
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

/* Many units that hold the same (kept activations, say) are told in one line. */
static void
merge_alike(GArray *groups)
{
    for (guint i = 0; i < groups->len; i++) {
        LiveGroup *first = &g_array_index(groups, LiveGroup, i);
        guint n = 1;
        while (i + n < groups->len) {
            const LiveGroup *next = first + n;
            if (next->class_id != first->class_id || next->role != first->role ||
                next->bytes != first->bytes || next->count != first->count)
                break;
            n++;
        }
        if (n <= MAX_ALIKE)
            continue;
        first->n_units = (int)n;
        first->bytes *= n;
        first->count *= (int)n;
        g_array_remove_range(groups, i + 1, n - 1);
    }
    g_array_sort(groups, by_group_bytes);
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
        LiveGroup group = {live->class_id,
                           buffer->role,
                           lasting[live->buffer] ? ZP_TAPE_NONE : buffer->unit,
                           buffer->bytes,
                           1,
                           1};
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
    merge_alike(groups);
    return groups;
}

static void
group_row(const ZpReportRun *run, ZpTable *table, const LiveGroup *group)
{
    const ZpTapeVocabulary *words = run->tape->vocabulary;
    zp_table_row(table);
    zp_table_cell(table, words->classes[group->class_id]);
    zp_table_cell(table, words->roles[group->role]);
    GString *unit = zp_table_open_cell(table);
    if (group->unit != ZP_TAPE_NONE)
        g_string_append(unit, g_ptr_array_index(run->tape->unit_names, (guint)group->unit));
    else if (group->count > 1)
        g_string_append(unit, "all units");
    if (group->n_units > 1)
        g_string_append_printf(unit, " and %d more", group->n_units - 1);
    zp_format_count(zp_table_open_cell(table), group->count);
    zp_summary_bytes_cells(table, group->bytes, run->summary->peak_bytes);
}

void
zp_summary_live(const ZpReportRun *run, GString *out)
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
