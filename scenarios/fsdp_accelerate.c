/* accelerate's YAML: launch keys at the top, fsdp_config or deepspeed_config below. */
#include "scenarios/fsdp_reader.h"

#include <string.h>

#define M ZP_DS_EFFECT_MEMORY
#define T ZP_DS_EFFECT_TIME
#define MT (ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME)
#define F "fsdp_config."
#define D "deepspeed_config."

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
    "dynamo_config", "fp8_config", "megatron_lm_config", "parallelism_config", "mpirun_config",
    "ipex_config",   NULL,
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

static const char *const deepspeed_keys[] = {
    "zero_stage",
    "offload_optimizer_device",
    "offload_optimizer_nvme_path",
    "offload_param_device",
    "offload_param_nvme_path",
    "zero3_init_flag",
    "zero3_save_16bit_model",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "deepspeed_config_file",
    "deepspeed_multinode_launcher",
    "deepspeed_hostfile",
    "deepspeed_exclusion_filter",
    "deepspeed_inclusion_filter",
    "deepspeed_moe_layer_cls_names",
    NULL,
};

static const char *const strategies[] = {
    "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2", NULL,
};

static gboolean
given(const ZpFsdpReader *reader, const char *path)
{
    const ZpTree *tree = zp_tree_path(reader->root, path);
    return tree && tree->kind != ZP_TREE_NULL;
}

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
    if (newer && newer->kind == ZP_TREE_STRING && !given(reader, strategy.path))
        strategy.path = reshard.path;
    if (zp_fsdp_reader_choice(reader, &strategy, strategies, 1, &index))
        config->strategy = (ZpFsdpStrategy)(index + ZP_FSDP_FULL_SHARD);
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
    if (given(reader, F "fsdp_backward_prefetch_policy")) {
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
        if (given(reader, fields[i].path))
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

/* accelerate's names for keys of ds_config.json. */
static const struct {
    const char *name, *block, *key, *alias_of;
} translations[] = {
    {"zero_stage", "zero_optimization", "stage", "zero_optimization.stage"},
    {"zero3_save_16bit_model", "zero_optimization", "stage3_gather_16bit_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"offload_optimizer_device", "offload_optimizer", "device",
     "zero_optimization.offload_optimizer"},
    {"offload_optimizer_nvme_path", "offload_optimizer", "nvme_path",
     "zero_optimization.offload_optimizer.nvme_path"},
    {"offload_param_device", "offload_param", "device", "zero_optimization.offload_param"},
    {"offload_param_nvme_path", "offload_param", "nvme_path",
     "zero_optimization.offload_param.nvme_path"},
    {"gradient_accumulation_steps", "", "gradient_accumulation_steps",
     "gradient_accumulation_steps"},
    {"gradient_clipping", "", "gradient_clipping", "gradient_clipping"},
};

static ZpTree *
copy_scalar(const ZpTree *from, const char *key)
{
    ZpTree *tree = zp_tree_new(from->kind, from->line, from->column);
    tree->key = g_strdup(key);
    tree->key_line = from->key_line;
    tree->key_column = from->key_column;
    tree->text = g_strdup(from->text);
    tree->boolean = from->boolean;
    tree->integer = from->integer;
    tree->number = from->number;
    return tree;
}

static ZpTree *
block_of(ZpTree *root, const char *name, const ZpTree *at)
{
    ZpTree *parent = root;
    if (!*name)
        return root;
    if (strcmp(name, "zero_optimization") != 0)
        parent = block_of(root, "zero_optimization", at);
    ZpTree *block = zp_tree_find(parent, name);
    if (block)
        return block;
    block = zp_tree_new(ZP_TREE_OBJECT, at->line, at->column);
    block->key = g_strdup(name);
    block->key_line = at->key_line;
    block->key_column = at->key_column;
    zp_tree_add(parent, block);
    return block;
}

/* The configuration that accelerate hands to DeepSpeed. */
static ZpTree *
translate(const ZpFsdpReader *reader, const ZpTree *at)
{
    ZpTree *root = zp_tree_new(ZP_TREE_OBJECT, at->line, at->column);
    for (gsize i = 0; i < G_N_ELEMENTS(translations); i++) {
        g_autofree char *path = g_strconcat(D, translations[i].name, NULL);
        const ZpTree *tree = zp_tree_path(reader->root, path);
        if (!tree || tree->kind == ZP_TREE_NULL || tree->members)
            continue;
        zp_tree_add(block_of(root, translations[i].block, tree),
                    copy_scalar(tree, translations[i].key));
    }
    ZpTree *micro = zp_tree_new(ZP_TREE_STRING, at->line, at->column);
    micro->text = g_strdup("auto");
    micro->key = g_strdup("train_micro_batch_size_per_gpu");
    zp_tree_add(root, micro);
    if (reader->config->gathered == ZP_DTYPE_BF16 || reader->config->gathered == ZP_DTYPE_FP16) {
        ZpTree *format = zp_tree_new(ZP_TREE_OBJECT, at->line, at->column);
        format->key = g_strdup(reader->config->gathered == ZP_DTYPE_BF16 ? "bf16" : "fp16");
        ZpTree *enabled = zp_tree_new(ZP_TREE_BOOLEAN, at->line, at->column);
        enabled->key = g_strdup("enabled");
        enabled->boolean = TRUE;
        zp_tree_add(format, enabled);
        zp_tree_add(root, format);
    }
    return root;
}

/* Messages name the key that stands in this file. */
static void
rename_keys(const ZpFsdpReader *reader, ZpImportMessages *messages)
{
    for (guint i = 0; i < messages->list->len; i++) {
        ZpImportMessage *message = messages->list->pdata[i];
        for (gsize t = 0; t < G_N_ELEMENTS(translations); t++)
            if (g_str_has_prefix(message->key, translations[t].alias_of)) {
                g_free(message->key);
                message->key = g_strconcat(D, translations[t].name, NULL);
                break;
            }
        zp_import_message_add(reader->config->messages, message->severity, message->line,
                              message->column, message->key, message->mend, "%s", message->text);
    }
}

static void
read_deepspeed(ZpFsdpReader *reader, const ZpTree *block)
{
    static const char *const launcher[] = {
        "deepspeed_multinode_launcher",  "deepspeed_hostfile",
        "deepspeed_exclusion_filter",    "deepspeed_inclusion_filter",
        "deepspeed_moe_layer_cls_names", NULL,
    };
    gboolean init = FALSE;
    zp_fsdp_reader_boolean(reader,
                           &(ZpFsdpField){D "zero3_init_flag", M, NULL, "false",
                                          "true: parameters are partitioned while the model is "
                                          "built, else the full model stands on every rank first"},
                           &init);
    for (gsize i = 0; i < G_N_ELEMENTS(translations); i++) {
        g_autofree char *path = g_strconcat(D, translations[i].name, NULL);
        zp_fsdp_reader_take(reader, &(ZpFsdpField){path, MT, NULL, NULL, translations[i].alias_of},
                            NULL);
    }
    zp_fsdp_reader_skip(reader, "deepspeed_config", launcher, "names places");
    const ZpTree *file = zp_fsdp_reader_take(
        reader, &(ZpFsdpField){D "deepspeed_config_file", MT, NULL, NULL, "check it by itself"},
        NULL);
    zp_fsdp_reader_rest(reader, "deepspeed_config", ZP_IMPORT_WARNING, FALSE, deepspeed_keys,
                        "accelerate ignores it silently");
    if (file) {
        zp_fsdp_reader_say(reader, ZP_IMPORT_NOTE, D "deepspeed_config_file",
                           "check that file by itself", "the settings stand in another file");
        if (given(reader, D "zero_stage") || given(reader, D "offload_param_device") ||
            given(reader, D "offload_optimizer_device"))
            zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, D "deepspeed_config_file",
                               "keep them in that file alone",
                               "accelerate refuses other DeepSpeed keys beside this one");
        return;
    }
    g_autoptr(ZpTree) root = translate(reader, block);
    ZpDsContext context = reader->context->deepspeed;
    if (!context.world)
        context.world = reader->config->world;
    reader->config->deepspeed =
        zp_ds_config_from_tree(root, &context, zp_import_message_list_new("deepspeed_config"));
    rename_keys(reader, reader->config->deepspeed->messages);
}

static void
read_launch(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    zp_fsdp_reader_skip(reader, "", launch_keys, "concerns the launch");
    zp_fsdp_reader_skip(reader, "", outside_keys, "not modelled");
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
    reader->config->uses_fsdp = said && type == 0;
    if (said && type == 0)
        read_fsdp(reader);
    else if (said && type == 1 && deepspeed && deepspeed->kind == ZP_TREE_OBJECT)
        read_deepspeed(reader, deepspeed);
}
