#include "scenarios/imports/settings_table_internal.h"

#define SHARDING "sharding_strategy", "reshard_after_forward", "data_parallel_shard_degree", "fsdp"
#define FORMATS "mixed_precision", "mixed_precision_param", "bf16", "fp16"
#define WRAPPING "auto_wrap_policy", "transformer_layer_cls_to_wrap", "min_num_params", "fsdp"
#define DEEPSPEED(ours, theirs)                      \
    {                                                \
        ZP_KEY_##ours, ZP_DS_##theirs, {NULL}, FALSE \
    }
#define FSDP(ours, ...)                                 \
    {                                                   \
        ZP_KEY_##ours, ZP_DS_NONE, {__VA_ARGS__}, FALSE \
    }
#define BOTH(ours, theirs, ...)                             \
    {                                                       \
        ZP_KEY_##ours, ZP_DS_##theirs, {__VA_ARGS__}, FALSE \
    }
#define ALWAYS(ours, theirs, ...)                          \
    {                                                      \
        ZP_KEY_##ours, ZP_DS_##theirs, {__VA_ARGS__}, TRUE \
    }

static const ZpImportSettingsRow rows[] = {
    FSDP(COMPILE, "components", "enable", "compile"),

    BOTH(MICRO_BATCH, MICRO_BATCH_SIZE, "per_device_train_batch_size", "local_batch_size",
         "batch_size"),
    FSDP(SEQUENCE, "seq_len"),
    BOTH(ACCUMULATION, ACCUMULATION_STEPS, "gradient_accumulation_steps", "global_batch_size"),
    FSDP(CHECKPOINTING, "activation_checkpointing", "mode", "gradient_checkpointing"),
    FSDP(SELECTIVE, "selective_ac_option", "mode"),

    ALWAYS(PARAMETER, BF16_ENABLED, "dtype", FORMATS),
    ALWAYS(GRADIENT, BF16_ENABLED, FORMATS),
    ALWAYS(GATHERED, BF16_ENABLED, FORMATS),
    ALWAYS(REDUCE, COMMUNICATION_DATA_TYPE, "mixed_precision_reduce", FORMATS),
    ALWAYS(MASTER, BF16_MASTER, "dtype", FORMATS),
    ALWAYS(MOMENTS, BF16_STATES, "dtype", FORMATS),

    FSDP(RANKS, "num_processes", "data_parallel_shard_degree"),
    FSDP(SHARD_GROUP, "parallelism_config_dp_shard_size", "parallelism_config_dp_replicate_size",
         SHARDING),
    FSDP(TENSOR, "tensor_parallel_degree", "parallelism_config_tp_size"),
    FSDP(SEQUENCE_PARALLEL, "tensor_parallel_degree"),
    FSDP(CONTEXT, "context_parallel_degree", "parallelism_config_cp_size"),
    FSDP(PIPELINE, "pipeline_parallel_degree"),

    BOTH(RUNTIME, ZERO, "version", "sharding_strategy", "data_parallel_shard_degree", "fsdp"),
    BOTH(STAGE, STAGE, SHARDING),
    FSDP(WRAP, WRAPPING),
    FSDP(WRAP_ELEMENTS, "min_num_params"),
    FSDP(OUTER, WRAPPING),
    DEEPSPEED(BUCKET, REDUCE_BUCKET_SIZE),
    DEEPSPEED(OVERLAP, OVERLAP_COMM),
    FSDP(RESHARD, SHARDING),

    DEEPSPEED(DS_CONTIGUOUS, CONTIGUOUS_GRADIENTS),
    DEEPSPEED(DS_REDUCE_SCATTER, REDUCE_SCATTER),
    DEEPSPEED(DS_MULTI_RANK, MULTI_RANK_BUCKET),
    DEEPSPEED(DS_ROUND_ROBIN, ROUND_ROBIN),
    DEEPSPEED(DS_OVERLAP, OVERLAP_COMM),
    DEEPSPEED(DS_REDUCE_BUCKET, REDUCE_BUCKET_SIZE),
    DEEPSPEED(DS_ALLGATHER_BUCKET, ALLGATHER_BUCKET_SIZE),
    DEEPSPEED(DS_SUB_GROUP, SUB_GROUP_SIZE),
    DEEPSPEED(DS_PREFETCH_BUCKET, PREFETCH_BUCKET_SIZE),
    DEEPSPEED(DS_MAX_LIVE, MAX_LIVE),
    DEEPSPEED(DS_MAX_REUSE, MAX_REUSE),
    DEEPSPEED(DS_PARAM_PERSISTENCE, PARAM_PERSISTENCE),
    DEEPSPEED(DS_MODEL_PERSISTENCE, MODEL_PERSISTENCE),
    DEEPSPEED(DS_GRANULARITY, MODULE_GRANULARITY),
    DEEPSPEED(DS_ALL_REDUCE_FETCH, ALL_REDUCE_FETCH),
    DEEPSPEED(DS_SEQUENTIAL, ALLGATHER_SEQUENTIAL),
    DEEPSPEED(DS_EFFICIENT_LINEAR, MEMORY_EFFICIENT_LINEAR),
    DEEPSPEED(DS_HPZ, HPZ),
    DEEPSPEED(DS_QUANTIZED_WEIGHTS, QUANTIZED_WEIGHTS),
    DEEPSPEED(DS_QUANTIZED_FROZEN, QUANTIZED_FROZEN),
    DEEPSPEED(DS_QUANTIZED_GRADIENTS, QUANTIZED_GRADIENTS),
    DEEPSPEED(DS_MICS, MICS_SHARD_SIZE),
    DEEPSPEED(DS_MICS_HIERARCHICAL, MICS_HIERARCHICAL),
    DEEPSPEED(DS_OFFLOAD_PARAM, OFFLOAD_PARAM_DEVICE),
    DEEPSPEED(DS_OFFLOAD_PARAM_PIN, OFFLOAD_PARAM_PIN),
    DEEPSPEED(DS_OFFLOAD_PARAM_BUFFERS, OFFLOAD_PARAM_BUFFERS),
    DEEPSPEED(DS_OFFLOAD_PARAM_BUFFER, OFFLOAD_PARAM_BUFFER_SIZE),
    DEEPSPEED(DS_OFFLOAD_PARAM_CPU, OFFLOAD_PARAM_MAX_IN_CPU),
    DEEPSPEED(DS_OFFLOAD_OPTIMIZER, OFFLOAD_OPTIMIZER_DEVICE),
    DEEPSPEED(DS_OFFLOAD_OPTIMIZER_PIN, OFFLOAD_OPTIMIZER_PIN),
    DEEPSPEED(DS_OFFLOAD_OPTIMIZER_BUFFERS, OFFLOAD_OPTIMIZER_BUFFERS),
    DEEPSPEED(DS_OFFLOAD_OPTIMIZER_RATIO, OFFLOAD_OPTIMIZER_RATIO),
    DEEPSPEED(DS_ACCUMULATION, GRAD_ACCUM_DTYPE),
    DEEPSPEED(DS_COMMUNICATION, COMMUNICATION_DATA_TYPE),
    DEEPSPEED(DS_CLIPPING, GRADIENT_CLIPPING),
    DEEPSPEED(DS_OVERFLOW, BF16_CHECK_OVERFLOW),
    DEEPSPEED(DS_IMMEDIATE, BF16_IMMEDIATE),

    FSDP(FS_CPU_OFFLOAD, "offload_params", "enable_cpu_offload", "fsdp"),
    FSDP(FS_PREFETCH, "backward_prefetch", "backward_prefetch_policy"),
    FSDP(FS_NEXT_FORWARD, "forward_prefetch"),
    FSDP(FS_LIMIT, "limit_all_gathers"),
    FSDP(FS_ORIG, "use_orig_params"),
};

const ZpImportSettingsRow *
zp_import_settings_table(gsize *n)
{
    *n = G_N_ELEMENTS(rows);
    return rows;
}
