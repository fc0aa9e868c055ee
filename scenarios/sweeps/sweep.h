/* Sweeps: the cross product of a scenario's axes.  Expansion simulates nothing: a point costs
 * nothing until it is asked for. */
#pragma once

#include "models/step/step.h"
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

/* Running one: a pool of threads over the points, never threads inside a run. */

typedef struct {
    ZpStepSummary summary; /* valid when error is NULL */
    char *error;           /* why this point is refused; owned */
} ZpSweepRunPoint;

typedef struct {
    ZpSweepRunPoint *points; /* n_points, in the sweep's order */
    gint64 n_points;
} ZpSweepRunResult;

void zp_sweep_run_clear(ZpSweepRunResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpSweepRunResult, zp_sweep_run_clear)

/* Called from the calling thread, about ten times a second. */
typedef void (*ZpSweepRunProgress)(gint64 done, gpointer data);

/* Simulates every point on `n_threads` threads (0: one per processor).  A point that is refused
 * carries its error and does not stop the others; an accounting check that fails stops the sweep.
 * `cancelled` as in zp_step_simulate(). */
gboolean zp_sweep_run(const ZpSweep *sweep, int n_threads, const volatile gint *cancelled,
                      ZpSweepRunProgress progress, gpointer data, ZpSweepRunResult *result,
                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
