/* The field's words as small integers: what tags a tape made by a runtime. */
#pragma once

#include "sim/tape/tape.h"

/* Tensor classes: every byte of a rank belongs to exactly one. */
typedef enum {
    ZP_CLASS_PARAMETER, /* the rank's own (sharded or replicated) parameters */
    ZP_CLASS_GRADIENT,  /* the rank's own gradients, and full gradients before reduction */
    ZP_CLASS_MASTER,    /* master weights */
    ZP_CLASS_MOMENTUM,
    ZP_CLASS_VARIANCE,
    ZP_CLASS_GATHERED,      /* gathered (unsharded) parameters and what holds them on the way */
    ZP_CLASS_COMMUNICATION, /* gradient buckets, reduce-scatter inputs and outputs */
    ZP_CLASS_ACTIVATION,
    ZP_CLASS_LOGITS,
    ZP_CLASS_WORKSPACE, /* temporaries inside forward and backward */
    ZP_CLASS_OPTIMIZER_TEMPORARY,
    ZP_CLASS_RUNTIME,    /* context, communicators, library workspaces */
    ZP_CLASS_CHECKPOINT, /* state gathered for saving or loading */
    ZP_N_CLASSES,
} ZpClass;

/* Classes that may live across steps. */
#define ZP_CLASSES_PERSISTENT                                                           \
    ((1u << ZP_CLASS_PARAMETER) | (1u << ZP_CLASS_GRADIENT) | (1u << ZP_CLASS_MASTER) | \
     (1u << ZP_CLASS_MOMENTUM) | (1u << ZP_CLASS_VARIANCE) | (1u << ZP_CLASS_RUNTIME))

typedef enum {
    ZP_PHASE_INIT,
    ZP_PHASE_FORWARD,
    ZP_PHASE_BACKWARD,
    ZP_PHASE_REDUCE, /* gradient reduction after backward */
    ZP_PHASE_OPTIMIZER,
    ZP_PHASE_GATHER, /* parameter all-gather after the optimizer (stages 1 and 2) */
    ZP_PHASE_ZERO_GRAD,
    ZP_PHASE_CHECKPOINT_SAVE,
    ZP_PHASE_CHECKPOINT_LOAD,
    ZP_N_PHASES,
} ZpPhase;

/* Kinds of work. */
typedef enum {
    ZP_KIND_FORWARD,
    ZP_KIND_BACKWARD,
    ZP_KIND_RECOMPUTE,
    ZP_KIND_OPTIMIZER,
    ZP_KIND_MEMORY, /* casts, copies, packing on the device */
    ZP_KIND_ALL_GATHER,
    ZP_KIND_REDUCE_SCATTER,
    ZP_KIND_ALL_REDUCE,
    ZP_KIND_REDUCE,
    ZP_KIND_BROADCAST,
    ZP_KIND_ALL_TO_ALL,
    ZP_KIND_HOST_TO_DEVICE,
    ZP_KIND_DEVICE_TO_HOST,
    ZP_KIND_HOST_OPTIMIZER,
    ZP_KIND_NVME_READ,
    ZP_KIND_NVME_WRITE,
    ZP_KIND_SEND, /* between the stages of a pipeline */
    ZP_KIND_WAIT, /* for the other stages of a pipeline */
    ZP_N_KINDS,
} ZpKind;

/* Roles: finer names than classes, where a reader wants to know which buffer it is. */
typedef enum {
    ZP_ROLE_NONE,
    ZP_ROLE_SHARD,              /* persistent shard of the class */
    ZP_ROLE_CAST,               /* low-precision copy of a shard */
    ZP_ROLE_ALL_GATHER,         /* all-gather output (flat) */
    ZP_ROLE_UNSHARDED,          /* per-parameter unsharded storage */
    ZP_ROLE_POST_FORWARD_SHARD, /* reshard_after_forward=int */
    ZP_ROLE_GRADIENT,           /* unsharded gradient in compute dtype */
    ZP_ROLE_GRADIENT_TEMPORARY,
    ZP_ROLE_GRADIENT_ACCUMULATOR,
    ZP_ROLE_REDUCE_INPUT,
    ZP_ROLE_REDUCE_OUTPUT,
    ZP_ROLE_ALL_REDUCE_INPUT,
    ZP_ROLE_SHARDED_GRADIENT,
    ZP_ROLE_OPTIMIZER_STATE,
    ZP_ROLE_BUCKET,
    ZP_ROLE_SECONDARY_SHARD, /* hpZ */
    ZP_ROLE_QUANTIZED,
    ZP_ROLE_PERSISTENT_PARAMETER, /* below stage 3's persistence threshold */
    ZP_ROLE_CHECKPOINT_INPUT,     /* activation kept by checkpointing */
    ZP_ROLE_PINNED,
    ZP_ROLE_TEMPORARY, /* lives within one pass of a layer */
    ZP_N_ROLES,
} ZpRole;

const ZpTapeVocabulary *zp_vocabulary_get(void);

/* "all-gather" and the like; static strings. */
const char *zp_vocabulary_class_name(ZpClass class_id);
const char *zp_vocabulary_phase_name(ZpPhase phase);
const char *zp_vocabulary_kind_name(ZpKind kind);
const char *zp_vocabulary_role_name(ZpRole role);
/* Is this kind a collective of several ranks? */
gboolean zp_vocabulary_kind_is_collective(ZpKind kind);
