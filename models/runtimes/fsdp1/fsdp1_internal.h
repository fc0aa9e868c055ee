/* Shared by the files of the fsdp1 runtime: the state of FlatParamHandle and of the root's
 * bookkeeping while a tape is written.  Names follow torch/distributed/fsdp/{_flat_param,
 * _runtime_utils,_exec_order_utils}.py. */
#pragma once

#include "models/runtimes/fsdp/optimizer.h"

enum {
    FSDP1_DEFAULT = ZP_FSDP_STREAM_DEFAULT,
    FSDP1_UNSHARD,
    FSDP1_PRE_UNSHARD,
    FSDP1_POST_BACKWARD,
    FSDP1_ALL_REDUCE, /* hybrid strategies only; else all-reduces run on the default stream */
    FSDP1_HOST,       /* CPU offload only: the optimizer */
};

/* _FreeEventQueue: all-gathers in flight. */
#define FSDP1_MAX_INFLIGHT 2

typedef enum { FSDP1_IDLE, FSDP1_FORWARD, FSDP1_BACKWARD_PRE, FSDP1_BACKWARD_POST } Fsdp1Training;

/* One range of a flat parameter: a parameter, or padding between two. */
typedef struct {
    gint64 first_element, n_elements;
    gint32 parameter; /* in the plan, or ZP_FSDP_NONE: padding */
} Fsdp1Range;

typedef struct {
    gint32 cast, gather, pre_divide, cast_gradient, pad, reduce_scatter, all_reduce, post_divide;
    gint32 cast_shard, add_shard, add_gradient, concatenate;
    gint32 to_device, to_host; /* CPU offload */
} Fsdp1Works;

/* FlatParamHandle. */
typedef struct {
    Fsdp1Training training;
    gint32 low_precision; /* _mp_shard; without sharding the whole parameter in low precision */
    gint32 unsharded;     /* _full_param_padded */
    gint32 grad;          /* flat_param.grad, unsharded */
    int grad_width;
    gint32 gradient;     /* what the optimizer sees */
    gboolean trainable;  /* flat_param.requires_grad: one of its parameters does */
    gboolean in_use;     /* the flat parameter's data are not the local shard */
    gboolean views_kept; /* _skipped_use_sharded_views */
    gboolean saved;      /* `gradient` is _saved_grad_shard, not flat_param.grad */
    gboolean prefetched, needs_pre_forward_unshard, needs_pre_backward_unshard, ran_pre_backward;
    gint32 pre_forward_index, post_forward_index;
    gint64 view_order;       /* when autograd's node of the views was made */
    gint32 uses_left;        /* of this backward: gradients that the node still waits for */
    gint64 flat_elements;    /* with alignment and the padding it implies */
    gint64 shard_elements;   /* ceil(flat / ranks) */
    gint64 padding_elements; /* alignment: ranges that belong to no parameter */
    gint32 first_range, n_ranges;
    Fsdp1Works works;
} Fsdp1Unit;

typedef struct {
    gint32 temporary; /* gradient of one parameter, until the flat gradient takes it in */
    gint64 owned_elements;
    gboolean has_grad;  /* use_orig_params: its .grad is a view, not None */
    gboolean grad_none; /* _is_grad_none_mask: it stays None until the next reduction */
} Fsdp1Param;

typedef struct {
    ZpFsdpEmit emit;
    const ZpFsdpPlan *plan;
    ZpTape *tape;
    Fsdp1Unit *units;
    Fsdp1Param *params;
    GArray *ranges; /* Fsdp1Range */
    ZpFsdpOptimizer optimizer;
    GArray *free_events;        /* gint32: _free_event_queue */
    GArray *pre_forward_order;  /* gint32: units, fixed after the first iteration */
    GArray *post_forward_order; /* gint32: units of this iteration */
    gboolean first_iteration, sharded, hybrid;
    gint64 order;       /* counts autograd nodes as they are made */
    gint64 *call_order; /* by step: when its node was made */
    gboolean *flows;    /* by step: gradients flow through it */
    const ZpFsdpMicroBatch *micro_batch;
} Fsdp1;

/* unshard.c */
void fsdp1_unshard(Fsdp1 *fsdp, gint32 unit);
void fsdp1_reshard(Fsdp1 *fsdp, gint32 unit, gboolean free_unsharded);
void fsdp1_prefetch(Fsdp1 *fsdp, gint32 unit);

/* forward.c */
void fsdp1_enter(Fsdp1 *fsdp, gint32 unit);
void fsdp1_leave(Fsdp1 *fsdp, gint32 unit, gboolean requires_grad);
void fsdp1_forward(Fsdp1 *fsdp);

/* A flat parameter's views are tensors of the graph: where one parameter of a unit is trainable,
 * all get gradients. */
static inline gboolean
fsdp1_gets_gradient(const Fsdp1 *fsdp, gint32 parameter)
{
    return fsdp->units[zp_fsdp_plan_parameter(fsdp->plan, parameter)->unit].trainable;
}

/* May the gathered parameters go once they are of no more use in backward?
 * (_should_free_in_backward) */
static inline gboolean
fsdp1_frees_in_backward(const Fsdp1 *fsdp)
{
    return fsdp->sharded &&
           (fsdp->micro_batch->sync || fsdp->plan->strategy == ZP_FSDP_STRATEGY_FULL_SHARD);
}

/* backward.c */
void fsdp1_backward(Fsdp1 *fsdp);

/* views.c: with use_orig_params the parameters' own .grad are views of the flat gradient. */
void fsdp1_write_back(Fsdp1 *fsdp, gint32 unit);
void fsdp1_use_unsharded_grad_views(Fsdp1 *fsdp, gint32 unit);
void fsdp1_use_sharded_grad_views(Fsdp1 *fsdp, gint32 unit);
void fsdp1_reset_grad_none(Fsdp1 *fsdp, gint32 unit);
void fsdp1_refresh_grad_views(Fsdp1 *fsdp, gint32 unit);
void fsdp1_forget_grads(Fsdp1 *fsdp);
void fsdp1_reset_gradients(Fsdp1 *fsdp);

/* reduce.c: flat gradient, post-backward hook, reduction. */
void fsdp1_finish_gradient(Fsdp1 *fsdp, gint32 unit);

/* init.c */
void fsdp1_init(Fsdp1 *fsdp, const ZpFsdpPlan *plan, const ZpJob *job, ZpTape *tape);
void fsdp1_clear(Fsdp1 *fsdp);

static inline const ZpFsdpUnit *
fsdp1_unit(const Fsdp1 *fsdp, gint32 unit)
{
    return zp_fsdp_plan_unit(fsdp->plan, unit);
}
