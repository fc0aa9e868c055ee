/* accelerate's YAML: launch keys at the top, fsdp_config or deepspeed_config below. */
#include "scenarios/imports/fsdp/reader_internal.h"

#include <string.h>

#define M ZP_DS_EFFECT_MEMORY
#define T ZP_DS_EFFECT_TIME
#define MT (ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME)
#define F "fsdp_config."
#define MAX_SIZE (1 << 16)

static const char *const launch_keys[] = {
    "compute_environment",
    "debug",
    "enable_cpu_affinity",
    "machine_rank",
    "main_process_ip",
    "main_process_port",
    "main_training_function",
    "rdzv_backend",
    "same_network",
    "tpu_env",
    "tpu_name",
    "tpu_zone",
    "tpu_use_cluster",
    "tpu_use_sudo",
    "use_cpu",
    "gpu_ids",
    "downcast_bf16",
    "commands",
    "command_file",
    "tpu_vm",
    "num_machines",
    NULL,
};

static const char *const outside_keys[] = {
    "fp8_config",
    "mpirun_config",
    "ipex_config",
    NULL,
};

static const char *const fsdp_keys[] = {
    "fsdp_version",
    "fsdp_sharding_strategy",
    "fsdp_reshard_after_forward",
    "fsdp_auto_wrap_policy",
    "fsdp_transformer_layer_cls_to_wrap",
    "fsdp_min_num_params",
    "fsdp_backward_prefetch",
    "fsdp_backward_prefetch_policy",
    "fsdp_forward_prefetch",
    "fsdp_use_orig_params",
    "fsdp_offload_params",
    "fsdp_state_dict_type",
    "fsdp_activation_checkpointing",
    "fsdp_sync_module_states",
    "fsdp_cpu_ram_efficient_loading",
    "fsdp_ignored_modules",
    NULL,
};

static const char *const strategies[] = {
    "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2", NULL,
};

#define Q "parallelism_config.parallelism_config_"

static const char *const parallel_keys[] = {
    "parallelism_config_dp_replicate_size",
    "parallelism_config_dp_shard_size",
    "parallelism_config_tp_size",
    "parallelism_config_cp_size",
    "parallelism_config_cp_comm_strategy",
    "parallelism_config_cp_backend",
    "parallelism_config_sp_size",
    "parallelism_config_sp_backend",
    NULL,
};

static void
read_strategy(const ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    int index = 0;
    ZpFsdpField strategy = {F "fsdp_sharding_strategy", MT, NULL, "FULL_SHARD", NULL};
    ZpFsdpField reshard = {F "fsdp_reshard_after_forward", MT, NULL, "true", NULL};
    if (config->version == 2) {
        strategy.fallback = NULL;
        if (zp_fsdp_reader_choice(reader, &strategy, strategies, 1, &index))
            zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, strategy.path,
                               "use fsdp_reshard_after_forward", "no effect with fsdp_version 2");
        config->reshard_after_forward = TRUE;
        zp_fsdp_reader_boolean(reader, &reshard, &config->reshard_after_forward);
        config->strategy =
            config->reshard_after_forward ? ZP_FSDP_FULL_SHARD : ZP_FSDP_SHARD_GRAD_OP;
        return;
    }
    /* Newer accelerate writes the name of version 1's strategy under the newer key as well. */
    const ZpTree *newer = zp_tree_path(reader->root, reshard.path);
    if (newer && newer->kind == ZP_TREE_STRING && !zp_fsdp_reader_given(reader, strategy.path))
        strategy.path = reshard.path;
    if (zp_fsdp_reader_choice(reader, &strategy, strategies, 1, &index))
        config->strategy = (ZpFsdpSharding)(index + ZP_FSDP_FULL_SHARD);
    if (newer && newer->kind == ZP_TREE_BOOLEAN) {
        reshard.remark = "no effect with fsdp_version 1";
        zp_fsdp_reader_take(reader, &reshard, NULL);
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, reshard.path,
                           "use fsdp_sharding_strategy, or fsdp_version: 2",
                           "true and false are read with fsdp_version 2 only");
    }
    config->reshard_after_forward =
        config->strategy == ZP_FSDP_FULL_SHARD || config->strategy == ZP_FSDP_HYBRID_SHARD;
}

static void
read_wrap(const ZpFsdpReader *reader)
{
    static const char *const policies[] = {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP",
                                           NULL};
    static const ZpFsdpWrap wraps[] = {ZP_FSDP_WRAP_CLASSES, ZP_FSDP_WRAP_SIZE, ZP_FSDP_WRAP_NONE};
    ZpFsdpConfig *config = reader->config;
    ZpFsdpField policy = {F "fsdp_auto_wrap_policy", MT, NULL, "NO_WRAP", NULL};
    ZpFsdpField classes = {F "fsdp_transformer_layer_cls_to_wrap", MT, NULL, NULL, NULL};
    ZpFsdpField size = {F "fsdp_min_num_params", MT, "elements", NULL, NULL};
    int index;
    if (zp_fsdp_reader_choice(reader, &policy, policies, 1, &index))
        config->wrap = wraps[index];
    if (config->wrap != ZP_FSDP_WRAP_CLASSES)
        classes.remark = "no effect with this wrap policy";
    if (config->wrap != ZP_FSDP_WRAP_SIZE)
        size.remark = "no effect with this wrap policy";
    zp_fsdp_reader_names(reader, &classes, &config->wrap_classes);
    zp_fsdp_reader_count(reader, &size, 0, &config->wrap_elements);
    if (config->wrap == ZP_FSDP_WRAP_SIZE && config->wrap_elements == 0) {
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, policy.path, "add fsdp_min_num_params",
                           "SIZE_BASED_WRAP without fsdp_min_num_params wraps nothing");
        config->wrap = ZP_FSDP_WRAP_NONE;
    }
}

/* Knobs that fully_shard does not have. */
static void
read_version_1_only(const ZpFsdpReader *reader)
{
    static const char *const prefetches[] = {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH", NULL};
    static const ZpFsdpPrefetch values[] = {ZP_FSDP_PREFETCH_PRE, ZP_FSDP_PREFETCH_POST,
                                            ZP_FSDP_PREFETCH_NONE};
    ZpFsdpConfig *config = reader->config;
    gboolean two = config->version == 2;
    const char *none = two ? "no effect with fsdp_version 2, which always prefetches the unit "
                             "before in backward"
                           : NULL;
    ZpFsdpField fields[] = {
        {F "fsdp_backward_prefetch", two ? 0 : MT, NULL, two ? NULL : "NO_PREFETCH", none},
        {F "fsdp_forward_prefetch", two ? 0 : MT, NULL, two ? NULL : "false", none},
        {F "fsdp_use_orig_params", two ? 0 : M, NULL, two ? NULL : "true",
         two ? "no effect with fsdp_version 2" : NULL},
    };
    if (zp_fsdp_reader_given(reader, F "fsdp_backward_prefetch_policy")) {
        fields[0].path = F "fsdp_backward_prefetch_policy";
        zp_fsdp_reader_say(reader, ZP_IMPORT_DEPRECATED, fields[0].path,
                           "write fsdp_backward_prefetch", "old name of fsdp_backward_prefetch");
    }
    int index = 2;
    zp_fsdp_reader_choice(reader, &fields[0], prefetches, 1, &index);
    config->backward_prefetch = two ? ZP_FSDP_PREFETCH_PRE : values[index];
    gboolean forward = FALSE;
    zp_fsdp_reader_boolean(reader, &fields[1], &forward);
    config->forward_prefetch = forward && !two;
    zp_fsdp_reader_boolean(reader, &fields[2], &config->use_orig_params);
    for (gsize i = 0; two && i < G_N_ELEMENTS(fields); i++)
        if (zp_fsdp_reader_given(reader, fields[i].path))
            zp_fsdp_reader_say(reader, ZP_IMPORT_NOTE, fields[i].path, "remove it", "%s",
                               fields[i].remark);
}

static void
read_saving(const ZpFsdpReader *reader)
{
    static const char *const types[] = {"FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT",
                                        NULL};
    int index = 2;
    gboolean efficient = FALSE, synchronise = TRUE;
    zp_fsdp_reader_choice(
        reader,
        &(ZpFsdpField){
            F "fsdp_state_dict_type", M, NULL, NULL,
            "when saving: FULL_STATE_DICT gathers the model in the host memory of rank 0"},
        types, 1, &index);
    zp_fsdp_reader_boolean(reader,
                           &(ZpFsdpField){F "fsdp_cpu_ram_efficient_loading", 0, NULL, NULL,
                                          "concerns building the model"},
                           &efficient);
    gboolean said = zp_fsdp_reader_boolean(
        reader,
        &(ZpFsdpField){F "fsdp_sync_module_states", 0, NULL, NULL, "concerns building the model"},
        &synchronise);
    if (efficient && said && !synchronise && reader->config->version == 1)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, F "fsdp_sync_module_states", "write true",
                           "must be true where fsdp_cpu_ram_efficient_loading is");
}

static gint64
read_size(const ZpFsdpReader *reader, const char *path)
{
    gint64 size = 0;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){path, MT, "ranks", NULL, NULL}, 1, &size);
    if (size <= MAX_SIZE)
        return size;
    zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, path, NULL, "no world has that many ranks");
    return 0;
}

/* accelerate's ParallelismConfig (parallelism_config.py); its tensor parallelism is transformers'
 * tp_plan, which leaves norms and residual stream whole; it shards over context ranks too. */
static void
read_parallelism(const ZpFsdpReader *reader, gboolean fsdp)
{
    ZpFsdpConfig *config = reader->config;
    gint64 tensor = read_size(reader, Q "tp_size"), context = read_size(reader, Q "cp_size");
    gint64 copies = read_size(reader, Q "dp_replicate_size");
    gint64 shard = read_size(reader, Q "dp_shard_size");
    if (read_size(reader, Q "sp_size") > 1)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, Q "sp_size", "write 1",
                           "left out: this sequence parallelism is not modelled");
    if (fsdp) {
        config->parallel.tensor = (gint32)tensor;
        config->parallel.context = (gint32)context;
        config->replicate_degree = copies;
        config->shard_degree = shard;
    } else if (tensor > 1 || context > 1 || copies > 1 || shard > 1) {
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, "parallelism_config",
                           "write distributed_type: FSDP",
                           "left out: it is taken over with distributed_type FSDP");
    }
    zp_fsdp_reader_rest(reader, "parallelism_config", ZP_IMPORT_WARNING, TRUE, parallel_keys,
                        "accelerate ignores it silently");
}

static void
read_fsdp(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    gint64 version = 1;
    gboolean checkpoint = FALSE;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){F "fsdp_version", MT, NULL, "1", NULL}, 1,
                         &version);
    if (version > 2)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, F "fsdp_version", "write 1 or 2",
                           "there are versions 1 and 2");
    config->version = version == 2 ? 2 : 1;
    read_strategy(reader);
    read_wrap(reader);
    read_version_1_only(reader);
    read_saving(reader);
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){F "fsdp_offload_params", MT, NULL, "false", NULL},
                           &config->offload_parameters);
    if (zp_fsdp_reader_boolean(
            reader, &(ZpFsdpField){F "fsdp_activation_checkpointing", MT, NULL, "false", NULL},
            &checkpoint))
        config->checkpoint = checkpoint ? ZP_FSDP_CHECKPOINT_FULL : ZP_FSDP_CHECKPOINT_NONE;
    static const char *const unmodelled[] = {"fsdp_ignored_modules", NULL};
    zp_fsdp_reader_skip(reader, "fsdp_config", unmodelled, "not modelled");
    zp_fsdp_reader_rest(reader, "fsdp_config", ZP_IMPORT_WARNING, FALSE, fsdp_keys,
                        "accelerate ignores it silently");
}

static void
read_launch(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    zp_fsdp_reader_skip(reader, "", launch_keys, "concerns the launch");
    zp_fsdp_reader_skip(reader, "", outside_keys, "not modelled");
    static const char *const compiler[] = {"dynamo_config", NULL};
    zp_fsdp_reader_skip(reader, "", compiler,
                        "not taken over: model.compile of a scenario models torch.compile of the "
                        "blocks");
    static const char *const megatron[] = {"megatron_lm_config", NULL};
    zp_fsdp_reader_skip(reader, "", megatron,
                        "not taken over: the keys of [parallel] in a scenario model its degrees");
    zp_fsdp_reader_format(reader, &(ZpFsdpField){"mixed_precision", MT, NULL, "no", NULL},
                          &config->gathered);
    config->stored = ZP_DTYPE_FP32;
    config->reduced = config->gathered;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){"num_processes", MT, "ranks", NULL, NULL}, 1,
                         &config->world);
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){"gradient_accumulation_steps", MT, "steps", NULL, NULL}, 1,
                         &config->accumulation);
}

void
zp_fsdp_accelerate_read(ZpFsdpReader *reader)
{
    static const char *const types[] = {"FSDP",      "DEEPSPEED", "MULTI_GPU", "NO", "MEGATRON_LM",
                                        "MULTI_CPU", "XLA",       "TPU",       NULL};
    static const char *const known[] = {"distributed_type",
                                        "mixed_precision",
                                        "num_processes",
                                        "num_machines",
                                        "fsdp_config",
                                        "deepspeed_config",
                                        "parallelism_config",
                                        "gradient_accumulation_steps",
                                        NULL};
    int type = 2;
    read_launch(reader);
    gboolean said = zp_fsdp_reader_choice(
        reader, &(ZpFsdpField){"distributed_type", MT, NULL, "NO", NULL}, types, 0, &type);
    const ZpTree *fsdp = zp_tree_find(reader->root, "fsdp_config");
    const ZpTree *deepspeed = zp_tree_find(reader->root, "deepspeed_config");
    const ZpTree *blocks[] = {fsdp, deepspeed};
    for (int i = 0; i < 2; i++) {
        if (!blocks[i])
            continue;
        g_hash_table_add(reader->taken, (gpointer)blocks[i]);
        if (blocks[i]->kind != ZP_TREE_OBJECT && blocks[i]->kind != ZP_TREE_NULL)
            zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, blocks[i]->key, "indent its keys below it",
                               "it is %s, not a block", zp_tree_kind_name(blocks[i]->kind));
        else if ((!said || type != i) && blocks[i]->members && blocks[i]->members->len)
            zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, blocks[i]->key,
                               i == 0 ? "write distributed_type: FSDP"
                                      : "write distributed_type: DEEPSPEED",
                               "ignored: distributed_type selects something else");
    }
    zp_fsdp_reader_rest(reader, "", ZP_IMPORT_ERROR, FALSE, known,
                        "accelerate refuses unknown keys in its configuration");
    read_parallelism(reader, said && type == 0);
    reader->config->uses_fsdp = said && type == 0;
    reader->config->uses_ddp = said && type == 2;
    if (said && type == 0)
        read_fsdp(reader);
    else if (said && type == 1 && deepspeed && deepspeed->kind == ZP_TREE_OBJECT)
        zp_fsdp_deepspeed_read(reader, deepspeed);
}
