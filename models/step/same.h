/* Are two steps the same in all that a receipt says of them but names? */
#pragma once

#include "models/step/step.h"

gboolean zp_step_same(const ZpStepSummary *a, const ZpStepSummary *b);
