/* The configuration as a table, and the key table as documentation. */
#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/readers/readers.h"

#include <string.h>

static char *
show_value(const ZpDsConfig *config, ZpDsKey key)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    const ZpDsValue *value = zp_ds_config_value(config, key);
    if (value->origin == ZP_DS_FROM_NOWHERE)
        return g_strdup("auto");
    if (!value->known)
        return g_strdup("unset");
    if (entry->kind == ZP_DS_BOOLEAN)
        return g_strdup(value->boolean ? "true" : "false");
    if (entry->kind == ZP_DS_COUNT)
        return g_strdup_printf("%" G_GINT64_FORMAT, value->integer);
    if (entry->kind == ZP_DS_REAL)
        return g_strdup_printf("%g", value->number);
    return g_strdup(value->text ? value->text : "");
}

static char *
show_origin(const ZpDsValue *value)
{
    const char *detail = value->detail ? value->detail : "";
    switch (value->origin) {
    case ZP_DS_FROM_DEFAULT:
        if (value->refused)
            return g_strdup("default (the file's value is refused)");
        return *detail ? g_strdup_printf("default: %s", detail) : g_strdup("default");
    case ZP_DS_FROM_FILE:
        return g_strdup("file");
    case ZP_DS_FROM_AUTO:
        return g_strdup_printf("auto: %s", detail);
    case ZP_DS_FROM_NOWHERE:
        return g_strdup_printf("auto, open: %s", detail);
    case ZP_DS_FROM_LEGACY:
        return g_strdup_printf("deprecated key: %s", detail);
    case ZP_DS_FROM_OTHERS:
        return g_strdup_printf("derived: %s", detail);
    }
    g_assert_not_reached();
}

/* A default worth a line: it changes memory or time here, at this stage, in a block that is in
 * use. */
static gboolean
default_matters(const ZpDsConfig *config, ZpDsKey key)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    int stage = zp_ds_config_stage(config);
    gboolean used = TRUE;
    if (key == ZP_DS_ALLGATHER_BUCKET_SIZE)
        return TRUE; /* people look for it: the row says when it matters */
    if (entry->effect == ZP_DS_EFFECT_NONE || entry->state != ZP_DS_LIVE)
        return FALSE;
    if (entry->stages && !(entry->stages & (1u << stage)))
        return FALSE;
    if (g_str_has_prefix(entry->path, "zero_optimization.offload_optimizer."))
        used = key == ZP_DS_OFFLOAD_OPTIMIZER_DEVICE ||
               g_strcmp0(zp_ds_config_text(config, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), "none") != 0;
    else if (g_str_has_prefix(entry->path, "zero_optimization.offload_param."))
        used = key == ZP_DS_OFFLOAD_PARAM_DEVICE ||
               g_strcmp0(zp_ds_config_text(config, ZP_DS_OFFLOAD_PARAM_DEVICE), "none") != 0;
    else if (g_str_has_prefix(entry->path, "aio."))
        used = g_strcmp0(zp_ds_config_text(config, ZP_DS_OFFLOAD_PARAM_DEVICE), "nvme") == 0 ||
               g_strcmp0(zp_ds_config_text(config, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), "nvme") == 0;
    else if (g_str_has_prefix(entry->path, "torch_autocast."))
        used = zp_ds_config_boolean(config, ZP_DS_AUTOCAST_ENABLED);
    else if (g_str_has_prefix(entry->path, "fp16."))
        used = zp_ds_config_boolean(config, ZP_DS_FP16_ENABLED);
    else if (g_str_has_prefix(entry->path, "bf16."))
        used = zp_ds_config_boolean(config, ZP_DS_BF16_ENABLED);
    return used;
}

GPtrArray *
zp_ds_config_rows(const ZpDsConfig *config)
{
    GPtrArray *rows = zp_import_row_list_new();
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        const ZpDsValue *value = zp_ds_config_value(config, (ZpDsKey)key);
        if (zp_ds_schema_is_block(entry->kind))
            continue;
        if (!value->line && value->origin == ZP_DS_FROM_DEFAULT &&
            !default_matters(config, (ZpDsKey)key))
            continue;
        g_autofree char *shown = show_value(config, (ZpDsKey)key);
        g_autofree char *origin = show_origin(value);
        const char *reason = value->ignored       ? value->ignored
                             : value->consequence ? value->consequence
                                                  : entry->remark;
        unsigned effect = value->ignored ? ZP_DS_EFFECT_NONE : entry->effect;
        ZpImportRow *row =
            zp_import_row_add(rows, entry->path, shown, entry->unit,
                              zp_ds_schema_effect_name(effect), origin, reason, value->line);
        row->ignored = value->ignored || entry->state == ZP_DS_UNREAD;
    }
    for (guint i = 0; i < config->unknown->len; i++) {
        const ZpImportRow *row = config->unknown->pdata[i];
        zp_import_row_add(rows, row->key, row->value, row->unit, row->effect, row->origin,
                          row->reason, row->line)
            ->ignored = TRUE;
    }
    return rows;
}

static void
append_cell(GString *out, const char *text)
{
    g_string_append(out, " | ");
    for (const char *p = text ? text : ""; *p; p++) {
        if (*p == '|')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *p);
    }
}

static const char *
state_text(ZpDsState state)
{
    switch (state) {
    case ZP_DS_LIVE:
        return NULL;
    case ZP_DS_DEPRECATED:
        return "deprecated";
    case ZP_DS_UNREAD:
        return "never read";
    case ZP_DS_REMOVED:
        return "removed after 0.19.6";
    case ZP_DS_UNDEFINED:
        return "refused";
    }
    g_assert_not_reached();
}

char *
zp_ds_config_markdown(void)
{
    GString *out =
        g_string_new("| key | default | unit | effect here | stages | HF auto | meaning |\n"
                     "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        const char *stages = zp_ds_schema_stages_name(entry->stages);
        const char *state = state_text(entry->state);
        gboolean block = zp_ds_schema_is_block(entry->kind);
        g_string_append_printf(out, "| `%s`", entry->path);
        if (entry->alias)
            g_string_append_printf(out, " (or `%s`)", entry->alias);
        append_cell(out, block ? "block" : entry->fallback ? entry->fallback : "unset");
        append_cell(out, entry->unit);
        append_cell(out, block ? "" : zp_ds_schema_effect_name(entry->effect));
        append_cell(out, stages ? stages : entry->effect ? "all" : "");
        append_cell(out, entry->automatic);
        append_cell(out, entry->help);
        if (state)
            g_string_append_printf(out, " (%s)", state);
        if (entry->remark)
            g_string_append_printf(out, "; %s", entry->remark);
        g_string_append(out, " |\n");
    }
    return g_string_free(out, FALSE);
}
