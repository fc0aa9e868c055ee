/* What each knob would change, as a table. */
#pragma once

#include "models/step/knobs.h"

/* `rows`: of ZpKnobsRow, as zp_knobs_compare() gives them. */
void zp_summary_knobs(const GArray *rows, GString *out);
