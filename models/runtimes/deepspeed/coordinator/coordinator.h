/* DeepSpeed stage 3's parameter coordinator as a state machine: hooks go in, events come out.
 *
 * It decides when parameters are gathered, waited for and released; it knows neither time nor
 * memory.  A listener turns the events into allocations, collectives and kernels (the tape
 * compiler) or into a log (the reference checker).
 *
 * Source: DeepSpeed 0.19, runtime/zero/partitioned_param_coordinator.py (fetch_sub_module,
 * release_sub_module, reset_step, trace_prologue), runtime/zero/parameter_offload.py (hooks).
 * Where DeepSpeed iterates over a set the order here is ascending ds_id. */
#pragma once

#include "models/runtimes/deepspeed/modules/tree.h"

typedef struct {
    gint64 prefetch_bucket_elements;    /* 0: no prefetch */
    gint64 max_live_elements;           /* caps prefetching only */
    gint64 max_reuse_distance_elements; /* of the trace, between release and next use */
    gint32 ranks;                       /* that share one copy */
    gint32 secondary_ranks;             /* hpZ: ranks of the secondary partition; 1: none */
    gint32 nvme_buffers;                /* host buffers for partitions read from NVMe */
    gboolean sequential;                /* stage3_allgather_sequential: one gather a parameter */
} ZpDsCoordinatorConfig;

typedef enum {
    ZP_DS_FORWARD_PRE, /* hook of `module`; the events after it are its doing */
    ZP_DS_FORWARD_POST,
    ZP_DS_BACKWARD_PRE,
    ZP_DS_BACKWARD_POST,
    ZP_DS_FORWARD_RUN,    /* the module's own computation is launched here */
    ZP_DS_BACKWARD_RUN,   /* its backward: gradients of its own parameters are ready after it */
    ZP_DS_GATHER,         /* launch: `gather`, ids, elements, flat_elements */
    ZP_DS_POP,            /* a parameter is about to leave the registry and be waited for */
    ZP_DS_POPPED,         /* ... and has been */
    ZP_DS_WAIT,           /* the handle of `gather`: all its parameters become available */
    ZP_DS_RELEASE,        /* one parameter */
    ZP_DS_FLAT_FREED,     /* last reference to `gather`'s handle (several parameters only) */
    ZP_DS_COMPUTE_WAIT,   /* the compute stream waits for the all-gather stream */
    ZP_DS_LEFTOVERS,      /* end of a micro-batch's backward */
    ZP_DS_STEP,           /* release of everything before the optimizer */
    ZP_DS_PERSIST,        /* one persistent parameter is gathered again after the step */
    ZP_DS_SWAP_IN,        /* partitions are read from NVMe: the host waits for it ... */
    ZP_DS_READ_AHEAD,     /* ... or not */
    ZP_DS_SECONDARY,      /* one parameter gets its hpZ secondary partition before its release */
    ZP_DS_DROP_SECONDARY, /* ... and loses it after the step */
    ZP_DS_CHECK,          /* list of `elements` numbers compared across ranks: two broadcasts */
    ZP_DS_INVALID,        /* the trace no longer fits: dropped */
} ZpDsEventKind;

typedef struct {
    ZpDsEventKind kind;
    gint32 module;      /* hooks and runs */
    gboolean recompute; /* forward inside a backward (activation checkpointing) */
    const gint32 *ids;  /* ds_ids, ascending; valid during the call */
    gint32 n_ids;
    gint64 elements;      /* sum of the parameters' own elements; CHECK: length of the list */
    gint64 flat_elements; /* with padding */
    gint32 gather;        /* number of the gather, counted from 0 since creation */
    gboolean quantised;   /* int8 partitions are gathered */
    gboolean secondary;   /* gathered from the hpZ secondary partitions */
} ZpDsEvent;

typedef void (*ZpDsListener)(const ZpDsEvent *event, gpointer data);

typedef struct _ZpDsCoordinator ZpDsCoordinator;

/* Borrows the tree, whose leaf and persistence marks must be final. */
ZpDsCoordinator *zp_ds_coordinator_new(const ZpDsTree *tree, const ZpDsCoordinatorConfig *config);
void zp_ds_coordinator_free(ZpDsCoordinator *coordinator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpDsCoordinator, zp_ds_coordinator_free)

/* NULL: events are dropped (warm-up iterations). */
void zp_ds_coordinator_listen(ZpDsCoordinator *coordinator, ZpDsListener listener, gpointer data);

/* Hooks, in the order the framework calls them (deepspeed_walk.h does).  reset_step comes before
 * the root's forward. */
void zp_ds_coordinator_reset_step(ZpDsCoordinator *coordinator);
void zp_ds_coordinator_pre_forward(ZpDsCoordinator *coordinator, gint32 module, gboolean recompute);
void zp_ds_coordinator_post_forward(ZpDsCoordinator *coordinator, gint32 module,
                                    gboolean recompute);
void zp_ds_coordinator_pre_backward(ZpDsCoordinator *coordinator, gint32 module);
void zp_ds_coordinator_post_backward(ZpDsCoordinator *coordinator, gint32 module);
/* End of every micro-batch: modules whose post-backward hook did not fire. */
void zp_ds_coordinator_leftovers(ZpDsCoordinator *coordinator);
/* The release before the optimizer runs; zp_ds_coordinator_persist() after it (an fp16 overflow
 * skips it). */
void zp_ds_coordinator_step(ZpDsCoordinator *coordinator);
void zp_ds_coordinator_persist(ZpDsCoordinator *coordinator);

/* DeepSpeed's own counter of available elements: its maximum since the last call (sampled after
 * each fetch). */
gint64 zp_ds_coordinator_take_max_available(ZpDsCoordinator *coordinator);
/* The tracing error DeepSpeed would raise, or NULL. */
const char *zp_ds_coordinator_error(const ZpDsCoordinator *coordinator);
