#include "reports/text/merit.h"

#include "models/step/same.h"

/* Do points differ in the tokens that a rank's step processes?  Then step times do not compare,
 * times per token do. */
static gboolean
tokens_differ(const ZpReportPoint *points, gsize n)
{
    gint64 tokens = -1;
    for (gsize i = 0; i < n; i++) {
        if (points[i].summary == NULL)
            continue;
        if (tokens >= 0 && points[i].summary->tokens_per_rank != tokens)
            return TRUE;
        tokens = points[i].summary->tokens_per_rank;
    }
    return FALSE;
}

ZpParetoPoint *
zp_merit_points(const ZpReportPoint *points, gsize n, gboolean *per_token)
{
    *per_token = tokens_differ(points, n);
    ZpParetoPoint *out = g_new0(ZpParetoPoint, n + 1);
    for (gsize i = 0; i < n; i++) {
        const ZpStepSummary *summary = points[i].summary;
        if (summary == NULL)
            continue;
        ZpTime time = zp_pareto_time(summary->step_ps, summary->tokens_per_rank, *per_token);
        out[i] = (ZpParetoPoint){summary->peak_bytes, time, TRUE, summary->fits};
    }
    return out;
}

/* The point's values on all other axes. */
static char *
others_of(const ZpReportPoint *point, gsize n_axes, gsize axis)
{
    GString *text = g_string_new(NULL);
    for (gsize a = 0; a < n_axes; a++)
        if (a != axis)
            g_string_append_printf(text, "%s\n", point->values[a]);
    return g_string_free(text, FALSE);
}

gboolean
zp_merit_is_idle(const ZpReportPoint *points, gsize n, gsize n_axes, gsize axis)
{
    g_autoptr(GHashTable) first = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gboolean compared = FALSE;
    for (gsize i = 0; i < n; i++) {
        if (points[i].summary == NULL)
            continue;
        g_autofree char *others = others_of(&points[i], n_axes, axis);
        const ZpStepSummary *before = g_hash_table_lookup(first, others);
        if (before == NULL) {
            g_hash_table_insert(first, g_steal_pointer(&others), (gpointer)points[i].summary);
            continue;
        }
        if (!zp_step_same(before, points[i].summary))
            return FALSE;
        compared = TRUE;
    }
    return compared;
}
