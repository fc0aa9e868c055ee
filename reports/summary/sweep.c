#include "reports/summary/sweep.h"

#include "reports/text/format.h"
#include "reports/text/merit.h"
#include "reports/text/table.h"
#include "reports/text/words.h"

/* Fitting points first, then by step time, peak and order. */
static gint
by_merit(gconstpointer pa, gconstpointer pb, gpointer data)
{
    const ZpParetoPoint *points = data;
    gsize a = *(const gsize *)pa, b = *(const gsize *)pb;
    if (points[a].fits != points[b].fits)
        return points[a].fits ? -1 : 1;
    if (points[a].time_ps != points[b].time_ps)
        return points[a].time_ps < points[b].time_ps ? -1 : 1;
    if (points[a].peak_bytes != points[b].peak_bytes)
        return points[a].peak_bytes < points[b].peak_bytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

static ZpTable *
begin_table(const ZpReportSweep *sweep)
{
    g_autofree char *letters = g_strnfill(sweep->n_axes + 7, 'r');
    letters[sweep->n_axes + 6] = 'l';
    ZpTable *table = zp_table_new(letters, 2);
    const char *const heads[] = {"step time", "tokens/s/rank", "exposed", "peak GB",
                                 "peak GiB",  "fits",          "note"};
    zp_table_header(table);
    for (gsize a = 0; a < sweep->n_axes; a++)
        zp_table_cell(table, sweep->axes[a]);
    for (gsize h = 0; h < G_N_ELEMENTS(heads); h++)
        zp_table_cell(table, heads[h]);
    return table;
}

static void
add_row(ZpTable *table, const ZpReportSweep *sweep, const ZpReportPoint *point, const char *note)
{
    zp_table_row(table);
    for (gsize a = 0; a < sweep->n_axes; a++)
        zp_table_cell(table, point->values[a]);
    zp_format_time(zp_table_open_cell(table), point->summary->step_ps);
    double seconds = zp_time_to_seconds(MAX(point->summary->step_ps, 1));
    zp_format_count(zp_table_open_cell(table),
                    (gint64)((double)point->summary->tokens_per_rank / seconds));
    zp_format_time(zp_table_open_cell(table), point->summary->exposed_ps);
    zp_format_gb(zp_table_open_cell(table), point->summary->peak_bytes);
    zp_format_gib(zp_table_open_cell(table), point->summary->peak_bytes);
    zp_table_cell(table, zp_words_verdict(point->summary->verdict));
    zp_table_cell(table, note);
}

static void
print_best(const ZpReportSweep *sweep, const ZpReportPoint *points, ZpParetoPoint *merits,
           gsize n_points, const char *measure, int top, gboolean color, GString *out)
{
    g_autofree gsize *order = g_new(gsize, n_points + 1);
    gsize n = 0;
    for (gsize i = 0; i < n_points; i++) {
        if (merits[i].valid)
            order[n++] = i;
    }
    g_qsort_with_data(order, (gint)n, sizeof *order, by_merit, merits);
    gsize shown = MIN(n, (gsize)MAX(top, 1));
    g_string_append_printf(
        out, "Best %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT " by %s, those that fit first\n", shown,
        n, measure);
    g_autoptr(ZpTable) table = begin_table(sweep);
    for (gsize i = 0; i < shown; i++)
        add_row(table, sweep, &points[order[i]], "");
    zp_table_print(table, color, out);
}

static void
print_front(const ZpReportSweep *sweep, const ZpReportPoint *points, const ZpPareto *pareto,
            const char *measure, gboolean color, GString *out)
{
    g_string_append_printf(out, "\nPareto front%s: nothing beats these on both peak and %s\n",
                           pareto->some_fit ? " of the points that fit" : ", though no point fits",
                           measure);
    g_autoptr(ZpTable) table = begin_table(sweep);
    for (gsize i = 0; i < pareto->n_front; i++) {
        gint32 point = pareto->front[i];
        const char *note = point == pareto->knee          ? "<- knee"
                           : point == pareto->best_memory ? "<- lowest peak"
                           : point == pareto->best_time   ? "<- fastest"
                                                          : "";
        add_row(table, sweep, &points[point], note);
    }
    zp_table_print(table, color, out);
    if (pareto->knee != ZP_PARETO_NONE) {
        g_string_append(out, "Knee:");
        for (gsize a = 0; a < sweep->n_axes; a++)
            g_string_append_printf(out, " %s=%s", sweep->axes[a], points[pareto->knee].values[a]);
        g_string_append_c(out, '\n');
    }
}

static void
print_refused(const ZpReportPoint *points, gsize n_points, GString *out)
{
    gsize refused = 0;
    const char *first = NULL;
    for (gsize i = 0; i < n_points; i++) {
        if (points[i].summary != NULL)
            continue;
        refused++;
        if (first == NULL)
            first = points[i].error;
    }
    if (refused > 0)
        g_string_append_printf(out, "\n%" G_GSIZE_FORMAT " point%s refused; the first: %s\n",
                               refused, refused == 1 ? " is" : "s are", first);
}

void
zp_summary_sweep(const ZpReportSweep *sweep, const ZpReportPoint *points, gsize n_points, int top,
                 gboolean color, GString *out)
{
    gboolean per_token;
    g_autofree ZpParetoPoint *merits = zp_merit_points(points, n_points, &per_token);
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(merits, n_points, &pareto);
    if (pareto.n_front > 0) {
        const char *measure = per_token ? "time per token" : "step time";
        print_best(sweep, points, merits, n_points, measure, top, color, out);
        print_front(sweep, points, &pareto, measure, color, out);
    }
    print_refused(points, n_points, out);
}
