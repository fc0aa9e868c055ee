/* accelerate's deepspeed_config: other names for keys of ds_config.json. */
#include "scenarios/imports/fsdp/reader_internal.h"

#include <string.h>

#define M ZP_DS_EFFECT_MEMORY
#define MT (ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME)
#define D "deepspeed_config."

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

void
zp_fsdp_deepspeed_read(ZpFsdpReader *reader, const ZpTree *block)
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
        if (zp_fsdp_reader_given(reader, D "zero_stage") ||
            zp_fsdp_reader_given(reader, D "offload_param_device") ||
            zp_fsdp_reader_given(reader, D "offload_optimizer_device"))
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
