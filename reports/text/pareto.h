/* Which points of a sweep are worth looking at: nothing beats them on both peak and time.
 *
 * Time is a step's, or a token's where the points' steps differ in tokens.  Ranked are the points
 * that fit; where none does, all.  reports/store/schema.sql says the same as views. */
#pragma once

#include <glib.h>

#include "sim/events/time.h"

typedef struct {
    gint64 peak_bytes;
    ZpTime time_ps; /* zp_pareto_time() */
    gboolean valid; /* FALSE: refused, ignored everywhere */
    gboolean fits;
} ZpParetoPoint;

#define ZP_PARETO_NONE (-1)

/* All as indices into the points.  Ties go to the better other figure, then to the first point. */
typedef struct {
    gint32 *front; /* ascending peak, descending time; of equal points only the first */
    gsize n_front;
    gint32 knee;        /* the front's point farthest below the line between its two ends, after
                         * scaling both axes to the front's range; NONE for fewer than three points
                         * or where none lies below the line */
    gint32 best_time;   /* fastest */
    gint32 best_memory; /* lowest peak */
    gboolean some_fit;
} ZpPareto;

/* `per_token`: do the points differ in the tokens of a step (of one rank)? */
ZpTime zp_pareto_time(ZpTime step_ps, gint64 tokens, gboolean per_token);

void zp_pareto_find(const ZpParetoPoint *points, gsize n_points, ZpPareto *pareto);
void zp_pareto_clear(ZpPareto *pareto);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpPareto, zp_pareto_clear)
