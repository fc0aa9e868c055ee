/* Sweeps: the cross product of a scenario's axes.  Pure expansion: nothing is simulated here, and a
 * point costs nothing until it is asked for. */
#pragma once

#include "scenarios/load/scenario.h"

#define ZP_SWEEP_MAX_POINTS G_GINT64_CONSTANT(1000000)

typedef struct {
    const char *key; /* "zero.stage" */
    char **values;   /* as text with units, NULL-terminated */
    gint64 n_values;
} ZpSweepAxis;

typedef struct _ZpSweep ZpSweep;

/* `base` must outlive the sweep.  Fails if it has no axes, or more points than sweep.limit (at most
 * ZP_SWEEP_MAX_POINTS), without expanding them. */
ZpSweep *zp_sweep_new(const ZpScenario *base, GError **error);
void zp_sweep_free(ZpSweep *sweep);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpSweep, zp_sweep_free)

const ZpScenario *zp_sweep_base(const ZpSweep *sweep);
gint64 zp_sweep_n_points(const ZpSweep *sweep);
gsize zp_sweep_n_axes(const ZpSweep *sweep);
const ZpSweepAxis *zp_sweep_axis(const ZpSweep *sweep, gsize index);
/* The value of an axis at a point; the last axis varies fastest. */
const char *zp_sweep_value(const ZpSweep *sweep, gint64 point, gsize axis);
/* "zero.stage=2", ...: what zp_scenario_with() takes.  Free with g_strfreev(). */
char **zp_sweep_point_sets(const ZpSweep *sweep, gint64 point);
/* The scenario of a point; the error of one that is not legal names the point's settings.  Safe
 * from several threads. */
ZpScenario *zp_sweep_point(const ZpSweep *sweep, gint64 point, GError **error);
