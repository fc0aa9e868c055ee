/* Arguments of the HF Trainer as JSON, or the file that its --fsdp_config names. */
#include "models/words/nearest.h"
#include "scenarios/imports/fsdp/reader_internal.h"
#include "scenarios/readers/readers.h"

#include <string.h>

#define MT (ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME)

static const char *const config_keys[] = {
    "version",
    "min_num_params",
    "transformer_layer_cls_to_wrap",
    "backward_prefetch",
    "forward_prefetch",
    "limit_all_gathers",
    "use_orig_params",
    "sync_module_states",
    "cpu_ram_efficient_loading",
    "activation_checkpointing",
    "reshard_after_forward",
    "state_dict_type",
    "xla",
    "xla_fsdp_v2",
    "xla_fsdp_settings",
    "xla_fsdp_grad_ckpt",
    NULL,
};

/* `name` inside fsdp_config, with or without the old prefix. */
static char *
path_of(const ZpFsdpReader *reader, const char *block, const char *name)
{
    g_autofree char *old = g_strdup_printf("%sfsdp_%s", block, name);
    return zp_tree_path(reader->root, old) ? g_steal_pointer(&old)
                                           : g_strdup_printf("%s%s", block, name);
}

typedef struct {
    int strategy; /* ZpFsdpSharding; 0: none named */
    gboolean wrap, offload;
} Options;

static void
read_option(const ZpFsdpReader *reader, const char *word, Options *options)
{
    static const char *const names[] = {"full_shard",   "shard_grad_op",      "no_shard",
                                        "hybrid_shard", "hybrid_shard_zero2", "auto_wrap",
                                        "offload"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(word, names[i]) != 0)
            continue;
        if (options->strategy && options->strategy != i + 1)
            zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "fsdp", "keep one strategy",
                               "more than one sharding strategy");
        options->strategy = i + 1;
        return;
    }
    if (strcmp(word, "auto_wrap") == 0) {
        options->wrap = TRUE;
    } else if (strcmp(word, "offload") == 0) {
        options->offload = TRUE;
    } else {
        const char *near = zp_nearest_find_among(word, names, G_N_ELEMENTS(names));
        g_autofree char *mend = near ? g_strdup_printf("did you mean %s?", near) : NULL;
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "fsdp", mend,
                           "\"%.40s\" is none of full_shard, shard_grad_op, no_shard, "
                           "hybrid_shard, hybrid_shard_zero2, auto_wrap, offload",
                           word);
    }
}

static void
read_options(const ZpFsdpReader *reader, Options *options)
{
    ZpFsdpField field = {"fsdp", MT, NULL, NULL, NULL};
    const ZpTree *tree = zp_tree_find(reader->root, "fsdp");
    g_auto(GStrv) words = NULL;
    if (tree && tree->kind == ZP_TREE_BOOLEAN) {
        zp_fsdp_reader_take(reader, &field, NULL);
        options->strategy = tree->boolean ? ZP_FSDP_FULL_SHARD : 0;
        return;
    }
    g_auto(GStrv) lines = NULL;
    if (!zp_fsdp_reader_names(reader, &field, &lines))
        return;
    for (int i = 0; lines[i]; i++) {
        words = g_strsplit(lines[i], " ", -1);
        for (int w = 0; words[w]; w++)
            if (*words[w])
                read_option(reader, words[w], options);
        g_clear_pointer(&words, g_strfreev);
    }
    if (options->offload && !options->strategy)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "fsdp", "add full_shard or shard_grad_op",
                           "offload alone shards nothing: the trainer refuses it");
}

static void
read_wrap(const ZpFsdpReader *reader, const char *block, const Options *options)
{
    ZpFsdpConfig *config = reader->config;
    g_autofree char *classes = path_of(reader, block, "transformer_layer_cls_to_wrap");
    g_autofree char *size = path_of(reader, block, "min_num_params");
    const char *unused = options->wrap ? NULL : "no effect without auto_wrap";
    zp_fsdp_reader_names(reader, &(ZpFsdpField){classes, MT, NULL, NULL, unused},
                         &config->wrap_classes);
    zp_fsdp_reader_count(reader, &(ZpFsdpField){size, MT, "elements", NULL, unused}, 0,
                         &config->wrap_elements);
    if (config->wrap_classes && config->wrap_elements > 0)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, size, "keep one of the two",
                           "min_num_params and transformer_layer_cls_to_wrap exclude each other");
    config->wrap = !options->wrap              ? ZP_FSDP_WRAP_NONE
                   : config->wrap_elements > 0 ? ZP_FSDP_WRAP_SIZE
                                               : ZP_FSDP_WRAP_CLASSES;
}

static void
read_config(const ZpFsdpReader *reader, const char *block, const Options *options)
{
    static const char *const prefetches[] = {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH", NULL};
    static const ZpFsdpPrefetch values[] = {ZP_FSDP_PREFETCH_PRE, ZP_FSDP_PREFETCH_POST,
                                            ZP_FSDP_PREFETCH_NONE};
    ZpFsdpConfig *config = reader->config;
    g_autofree char *version_path = path_of(reader, block, "version");
    g_autofree char *backward = path_of(reader, block, "backward_prefetch");
    g_autofree char *forward = path_of(reader, block, "forward_prefetch");
    g_autofree char *limit = path_of(reader, block, "limit_all_gathers");
    g_autofree char *original = path_of(reader, block, "use_orig_params");
    g_autofree char *reshard = path_of(reader, block, "reshard_after_forward");
    g_autofree char *checkpoint = path_of(reader, block, "activation_checkpointing");
    gint64 version = 1;
    int index = 2;
    gboolean full = FALSE;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){version_path, MT, NULL, "1", NULL}, 1, &version);
    config->version = version == 2 ? 2 : 1;
    read_wrap(reader, block, options);
    zp_fsdp_reader_choice(reader, &(ZpFsdpField){backward, MT, NULL, "no_prefetch", NULL},
                          prefetches, 0, &index);
    config->backward_prefetch = config->version == 2 ? ZP_FSDP_PREFETCH_PRE : values[index];
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){forward, MT, NULL, "false", NULL},
                           &config->forward_prefetch);
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){limit, MT, NULL, "true", NULL},
                           &config->limit_all_gathers);
    zp_fsdp_reader_boolean(reader,
                           &(ZpFsdpField){original, ZP_DS_EFFECT_MEMORY, NULL, "true", NULL},
                           &config->use_orig_params);
    if (zp_fsdp_reader_boolean(reader, &(ZpFsdpField){reshard, MT, NULL, NULL, NULL},
                               &config->reshard_after_forward) &&
        config->version == 2)
        config->strategy =
            config->reshard_after_forward ? ZP_FSDP_FULL_SHARD : ZP_FSDP_SHARD_GRAD_OP;
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){checkpoint, MT, NULL, "false", NULL}, &full);
    config->checkpoint = full ? ZP_FSDP_CHECKPOINT_FULL : ZP_FSDP_CHECKPOINT_NONE;
    static const char *const start[] = {"sync_module_states",
                                        "fsdp_sync_module_states",
                                        "cpu_ram_efficient_loading",
                                        "fsdp_cpu_ram_efficient_loading",
                                        "state_dict_type",
                                        "fsdp_state_dict_type",
                                        NULL};
    static const char *const xla[] = {"xla", "xla_fsdp_v2", "xla_fsdp_settings",
                                      "xla_fsdp_grad_ckpt", NULL};
    g_autofree char *name = *block ? g_strndup(block, strlen(block) - 1) : g_strdup("");
    zp_fsdp_reader_skip(reader, name, start, "concerns building and saving the model");
    zp_fsdp_reader_skip(reader, name, xla, "not modelled");
    if (*block)
        zp_fsdp_reader_rest(reader, name, ZP_IMPORT_WARNING, FALSE, config_keys,
                            "the trainer ignores it silently");
}

static void
read_flags(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    gboolean bf16 = FALSE, fp16 = FALSE;
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){"bf16", MT, NULL, NULL, NULL}, &bf16);
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){"fp16", MT, NULL, NULL, NULL}, &fp16);
    if (bf16 && fp16)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "fp16", "keep one of the two",
                           "bf16 and fp16 exclude each other");
    config->stored = ZP_DTYPE_FP32;
    config->gathered = bf16 ? ZP_DTYPE_BF16 : fp16 ? ZP_DTYPE_FP16 : ZP_DTYPE_NONE;
    config->reduced = config->gathered;
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){"per_device_train_batch_size", MT, "samples", NULL, NULL},
                         1, &config->micro_batch);
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){"gradient_accumulation_steps", MT, "steps", NULL, NULL}, 1,
                         &config->accumulation);
}

/* A ds_config given inside the arguments; a path is only named. */
static void
read_deepspeed(ZpFsdpReader *reader)
{
    const ZpTree *tree = zp_tree_find(reader->root, "deepspeed");
    if (!tree || tree->kind == ZP_TREE_NULL)
        return;
    ZpFsdpConfig *config = reader->config;
    g_hash_table_add(reader->taken, (gpointer)tree);
    config->uses_fsdp = FALSE;
    if (tree->kind == ZP_TREE_STRING) {
        zp_fsdp_reader_say(reader, ZP_IMPORT_NOTE, "deepspeed", "check that file by itself",
                           "the settings stand in another file");
        return;
    }
    ZpDsContext context = reader->context->deepspeed;
    context.micro_batch = config->micro_batch;
    context.accumulation = config->accumulation;
    context.precision = config->gathered == ZP_DTYPE_NONE ? ZP_DTYPE_FP32 : config->gathered;
    config->deepspeed =
        zp_ds_config_from_tree(tree, &context, zp_import_message_list_new("deepspeed"));
    GPtrArray *list = config->deepspeed->messages->list;
    for (guint i = 0; i < list->len; i++) {
        const ZpImportMessage *message = list->pdata[i];
        g_autofree char *key = g_strconcat("deepspeed.", message->key, NULL);
        zp_import_message_add(config->messages, message->severity, message->line, message->column,
                              key, message->mend, "%s", message->text);
    }
}

static void
read_checkpointing(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    gboolean gradient = FALSE;
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){"gradient_checkpointing", MT, NULL, NULL, NULL},
                           &gradient);
    if (gradient && config->checkpoint == ZP_FSDP_CHECKPOINT_FULL)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, "gradient_checkpointing",
                           "keep activation_checkpointing of fsdp_config alone",
                           "activation_checkpointing is on as well: blocks are recomputed, and "
                           "their parameters gathered, twice");
    else if (gradient)
        config->checkpoint = ZP_FSDP_CHECKPOINT_FULL;
}

void
zp_fsdp_trainer_read(ZpFsdpReader *reader)
{
    static const char *const known[] = {
        "fsdp",
        "fsdp_config",
        "bf16",
        "fp16",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "gradient_checkpointing",
        "deepspeed",
        NULL,
    };
    ZpFsdpConfig *config = reader->config;
    Options options = {0};
    const ZpTree *block = zp_tree_find(reader->root, "fsdp_config");
    gboolean alone = !block && !zp_tree_find(reader->root, "fsdp");
    read_flags(reader);
    if (block)
        g_hash_table_add(reader->taken, (gpointer)block);
    if (alone && zp_tree_find(reader->root, "deepspeed")) {
        read_deepspeed(reader);
        return;
    }
    if (alone)
        options = (Options){ZP_FSDP_FULL_SHARD, TRUE, FALSE}; /* --fsdp itself is elsewhere */
    else
        read_options(reader, &options);
    config->uses_fsdp = options.strategy != 0;
    config->offload_parameters = options.offload;
    if (options.strategy)
        config->strategy = (ZpFsdpSharding)options.strategy;
    config->reshard_after_forward =
        config->strategy == ZP_FSDP_FULL_SHARD || config->strategy == ZP_FSDP_HYBRID_SHARD;
    if (block && block->kind == ZP_TREE_STRING)
        zp_fsdp_reader_say(reader, ZP_IMPORT_NOTE, "fsdp_config", "check that file by itself",
                           "the settings stand in another file");
    else if (block && block->kind != ZP_TREE_OBJECT && block->kind != ZP_TREE_NULL)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "fsdp_config", "write a block",
                           "it is %s, not a block", zp_tree_kind_name(block->kind));
    if (alone || options.strategy || block)
        read_config(reader, alone ? "" : "fsdp_config.", &options);
    if (!alone && !options.strategy && block)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, "fsdp_config", "add fsdp: full_shard",
                           "no effect: fsdp is not set");
    read_checkpointing(reader);
    read_deepspeed(reader);
    zp_fsdp_reader_rest(reader, "", ZP_IMPORT_WARNING, TRUE, alone ? config_keys : known,
                        "no argument of the trainer");
}
