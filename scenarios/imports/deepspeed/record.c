/* A configuration as a record: what its keys say, and what is said about them. */
#include "scenarios/imports/deepspeed/ds_internal.h"

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

G_GNUC_PRINTF(2, 0)
static void
say_anew(char **text, const char *format, va_list arguments)
{
    g_free(*text);
    *text = g_strdup_vprintf(format, arguments);
}

void
zp_ds_internal_explain(const ZpDsReader *reader, ZpDsKey key, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_anew(&reader->config->values[key].detail, format, arguments);
    va_end(arguments);
}

void
zp_ds_internal_conclude(const ZpDsReader *reader, ZpDsKey key, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_anew(&reader->config->values[key].consequence, format, arguments);
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
