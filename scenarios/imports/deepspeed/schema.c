#include "scenarios/imports/deepspeed/schema.h"
#include "models/words/nearest.h"
#include "scenarios/imports/deepspeed/table_internal.h"
#include "scenarios/readers/readers.h"

#include <string.h>

const ZpDsEntry *
zp_ds_schema_get(ZpDsKey key)
{
    g_assert(key >= 0 && key < ZP_N_DS_KEYS);
    const ZpDsEntry *entry =
        key < ZP_DS_OPTIMIZER ? &zp_ds_table_core[key] : &zp_ds_table_other[key - ZP_DS_OPTIMIZER];
    g_assert(entry->path && entry->help);
    return entry;
}

const char *
zp_ds_schema_name(ZpDsKey key)
{
    const char *path = zp_ds_schema_get(key)->path;
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

char *
zp_ds_schema_block(ZpDsKey key)
{
    const char *path = zp_ds_schema_get(key)->path;
    const char *dot = strrchr(path, '.');
    return dot ? g_strndup(path, (gsize)(dot - path)) : g_strdup("");
}

/* Is `path` this block's name and a dot and the alias? */
static gboolean
is_alias(const ZpDsEntry *entry, const char *path)
{
    const char *dot = strrchr(entry->path, '.');
    gsize block = dot ? (gsize)(dot - entry->path) + 1 : 0;
    return entry->alias && strncmp(path, entry->path, block) == 0 &&
           strcmp(path + block, entry->alias) == 0;
}

ZpDsKey
zp_ds_schema_find(const char *path)
{
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        if (strcmp(entry->path, path) == 0 || is_alias(entry, path))
            return (ZpDsKey)key;
    }
    return ZP_DS_NONE;
}

ZpDsKey
zp_ds_schema_find_name(const char *name)
{
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const char *alias = zp_ds_schema_get((ZpDsKey)key)->alias;
        if (strcmp(zp_ds_schema_name((ZpDsKey)key), name) == 0 ||
            (alias && strcmp(alias, name) == 0))
            return (ZpDsKey)key;
    }
    return ZP_DS_NONE;
}

static gboolean
is_in_block(const char *path, const char *block)
{
    gsize length = strlen(block);
    if (length > 0 && (strncmp(path, block, length) != 0 || path[length++] != '.'))
        return FALSE;
    return strchr(path + length, '.') == NULL;
}

ZpDsKey
zp_ds_schema_nearest(const char *block, const char *name)
{
    const char *names[2 * ZP_N_DS_KEYS];
    ZpDsKey keys[2 * ZP_N_DS_KEYS];
    gsize n = 0;
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        if (!is_in_block(entry->path, block) || entry->state == ZP_DS_UNDEFINED ||
            entry->state == ZP_DS_UNREAD)
            continue;
        keys[n] = (ZpDsKey)key;
        names[n++] = zp_ds_schema_name((ZpDsKey)key);
        if (entry->alias) {
            keys[n] = (ZpDsKey)key;
            names[n++] = entry->alias;
        }
    }
    const char *nearest = zp_nearest_find_among(name, names, n);
    for (gsize i = 0; i < n; i++)
        if (names[i] == nearest)
            return keys[i];
    return ZP_DS_NONE;
}

gboolean
zp_ds_schema_is_block(ZpDsKind kind)
{
    return kind == ZP_DS_BLOCK_STRICT || kind == ZP_DS_BLOCK_LOOSE || kind == ZP_DS_BLOCK_FREE;
}

const char *
zp_ds_schema_effect_name(unsigned effect)
{
    static const char *const names[] = {"none", "memory", "time", "memory, time"};
    g_assert(effect < G_N_ELEMENTS(names));
    return names[effect];
}

const char *
zp_ds_schema_stages_name(unsigned stages)
{
    static const char *const names[16] = {
        NULL, "0",    "1",    "0, 1",    "2",    "0, 2",    "1, 2",    "0, 1, 2",
        "3",  "0, 3", "1, 3", "0, 1, 3", "2, 3", "0, 2, 3", "1, 2, 3", NULL,
    };
    g_assert(stages < G_N_ELEMENTS(names));
    return names[stages];
}
