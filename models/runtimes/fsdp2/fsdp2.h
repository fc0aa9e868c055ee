/* The fsdp2 runtime: torch.distributed.fsdp.fully_shard of PyTorch 2.14, compiled to a tape.
 *
 * Dim-0 sharding of each parameter with padding to ceil(rows / ranks) rows; every allocation and
 * release at the moment the host issues it, since FSDP2 holds references and events where FSDP1
 * used record_stream.  Source: torch/distributed/fsdp/_fully_shard/{_fsdp_param_group,
 * _fsdp_collectives,_fsdp_param,_fsdp_state}.py. */
#pragma once

#include "models/job/runtime.h"
#include "models/runtimes/fsdp/plan.h"

extern const ZpRuntime zp_runtime_fsdp2;

/* Writes a prologue and `steps` steps.  job may be NULL: then nothing takes time and there are no
 * activations (the plan alone decides). */
void zp_fsdp2_compile(const ZpFsdpPlan *plan, const ZpJob *job, gint32 steps, ZpTape *tape);
