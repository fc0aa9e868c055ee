#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/imports/deepspeed/ds_internal.h"
#include "scenarios/readers/readers.h"

#include <string.h>

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
