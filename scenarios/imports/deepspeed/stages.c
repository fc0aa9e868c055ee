/* Keys that were written but have no effect: at this stage, or where they stand. */
#include "scenarios/imports/deepspeed/ds_internal.h"

#include <string.h>

#define D "%" G_GINT64_FORMAT

static gboolean
is_under(ZpDsKey key, ZpDsKey block)
{
    const char *path = zp_ds_schema_get(key)->path, *prefix = zp_ds_schema_get(block)->path;
    gsize length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 && path[length] == '.';
}

/* Is the setting switched on at all?  A key that is off says nothing about intentions. */
static gboolean
is_active(const ZpDsReader *reader, ZpDsKey key)
{
    const ZpDsValue *value = zp_ds_config_value(reader->config, key);
    if (key == ZP_DS_OFFLOAD_PARAM || key == ZP_DS_OFFLOAD_OPTIMIZER) {
        const char *device = zp_ds_config_text(
            reader->config, key == ZP_DS_OFFLOAD_PARAM ? ZP_DS_OFFLOAD_PARAM_DEVICE
                                                       : ZP_DS_OFFLOAD_OPTIMIZER_DEVICE);
        return value->known && g_strcmp0(device, "none") != 0;
    }
    if (zp_ds_schema_get(key)->kind == ZP_DS_BOOLEAN)
        return value->boolean;
    return value->integer > 1;
}

static const char *
consequence(ZpDsKey key)
{
    if (key == ZP_DS_OFFLOAD_PARAM || key == ZP_DS_CPU_OFFLOAD_PARAM)
        return ": parameter offload works at stage 3 only, the 16-bit weights stay on every GPU";
    if (key == ZP_DS_OFFLOAD_OPTIMIZER || key == ZP_DS_CPU_OFFLOAD)
        return ": nothing is partitioned, the optimizer states stay on every GPU";
    if (key == ZP_DS_HPZ)
        return ": hpZ is a second partition of the weights, and only stage 3 partitions weights";
    return "";
}

static void
check_key(const ZpDsReader *reader, ZpDsKey key, int stage)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    ZpDsValue *value = &reader->config->values[key];
    if (!value->line || !entry->stages || entry->stages & (1u << stage) || value->refused)
        return;
    const char *stages = zp_ds_schema_stages_name(entry->stages);
    if (!value->ignored)
        value->ignored = g_strdup_printf("no effect at stage %d, only at %s", stage, stages);
    if (is_under(key, ZP_DS_OFFLOAD_PARAM) || is_under(key, ZP_DS_OFFLOAD_OPTIMIZER))
        return; /* said once about the block */
    if (entry->intent && !is_active(reader, key))
        return;
    if (entry->state == ZP_DS_REMOVED && reader->version > ZP_DS_VERSION_REMOVALS)
        return; /* refused already */
    g_autofree char *mend =
        entry->intent ? g_strdup_printf("use stage %s, or remove it", stages) : NULL;
    zp_ds_internal_say(reader, entry->intent ? ZP_IMPORT_WARNING : ZP_IMPORT_NOTE, key, mend,
                       "no effect at stage %d (it matters at stage %s)%s", stage, stages,
                       consequence(key));
}

/* Bytes per GPU of model states in 16-bit training with Adam, as written and as meant: 2 bytes of
 * weights, 12 of master weight and moments, per parameter; stage >= 1 divides the 12, stage 3 the
 * 2 as well. */
static char *
two_ledgers(const ZpDsReader *reader, ZpDsKey key, int stage)
{
    gint64 parameters = reader->context->parameters, world = reader->context->world;
    gboolean optimizer = key == ZP_DS_OFFLOAD_OPTIMIZER || key == ZP_DS_CPU_OFFLOAD;
    gboolean weights = (key == ZP_DS_OFFLOAD_PARAM || key == ZP_DS_CPU_OFFLOAD_PARAM) && stage == 3;
    if ((!optimizer || stage == 0) && !weights)
        return g_strdup("");
    if (parameters > 0 && world > 0 && parameters < G_MAXINT64 / 16) {
        gint64 shard = parameters / world + (parameters % world != 0);
        gint64 two = 2 * (stage == 3 ? shard : parameters), twelve = 12 * shard;
        return g_strdup_printf("; model states on each GPU as it stands: " D
                               " bytes; with the block "
                               "inside: " D " bytes, and " D " bytes in host memory",
                               two + twelve, optimizer ? two : twelve, optimizer ? twelve : two);
    }
    const char *two = stage == 3 ? "2P/N" : "2P";
    return g_strdup_printf("; model states on each GPU (16-bit, Adam, P parameters, N ranks) as it "
                           "stands: %s + 12P/N bytes; with the block inside: %s, and %s in host "
                           "memory",
                           two, optimizer ? two : "12P/N", optimizer ? "12P/N" : two);
}

static void
check_misplaced(const ZpDsReader *reader, int stage)
{
    for (guint i = 0; i < reader->misplaced->len; i++) {
        const ZpDsMisplaced *misplaced = &g_array_index(reader->misplaced, ZpDsMisplaced, i);
        const ZpTree *tree = misplaced->tree;
        g_autofree char *block = zp_ds_schema_block(misplaced->key);
        g_autofree char *mend = g_strdup_printf("move it inside %s", block);
        g_autofree char *ledgers = two_ledgers(reader, misplaced->key, stage);
        zp_import_message_add(
            reader->config->messages, ZP_IMPORT_WARNING, tree->key_line, tree->key_column,
            tree->key, mend,
            "misplaced: it belongs inside %s; at the top level DeepSpeed silently "
            "ignores it, it has no effect%s%s",
            block, misplaced->key == ZP_DS_OFFLOAD_OPTIMIZER ? " and GPU memory stays high" : "",
            ledgers);
    }
}

void
zp_ds_stages_check(const ZpDsReader *reader)
{
    int stage = zp_ds_config_stage(reader->config);
    for (int key = 0; key < ZP_N_DS_KEYS; key++)
        check_key(reader, (ZpDsKey)key, stage);
    check_misplaced(reader, stage);
}
