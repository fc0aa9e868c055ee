#include "models/words/nearest.h"
#include "scenarios/imports/fsdp/reader_internal.h"
#include "scenarios/readers/readers.h"

#include <math.h>
#include <string.h>

void
zp_fsdp_reader_say(const ZpFsdpReader *reader, ZpImportSeverity severity, const char *path,
                   const char *mend, const char *format, ...)
{
    const ZpTree *tree = *path ? zp_tree_path(reader->root, path) : NULL;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_import_message_add(reader->config->messages, severity, tree ? tree->line : 0,
                          tree ? tree->column : 0, path, mend, "%s", text);
}

gboolean
zp_fsdp_reader_given(const ZpFsdpReader *reader, const char *path)
{
    const ZpTree *tree = zp_tree_path(reader->root, path);
    return tree && tree->kind != ZP_TREE_NULL;
}

const ZpTree *
zp_fsdp_reader_take(const ZpFsdpReader *reader, const ZpFsdpField *field, const char *more)
{
    const ZpTree *tree = zp_tree_path(reader->root, field->path);
    const char *effect = zp_ds_schema_effect_name(field->effect);
    const char *reason = more ? more : field->remark;
    if (tree)
        g_hash_table_add(reader->taken, (gpointer)tree);
    if (!tree || tree->kind == ZP_TREE_NULL) {
        if (field->fallback)
            zp_import_row_add(reader->config->rows, field->path, field->fallback, field->unit,
                              effect, "default", reason, tree ? tree->line : 0);
        return NULL;
    }
    g_autofree char *shown =
        tree->kind == ZP_TREE_STRING ? g_strdup(tree->text) : zp_tree_show(tree);
    zp_import_row_add(reader->config->rows, field->path, shown, field->unit, effect, "file", reason,
                      tree->line);
    return tree;
}

static void
refuse(const ZpFsdpReader *reader, const ZpFsdpField *field, const ZpTree *tree, const char *wanted)
{
    g_autofree char *shown = zp_tree_show(tree);
    g_autofree char *mend = g_strdup_printf("write %s", wanted);
    zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, field->path, mend, "%s is %s", shown,
                       zp_tree_kind_name(tree->kind));
}

gboolean
zp_fsdp_reader_boolean(const ZpFsdpReader *reader, const ZpFsdpField *field, gboolean *value)
{
    const ZpTree *tree = zp_fsdp_reader_take(reader, field, NULL);
    if (!tree)
        return FALSE;
    if (tree->kind == ZP_TREE_STRING) {
        gboolean yes = g_ascii_strcasecmp(tree->text, "true") == 0;
        if (yes || g_ascii_strcasecmp(tree->text, "false") == 0) {
            zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, field->path, "write it without quotes",
                               "\"%s\" is text: read as %s", tree->text, yes ? "true" : "false");
            *value = yes;
            return TRUE;
        }
    }
    if (tree->kind != ZP_TREE_BOOLEAN) {
        refuse(reader, field, tree, "true or false");
        return FALSE;
    }
    *value = tree->boolean;
    return TRUE;
}

gboolean
zp_fsdp_reader_count(const ZpFsdpReader *reader, const ZpFsdpField *field, gint64 least,
                     gint64 *value)
{
    const ZpTree *tree = zp_fsdp_reader_take(reader, field, NULL);
    if (!tree)
        return FALSE;
    ZpTree number = *tree;
    if (tree->kind == ZP_TREE_STRING) {
        if (!zp_tree_parse_number(&number, tree->text)) {
            refuse(reader, field, tree, "a whole number");
            return FALSE;
        }
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, field->path, "write the digits in full",
                           "\"%s\" is text: read as a number, but a loader may refuse it",
                           tree->text);
    }
    if (number.kind == ZP_TREE_REAL && fabs(number.number) < 9e18 &&
        number.number == trunc(number.number)) {
        number.integer = (gint64)number.number;
        number.kind = ZP_TREE_INTEGER;
    }
    if (number.kind != ZP_TREE_INTEGER) {
        refuse(reader, field, tree, "a whole number");
        return FALSE;
    }
    if (number.integer < least) {
        g_autofree char *mend = g_strdup_printf("at least %" G_GINT64_FORMAT, least);
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, field->path, mend, "%s is out of range",
                           tree->text);
        return FALSE;
    }
    *value = number.integer;
    return TRUE;
}

gboolean
zp_fsdp_reader_choice(const ZpFsdpReader *reader, const ZpFsdpField *field,
                      const char *const *names, int first, int *value)
{
    const ZpTree *tree = zp_fsdp_reader_take(reader, field, NULL);
    if (!tree)
        return FALSE;
    guint n = g_strv_length((GStrv)names);
    ZpTree number = {.kind = tree->kind, .integer = tree->integer};
    if (tree->kind == ZP_TREE_STRING)
        zp_tree_parse_number(&number, tree->text);
    if (first > 0 && number.kind == ZP_TREE_INTEGER && number.integer >= first &&
        number.integer < first + (gint64)n) {
        *value = (int)number.integer - first;
        /* The table shows the name behind the number. */
        ZpImportRow *row = reader->config->rows->pdata[reader->config->rows->len - 1];
        g_free(row->value);
        row->value = g_strdup_printf("%s (%d)", names[*value], *value + first);
        return TRUE;
    }
    for (guint i = 0; tree->kind == ZP_TREE_STRING && i < n; i++)
        if (g_ascii_strcasecmp(tree->text, names[i]) == 0) {
            *value = (int)i;
            return TRUE;
        }
    g_autofree char *legal = g_strjoinv(", ", (GStrv)names);
    g_autofree char *upper =
        tree->kind == ZP_TREE_STRING ? g_ascii_strup(tree->text, -1) : g_strdup("");
    const char *near = zp_nearest_find_among(upper, names, n);
    g_autofree char *mend =
        near ? g_strdup_printf("did you mean %s?", near) : g_strdup_printf("legal: %s", legal);
    g_autofree char *shown = zp_tree_show(tree);
    zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, field->path, mend, "%s is none of %s", shown,
                       legal);
    return FALSE;
}

gboolean
zp_fsdp_reader_format(const ZpFsdpReader *reader, const ZpFsdpField *field, ZpDtype *value)
{
    const ZpTree *tree = zp_fsdp_reader_take(reader, field, NULL);
    if (!tree)
        return FALSE;
    if (tree->kind == ZP_TREE_BOOLEAN && !tree->boolean) {
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, field->path, "write 'no' in quotes",
                           "unquoted no is false in YAML 1.1: read as 'no'");
        *value = ZP_DTYPE_NONE;
        return TRUE;
    }
    if (tree->kind == ZP_TREE_STRING && strcmp(tree->text, "no") == 0) {
        *value = ZP_DTYPE_NONE;
        return TRUE;
    }
    ZpDtype dtype;
    if (tree->kind != ZP_TREE_STRING || !zp_dtype_parse(tree->text, &dtype) ||
        dtype == ZP_DTYPE_NONE) {
        g_autofree char *shown = zp_tree_show(tree);
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, field->path, "legal: no, fp16, bf16, fp32, fp8",
                           "%s is no number format", shown);
        return FALSE;
    }
    *value = dtype;
    return TRUE;
}

gboolean
zp_fsdp_reader_names(const ZpFsdpReader *reader, const ZpFsdpField *field, GStrv *value)
{
    const ZpTree *tree = zp_fsdp_reader_take(reader, field, NULL);
    if (!tree)
        return FALSE;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (tree->kind == ZP_TREE_STRING) {
        g_auto(GStrv) parts = g_strsplit(tree->text, ",", -1);
        for (int i = 0; parts[i]; i++)
            if (*g_strstrip(parts[i]))
                g_ptr_array_add(names, g_strdup(parts[i]));
    }
    for (guint i = 0; tree->kind == ZP_TREE_ARRAY && i < tree->members->len; i++) {
        const ZpTree *member = tree->members->pdata[i];
        if (member->kind != ZP_TREE_STRING) {
            refuse(reader, field, member, "names");
            return FALSE;
        }
        g_ptr_array_add(names, g_strdup(member->text));
    }
    if (tree->kind != ZP_TREE_STRING && tree->kind != ZP_TREE_ARRAY) {
        refuse(reader, field, tree, "names");
        return FALSE;
    }
    if (names->len == 0)
        return FALSE;
    g_ptr_array_add(names, NULL);
    g_strfreev(*value);
    *value = (GStrv)g_ptr_array_free(g_steal_pointer(&names), FALSE);
    return TRUE;
}

void
zp_fsdp_reader_skip(const ZpFsdpReader *reader, const char *block, const char *const *names,
                    const char *reason)
{
    for (; *names; names++) {
        g_autofree char *path = *block ? g_strdup_printf("%s.%s", block, *names) : g_strdup(*names);
        ZpFsdpField field = {path, ZP_DS_EFFECT_NONE, NULL, NULL, reason};
        zp_fsdp_reader_take(reader, &field, NULL);
    }
}

void
zp_fsdp_reader_rest(const ZpFsdpReader *reader, const char *block, ZpImportSeverity severity,
                    gboolean only_near, const char *const *known, const char *consequence)
{
    const ZpTree *tree = *block ? zp_tree_path(reader->root, block) : reader->root;
    if (!tree || tree->kind != ZP_TREE_OBJECT)
        return;
    for (guint i = 0; i < tree->members->len; i++) {
        const ZpTree *member = tree->members->pdata[i];
        if (g_hash_table_contains(reader->taken, member) ||
            zp_import_message_is_full(reader->config->messages))
            continue;
        const char *near = zp_nearest_find_among(member->key, known, g_strv_length((GStrv)known));
        /* A key that exists is no misspelling: it was a duplicate, or is read elsewhere. */
        if ((only_near && !near) || (near && strcmp(near, member->key) == 0))
            continue;
        g_autofree char *path = g_strdup_printf("%s%s%s", block, *block ? "." : "", member->key);
        g_autofree char *mend = near ? g_strdup_printf("did you mean %s?", near) : NULL;
        g_autofree char *shown = zp_tree_show(member);
        zp_import_message_add(reader->config->messages, severity, member->key_line,
                              member->key_column, path, mend, "unknown key: %s", consequence);
        zp_import_row_add(reader->config->rows, path, shown, NULL, "none", "file", "unknown key",
                          member->key_line)
            ->ignored = TRUE;
    }
}
