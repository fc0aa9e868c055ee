/* A plan from a model and its wrapping. */
#pragma once

#include "models/job/runtime.h"
#include "models/runtimes/fsdp/plan.h"

/* Fails on what PyTorch refuses. */
ZpFsdpPlan *zp_fsdp_model_plan(const ZpJob *job, const ZpUnits *units, GError **error);
