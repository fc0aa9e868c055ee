/* What a report is made from: one simulated run, handed over by the command that made it.
 * Reports do not know scenarios: inputs arrive as text with their origin. */
#pragma once

#include "models/step/account.h"

typedef struct {
    const char *section, *key, *value; /* value as text, with its unit: "80 GiB" */
    const char *origin; /* "default", "scenario.ini:12", "--set", "catalogue", "auto" */
} ZpReportInput;

typedef struct {
    const char *name;   /* of the run */
    const char *source; /* the scenario's path or name */
    const ZpReportInput *inputs;
    gsize n_inputs;
    const ZpJob *job;
    const ZpUnits *units;
    const ZpTape *tape;
    const ZpLedger *ledger;
    const ZpStepSummary *summary;
    const GArray *parts;         /* ZpStepPart: where the last step's time went */
    const GArray *live_set;      /* ZpPlayLive at the device peak, largest first; NULL: unknown */
    const char *const *warnings; /* NULL-terminated, or NULL */
} ZpReportRun;

/* A sweep: what its points share, and the keys that vary. */
typedef struct {
    const char *name, *source;
    const ZpReportInput *inputs; /* the base scenario's */
    gsize n_inputs;
    const char *const *axes; /* n_axes keys: "zero.stage" */
    gsize n_axes;
} ZpReportSweep;

/* One point of a sweep: either a summary or the reason why it is refused. */
typedef struct {
    const char *const *values;    /* n_axes, as text */
    const ZpStepSummary *summary; /* NULL when refused */
    const char *error;            /* NULL unless refused */
} ZpReportPoint;
