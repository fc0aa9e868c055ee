/* A runtime: the framework whose rules compile a job into a tape.  models/runtimes/registry.h names
 * all there are. */
#pragma once

#include "models/job/job.h"
#include "models/job/wrapping.h"
#include "sim/tape/tape.h"

typedef struct {
    const char *name;
    const char *summary;
    /* Fills an empty tape; steps = job->simulation.steps.  Fails only on combinations the
     * framework refuses. */
    gboolean (*compile)(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error);
    gboolean (*supports_stage)(int stage);
} ZpRuntime;

/* What a framework refuses, by its settings or when it compiles. */
typedef enum { ZP_RUNTIME_ERROR_UNSUPPORTED, ZP_RUNTIME_ERROR_RANGE } ZpRuntimeError;
#define ZP_RUNTIME_ERROR (zp_runtime_error_quark())
GQuark zp_runtime_error_quark(void);
