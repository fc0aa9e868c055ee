#include "scenarios/imports/fsdp/config.h"
#include "scenarios/imports/fsdp/reader_internal.h"
#include "scenarios/readers/readers.h"

#include <string.h>

const char *
zp_fsdp_config_strategy_name(ZpFsdpSharding strategy)
{
    static const char *const names[] = {
        NULL, "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2",
    };
    g_assert(strategy >= ZP_FSDP_FULL_SHARD && (gsize)strategy < G_N_ELEMENTS(names));
    return names[strategy];
}

static ZpTree *
parse(ZpFsdpSource source, const char *text, gsize length, ZpJsonMode mode,
      ZpImportMessages *messages)
{
    switch (source) {
    case ZP_FSDP_ACCELERATE:
        return zp_yaml_parse(text, length, messages);
    case ZP_FSDP_TRAINER:
        return zp_json_text_parse(text, length, mode, messages);
    case ZP_FSDP_TORCHTITAN:
        return zp_toml_parse(text, length, messages);
    }
    g_assert_not_reached();
}

/* The place to point at for anything about wrapping. */
static const char *
wrap_path(const ZpFsdpReader *reader)
{
    static const char *const paths[] = {
        "fsdp_config.fsdp_transformer_layer_cls_to_wrap",
        "fsdp_config.transformer_layer_cls_to_wrap",
        "fsdp_config.fsdp_auto_wrap_policy",
        "transformer_layer_cls_to_wrap",
        "fsdp",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++)
        if (zp_tree_path(reader->root, paths[i]))
            return paths[i];
    return "fsdp_config";
}

static void
check_classes(const ZpFsdpReader *reader)
{
    const ZpFsdpContext *context = reader->context;
    const ZpFsdpConfig *config = reader->config;
    g_autofree char *block = context->block_class ? g_strdup_printf("%s is the block of this model",
                                                                    context->block_class)
                                                  : NULL;
    if (!config->wrap_classes) {
        zp_fsdp_reader_say(
            reader, ZP_IMPORT_NOTE, wrap_path(reader), block,
            "no class named: the classes that the model itself declares unsplittable "
            "are taken");
        return;
    }
    for (int i = 0; config->wrap_classes[i]; i++) {
        if (!context->model_classes)
            zp_fsdp_reader_say(reader, ZP_IMPORT_NOTE, wrap_path(reader), "give the model",
                               "whether the model has a class %s is not known here; a name that it "
                               "does not have is refused",
                               config->wrap_classes[i]);
        else if (!g_strv_contains(context->model_classes, config->wrap_classes[i]))
            zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, wrap_path(reader), block,
                               "the model has no class %s", config->wrap_classes[i]);
    }
}

static void
check_wrap(const ZpFsdpReader *reader)
{
    const ZpFsdpConfig *config = reader->config;
    if (config->strategy == ZP_FSDP_NO_SHARD)
        zp_fsdp_reader_say(reader, ZP_IMPORT_NOTE, wrap_path(reader), NULL,
                           "NO_SHARD keeps everything on every rank, as plain data parallelism "
                           "does");
    if (config->wrap == ZP_FSDP_WRAP_CLASSES) {
        check_classes(reader);
        return;
    }
    if (config->wrap != ZP_FSDP_WRAP_NONE || config->strategy == ZP_FSDP_NO_SHARD)
        return;
    g_autofree char *figure =
        reader->context->model_elements > 0 && reader->context->model_elements < G_MAXINT64 / 8
            ? g_strdup_printf(" (%" G_GINT64_FORMAT " bytes of gathered weights)",
                              reader->context->model_elements *
                                  (config->gathered == ZP_DTYPE_NONE ? 4 : 2))
            : g_strdup("");
    zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, wrap_path(reader),
                       "wrap the block class (transformer based wrapping, auto_wrap)",
                       "nothing is wrapped: the whole model is one unit, gathered at once%s; the "
                       "peak of weights and gradients is near that of plain data parallelism",
                       figure);
}

/* Tensor x context x pipeline parallel ranks that the job will have. */
static gint64
model_ranks(const ZpFsdpReader *reader)
{
    const ZpParallel *own = &reader->config->parallel, *wins = &reader->context->parallel;
    gint64 tensor = MAX(1, wins->tensor > 0 ? wins->tensor : own->tensor);
    gint64 context = MAX(1, wins->context > 0 ? wins->context : own->context);
    gint64 pipeline = MAX(1, wins->pipeline > 0 ? wins->pipeline : own->pipeline);
    return tensor * context * pipeline;
}

static void
check_world(const ZpFsdpReader *reader)
{
    const ZpFsdpConfig *config = reader->config;
    const char *path = config->source == ZP_FSDP_TORCHTITAN
                           ? "parallelism.data_parallel_shard_degree"
                           : "parallelism_config";
    const ZpFsdpContext *context = reader->context;
    gint64 copies = MAX(1, config->replicate_degree), shard = MAX(1, config->shard_degree);
    gint64 model = model_ranks(reader), product = 0;
    gint64 world = config->world   ? config->world
                   : context->gpus ? context->gpus
                                   : context->deepspeed.world;
    if (__builtin_mul_overflow(copies, shard, &product) ||
        __builtin_mul_overflow(product, model, &product) || product > G_MAXINT32)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, path, NULL, "no world has that many ranks");
    else if (world > 0 && world % product != 0) {
        g_autofree char *cuts =
            model > 1
                ? g_strdup_printf(" x %" G_GINT64_FORMAT " that share a copy of the model", model)
                : g_strdup("");
        zp_fsdp_reader_say(
            reader, ZP_IMPORT_ERROR, path,
            config->source == ZP_FSDP_TORCHTITAN && config->shard_degree > 1 ? "write -1" : NULL,
            "%" G_GINT64_FORMAT " x %" G_GINT64_FORMAT
            "%s ranks do not divide the world of %" G_GINT64_FORMAT,
            copies, shard, cuts, world);
    }
}

static void
add_formats(ZpFsdpConfig *config)
{
    if (config->stored == ZP_DTYPE_NONE || config->gathered == ZP_DTYPE_NONE)
        return;
    g_autofree char *formats =
        config->uses_ddp
            ? g_strdup_printf("kept and reduced %s, computed %s", zp_dtype_name(config->stored),
                              zp_dtype_name(config->gathered))
            : g_strdup_printf("sharded %s, gathered %s, reduced %s", zp_dtype_name(config->stored),
                              zp_dtype_name(config->gathered), zp_dtype_name(config->reduced));
    zp_import_row_add(config->rows, "(formats)", formats, NULL, "memory, time", "derived", NULL, 0);
}

/* What was concluded from several keys at once. */
static void
add_conclusions(ZpFsdpConfig *config)
{
    static const char *const wraps[] = {"the whole model", "by class", "by size",
                                        "embedding, blocks, norm with head"};
    g_autofree char *text =
        g_strdup_printf("version %d, %s, reshard after forward %s", config->version,
                        zp_fsdp_config_strategy_name(config->strategy),
                        config->reshard_after_forward ? "true (as ZeRO-3)" : "false (as ZeRO-2)");
    zp_import_row_add(config->rows, "(sharding)", text, NULL, "memory, time", "derived", NULL, 0);
    zp_import_row_add(config->rows, "(units)", wraps[config->wrap], NULL, "memory, time", "derived",
                      NULL, 0);
    add_formats(config);
}

static void
read_tree(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    switch (config->source) {
    case ZP_FSDP_ACCELERATE:
        zp_fsdp_accelerate_read(reader);
        break;
    case ZP_FSDP_TRAINER:
        zp_fsdp_trainer_read(reader);
        break;
    case ZP_FSDP_TORCHTITAN:
        zp_fsdp_titan_read(reader);
        break;
    }
    if (config->uses_ddp) {
        zp_import_row_add(config->rows, "(sharding)", "none: DistributedDataParallel", NULL,
                          "memory, time", "derived", NULL, 0);
        add_formats(config);
    }
    if (!config->uses_fsdp)
        return;
    check_wrap(reader);
    check_world(reader);
    add_conclusions(config);
}

ZpFsdpConfig *
zp_fsdp_config_parse(ZpFsdpSource source, const char *file, const char *text, gsize length,
                     const ZpFsdpContext *context)
{
    static const ZpFsdpContext nothing = {0};
    ZpFsdpConfig *config = g_new0(ZpFsdpConfig, 1);
    config->source = source;
    config->version = 1;
    config->strategy = ZP_FSDP_FULL_SHARD;
    config->reshard_after_forward = TRUE;
    config->limit_all_gathers = TRUE;
    config->backward_prefetch = ZP_FSDP_PREFETCH_NONE;
    config->use_orig_params = TRUE;
    config->rows = zp_import_row_list_new();
    config->messages = zp_import_message_list_new(file);
    context = context ? context : &nothing;
    ZpJsonMode mode = context->deepspeed.strict ? ZP_JSON_STRICT : ZP_JSON_FORGIVING;
    g_autoptr(ZpTree) root = parse(source, text, length, mode, config->messages);
    if (!root)
        return config;
    if (root->kind != ZP_TREE_OBJECT) {
        zp_import_message_add(config->messages, ZP_IMPORT_ERROR, root->line, root->column, "", NULL,
                              "the document is %s, not a block of keys",
                              zp_tree_kind_name(root->kind));
        return config;
    }
    g_autoptr(GHashTable) taken = g_hash_table_new(NULL, NULL);
    ZpFsdpReader reader = {config, context, root, taken};
    read_tree(&reader);
    zp_import_message_sort(config->messages);
    return config;
}

void
zp_fsdp_config_free(ZpFsdpConfig *config)
{
    g_strfreev(config->wrap_classes);
    g_clear_pointer(&config->deepspeed, zp_ds_config_free);
    g_ptr_array_unref(config->rows);
    zp_import_message_list_free(config->messages);
    g_free(config);
}
