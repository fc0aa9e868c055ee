#include "reports/text/merit.h"

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
