/* Shared by the files of the ddp runtime. */
#pragma once

#include "models/runtimes/fsdp/optimizer.h"

enum {
    DDP_DEFAULT = ZP_FSDP_STREAM_DEFAULT,
    DDP_ALL_REDUCE, /* the communicator's own stream */
};

enum { DDP_GROUP_WORLD = ZP_FSDP_GROUP_POST_FORWARD + 1 };

/* A bucket of the reducer. */
typedef struct {
    gint32 n; /* gradients that it takes */
    gint64 bytes;
    gint32 buffer, unit;     /* unit: its name on the tape */
    gint32 missing;          /* gradients of this backward still to come */
    gint32 copy, all_reduce; /* works */
} DdpBucket;

typedef struct {
    gint32 grad;    /* .grad with storage of its own, or ZP_TAPE_NONE */
    gboolean view;  /* .grad is a view of its bucket */
    gint32 summand; /* of a parameter used more than once */
    gint32 uses_left;
    gint32 bucket;
} DdpParam;

typedef struct {
    ZpFsdpEmit emit;
    const ZpFsdpPlan *plan;
    ZpTape *tape;
    DdpParam *params;
    GArray *ready_order; /* gint32: parameters as their gradients become ready */
    GArray *unused;      /* gint32: trainable ones that never get a gradient */
    GArray *buckets;     /* DdpBucket */
    guint next_bucket;   /* buckets are reduced in order: the first that still waits */
    gboolean rebuilt;    /* buckets follow ready_order, or never will */
    gboolean reduced;    /* a backward has reduced: the order is known */
    gboolean delayed;    /* static_graph's first backward: nothing is reduced before its end */
    gboolean marked_unused;
    gint32 used_map; /* work: all-reduce of which parameters were used, or ZP_TAPE_NONE */
    ZpFsdpOptimizer optimizer;
    gboolean partition;
    GArray *broadcasts; /* gint32: works after the step */
    const ZpFsdpMicroBatch *micro_batch;
    gint32 *pending; /* scratch: by parameter */
} Ddp;

/* buckets.c */
void ddp_find_ready_order(Ddp *ddp);
void ddp_make_first_buckets(Ddp *ddp);
void ddp_rebuild_buckets(Ddp *ddp);

/* backward.c */
void ddp_backward(Ddp *ddp);
/* Parameters of a call in the order in which their gradients are accumulated. */
gint32 ddp_accumulation_order(const ZpFsdpPlan *plan, const ZpFsdpStep *step, gint32 *order);

/* Buckets stay as they were formed at the start, from the order of the parameters. */
static inline gboolean
ddp_finds_unused(const Ddp *ddp)
{
    return ddp->plan->settings.find_unused_parameters && !ddp->plan->settings.static_graph;
}

static inline gint64
ddp_parameter_bytes(const Ddp *ddp, gint32 p)
{
    return zp_fsdp_parameter_elements(zp_fsdp_plan_parameter(ddp->plan, p)) *
           ddp->plan->stored_bytes;
}
