/* Keys that are given and do nothing: each is taken away in turn and the step simulated again. */
#pragma once

#include "models/step/step.h"
#include "scenarios/load/scenario.h"

/* Warnings (char *, free function set) for each key that the scenario was given, whose value is not
 * what would hold without it, and without which the step is the same; none for keys that
 * scenario->warnings speaks of already.  `summary`: of the scenario, whose tape has `n_instrs`
 * instructions: work is bounded by them, and the keys that it does not reach are not looked at. */
GPtrArray *zp_effect_idle(const ZpScenario *scenario, const ZpStepSummary *summary, gint32 n_instrs,
                          const volatile gint *cancelled);
