/* The ddp runtime: torch.nn.parallel.DistributedDataParallel of PyTorch 2.14, compiled to a tape;
 * at stage 1 with ZeroRedundancyOptimizer.
 *
 * Gradients are reduced in buckets that fill in the order in which gradients become ready.  A run's
 * first step has one bucket for all; buckets are formed anew at the next forward.  Source:
 * torch/csrc/distributed/c10d/reducer.cpp, torch/nn/parallel/distributed.py,
 * torch/distributed/optim/zero_redundancy_optimizer.py. */
#pragma once

#include "models/job/runtime.h"
#include "models/runtimes/fsdp/plan.h"

extern const ZpRuntime zp_runtime_ddp;
/* One rank that wraps the model in nothing (ZpFsdp.unwrapped). */
extern const ZpRuntime zp_runtime_none;

/* As zp_fsdp2_compile(); all ranks of plan->shard x plan->replicate hold a copy.  With `partition`
 * each optimizer state lives on one rank, which broadcasts what it updated. */
void zp_ddp_compile(const ZpFsdpPlan *plan, const ZpJob *job, gboolean partition, gint32 steps,
                    ZpTape *tape);
