/* The keys of a DeepSpeed configuration: one table from which the file is read, checked, shown,
 * explained and documented.
 *
 * Names, defaults and rules as of DeepSpeed 0.19.6 (runtime/zero/config.py, offload_config.py,
 * precision_config.py, runtime/config.py, constants.py); removals as on its main branch after
 * that release (runtime/config.py, _reject_removed_config_keys).  The trainer's rules for "auto":
 * transformers, integrations/deepspeed.py, HfTrainerDeepSpeedConfig. */
#pragma once

#include <glib.h>

typedef enum {
    /* batch and training */
    ZP_DS_TRAIN_BATCH_SIZE,
    ZP_DS_MICRO_BATCH_SIZE,
    ZP_DS_ACCUMULATION_STEPS,
    ZP_DS_MANAGED_ACCUMULATION,
    ZP_DS_GRADIENT_CLIPPING,
    ZP_DS_PRESCALE_GRADIENTS,
    ZP_DS_PREDIVIDE_FACTOR,
    ZP_DS_ALLREDUCE_OP,
    ZP_DS_COMMUNICATION_DATA_TYPE,
    ZP_DS_SEQ_PARALLEL_DATA_TYPE,
    ZP_DS_SEQUENCE_PARALLEL_SIZE,
    ZP_DS_DISABLE_ALLGATHER,
    ZP_DS_ALLGATHER_SIZE,
    ZP_DS_ALLOW_UNTESTED,
    ZP_DS_FORCE_CPU_OPTIMIZER,
    /* precision */
    ZP_DS_FP16,
    ZP_DS_FP16_ENABLED,
    ZP_DS_FP16_AUTO_CAST,
    ZP_DS_FP16_LOSS_SCALE,
    ZP_DS_FP16_INITIAL_SCALE_POWER,
    ZP_DS_FP16_LOSS_SCALE_WINDOW,
    ZP_DS_FP16_HYSTERESIS,
    ZP_DS_FP16_CONSECUTIVE_HYSTERESIS,
    ZP_DS_FP16_MIN_LOSS_SCALE,
    ZP_DS_FP16_MASTER,
    ZP_DS_BF16,
    ZP_DS_BF16_ENABLED,
    ZP_DS_BF16_IMMEDIATE,
    ZP_DS_BF16_CHECK_OVERFLOW,
    ZP_DS_BF16_MASTER,
    ZP_DS_BF16_STATES,
    ZP_DS_BFLOAT16,
    ZP_DS_AMP,
    ZP_DS_AMP_ENABLED,
    ZP_DS_AMP_OPT_LEVEL,
    ZP_DS_DATA_TYPES,
    ZP_DS_GRAD_ACCUM_DTYPE,
    ZP_DS_PARAM_DTYPE,
    ZP_DS_BUFFER_DTYPE,
    ZP_DS_AUTOCAST,
    ZP_DS_AUTOCAST_ENABLED,
    ZP_DS_AUTOCAST_DTYPE,
    ZP_DS_AUTOCAST_MODULES,
    /* zero_optimization */
    ZP_DS_ZERO,
    ZP_DS_STAGE,
    ZP_DS_CONTIGUOUS_GRADIENTS,
    ZP_DS_REDUCE_SCATTER,
    ZP_DS_REDUCE_BUCKET_SIZE,
    ZP_DS_MULTI_RANK_BUCKET,
    ZP_DS_ALLGATHER_PARTITIONS,
    ZP_DS_ALLGATHER_BUCKET_SIZE,
    ZP_DS_OVERLAP_COMM,
    ZP_DS_LOAD_FROM_FP32,
    ZP_DS_ELASTIC_CHECKPOINT,
    ZP_DS_SUB_GROUP_SIZE,
    ZP_DS_ROUND_ROBIN,
    ZP_DS_IGNORE_UNUSED,
    ZP_DS_LEGACY_STAGE1,
    ZP_DS_PREFETCH_BUCKET_SIZE,
    ZP_DS_PARAM_PERSISTENCE,
    ZP_DS_MODEL_PERSISTENCE,
    ZP_DS_MAX_LIVE,
    ZP_DS_MAX_REUSE,
    ZP_DS_GATHER_16BIT,
    ZP_DS_GATHER_FP16,
    ZP_DS_MODULE_GRANULARITY,
    ZP_DS_ALL_REDUCE_FETCH,
    ZP_DS_ALLGATHER_SEQUENTIAL,
    ZP_DS_PARTITION_STREAM,
    ZP_DS_HPZ,
    ZP_DS_QUANTIZED_WEIGHTS,
    ZP_DS_QUANTIZED_FROZEN,
    ZP_DS_QUANTIZED_GRADIENTS,
    ZP_DS_LOCO,
    ZP_DS_MICS_SHARD_SIZE,
    ZP_DS_MICS_HIERARCHICAL,
    ZP_DS_MEMORY_EFFICIENT_LINEAR,
    ZP_DS_PIPELINE_LOADING,
    ZP_DS_OVERRIDE_APPLY,
    ZP_DS_TRACE_WARNINGS,
    ZP_DS_SANITY_CHECKS,
    ZP_DS_MUON_IN_MEMORY,
    ZP_DS_LEAF_MODULE,
    ZP_DS_LEAF_CLASSES,
    ZP_DS_LEAF_NAMES,
    ZP_DS_LEAF_SUFFIXES,
    ZP_DS_ZENFLOW,
    ZP_DS_CPU_OFFLOAD,
    ZP_DS_CPU_OFFLOAD_PARAM,
    ZP_DS_CPU_OFFLOAD_PIN,
    ZP_DS_GRAD_HOOKS,
    ZP_DS_OFFLOAD_PARAM,
    ZP_DS_OFFLOAD_PARAM_DEVICE,
    ZP_DS_OFFLOAD_PARAM_PATH,
    ZP_DS_OFFLOAD_PARAM_BUFFERS,
    ZP_DS_OFFLOAD_PARAM_BUFFER_SIZE,
    ZP_DS_OFFLOAD_PARAM_MAX_IN_CPU,
    ZP_DS_OFFLOAD_PARAM_PIN,
    ZP_DS_OFFLOAD_OPTIMIZER,
    ZP_DS_OFFLOAD_OPTIMIZER_DEVICE,
    ZP_DS_OFFLOAD_OPTIMIZER_PATH,
    ZP_DS_OFFLOAD_OPTIMIZER_BUFFERS,
    ZP_DS_OFFLOAD_OPTIMIZER_PIN,
    ZP_DS_OFFLOAD_OPTIMIZER_READ,
    ZP_DS_OFFLOAD_OPTIMIZER_WRITE,
    ZP_DS_OFFLOAD_OPTIMIZER_FAST_INIT,
    ZP_DS_OFFLOAD_OPTIMIZER_RATIO,
    ZP_DS_OFFLOAD_OPTIMIZER_SUPER,
    ZP_DS_OFFLOAD_OPTIMIZER_CONVERT,
    ZP_DS_OFFLOAD_OPTIMIZER_CORES,
    /* optimizer and schedule */
    ZP_DS_OPTIMIZER,
    ZP_DS_OPTIMIZER_TYPE,
    ZP_DS_OPTIMIZER_PARAMS,
    ZP_DS_OPTIMIZER_LR,
    ZP_DS_OPTIMIZER_BETAS,
    ZP_DS_OPTIMIZER_EPS,
    ZP_DS_OPTIMIZER_WEIGHT_DECAY,
    ZP_DS_OPTIMIZER_MAX_GRAD_NORM,
    ZP_DS_OPTIMIZER_LEGACY_FUSION,
    ZP_DS_SCHEDULER,
    ZP_DS_SCHEDULER_TYPE,
    ZP_DS_SCHEDULER_PARAMS,
    ZP_DS_SCHEDULER_MIN_LR,
    ZP_DS_SCHEDULER_MAX_LR,
    ZP_DS_SCHEDULER_WARMUP,
    ZP_DS_SCHEDULER_TOTAL,
    /* disk and activations */
    ZP_DS_AIO,
    ZP_DS_AIO_BLOCK_SIZE,
    ZP_DS_AIO_QUEUE_DEPTH,
    ZP_DS_AIO_PARALLELISM,
    ZP_DS_AIO_SINGLE_SUBMIT,
    ZP_DS_AIO_OVERLAP_EVENTS,
    ZP_DS_AIO_GDS,
    ZP_DS_AIO_THREAD_COUNT,
    ZP_DS_ACTIVATION,
    ZP_DS_ACTIVATION_PARTITION,
    ZP_DS_ACTIVATION_CPU,
    ZP_DS_ACTIVATION_CONTIGUOUS,
    ZP_DS_ACTIVATION_NUMBER,
    ZP_DS_ACTIVATION_SYNCHRONIZE,
    ZP_DS_ACTIVATION_PROFILE,
    /* printing, monitoring, and features outside the step modelled here */
    ZP_DS_STEPS_PER_PRINT,
    ZP_DS_WALL_CLOCK,
    ZP_DS_MEMORY_BREAKDOWN,
    ZP_DS_DUMP_STATE,
    ZP_DS_LOG_LEVEL,
    ZP_DS_DROP_LAST,
    ZP_DS_VOCABULARY_SIZE,
    ZP_DS_DATA_BEFORE_EXPERT,
    ZP_DS_DISABLE_PYTHON_GC,
    ZP_DS_CHECKPOINT,
    ZP_DS_FLOPS_PROFILER,
    ZP_DS_TENSORBOARD,
    ZP_DS_WANDB,
    ZP_DS_COMET,
    ZP_DS_CSV_MONITOR,
    ZP_DS_COMMS_LOGGER,
    ZP_DS_TIMERS,
    ZP_DS_AUTOTUNING,
    ZP_DS_DATA_EFFICIENCY,
    ZP_DS_DATASTATES,
    ZP_DS_HYBRID_ENGINE,
    ZP_DS_WEIGHT_QUANTIZATION,
    ZP_DS_COMPILE,
    ZP_DS_PIPELINE,
    ZP_DS_TENSOR_PARALLEL,
    ZP_DS_AUTOTP_SIZE,
    ZP_DS_EXPERT_PARALLEL,
    /* removed */
    ZP_DS_NEBULA,
    ZP_DS_COMPRESSION,
    ZP_DS_QUANTIZE_TRAINING,
    ZP_DS_SPARSE_GRADIENTS,
    ZP_DS_EIGENVALUE,
    ZP_DS_SPARSE_ATTENTION,
    ZP_DS_ELASTICITY,
    ZP_DS_GRAPH_HARVESTING,
    ZP_DS_CURRICULUM,
    ZP_DS_LAYER_DROP,
    ZP_N_DS_KEYS,
    ZP_DS_NONE = -1,
} ZpDsKey;

typedef enum {
    ZP_DS_BOOLEAN,
    ZP_DS_COUNT,        /* a whole number; an integral float such as 5e8 passes */
    ZP_DS_REAL,         /* any finite number */
    ZP_DS_TEXT,         /* any text */
    ZP_DS_CHOICE,       /* one of `choices` */
    ZP_DS_LIST,         /* of texts */
    ZP_DS_ANY,          /* not looked into */
    ZP_DS_BLOCK_STRICT, /* a block whose unknown keys DeepSpeed refuses (pydantic, extra=forbid) */
    ZP_DS_BLOCK_LOOSE,  /* a block whose unknown keys it silently ignores (plain dict) */
    ZP_DS_BLOCK_FREE,   /* a block of which only some keys are listed; others are its own */
} ZpDsKind;

typedef enum {
    ZP_DS_LIVE,
    ZP_DS_DEPRECATED, /* still read; `remark` names the successor */
    ZP_DS_UNREAD,     /* DeepSpeed never reads it; `remark` says what it reads instead */
    ZP_DS_REMOVED,    /* refused by DeepSpeed after 0.19.6 */
    ZP_DS_UNDEFINED,  /* documented somewhere, refused by the code in every version */
} ZpDsState;

typedef enum {
    ZP_DS_EFFECT_NONE = 0,
    ZP_DS_EFFECT_MEMORY = 1 << 0,
    ZP_DS_EFFECT_TIME = 1 << 1,
} ZpDsEffect;

typedef struct {
    const char *path;  /* dotted */
    const char *alias; /* second accepted last name, or NULL */
    ZpDsKind kind;
    const char *unit;     /* "elements", "bytes", "ranks", ...; NULL: none */
    const char *fallback; /* default, as text; NULL: unset */
    const char *choices;  /* CHOICE: separated by | */
    double least, most;   /* COUNT and REAL, both inclusive; 0 and 0: no bound */
    gboolean nullable;    /* null means unset */
    ZpDsState state;
    unsigned effect;       /* of ZpDsEffect, in this simulator */
    unsigned stages;       /* bit s: matters at stage s; 0: at all */
    gboolean intent;       /* set where it cannot matter, something else was meant: warn */
    const char *automatic; /* how the HF Trainer fills "auto"; NULL: it does not */
    const char *remark;    /* to `state`, or why there is no effect */
    const char *help;      /* one line */
} ZpDsEntry;

const ZpDsEntry *zp_ds_schema_get(ZpDsKey key);
/* The key at this dotted path (aliases count), or ZP_DS_NONE. */
ZpDsKey zp_ds_schema_find(const char *path);
/* First key whose last name is `name`, in whatever block, or ZP_DS_NONE. */
ZpDsKey zp_ds_schema_find_name(const char *name);
/* Nearest key in `block` ("" for the top) that DeepSpeed reads, or ZP_DS_NONE. */
ZpDsKey zp_ds_schema_nearest(const char *block, const char *name);
const char *zp_ds_schema_name(ZpDsKey key); /* last part of the path */
gboolean zp_ds_schema_is_block(ZpDsKind kind);
char *zp_ds_schema_block(ZpDsKey key); /* path without the last part; "" at the top */
const char *zp_ds_schema_effect_name(unsigned effect); /* "memory, time" */
/* "1, 2", or NULL where every stage is meant. */
const char *zp_ds_schema_stages_name(unsigned stages);
