/* The policy and the optimizer of a recorded case. */
#pragma once

#include <json-glib/json-glib.h>

#include "models/runtimes/fsdp/plan.h"

void fsdp_policy_read(ZpFsdpPlan *plan, JsonObject *policy, JsonObject *optimizer);
