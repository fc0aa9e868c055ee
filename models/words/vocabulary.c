#include "models/words/vocabulary.h"

static const char *const class_names[ZP_N_CLASSES] = {
    [ZP_CLASS_PARAMETER] = "parameter",
    [ZP_CLASS_GRADIENT] = "gradient",
    [ZP_CLASS_MASTER] = "master weight",
    [ZP_CLASS_MOMENTUM] = "momentum",
    [ZP_CLASS_VARIANCE] = "variance",
    [ZP_CLASS_GATHERED] = "gathered parameter",
    [ZP_CLASS_COMMUNICATION] = "communication buffer",
    [ZP_CLASS_ACTIVATION] = "activation",
    [ZP_CLASS_LOGITS] = "logits",
    [ZP_CLASS_WORKSPACE] = "workspace",
    [ZP_CLASS_OPTIMIZER_TEMPORARY] = "optimizer temporary",
    [ZP_CLASS_RUNTIME] = "runtime overhead",
    [ZP_CLASS_CHECKPOINT] = "checkpoint buffer",
};

static const char *const phase_names[ZP_N_PHASES] = {
    [ZP_PHASE_INIT] = "init",
    [ZP_PHASE_FORWARD] = "forward",
    [ZP_PHASE_BACKWARD] = "backward",
    [ZP_PHASE_REDUCE] = "reduce",
    [ZP_PHASE_OPTIMIZER] = "optimizer",
    [ZP_PHASE_GATHER] = "gather",
    [ZP_PHASE_ZERO_GRAD] = "zero-grad",
    [ZP_PHASE_CHECKPOINT_SAVE] = "checkpoint-save",
    [ZP_PHASE_CHECKPOINT_LOAD] = "checkpoint-load",
};

static const char *const kind_names[ZP_N_KINDS] = {
    [ZP_KIND_FORWARD] = "forward",
    [ZP_KIND_BACKWARD] = "backward",
    [ZP_KIND_RECOMPUTE] = "recompute",
    [ZP_KIND_OPTIMIZER] = "optimizer",
    [ZP_KIND_MEMORY] = "memory",
    [ZP_KIND_ALL_GATHER] = "all-gather",
    [ZP_KIND_REDUCE_SCATTER] = "reduce-scatter",
    [ZP_KIND_ALL_REDUCE] = "all-reduce",
    [ZP_KIND_REDUCE] = "reduce",
    [ZP_KIND_BROADCAST] = "broadcast",
    [ZP_KIND_ALL_TO_ALL] = "all-to-all",
    [ZP_KIND_HOST_TO_DEVICE] = "host-to-device",
    [ZP_KIND_DEVICE_TO_HOST] = "device-to-host",
    [ZP_KIND_HOST_OPTIMIZER] = "host-optimizer",
    [ZP_KIND_NVME_READ] = "nvme-read",
    [ZP_KIND_NVME_WRITE] = "nvme-write",
    [ZP_KIND_SEND] = "send",
    [ZP_KIND_WAIT] = "wait",
};

static const char *const role_names[ZP_N_ROLES] = {
    [ZP_ROLE_NONE] = "",
    [ZP_ROLE_SHARD] = "shard",
    [ZP_ROLE_CAST] = "cast",
    [ZP_ROLE_ALL_GATHER] = "all-gather output",
    [ZP_ROLE_UNSHARDED] = "unsharded",
    [ZP_ROLE_POST_FORWARD_SHARD] = "post-forward shard",
    [ZP_ROLE_GRADIENT] = "unsharded gradient",
    [ZP_ROLE_GRADIENT_TEMPORARY] = "gradient temporary",
    [ZP_ROLE_GRADIENT_ACCUMULATOR] = "gradient accumulator",
    [ZP_ROLE_REDUCE_INPUT] = "reduce-scatter input",
    [ZP_ROLE_REDUCE_OUTPUT] = "reduce-scatter output",
    [ZP_ROLE_ALL_REDUCE_INPUT] = "all-reduce input",
    [ZP_ROLE_SHARDED_GRADIENT] = "sharded gradient",
    [ZP_ROLE_OPTIMIZER_STATE] = "optimizer state",
    [ZP_ROLE_BUCKET] = "bucket",
    [ZP_ROLE_SECONDARY_SHARD] = "secondary shard",
    [ZP_ROLE_QUANTIZED] = "quantized",
    [ZP_ROLE_PERSISTENT_PARAMETER] = "persistent parameter",
    [ZP_ROLE_CHECKPOINT_INPUT] = "checkpoint input",
    [ZP_ROLE_PINNED] = "pinned",
    [ZP_ROLE_TEMPORARY] = "temporary",
};

static const ZpTapeVocabulary vocabulary = {
    .classes = class_names,
    .phases = phase_names,
    .kinds = kind_names,
    .roles = role_names,
    .n_classes = ZP_N_CLASSES,
    .n_phases = ZP_N_PHASES,
    .n_kinds = ZP_N_KINDS,
    .n_roles = ZP_N_ROLES,
};

const ZpTapeVocabulary *
zp_vocabulary_get(void)
{
    return &vocabulary;
}

const char *
zp_vocabulary_class_name(ZpClass class_id)
{
    return class_names[class_id];
}

const char *
zp_vocabulary_phase_name(ZpPhase phase)
{
    return phase_names[phase];
}

const char *
zp_vocabulary_kind_name(ZpKind kind)
{
    return kind_names[kind];
}

const char *
zp_vocabulary_role_name(ZpRole role)
{
    return role_names[role];
}

gboolean
zp_vocabulary_kind_is_collective(ZpKind kind)
{
    return kind >= ZP_KIND_ALL_GATHER && kind <= ZP_KIND_ALL_TO_ALL;
}
