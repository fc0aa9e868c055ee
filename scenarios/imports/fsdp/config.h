/* FSDP settings as launchers write them: accelerate's YAML, the HF Trainer's JSON, torchtitan's
 * TOML.  Knobs and defaults: torch.distributed.fsdp (FullyShardedDataParallel, fully_shard),
 * accelerate utils/dataclasses.py (FullyShardedDataParallelPlugin), transformers
 * training_args.py, torchtitan config and distributed/fsdp.py. */
#pragma once

#include "models/families/architecture.h"
#include "models/job/fsdp.h"
#include "models/job/job.h"
#include "models/words/dtype.h"
#include "scenarios/imports/deepspeed/config.h"

typedef enum {
    ZP_FSDP_ACCELERATE,
    ZP_FSDP_TRAINER,
    ZP_FSDP_TORCHTITAN,
} ZpFsdpSource;

typedef enum {
    ZP_FSDP_FULL_SHARD = 1, /* numbers as torch and accelerate number them */
    ZP_FSDP_SHARD_GRAD_OP,
    ZP_FSDP_NO_SHARD,
    ZP_FSDP_HYBRID_SHARD,
    ZP_FSDP_HYBRID_SHARD_ZERO2,
} ZpFsdpSharding;

typedef enum {
    ZP_FSDP_WRAP_NONE,    /* one unit: the whole model */
    ZP_FSDP_WRAP_CLASSES, /* each module of `wrap_classes`; none named: the model's block class */
    ZP_FSDP_WRAP_SIZE,    /* modules of at least `wrap_elements` */
    ZP_FSDP_WRAP_TITAN,   /* embedding; each block; norm with head; nothing left in the root */
} ZpFsdpWrap;

typedef enum {
    ZP_FSDP_CHECKPOINT_NONE,
    ZP_FSDP_CHECKPOINT_OP,     /* selective, by operator */
    ZP_FSDP_CHECKPOINT_LAYERS, /* selective, every n-th block */
    ZP_FSDP_CHECKPOINT_FULL,
} ZpFsdpCheckpoint;

typedef struct {
    ZpFsdpSource source;
    gboolean uses_fsdp;      /* FALSE: the file selects DeepSpeed, or no sharding at all */
    gboolean uses_ddp;       /* plain data parallelism: DistributedDataParallel, its defaults */
    int version;             /* 1: FullyShardedDataParallel, 2: fully_shard */
    gint64 world;            /* ranks; 0: not said */
    gint64 shard_degree;     /* ranks of a shard group; 0: not said, -1: all that are left */
    gint64 replicate_degree; /* copies; 0: not said */
    /* Degrees that the job takes over; 0: not said.  A pipeline only where the context has one. */
    ZpParallel parallel;
    gint64 degrees; /* GPUs that all degrees of the file make together; 0: one of them is open */
    ZpFsdpSharding strategy; /* set for version 2 as well */
    gboolean reshard_after_forward;
    ZpFsdpWrap wrap;
    GStrv wrap_classes; /* NULL: none named */
    gint64 wrap_elements;
    ZpFsdpPrefetch backward_prefetch;
    gboolean forward_prefetch, limit_all_gathers, use_orig_params, offload_parameters;
    ZpDtype stored;            /* format of the sharded parameters */
    ZpDtype gathered, reduced; /* of gathers and of gradient reduction; NONE: not said */
    ZpFsdpCheckpoint checkpoint;
    gint64 checkpoint_every;                    /* LAYERS: n */
    gint64 micro_batch, accumulation, sequence; /* 0: not said */
    gint64 global_batch; /* samples of a step, from which accumulation follows; 0: not said */
    ZpCompile compile;
    ZpDsConfig *deepspeed; /* of a file that selects DeepSpeed; else NULL */
    GPtrArray *rows;       /* ZpImportRow */
    ZpImportMessages *messages;
} ZpFsdpConfig;

/* What the file alone does not say; zero and NULL mean unknown. */
typedef struct {
    const char *const *model_classes; /* module classes of the model, NULL-terminated */
    const char *block_class;          /* class of its blocks */
    gint64 model_elements;
    ZpDsContext deepspeed;
    gint64 gpus;         /* all of them; 0: deepspeed.world */
    ZpParallel parallel; /* degrees that win over the file's; 0: the file's */
    gboolean pipeline;   /* the runtime that will run has pipelines */
} ZpFsdpContext;

/* Parses the text in the source's syntax.  `context` may be NULL.  Never NULL. */
ZpFsdpConfig *zp_fsdp_config_parse(ZpFsdpSource source, const char *file, const char *text,
                                   gsize length, const ZpFsdpContext *context);
void zp_fsdp_config_free(ZpFsdpConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpFsdpConfig, zp_fsdp_config_free)
const char *zp_fsdp_config_strategy_name(ZpFsdpSharding strategy); /* "FULL_SHARD" */

/* FSDP settings into a job: their meaning for the fsdp1, fsdp2 and deepspeed runtimes. */

typedef enum {
    ZP_FSDP_APPLY_ERROR_REFUSED,     /* the settings have errors */
    ZP_FSDP_APPLY_ERROR_UNSUPPORTED, /* no sharding, or what no runtime models */
} ZpFsdpApplyError;
#define ZP_FSDP_APPLY_ERROR (zp_fsdp_apply_error_quark())
GQuark zp_fsdp_apply_error_quark(void);

/* Fills, of `job`: runtime ("fsdp2" for version 2, else "fsdp1"), precision, zero, checkpointing,
 * and what the file says of batch, sequence, world and parallel degrees; job->fsdp points to
 * `settings` then.  The job is whole, before zp_parallel_place(): world.ranks counts all GPUs (the
 * shard group does not: data x context parallel ranks), training.sequence all tokens.  The job's
 * gpus_per_node is the shard group of a hybrid strategy without a degree.  A file that selects
 * DeepSpeed is refused here: apply its `deepspeed` with zp_ds_apply_job(). */
gboolean zp_fsdp_apply_job(const ZpFsdpConfig *config, ZpFsdp *settings, ZpJob *job,
                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
