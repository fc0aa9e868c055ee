/* A job: everything a runtime needs to compile a step.  Plain values; scenarios fill it. */
#pragma once

#include "models/job/model.h"
#include "models/job/optimizer.h"
#include "models/machine/hardware.h"
#include "models/words/dtype.h"
#include "sim/events/time.h"

typedef enum {
    ZP_CHECKPOINTING_NONE,
    ZP_CHECKPOINTING_SELECTIVE,
    ZP_CHECKPOINTING_FULL
} ZpCheckpointing;

/* What ZP_CHECKPOINTING_SELECTIVE keeps. */
typedef enum {
    ZP_SELECTIVE_ATTENTION_CORE, /* Megatron-LM: all but the core's scores, which are recomputed */
    ZP_SELECTIVE_ATTENTION,      /* outputs of fused attention and the block's input */
    ZP_SELECTIVE_PRODUCTS,       /* outputs of matrix products */
    ZP_SELECTIVE_PRODUCTS_AND_ATTENTION,
    ZP_SELECTIVE_EVERY_SECOND_PRODUCT, /* and attention: torchtitan's "op" */
} ZpSelective;

typedef enum {
    ZP_WRAP_SUBLAYER, /* attention and MLP of each block apart */
    ZP_WRAP_BLOCK,    /* n blocks a unit (wrap_blocks) */
    ZP_WRAP_SIZE,     /* close a unit when it holds wrap_elements or more */
    ZP_WRAP_MODEL,    /* one unit */
} ZpWrap;

typedef enum {
    ZP_OUTER_OWN,  /* embedding and head (with the final norm) are units of their own */
    ZP_OUTER_ROOT, /* both in one root unit, gathered from first to last use */
} ZpOuter;

typedef struct {
    ZpDtype parameter, gradient, gathered, reduce;
    ZpDtype master; /* NONE: no master copy */
    ZpDtype moments;
} ZpPrecision;

typedef struct {
    gint64 micro_batch, sequence, accumulation;
    ZpCheckpointing checkpointing;
    ZpSelective selective; /* as the model's activations were built */
    gboolean loss_outside; /* the caller's, of the logits that the model returns */
} ZpTraining;

/* Cuts of the model beside data parallelism; 0 and 1: none.  models/parallel/parallel.h has their
 * rules. */
typedef struct {
    gint32 tensor, context, pipeline;
    gboolean
        sequence; /* Megatron's sequence parallelism: what tensor ranks repeat is cut by token */
} ZpParallel;

typedef struct {
    gint32 ranks;       /* that hold the same parameters: data x context parallel ranks */
    gint32 shard_group; /* ranks that share one copy; divides ranks */
    ZpParallel parallel;
} ZpWorld;

typedef struct {
    int stage; /* 0..3 */
    ZpWrap wrap;
    gint32 wrap_blocks;
    gint64 wrap_elements;
    ZpOuter outer;
    gint32 prefetch_forward, prefetch_backward; /* units gathered ahead */
    gint64
        bucket_elements; /* gradients reduced together: a bucket closes when it holds this many */
    gboolean overlap;    /* reductions run beside backward, else backward waits for each */
    gboolean overlap_gather; /* stages 1 and 2 gather updated parameters beside the next forward,
                              * else after the step */
    gboolean reshard_after_forward; /* stage 3: free after forward and gather again */
} ZpZero;

/* Which algorithm a collective runs; models/prices/cost.h has their rules. */
typedef enum {
    ZP_ALGORITHM_RING,
    ZP_ALGORITHM_AUTO, /* what NCCL picks: NVLS for an all-reduce of five or more GPUs of a node
                        * that can, trees for an all-reduce over two nodes, rings for all else */
    ZP_ALGORITHM_TREE,
    ZP_ALGORITHM_NVLS,
    ZP_ALGORITHM_HIERARCHICAL,
} ZpAlgorithm;

/* Measured tables of a platform (models/prices/tables.h) and constants of a GPU
 * (models/prices/calibration.h). */
typedef struct _ZpCostTables ZpCostTables;
typedef struct _ZpCalibration ZpCalibration;

typedef struct {
    const char *node;        /* kind of node; NULL: none is named */
    double link_bytes_per_s; /* between GPUs of a node, per direction and GPU */
    double link_efficiency;  /* achieved share of it */
    ZpTime link_latency_ps;  /* per collective inside a node */
    gint32 gpus_per_node;
    double network_bytes_per_s; /* per node and direction */
    double network_efficiency;
    ZpTime network_latency_ps; /* per collective between nodes */
    double host_to_device_bytes_per_s, device_to_host_bytes_per_s;
    /* What follows refines the prices; 0 leaves it out. */
    ZpAlgorithm algorithm;
    ZpTime link_tau_ps, network_tau_ps; /* of the pipeline's square-root term */
    ZpTime network_fill_ps;             /* the most that term takes between nodes; 0: no limit */
    double link_copy; /* time of a rank's own copy of a message over that of it on the link */
    double nvls_bytes_per_s; /* bus bandwidth of an all-reduce in the switch */
    double network_decline;  /* share of the NICs a ring loses with each doubling beyond 4 nodes */
    /* Latency of each hop beyond the first two nodes (or a node's GPUs), inside and between nodes.
     */
    ZpTime link_hop_ps, network_hop_ps;
    gint64 piece_bytes; /* gathers and scatters go out as broadcasts and reductions this long, one
                         * after the other (a partition owner at a time) */
    const ZpCostTables *measured; /* wins over every formula where it has the collective */
    /* What links and NICs give over what they gave in those tables; 0 means 1. */
    double measured_link_rate, measured_network_rate;
    gint32 rank_stride; /* places in the world from one rank to the next; 0 means 1.  Tensor
                         * parallel ranks lie between data parallel ones */
} ZpNetwork;

/* Which allocator the framework's memory comes from (sim/allocator/allocator.h). */
typedef enum {
    ZP_ALLOCATOR_NONE,       /* not modelled: the verdict is about allocated memory */
    ZP_ALLOCATOR_CACHING,    /* CUDA's caching allocator with its default segments */
    ZP_ALLOCATOR_EXPANDABLE, /* with expandable segments */
} ZpAllocatorMode;

typedef struct {
    const char *name;        /* of the GPU; NULL: figures alone are known */
    double flops_per_s;      /* peak for the compute dtype */
    double flops_efficiency; /* achieved by matrix products */
    double memory_bytes_per_s;
    double memory_efficiency;
    gint64 capacity_bytes;
    gint64 overhead_bytes; /* runtime overhead outside the allocator */
    /* Its named parts and their evidence; none where it was stated as a whole. */
    ZpOverhead overheads[ZP_OVERHEADS];
    int n_overheads;
    double contingency; /* ratio of the peak kept free */
    ZpAllocatorMode allocator;
    ZpTime kernel_latency_ps;    /* per kernel on the device */
    double own_link_bytes_per_s; /* what the GPU's links can do, whatever the node gives it; 0: as
                                  * the network's link */
    /* NULL: a roofline of the figures above.  Else layers are priced by their shapes, and
     * communication and computation slow each other down. */
    const ZpCalibration *calibration;
} ZpDevice;

typedef struct {
    ZpTime launch_overhead_ps, instr_overhead_ps;
    gint32 run_ahead; /* 0: unlimited */
} ZpHost;

typedef struct {
    gint32 simulated_ranks; /* 1: a representative; or all of world.ranks */
    gint32 jitter_ppm;
    guint64 seed;
    gint32 steps;
    gint32 slow_rank; /* ZP_MODEL_NONE: none */
    gint32 slow_ppm;  /* speed of that rank, 1000000 nominal */
} ZpSimulation;

/* Settings that only one framework has (models/job/deepspeed.h, models/job/fsdp.h); NULL: its
 * defaults. */
typedef struct _ZpDeepspeed ZpDeepspeed;
typedef struct _ZpFsdp ZpFsdp;

typedef struct {
    const char *runtime; /* name of a ZpRuntime */
    const ZpModel *model;
    const ZpModel *last_stage; /* pipeline: layers of the last stage, for their time; or NULL */
    const ZpOptimizer *optimizer;
    ZpPrecision precision;
    ZpTraining training;
    ZpWorld world;
    ZpZero zero;
    ZpNetwork network;
    ZpDevice device;
    ZpHost host;
    ZpSimulation simulation;
    const ZpDeepspeed *deepspeed;
    const ZpFsdp *fsdp;
    /* A rule broken on purpose (ZpMutant of models/ledger/mutants.h; 0: none), in the simulated
     * step and in the ledger. */
    int mutant, ledger_mutant;
} ZpJob;
