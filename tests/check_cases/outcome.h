/* One simulated step of a case under some settings, and what can be read off its tape. */
#pragma once

#include "models/step/step.h"
#include "scenarios/load/scenario.h"

typedef struct {
    char *refusal; /* the error message; then there is nothing else */
    ZpScenario *scenario;
    ZpStep *step;
    ZpStepSummary summary;
    /* The first device allocation beyond the capacity and what was allocated just before, without
     * runtime overhead; 0 when all fits. */
    gint64 over_bytes, over_live_bytes;
} Outcome;

/* `sets`: "section.key=value, ..." */
Outcome *outcome_new(const char *path, const char *sets);
void outcome_free(gpointer outcome);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Outcome, outcome_free)

/* Of the vocabulary, blanks and hyphens spelt "_"; -1: unknown. */
int outcome_class(const char *name);
int outcome_role(const char *name);
/* "none" where the instruction is ZP_TAPE_NONE. */
const char *outcome_phase(const Outcome *outcome, gint32 instr);
/* Largest device buffer born in a class; sum of the buffers of a role made in the last step. */
double outcome_largest(const Outcome *outcome, int class_id);
double outcome_made(const Outcome *outcome, int role);
/* what: "count", "bytes" or "wire" of a kind of work, or of "reduction". */
gboolean outcome_traffic(const Outcome *outcome, const char *what, const char *kind, double *value);

/* Peaks of a life beside the step (models/runtimes/deepspeed/lifecycle.h): "device", "host",
 * "device_after" or "host_after". */
gboolean outcome_life(const Outcome *outcome, const char *life, const char *what, double *value);
