/* The points of a sweep as they are ranked (reports/text/pareto.h). */
#pragma once

#include "reports/text/pareto.h"
#include "reports/text/report.h"

/* As many as points; *per_token: steps differ in the tokens of a rank, and times are a token's.
 * Free with g_free(). */
ZpParetoPoint *zp_merit_points(const ZpReportPoint *points, gsize n, gboolean *per_token);

/* Does an axis (its index) change nothing: are points that differ in it alone the same, and are
 * there such points? */
gboolean zp_merit_is_idle(const ZpReportPoint *points, gsize n, gsize n_axes, gsize axis);
