/* The fsdp1 runtime: torch.distributed.fsdp.FullyShardedDataParallel of PyTorch 2.14, compiled to a
 * tape.
 *
 * A unit's parameters are one flat parameter, cut into equal shards; all-gathers write straight
 * into the unsharded parameter.  Memory that another stream still uses is handed to record_stream
 * (USE), so what is allocated, active and reserved differ, and a rate limiter blocks the host.
 * Source: torch/distributed/fsdp/{_runtime_utils,_flat_param,_exec_order_utils,_limiter_utils}.py.
 */
#pragma once

#include "models/job/runtime.h"
#include "models/runtimes/fsdp/plan.h"

extern const ZpRuntime zp_runtime_fsdp1;

/* As zp_fsdp2_compile(). */
void zp_fsdp1_compile(const ZpFsdpPlan *plan, const ZpJob *job, gint32 steps, ZpTape *tape);
