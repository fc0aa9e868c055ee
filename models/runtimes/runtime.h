/* A runtime compiles a job into a tape. */
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

const ZpRuntime *zp_runtime_find(const char *name);
const ZpRuntime *const *zp_runtime_table(gsize *n);

typedef enum { ZP_RUNTIME_ERROR_UNSUPPORTED, ZP_RUNTIME_ERROR_RANGE } ZpRuntimeError;
#define ZP_RUNTIME_ERROR (zp_runtime_error_quark())
GQuark zp_runtime_error_quark(void);
