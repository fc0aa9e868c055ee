/* What a person reads of a sweep: the best points, and the front of peak against step time. */
#pragma once

#include "reports/text/pareto.h"
#include "reports/text/report.h"

/* The fastest `top` points (those that fit first), then the Pareto front with its knee named: by
 * step time, or by time per token where points differ in the tokens of a rank's step.  Refused
 * points are counted, with the first reason. */
void zp_summary_sweep(const ZpReportSweep *sweep, const ZpReportPoint *points, gsize n_points,
                      int top, gboolean color, GString *out);
