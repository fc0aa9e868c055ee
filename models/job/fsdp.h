/* Settings that only PyTorch's data-parallel runtimes have: fsdp2 (fully_shard), fsdp1
 * (FullyShardedDataParallel) and ddp (DistributedDataParallel).
 *
 * What they share with the other runtimes (dtypes, wrapping, accumulation, checkpointing, shard
 * group) is in ZpJob; a NULL ZpJob.fsdp means the defaults below, which are PyTorch 2.14's. */
#pragma once

#include <glib.h>

#include "models/job/job.h"

typedef enum {
    ZP_FSDP_OPTIMIZER_FOREACH, /* PyTorch's choice on a GPU: one list of temporaries */
    ZP_FSDP_OPTIMIZER_FUSED,
    ZP_FSDP_OPTIMIZER_FORLOOP,
} ZpFsdpOptimizerMode;

typedef enum {
    ZP_FSDP_STRATEGY_FULL_SHARD,    /* stage 3 (HYBRID_SHARD when there are replicas) */
    ZP_FSDP_STRATEGY_SHARD_GRAD_OP, /* stage 2 (_HYBRID_SHARD_ZERO2) */
    ZP_FSDP_STRATEGY_NO_SHARD,
} ZpFsdpStrategy;

typedef enum {
    ZP_FSDP_PREFETCH_PRE, /* BackwardPrefetch.BACKWARD_PRE */
    ZP_FSDP_PREFETCH_POST,
    ZP_FSDP_PREFETCH_NONE,
} ZpFsdpPrefetch;

/* A yes/no that a stage or a framework default may decide. */
typedef enum { ZP_FSDP_AUTO, ZP_FSDP_NO, ZP_FSDP_YES } ZpFsdpChoice;

struct _ZpFsdp {
    ZpFsdpOptimizerMode optimizer;
    gboolean set_to_none; /* zero_grad(set_to_none=True) */
    gboolean first_step;  /* the first step of the tape is a run's first: optimizer states appear in
                           * it; otherwise they are there from the start */
    gboolean reduce_dtype_unset; /* MixedPrecisionPolicy(reduce_dtype=None): reduce in the compute
                                  * dtype, whatever precision.reduce says */

    /* fsdp2 */
    gint32 reshard_after_forward; /* -1: by stage and root rule; 0 False; 1 True; n: n ranks */
    ZpFsdpChoice root_reshard_after_forward; /* AUTO: PyTorch's default for the root, False */
    gint32 forward_prefetch;  /* units listed by set_modules_to_forward_prefetch; 0: implicit */
    gint32 backward_prefetch; /* likewise for backward; 0: implicit (one predecessor) */
    gboolean embedding_unshard_in_backward;  /* FALSE: set_unshard_in_backward(False) on it */
    gint32 reduce_scatter_max_input_buffers; /* >= 1 */
    gboolean separate_reduce_scatter; /* set_separate_reduce_scatter_group(): a communicator of its
                                       * own, beside that of the gathers */
    gboolean sync_every_micro_batch;  /* FALSE: set_requires_gradient_sync(False) but on the last */
    gboolean all_reduce_every_micro_batch; /* FALSE: set_requires_all_reduce(False) likewise */
    gboolean reshard_after_backward; /* FALSE: set_reshard_after_backward(False) but on the last */
    gboolean cpu_offload;            /* CPUOffloadPolicy */
    gboolean pin_memory;
    /* Elements a second that the cores of a node update with a fused Adam, transfers included
     * (fsdp2 with cpu_offload); foreach and the loop are slower, see fsdp_optimizer.h. */
    double cpu_adam_elements_per_s;
    gboolean checkpoint_outside; /* checkpointing wraps the units; FALSE: units wrap it */

    gboolean shard_even;     /* fsdp2: a shard_placement_fn that cuts what the ranks do not divide
                              * by rows along another dimension, if they divide one */
    gboolean wrap_trainable; /* fsdp1, fsdp2: modules with a trainable weight and no children are
                              * units inside the others, as peft's fsdp_auto_wrap_policy has it */

    /* fsdp1 (sync_every_micro_batch FALSE: no_sync()) */
    ZpFsdpChoice shard_gradients_only; /* AUTO: strategy by stage */
    ZpFsdpPrefetch prefetch;
    gboolean next_forward_prefetch; /* forward_prefetch=True */
    gboolean limit_all_gathers;
    gboolean use_orig_params;
    gboolean zero_grad_after_forward; /* zero_grad() between the first forward and its backward, as
                                       * Lightning's closure has it (Closure.closure() in
                                       * lightning/pytorch/loops/optimization/closure.py) */

    /* ddp */
    gint64 bucket_cap_bytes; /* 0: bucket_cap_mb=None, that is 25 MiB with a first one of 1 MiB */
    gboolean gradient_as_bucket_view;
    gboolean find_unused_parameters; /* buckets in the order of the parameters, never rebuilt */
    gboolean static_graph;           /* a run's first backward reduces at its end */
    gboolean unwrapped; /* a program of one rank without DistributedDataParallel: no reducer */
};

/* PyTorch's defaults. */
const ZpFsdp *zp_fsdp_defaults(void);
