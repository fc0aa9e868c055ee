/* From a scenario to what reports take. */
#pragma once

#include "reports/text/report.h"
#include "scenarios/load/scenario.h"

/* The effective inputs with their origins; the strings belong to `scenario`. */
GArray *zp_input_list(const ZpScenario *scenario); /* of ZpReportInput */

/* `name` and `source` of the run, its inputs and job; the rest comes from `step`. */
typedef struct {
    ZpReportRun run;
    GArray *inputs;
    GArray *parts, *live_set;
} ZpInputRun;
void zp_input_run_fill(ZpInputRun *out, const ZpScenario *scenario, const ZpStep *step,
                       const ZpStepSummary *summary);
void zp_input_run_clear(ZpInputRun *run);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpInputRun, zp_input_run_clear)
