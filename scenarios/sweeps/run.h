/* Running a sweep: a pool of threads over the points, never threads inside a run. */
#pragma once

#include "models/step/step.h"
#include "scenarios/sweeps/sweep.h"

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
