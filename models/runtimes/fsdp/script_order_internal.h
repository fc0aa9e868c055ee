/* The order in which the gradients of a layer's parameters are made, where its block is known
 * tensor by tensor. */
#pragma once

#include "models/job/model.h"
#include "models/runtimes/fsdp/plan.h"

/* Sorts `uses` (gint32, parameters of the plan) and `modules` (gint32, parallel) so that gradients
 * are made from the last to the first.  Returns, parallel to them, the event of the script before
 * which each is made. */
GArray *zp_fsdp_script_order(const ZpModelScript *script, int part, const ZpFsdpPlan *plan,
                             GArray *uses, GArray *modules);
