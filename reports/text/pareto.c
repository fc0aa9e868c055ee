#include "reports/text/pareto.h"

static gint
by_peak(gconstpointer pa, gconstpointer pb, gpointer data)
{
    const ZpParetoPoint *points = data;
    gint32 ia = *(const gint32 *)pa, ib = *(const gint32 *)pb;
    const ZpParetoPoint *a = &points[ia], *b = &points[ib];
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes ? -1 : 1;
    if (a->time_ps != b->time_ps)
        return a->time_ps < b->time_ps ? -1 : 1;
    return (ia > ib) - (ia < ib);
}

/* Twice the area of the triangle that `p` spans with the ends: proportional to its distance from
 * the line between them once both axes run from 0 to 1, so no division and no rounding.  Up to
 * 2^63 x 2^63: hence the double, exact enough to compare and the same on every machine. */
static double
depth(const ZpParetoPoint *first, const ZpParetoPoint *last, const ZpParetoPoint *p)
{
    double width = (double)(last->peak_bytes - first->peak_bytes);
    double height = (double)(first->time_ps - last->time_ps);
    double x = (double)(p->peak_bytes - first->peak_bytes);
    double y = (double)(p->time_ps - last->time_ps);
    return width * height - x * height - y * width;
}

static gint32
find_knee(const ZpParetoPoint *points, const gint32 *front, gsize n_front)
{
    gint32 knee = ZP_PARETO_NONE;
    double deepest = 0.0;
    for (gsize i = 1; i + 1 < n_front; i++) {
        double d = depth(&points[front[0]], &points[front[n_front - 1]], &points[front[i]]);
        if (d > deepest) {
            deepest = d;
            knee = front[i];
        }
    }
    return knee;
}

static gboolean
faster(const ZpParetoPoint *points, gint32 a, gint32 b)
{
    if (b == ZP_PARETO_NONE || points[a].time_ps != points[b].time_ps)
        return b == ZP_PARETO_NONE || points[a].time_ps < points[b].time_ps;
    return points[a].peak_bytes < points[b].peak_bytes;
}

ZpTime
zp_pareto_time(ZpTime step_ps, gint64 tokens, gboolean per_token)
{
    return per_token ? step_ps / MAX(tokens, 1) : step_ps;
}

void
zp_pareto_find(const ZpParetoPoint *points, gsize n_points, ZpPareto *pareto)
{
    g_assert(n_points <= G_MAXINT32);
    *pareto = (ZpPareto){.front = g_new(gint32, n_points + 1),
                         .knee = ZP_PARETO_NONE,
                         .best_time = ZP_PARETO_NONE,
                         .best_memory = ZP_PARETO_NONE};
    for (gsize i = 0; i < n_points; i++)
        pareto->some_fit = pareto->some_fit || (points[i].valid && points[i].fits);
    g_autofree gint32 *order = g_new(gint32, n_points + 1);
    gsize n_valid = 0;
    for (gint32 i = 0; i < (gint32)n_points; i++) {
        if (!points[i].valid || (pareto->some_fit && !points[i].fits))
            continue;
        order[n_valid++] = i;
        if (faster(points, i, pareto->best_time))
            pareto->best_time = i;
    }
    g_qsort_with_data(order, (gint)n_valid, sizeof *order, by_peak, (gpointer)points);
    for (gsize i = 0; i < n_valid; i++) {
        gsize n = pareto->n_front;
        if (n == 0 || points[order[i]].time_ps < points[pareto->front[n - 1]].time_ps)
            pareto->front[pareto->n_front++] = order[i];
    }
    if (n_valid > 0)
        pareto->best_memory = order[0];
    pareto->knee = find_knee(points, pareto->front, pareto->n_front);
}

void
zp_pareto_clear(ZpPareto *pareto)
{
    g_clear_pointer(&pareto->front, g_free);
    pareto->n_front = 0;
}
