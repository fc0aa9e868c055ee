/* A job's precision, group, strategy and accumulation, as PyTorch's runtimes are told them. */
#pragma once

#include "models/job/runtime.h"
#include "models/runtimes/fsdp/plan.h"

/* Fails on what PyTorch refuses. */
gboolean zp_fsdp_settings_check(const ZpJob *job, const ZpFsdp *settings, GError **error);
/* Fills what of the plan does not depend on the model. */
void zp_fsdp_settings_apply(ZpFsdpPlan *plan, const ZpJob *job, const ZpFsdp *settings);
