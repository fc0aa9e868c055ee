/* The points of a sweep as they are ranked (reports/text/pareto.h). */
#pragma once

#include "reports/text/pareto.h"
#include "reports/text/report.h"

/* As many as points; *per_token: steps differ in the tokens of a rank, and times are a token's.
 * Free with g_free(). */
ZpParetoPoint *zp_merit_points(const ZpReportPoint *points, gsize n, gboolean *per_token);
