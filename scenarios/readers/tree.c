#include "scenarios/readers/tree.h"

#include <math.h>
#include <string.h>

/* Members from which on an object is worth a table of its names. */
#define INDEX_FROM 16

static void
member_free(gpointer data)
{
    zp_tree_free(data);
}

ZpTree *
zp_tree_new(ZpTreeKind kind, int line, int column)
{
    ZpTree *tree = g_new0(ZpTree, 1);
    tree->kind = kind;
    tree->line = line;
    tree->column = column;
    if (kind == ZP_TREE_ARRAY || kind == ZP_TREE_OBJECT)
        tree->members = g_ptr_array_new_with_free_func(member_free);
    return tree;
}

void
zp_tree_free(ZpTree *tree)
{
    if (!tree)
        return;
    g_clear_pointer(&tree->index, g_hash_table_unref);
    g_clear_pointer(&tree->members, g_ptr_array_unref);
    g_free(tree->key);
    g_free(tree->text);
    g_free(tree);
}

void
zp_tree_add(ZpTree *parent, ZpTree *member)
{
    g_assert(parent->members);
    g_ptr_array_add(parent->members, member);
    if (parent->kind != ZP_TREE_OBJECT || parent->members->len < INDEX_FROM)
        return;
    if (parent->index) {
        g_hash_table_replace(parent->index, member->key, member);
        return;
    }
    parent->index = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < parent->members->len; i++) {
        ZpTree *each = parent->members->pdata[i];
        g_hash_table_replace(parent->index, each->key, each);
    }
}

ZpTree *
zp_tree_find(const ZpTree *object, const char *key)
{
    if (!object || object->kind != ZP_TREE_OBJECT)
        return NULL;
    if (object->index)
        return g_hash_table_lookup(object->index, key);
    for (guint i = object->members->len; i-- > 0;) {
        ZpTree *member = object->members->pdata[i];
        if (strcmp(member->key, key) == 0)
            return member;
    }
    return NULL;
}

ZpTree *
zp_tree_path(const ZpTree *root, const char *path)
{
    g_auto(GStrv) names = g_strsplit(path, ".", -1);
    const ZpTree *tree = root;
    for (int i = 0; names[i] && tree; i++)
        tree = zp_tree_find(tree, names[i]);
    return (ZpTree *)tree;
}

const char *
zp_tree_kind_name(ZpTreeKind kind)
{
    static const char *const names[] = {
        "null", "a boolean", "a whole number", "a number", "text", "a list", "a block",
    };
    g_assert((gsize)kind < G_N_ELEMENTS(names));
    return names[kind];
}

/* Digits, point and exponent in the shape that JSON, YAML and TOML share. */
static gboolean
number_shape(const char *text, gboolean *whole)
{
    const char *p = text;
    *whole = TRUE;
    if (*p == '-' || *p == '+')
        p++;
    const char *digits = p;
    while (g_ascii_isdigit(*p))
        p++;
    if (p == digits)
        return FALSE;
    if (*p == '.') {
        *whole = FALSE;
        const char *fraction = ++p;
        while (g_ascii_isdigit(*p))
            p++;
        if (p == fraction)
            return FALSE;
    }
    if (*p == 'e' || *p == 'E') {
        *whole = FALSE;
        p++;
        if (*p == '-' || *p == '+')
            p++;
        const char *exponent = p;
        while (g_ascii_isdigit(*p))
            p++;
        if (p == exponent)
            return FALSE;
    }
    return *p == '\0';
}

gboolean
zp_tree_parse_number(ZpTree *tree, const char *text)
{
    gboolean whole;
    if (strlen(text) > ZP_TREE_MAX_NUMBER || !number_shape(text, &whole))
        return FALSE;
    double number = g_ascii_strtod(text, NULL);
    if (!isfinite(number))
        return FALSE;
    tree->kind = ZP_TREE_REAL;
    tree->number = number;
    const char *digits = *text == '+' ? text + 1 : text;
    if (whole && g_ascii_string_to_signed(digits, 10, G_MININT64, G_MAXINT64, &tree->integer, NULL))
        tree->kind = ZP_TREE_INTEGER;
    return TRUE;
}

static void
show_into(const ZpTree *tree, GString *out)
{
    if (out->len > 60)
        return;
    switch (tree->kind) {
    case ZP_TREE_NULL:
        g_string_append(out, "null");
        break;
    case ZP_TREE_BOOLEAN:
        g_string_append(out, tree->boolean ? "true" : "false");
        break;
    case ZP_TREE_INTEGER:
    case ZP_TREE_REAL:
        g_string_append(out, tree->text);
        break;
    case ZP_TREE_STRING:
        g_string_append_printf(out, "\"%s\"", tree->text);
        break;
    case ZP_TREE_ARRAY:
    case ZP_TREE_OBJECT:
        g_string_append_c(out, tree->kind == ZP_TREE_ARRAY ? '[' : '{');
        for (guint i = 0; i < tree->members->len; i++) {
            const ZpTree *member = tree->members->pdata[i];
            if (i)
                g_string_append(out, ", ");
            if (member->key)
                g_string_append_printf(out, "%s: ", member->key);
            show_into(member, out);
        }
        g_string_append_c(out, tree->kind == ZP_TREE_ARRAY ? ']' : '}');
        break;
    }
}

char *
zp_tree_show(const ZpTree *tree)
{
    GString *out = g_string_new(NULL);
    show_into(tree, out);
    if (out->len > 60) {
        gsize keep = 57;
        /* Cut between characters, not inside one. */
        while (keep > 0 && ((guchar)out->str[keep] & 0xc0) == 0x80)
            keep--;
        g_string_truncate(out, keep);
        g_string_append(out, "...");
    }
    return g_string_free(out, FALSE);
}

gboolean
zp_tree_check_text(const char *text, gsize length, int *line)
{
    const char *end;
    if (g_utf8_validate_len(text, length, &end))
        return TRUE;
    *line = 1;
    for (const char *p = text; p < end; p++)
        *line += *p == '\n';
    return FALSE;
}
