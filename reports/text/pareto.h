/* Which points of a sweep are worth looking at: nothing beats them on both peak and step time. */
#pragma once

#include <glib.h>

#include "sim/events/time.h"

typedef struct {
    gint64 peak_bytes;
    ZpTime step_ps;
    gboolean valid; /* FALSE: refused, ignored everywhere */
    gboolean fits;
} ZpParetoPoint;

#define ZP_PARETO_NONE (-1)

/* All as indices into the points.  Ties go to the better other figure, then to the first point. */
typedef struct {
    gint32 *front; /* ascending peak, descending step time; of equal points only the first */
    gsize n_front;
    gint32 knee;            /* the front's point farthest below the line between its two ends, after
                             * scaling both axes to the front's range; NONE for fewer than three points
                             * or where none lies below the line */
    gint32 best_time;       /* fastest of all valid points */
    gint32 best_memory;     /* lowest peak of all valid points */
    gint32 fastest_fitting; /* fastest of those that fit, or NONE */
} ZpPareto;

void zp_pareto_find(const ZpParetoPoint *points, gsize n_points, ZpPareto *pareto);
void zp_pareto_clear(ZpPareto *pareto);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpPareto, zp_pareto_clear)
