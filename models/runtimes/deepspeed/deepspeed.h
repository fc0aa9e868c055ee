/* The `deepspeed` runtime: what DeepSpeed 0.19 really does, stages 0 to 3.
 *
 * Sources by stage are named in the files deepspeed_zero*.c.  The order of gradients within a
 * module is the reverse of its registration order, as autograd delivers them. */
#pragma once

#include "models/job/runtime.h"

extern const ZpRuntime zp_runtime_deepspeed;
