/* From a play's result to the figures people ask for. */
#pragma once

#include "models/step/step.h"

/* `allocator`: NULL without one. */
void zp_step_summary_fill(const ZpJob *job, const ZpTape *tape, const ZpPlayResult *result,
                          const ZpAllocatorResult *allocator, ZpStepSummary *summary);
