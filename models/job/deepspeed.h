/* Settings that only DeepSpeed has: keys of its JSON configuration, with its units and defaults.
 *
 * "elements" count parameters or gradients, never bytes.  Source of every default: DeepSpeed 0.19,
 * runtime/zero/config.py, runtime/zero/offload_config.py, runtime/config.py. */
#pragma once

#include "models/job/job.h"

typedef enum { ZP_DS_NOWHERE, ZP_DS_CPU, ZP_DS_NVME } ZpDsDevice;

/* Which optimizer implementation runs: it decides what exists when. */
typedef enum {
    ZP_DS_FUSED_ADAM, /* FusedAdam: the default for type Adam and AdamW on a device */
    ZP_DS_TORCH_ADAM, /* torch.optim.AdamW, one tensor at a time */
    ZP_DS_CPU_ADAM,   /* DeepSpeedCPUAdam: the default when the optimizer is offloaded */
    ZP_DS_DEFAULT_ADAM,
} ZpDsAdam;

typedef struct {
    ZpDsDevice device;
    gboolean pin_memory;        /* true */
    gint32 buffer_count;        /* NVMe: pinned buffers (parameters 5, optimizer 4) */
    gint64 buffer_elements;     /* NVMe parameters: 1e8 */
    gint64 max_in_cpu_elements; /* NVMe parameters: local elements kept in host memory, 1e9 */
    double ratio;               /* optimizer: share of sub-groups on the host, 1.0 */
} ZpDsOffload;

struct _ZpDeepspeed {
    gboolean contiguous_gradients;    /* true */
    gboolean reduce_scatter;          /* true */
    gboolean multi_rank_bucket;       /* use_multi_rank_bucket_allreduce: true */
    gboolean round_robin_gradients;   /* false */
    int overlap_comm;                 /* -1: true at stage 3, false otherwise */
    gint64 reduce_bucket_elements;    /* 5e8 */
    gint64 allgather_bucket_elements; /* 5e8; must be even */
    gint64 sub_group_elements;        /* 1e9, of the local partition */
    /* stage 3 */
    gint64 prefetch_bucket_elements;    /* 5e7 */
    gint64 max_live_elements;           /* 1e9 */
    gint64 max_reuse_distance_elements; /* 1e9 */
    gint64 param_persistence_elements;  /* 1e5 */
    gint64 model_persistence_elements;  /* no limit */
    gint64 module_granularity;          /* 0: off */
    gboolean all_reduce_for_fetch;      /* false */
    gboolean allgather_sequential;      /* false; true also fetches one parameter ahead */
    gboolean memory_efficient_linear;   /* true */
    const char *const *leaf_classes;    /* NULL-terminated, or NULL */
    const char *const *leaf_names;      /* full module names, NULL-terminated, or NULL */
    /* ZeRO++ and MiCS */
    gint32 hpz_partition_ranks;      /* zero_hpz_partition_size: 1 */
    gboolean quantized_weights;      /* false */
    gboolean quantized_nontrainable; /* false */
    gboolean quantized_gradients;    /* false */
    gint32 mics_shard_ranks;         /* mics_shard_size: 0 = off */
    gboolean mics_hierarchical;      /* false */
    ZpDsOffload offload_param, offload_optimizer;
    gboolean pinned_power_of_two; /* torch's pinned allocator rounds blocks up: true */
    /* beside zero_optimization */
    ZpDtype gradient_accumulation;  /* data_types.grad_accum_dtype; NONE: the model's */
    ZpDtype communication;          /* communication_data_type; NONE: the model's */
    double gradient_clipping;       /* 1.0; 0: off */
    gboolean check_grad_overflow;   /* bf16.check_grad_overflow: true (stages 1 and 2) */
    gboolean immediate_grad_update; /* bf16.immediate_grad_update: false (BF16_Optimizer) */
    ZpDsAdam adam;
    gboolean zero_init; /* the model is built under zero.Init */
    /* What the tape shows. */
    gboolean cold; /* from the first step after initialization; else steps in steady state */
    gint32 rank;   /* whose tape; -1: the rank that holds most gradients (stages 1 and 2) */
    /* Hardware the job does not describe. */
    double cpu_adam_elements_per_s;                       /* one rank's share of the host's cores */
    double nvme_read_bytes_per_s, nvme_write_bytes_per_s; /* one rank's share */
    /* torch parameter groups: by parameter (ds_id or model index), or NULL: one group.  The
     * optimizer's order within a group is the model's. */
    const gint32 *parameter_groups;
    gint32 n_parameter_groups; /* 0 or 1: one group */
};

/* DeepSpeed's defaults. */
void zp_deepspeed_init(ZpDeepspeed *settings);
/* Combinations DeepSpeed refuses (ZP_RUNTIME_ERROR); the message names the key and what is legal.
 */
gboolean zp_deepspeed_check(const ZpDeepspeed *settings, const ZpJob *job, GError **error);
/* The effective value of overlap_comm. */
gboolean zp_deepspeed_overlap(const ZpDeepspeed *settings, int stage);
