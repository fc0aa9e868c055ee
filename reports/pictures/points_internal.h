/* Points of a sweep as the plots of sweeps need them. */
#pragma once

#include "reports/pictures/plot_internal.h"

typedef struct {
    gint64 point;
    char *axis_value; /* of the chosen axis; "" without one */
    char *others;     /* "ranks=8 ..." of the other axes, sections left out; "" if there are none */
    gint64 step_ps, peak_bytes, capacity_bytes;
    gint64 time_ps; /* that points are ranked by */
    gboolean refused, fits;
} ZpPlotPoint;

typedef struct {
    char *name, *axis; /* of the sweep; key of the chosen axis */
    GArray *points;    /* ZpPlotPoint, in order */
    gint64 highest_bytes, capacity_bytes;
    gboolean per_token; /* time_ps is a token's */
    gsize n_valid;
} ZpPlotPoints;

/* `axis` NULL: the first.  Fails when the sweep or the axis does not exist, or no point is valid.
 */
gboolean zp_plot_read_points(ZpStore *store, gint64 sweep, const char *axis, ZpPlotPoints *points,
                             GError **error);
void zp_plot_points_clear(ZpPlotPoints *points);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpPlotPoints, zp_plot_points_clear)
