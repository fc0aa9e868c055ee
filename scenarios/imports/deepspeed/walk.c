/* Blocks and their keys: what is known, unknown, misspelt, misplaced, deprecated or removed. */
#include "models/words/nearest.h"
#include "scenarios/imports/deepspeed/ds_internal.h"
#include "scenarios/readers/readers.h"

#include <string.h>

static void read_block(ZpDsReader *reader, const char *path, const ZpTree *block, ZpDsKind kind);

static char *
join(const char *block, const char *name)
{
    return *block ? g_strdup_printf("%s.%s", block, name) : g_strdup(name);
}

static void
note_unknown(const ZpDsReader *reader, const char *path, const ZpTree *tree, const char *reason)
{
    g_autofree char *shown = zp_tree_show(tree);
    ZpImportRow *row = zp_import_row_add(reader->config->unknown, path, shown, NULL, "none", "file",
                                         reason, tree->key_line);
    row->ignored = TRUE;
}

static void
say_unknown(const ZpDsReader *reader, ZpImportSeverity severity, const char *path,
            const ZpTree *tree, const char *mend, const char *text)
{
    zp_import_message_add(reader->config->messages, severity, tree->key_line, tree->key_column,
                          path, mend, "%s", text);
    note_unknown(reader, path, tree, text);
}

/* The name of a key of another block. */
static void
say_misplaced(ZpDsReader *reader, const char *path, const ZpTree *tree, ZpDsKey home,
              gboolean strict)
{
    g_autofree char *block = zp_ds_schema_block(home);
    g_autofree char *place =
        *block ? g_strdup_printf("inside %s", block) : g_strdup("at the top level");
    g_autofree char *mend = g_strdup_printf("move it %s", place);
    if (strict) {
        g_autofree char *text =
            g_strdup_printf("unknown key here, it belongs %s; DeepSpeed refuses the file", place);
        say_unknown(reader, ZP_IMPORT_ERROR, path, tree, mend, text);
        return;
    }
    if (!strchr(path, '.') && g_str_has_prefix(zp_ds_schema_get(home)->path, "zero_optimization")) {
        /* What it would have done depends on the stage, which may come later in the file. */
        ZpDsMisplaced misplaced = {tree, home};
        g_array_append_val(reader->misplaced, misplaced);
        g_autofree char *reason = g_strdup_printf("misplaced: it belongs %s", place);
        note_unknown(reader, path, tree, reason);
        return;
    }
    g_autofree char *text = g_strdup_printf(
        "misplaced, it belongs %s; DeepSpeed silently ignores it, it has no effect here", place);
    say_unknown(reader, ZP_IMPORT_WARNING, path, tree, mend, text);
}

static void
say_misspelt(const ZpDsReader *reader, const char *path, const ZpTree *tree, ZpDsKey near,
             gboolean strict)
{
    const ZpDsEntry *entry = near == ZP_DS_NONE ? NULL : zp_ds_schema_get(near);
    const char *name = entry ? zp_ds_schema_name(near) : NULL;
    /* The alias may be the nearer spelling. */
    if (entry && entry->alias && !g_str_has_prefix(tree->key, "stage3"))
        name = entry->alias;
    g_autofree char *mend = entry ? g_strdup_printf("did you mean %s?", name) : NULL;
    if (!strict) {
        say_unknown(reader, *tree->key == '_' ? ZP_IMPORT_NOTE : ZP_IMPORT_WARNING, path, tree,
                    mend, "unknown key: DeepSpeed silently ignores it, it has no effect");
        return;
    }
    if (entry && entry->state == ZP_DS_DEPRECATED && zp_nearest_distance(tree->key, name) <= 2) {
        /* Such files were written for versions that ignored unknown keys without a word. */
        g_autofree char *text = g_strdup_printf(
            "unknown key, not the deprecated %s: ignored by the versions that still know that key "
            "best (so nothing of it happens%s), refused by DeepSpeed 0.19",
            name, near == ZP_DS_CPU_OFFLOAD_PARAM ? ": parameters are not offloaded" : "");
        say_unknown(reader, ZP_IMPORT_WARNING, path, tree, mend, text);
        return;
    }
    say_unknown(reader, ZP_IMPORT_ERROR, path, tree, mend,
                "unknown key: DeepSpeed refuses the file (extra keys are forbidden in this block)");
}

static void
read_unknown(ZpDsReader *reader, const char *block, const char *path, const ZpTree *tree,
             ZpDsKind kind)
{
    gboolean strict = kind == ZP_DS_BLOCK_STRICT;
    if (kind == ZP_DS_BLOCK_FREE) {
        note_unknown(reader, path, tree, "passed on as it is; arithmetic only");
        return;
    }
    if (zp_import_message_is_full(reader->config->messages))
        return; /* nothing said here would be shown, and looking for near names takes time */
    ZpDsKey home = zp_ds_schema_find_name(tree->key);
    if (home != ZP_DS_NONE)
        say_misplaced(reader, path, tree, home, strict);
    else
        say_misspelt(reader, path, tree, zp_ds_schema_nearest(block, tree->key), strict);
}

static void
say_state(const ZpDsReader *reader, ZpDsKey key)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    switch (entry->state) {
    case ZP_DS_LIVE:
        return;
    case ZP_DS_DEPRECATED:
        zp_ds_internal_say(reader, ZP_IMPORT_DEPRECATED, key, entry->remark, "deprecated key: %s",
                           entry->help);
        return;
    case ZP_DS_UNREAD:
        zp_ds_internal_say(reader, ZP_IMPORT_NOTE, key, entry->remark,
                           "no effect: no code of DeepSpeed reads it");
        return;
    case ZP_DS_REMOVED:
        zp_ds_internal_say(
            reader, reader->version > ZP_DS_VERSION_REMOVALS ? ZP_IMPORT_ERROR : ZP_IMPORT_NOTE,
            key, entry->remark,
            "removed (%s): read up to DeepSpeed 0.19.6, refused by newer versions", entry->help);
        return;
    case ZP_DS_UNDEFINED:
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, key, entry->remark,
                           "unknown key: %s; DeepSpeed refuses the file", entry->help);
        return;
    }
}

static const char *
wanted_block(ZpDsKey key)
{
    if (key == ZP_DS_OFFLOAD_OPTIMIZER || key == ZP_DS_OFFLOAD_PARAM)
        return "write a block: {\"device\": \"cpu\"}";
    if (key == ZP_DS_ZERO)
        return "write a block: {\"stage\": 1}";
    if (key == ZP_DS_LEAF_MODULE)
        return "write a block: {\"classes\": [...]}";
    return "write a block: {\"enabled\": true}, or its own keys";
}

/* Oldest format: zero_optimization is true or false (zero/config.py,
 * read_zero_config_deprecated). */
static void
read_legacy_zero(const ZpDsReader *reader, const ZpTree *tree)
{
    ZpDsValue *zero = &reader->config->values[ZP_DS_ZERO];
    zero->boolean = tree->boolean;
    zp_ds_internal_say(reader, ZP_IMPORT_DEPRECATED, ZP_DS_ZERO, "write a block: {\"stage\": 1}",
                       "deprecated format: %s means stage %d", tree->boolean ? "true" : "false",
                       tree->boolean);
    zp_ds_internal_set_count(reader, ZP_DS_STAGE, tree->boolean, ZP_DS_FROM_LEGACY);
    zp_ds_internal_explain(reader, ZP_DS_STAGE, "zero_optimization: %s",
                           tree->boolean ? "true" : "false");
}

static void
read_known(ZpDsReader *reader, ZpDsKey key, const char *path, const ZpTree *tree, ZpDsKind around)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    ZpDsValue *value = &reader->config->values[key];
    /* The name and its alias are two spellings of one field. */
    if (value->line && !strstr(path, "bfloat16") && entry->alias)
        zp_import_message_add(reader->config->messages, ZP_IMPORT_ERROR, tree->key_line,
                              tree->key_column, path, "keep one of the two",
                              "the same setting stands in line %d under its other name",
                              value->line);
    if (!zp_ds_schema_is_block(entry->kind)) {
        zp_ds_value_read(reader, key, tree, around == ZP_DS_BLOCK_STRICT);
        say_state(reader, key);
        return;
    }
    value->origin = ZP_DS_FROM_FILE;
    value->known = tree->kind == ZP_TREE_OBJECT;
    value->line = tree->key_line;
    value->column = tree->key_column;
    say_state(reader, key);
    if (tree->kind == ZP_TREE_OBJECT) {
        read_block(reader, key == ZP_DS_BFLOAT16 ? "bf16" : entry->path, tree, entry->kind);
    } else if (key == ZP_DS_ZERO && tree->kind == ZP_TREE_BOOLEAN) {
        read_legacy_zero(reader, tree);
    } else if (tree->kind != ZP_TREE_NULL || !entry->nullable) {
        g_autofree char *shown = zp_tree_show(tree);
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, key, wanted_block(key), "%s is %s, not a block",
                           shown, zp_tree_kind_name(tree->kind));
    }
}

static void
read_block(ZpDsReader *reader, const char *block, const ZpTree *tree, ZpDsKind kind)
{
    for (guint i = 0; i < tree->members->len; i++) {
        const ZpTree *member = tree->members->pdata[i];
        /* A duplicate has been refused already; the last one counts, as in lenient readers. */
        if (zp_tree_find(tree, member->key) != member)
            continue;
        if (strchr(member->key, '.') || !*member->key) {
            say_unknown(reader, kind == ZP_DS_BLOCK_STRICT ? ZP_IMPORT_ERROR : ZP_IMPORT_WARNING,
                        member->key, member, "nest blocks instead of dots",
                        "unknown key: DeepSpeed reads no such name");
            continue;
        }
        g_autofree char *path = join(block, member->key);
        ZpDsKey key = zp_ds_schema_find(path);
        if (key == ZP_DS_BFLOAT16 && zp_tree_find(tree, "bf16")) {
            say_unknown(reader, ZP_IMPORT_WARNING, path, member, "remove it",
                        "ignored, because bf16 is there too");
            continue;
        }
        if (key == ZP_DS_NONE && !*block && reader->context->as_if_placed) {
            g_autofree char *inside = join("zero_optimization", member->key);
            ZpDsKey home = zp_ds_schema_find(inside);
            if (home != ZP_DS_NONE)
                read_known(reader, home, inside, member, ZP_DS_BLOCK_STRICT);
        }
        if (key == ZP_DS_NONE)
            read_unknown(reader, block, path, member, kind);
        else
            read_known(reader, key, path, member, kind);
    }
}

/* A deprecated switch sets its successor; both at once are refused (config_utils.py,
 * _process_deprecated_field). */
static void
succeed_offload(const ZpDsReader *reader, ZpDsKey old, ZpDsKey block, ZpDsKey device)
{
    ZpDsValue *values = reader->config->values;
    if (!values[old].line || !values[old].known)
        return;
    if (values[block].line) {
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, old, "remove the deprecated key",
                           "it stands beside %s, which replaces it: DeepSpeed refuses both at once",
                           zp_ds_schema_name(block));
        return;
    }
    if (!values[old].boolean)
        return;
    values[device].origin = ZP_DS_FROM_LEGACY;
    values[device].known = TRUE;
    g_free(values[device].text);
    values[device].text = g_strdup("cpu");
    zp_ds_internal_explain(reader, device, "%s: true", zp_ds_schema_name(old));
}

static void
succeed(const ZpDsReader *reader)
{
    ZpDsValue *values = reader->config->values;
    succeed_offload(reader, ZP_DS_CPU_OFFLOAD, ZP_DS_OFFLOAD_OPTIMIZER,
                    ZP_DS_OFFLOAD_OPTIMIZER_DEVICE);
    succeed_offload(reader, ZP_DS_CPU_OFFLOAD_PARAM, ZP_DS_OFFLOAD_PARAM,
                    ZP_DS_OFFLOAD_PARAM_DEVICE);
    if (values[ZP_DS_CPU_OFFLOAD_PIN].line)
        values[ZP_DS_CPU_OFFLOAD_PIN].ignored = g_strdup("DeepSpeed ignores this old key");
    if (values[ZP_DS_GATHER_FP16].line && values[ZP_DS_GATHER_FP16].known) {
        if (values[ZP_DS_GATHER_16BIT].line) {
            zp_ds_internal_say(
                reader, ZP_IMPORT_ERROR, ZP_DS_GATHER_FP16, "remove the deprecated key",
                "it stands beside %s, which replaces it", zp_ds_schema_name(ZP_DS_GATHER_16BIT));
        } else {
            values[ZP_DS_GATHER_16BIT].origin = ZP_DS_FROM_LEGACY;
            values[ZP_DS_GATHER_16BIT].boolean = values[ZP_DS_GATHER_FP16].boolean;
            zp_ds_internal_explain(reader, ZP_DS_GATHER_16BIT,
                                   "stage3_gather_fp16_weights_on_model_save");
        }
    }
    ZpDsValue *size = &values[ZP_DS_ALLGATHER_SIZE];
    if (!size->line || !size->known)
        return;
    if (values[ZP_DS_ZERO].line && !values[ZP_DS_ZERO].known && values[ZP_DS_ZERO].boolean) {
        zp_ds_internal_set_count(reader, ZP_DS_ALLGATHER_BUCKET_SIZE, size->integer,
                                 ZP_DS_FROM_LEGACY);
        zp_ds_internal_explain(reader, ZP_DS_ALLGATHER_BUCKET_SIZE, "allgather_size");
    } else {
        size->ignored = g_strdup("read only beside zero_optimization: true");
    }
}

void
zp_ds_walk_root(ZpDsReader *reader, const ZpTree *root)
{
    if (root->kind != ZP_TREE_OBJECT) {
        zp_import_message_add(reader->config->messages, ZP_IMPORT_ERROR, root->line, root->column,
                              "", "wrap the keys in { }", "the document is %s, not a block of keys",
                              zp_tree_kind_name(root->kind));
        return;
    }
    read_block(reader, "", root, ZP_DS_BLOCK_LOOSE);
    succeed(reader);
}
