#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/imports/deepspeed/ds_internal.h"
#include "scenarios/imports/row.h"
#include "scenarios/readers/json_text.h"

#include <string.h>

void
zp_ds_internal_say(const ZpDsReader *reader, ZpImportSeverity severity, ZpDsKey key,
                   const char *mend, const char *format, ...)
{
    const ZpDsValue *value = &reader->config->values[key];
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_import_message_add(reader->config->messages, severity, value->line, value->column,
                          zp_ds_schema_get(key)->path, mend, "%s", text);
}

void
zp_ds_internal_explain(const ZpDsReader *reader, ZpDsKey key, const char *format, ...)
{
    ZpDsValue *value = &reader->config->values[key];
    va_list arguments;
    va_start(arguments, format);
    g_free(value->detail);
    value->detail = g_strdup_vprintf(format, arguments);
    va_end(arguments);
}

void
zp_ds_internal_conclude(const ZpDsReader *reader, ZpDsKey key, const char *format, ...)
{
    ZpDsValue *value = &reader->config->values[key];
    va_list arguments;
    va_start(arguments, format);
    g_free(value->consequence);
    value->consequence = g_strdup_vprintf(format, arguments);
    va_end(arguments);
}

void
zp_ds_internal_set_count(const ZpDsReader *reader, ZpDsKey key, gint64 count, ZpDsOrigin origin)
{
    ZpDsValue *value = &reader->config->values[key];
    g_assert(zp_ds_schema_get(key)->kind == ZP_DS_COUNT);
    value->known = TRUE;
    value->integer = count;
    value->number = (double)count;
    value->origin = origin;
}

/* "0.19.6" as 19006; what is no version counts as the newest. */
static int
version_number(const char *text)
{
    if (!text)
        return ZP_DS_VERSION_NEWEST;
    g_auto(GStrv) parts = g_strsplit(text, ".", 4);
    gint64 version = 0;
    for (int i = 0; i < 3; i++) {
        guint64 part = 0;
        if (parts[i] && !g_ascii_string_to_unsigned(parts[i], 10, 0, 999, &part, NULL))
            return ZP_DS_VERSION_NEWEST;
        version = version * 1000 + (gint64)part;
        if (!parts[i])
            return i == 0 ? ZP_DS_VERSION_NEWEST : (int)(version * (i == 1 ? 1000 : 1));
    }
    return (int)version;
}

static ZpDsConfig *
config_new(ZpImportMessages *messages)
{
    ZpDsConfig *config = g_new0(ZpDsConfig, 1);
    config->messages = messages;
    config->unknown = zp_import_row_list_new();
    for (int key = 0; key < ZP_N_DS_KEYS; key++)
        zp_ds_value_reset(&config->values[key], (ZpDsKey)key);
    return config;
}

ZpDsConfig *
zp_ds_config_from_tree(const ZpTree *root, const ZpDsContext *context, ZpImportMessages *messages)
{
    static const ZpDsContext nothing = {0};
    g_autoptr(ZpDsConfig) config = config_new(messages);
    g_autoptr(GArray) misplaced = g_array_new(FALSE, FALSE, sizeof(ZpDsMisplaced));
    ZpDsReader reader = {config, context ? context : &nothing,
                         version_number(context ? context->version : NULL), misplaced};
    zp_ds_walk_root(&reader, root);
    if (root->kind == ZP_TREE_OBJECT) {
        zp_ds_auto_fill(&reader);
        zp_ds_batch_check(&reader);
        zp_ds_rules_check(&reader);
        zp_ds_stages_check(&reader);
    }
    zp_import_message_sort(messages);
    return g_steal_pointer(&config);
}

ZpDsConfig *
zp_ds_config_parse(const char *file, const char *text, gsize length, const ZpDsContext *context)
{
    ZpImportMessages *messages = zp_import_message_list_new(file);
    ZpJsonMode mode = context && context->strict ? ZP_JSON_STRICT : ZP_JSON_FORGIVING;
    g_autoptr(ZpTree) root = zp_json_text_parse(text, length, mode, messages);
    return root ? zp_ds_config_from_tree(root, context, messages) : config_new(messages);
}

void
zp_ds_config_free(ZpDsConfig *config)
{
    for (int key = 0; key < ZP_N_DS_KEYS; key++)
        zp_ds_value_clear(&config->values[key]);
    g_ptr_array_unref(config->unknown);
    zp_import_message_list_free(config->messages);
    g_free(config);
}

const ZpDsValue *
zp_ds_config_value(const ZpDsConfig *config, ZpDsKey key)
{
    g_assert(key >= 0 && key < ZP_N_DS_KEYS);
    return &config->values[key];
}

gint64
zp_ds_config_integer(const ZpDsConfig *config, ZpDsKey key)
{
    g_assert(zp_ds_schema_get(key)->kind == ZP_DS_COUNT);
    const ZpDsValue *value = zp_ds_config_value(config, key);
    return value->known ? value->integer : 0;
}

double
zp_ds_config_real(const ZpDsConfig *config, ZpDsKey key)
{
    const ZpDsValue *value = zp_ds_config_value(config, key);
    return value->known ? value->number : 0;
}

gboolean
zp_ds_config_boolean(const ZpDsConfig *config, ZpDsKey key)
{
    g_assert(zp_ds_schema_get(key)->kind == ZP_DS_BOOLEAN);
    const ZpDsValue *value = zp_ds_config_value(config, key);
    return value->known && value->boolean;
}

const char *
zp_ds_config_text(const ZpDsConfig *config, ZpDsKey key)
{
    const ZpDsValue *value = zp_ds_config_value(config, key);
    return value->known ? value->text : NULL;
}

gboolean
zp_ds_config_given(const ZpDsConfig *config, ZpDsKey key)
{
    const ZpDsValue *value = zp_ds_config_value(config, key);
    return value->known && (value->line != 0 || value->origin == ZP_DS_FROM_LEGACY);
}

int
zp_ds_config_stage(const ZpDsConfig *config)
{
    return (int)zp_ds_config_integer(config, ZP_DS_STAGE);
}

ZpDtype
zp_ds_config_precision(const ZpDsConfig *config)
{
    if (zp_ds_config_boolean(config, ZP_DS_BF16_ENABLED))
        return ZP_DTYPE_BF16;
    if (zp_ds_config_boolean(config, ZP_DS_FP16_ENABLED))
        return ZP_DTYPE_FP16;
    gboolean open = config->values[ZP_DS_BF16_ENABLED].origin == ZP_DS_FROM_NOWHERE ||
                    config->values[ZP_DS_FP16_ENABLED].origin == ZP_DS_FROM_NOWHERE;
    return open ? ZP_DTYPE_NONE : ZP_DTYPE_FP32;
}

gboolean
zp_ds_config_uses_bf16_optimizer(const ZpDsConfig *config)
{
    return zp_ds_config_stage(config) == 1 && zp_ds_config_precision(config) == ZP_DTYPE_BF16 &&
           g_strcmp0(zp_ds_config_text(config, ZP_DS_GRAD_ACCUM_DTYPE), "fp32") == 0 &&
           g_strcmp0(zp_ds_config_text(config, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), "none") == 0;
}
