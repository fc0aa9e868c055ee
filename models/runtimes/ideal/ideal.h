/* The `ideal` runtime: ZeRO as the paper draws it, freed on the device clock.
 *
 * Rules, exactly (the ledger states the same in closed form, independently):
 *  - Stage 3: a unit is gathered just in time before its first layer and dies when its last layer
 *    has run, in forward and again in backward (reverse order).  When unit i starts, the gathers
 *    of the next `prefetch` units may start.  A gather adds the shards a rank lacks: the padded
 *    unit minus the own shard when both have the same dtype, else the whole padded unit.
 *    With reshard_after_forward off, units live from forward to the end of their backward.
 *  - Gradients: each unit's gradient joins the open bucket; a bucket that holds bucket_elements or
 *    more is reduced.  With overlap, one bucket is reduced while the next fills, never more.
 *    Stages 2 and 3 reduce-scatter every micro-batch into the persistent gradient shard; stages 0
 *    and 1 keep full gradients, accumulate locally and reduce once (all-reduce at 0, reduce-scatter
 *    to the owners at 1), a bucket being a staging copy in the reduce dtype.
 *  - Shard groups smaller than the world: the replica group all-reduces the owned shards once per
 *    step, beside what follows: the reduction's bucket is free when it is scattered.
 *  - Stages 1 and 2 all-gather the updated parameters, unit by unit and in place, after the step.
 *    With overlap_gather a unit's gather runs beside the next step's forward, which waits for it
 *    when it comes to the unit (Megatron-LM's overlap_param_gather), so a step of the tape begins
 *    with the gathers of what the step before updated.
 *  - Collectives of one group run one after the other in the order of issue (communicators.h).
 *  - Activations by layer, from its forward to its backward; under checkpointing what was not kept
 *    comes back with a recomputation of the block before its backward. */
#pragma once

#include "models/job/runtime.h"

extern const ZpRuntime zp_runtime_ideal;
