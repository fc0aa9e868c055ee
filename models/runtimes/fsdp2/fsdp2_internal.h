/* Shared by the files of the fsdp2 runtime: the state of FSDPParamGroup, FSDPParam and
 * FSDPCommContext while a tape is written.  Names follow torch/distributed/fsdp/_fully_shard. */
#pragma once

#include "models/runtimes/fsdp/optimizer.h"

enum {
    FSDP2_DEFAULT = ZP_FSDP_STREAM_DEFAULT,
    FSDP2_COPY_IN,    /* all_gather_copy_in_stream */
    FSDP2_GATHER,     /* all_gather_stream */
    FSDP2_REDUCE,     /* reduce_scatter_stream */
    FSDP2_ALL_REDUCE, /* all_reduce_stream */
    FSDP2_HOST,       /* the CPU's own work, with CPU offload */
};

typedef enum {
    FSDP2_IDLE,
    FSDP2_FORWARD,
    FSDP2_PRE_BACKWARD,
    FSDP2_POST_BACKWARD,
} Fsdp2Training;

typedef enum { FSDP2_SHARDED, FSDP2_SHARDED_POST_FORWARD, FSDP2_UNSHARDED } Fsdp2Sharded;

/* FSDPParam: buffers, ZP_TAPE_NONE where there is none. */
typedef struct {
    gint32 unsharded;
    gint32 post_forward; /* kept slice, reshard_after_forward=int */
    gint32 grad;         /* unsharded_param.grad */
    gint32 accumulated;  /* unsharded_accumulated_grad */
    gint32 summand;      /* sum of the gradients so far of a parameter used more than once */
    gint32 uses_left;    /* of this backward */
    gint32 host_grad;    /* CPU offload */
    gint32 rearranged; /* Shard(i > 0): its chunks one below the other, or before they are joined */
    gint64 chunk_elements; /* of the padded shard: ceil(rows / shard) rows */
    gint64 owned_elements;
} Fsdp2Param;

/* Works of a unit, made once. */
typedef struct {
    gint32 cast, copy_in, gather, copy_out;                /* from the shard */
    gint32 slice, cast_slice, copy_in_slice, gather_slice; /* of a post-forward shard */
    gint32 copy_to_input, reduce_scatter, all_reduce, cast_output, add_output, accumulate;
    gint32 to_device, to_host; /* CPU offload */
} Fsdp2Works;

/* FSDPParamGroup. */
typedef struct {
    Fsdp2Training state;    /* FSDPState._training_state: of the module's hooks */
    Fsdp2Training training; /* FSDPParamGroup._training_state */
    Fsdp2Sharded sharded;
    gboolean gather_pending; /* _all_gather_result is not None */
    gint32 gather_output, gather_event;
    gint32 post_reduce_event;
    gint32 all_reduce_buffer; /* _all_reduce_state; it may be the gradient itself */
    gint32 all_reduce_event;
    gint32 partial_output; /* _partial_reduce_output */
    gint32 gradient;       /* flat storage behind the sharded gradients */
    gint32 offload_event;  /* CPU offload: copies of the gradients to the host */
    gint32 n_gradients;    /* parameters whose sharded .grad is set */
    gint32 reshard_event;
    GArray *post_forward_indices; /* gint32 */
    gint64 shard_elements;        /* padded shard, all parameters */
    gint64 reduced_elements;      /* of it, parameters that get gradients */
    Fsdp2Works works;
} Fsdp2Unit;

typedef struct {
    gint32 buffer, event;
} Fsdp2Retained; /* ReduceScatterState, AllGatherState */

typedef struct {
    ZpFsdpEmit emit;
    const ZpFsdpPlan *plan;
    ZpTape *tape;
    Fsdp2Param *params;
    Fsdp2Unit *units;
    ZpFsdpOptimizer optimizer;
    Fsdp2Retained parked;       /* comm_ctx.all_gather_state */
    GArray *reduce_inputs;      /* Fsdp2Retained: comm_ctx.reduce_scatter_states */
    GArray *post_forward_order; /* gint32: units */
    gint32 last_post_reduce[2]; /* events on FSDP2_REDUCE and FSDP2_ALL_REDUCE */
    gint32 forward_root;        /* unit that freed parked gathers at its end; see forward.c */
    gboolean in_backward;
    const ZpFsdpMicroBatch *micro_batch;
    gint32 *pending; /* scratch: by parameter */
} Fsdp2;

/* forward_root when the root module itself runs the forward. */
#define FSDP2_ROOT (-2)

/* gather.c */
void fsdp2_unshard(Fsdp2 *fsdp, gint32 unit);
void fsdp2_wait_for_unshard(Fsdp2 *fsdp, gint32 unit);
void fsdp2_reshard(Fsdp2 *fsdp, gint32 unit);
void fsdp2_prefetch(Fsdp2 *fsdp, gint32 unit, Fsdp2Training training);
void fsdp2_gather_streams_wait(Fsdp2 *fsdp, gint32 event);
void fsdp2_free_parked(Fsdp2 *fsdp);

/* forward.c */
void fsdp2_enter(Fsdp2 *fsdp, gint32 unit);
void fsdp2_leave(Fsdp2 *fsdp, gint32 unit);
void fsdp2_forward(Fsdp2 *fsdp);

/* backward.c */
void fsdp2_backward(Fsdp2 *fsdp);

/* reduce.c */
void fsdp2_post_backward(Fsdp2 *fsdp, gint32 unit);
void fsdp2_reduce(Fsdp2 *fsdp, gint32 unit);
void fsdp2_wait_for_post_backward(Fsdp2 *fsdp, gint32 unit);
void fsdp2_drop_all_reduce_state(Fsdp2 *fsdp, gint32 unit);

/* works.c */
void fsdp2_make_works(Fsdp2 *fsdp);

static inline const ZpFsdpUnit *
fsdp2_unit(const Fsdp2 *fsdp, gint32 unit)
{
    return zp_fsdp_plan_unit(fsdp->plan, unit);
}

/* The model returns logits, and the caller makes a loss of them. */
static inline gboolean
fsdp2_loss_is_outside(const Fsdp2 *fsdp)
{
    return fsdp->emit.job != NULL && fsdp->emit.job->training.loss_outside;
}
