#include "models/families/trees/families.h"
#include "models/families/trees/template.h"
#include "scenarios/imports/huggingface/config.h"

#include <string.h>

/* The class of the first module that is a block, and the tree's own root where there is none. */
static char *
block_class(const ZpFamily *family)
{
    g_autoptr(ZpSymbols) symbols = zp_symbols_new();
    g_autoptr(ZpExpressions) expressions = zp_expressions_new(symbols);
    g_autoptr(ZpTemplate) tree =
        zp_template_parse(zp_families_trees(), family->tree, family->uses, expressions);
    const char *found = NULL;
    for (guint i = 0; i < tree->nodes->len; i++) {
        const ZpTemplateNode *node = &g_array_index(tree->nodes, ZpTemplateNode, i);
        /* A vision tower comes before its language model: the last block is the language's. */
        if (node->block)
            found = node->class_name;
    }
    return g_strdup(found ? found : "");
}

static void
append_needs(GString *table, const ZpFamily *family)
{
    const char *separator = "";
    for (guint i = 0; i < family->statements->len; i++) {
        const ZpFamilyStatement *need = g_ptr_array_index(family->statements, i);
        if (need->verb != ZP_FAMILY_NEED)
            continue;
        for (guint r = 0; r < family->statements->len; r++) {
            const ZpFamilyStatement *read = g_ptr_array_index(family->statements, r);
            if (read->verb != ZP_FAMILY_READ || strcmp(read->symbol, need->symbol) != 0)
                continue;
            g_string_append_printf(table, "%s`%.*s`", separator, (int)strcspn(read->argument, "|"),
                                   read->argument);
            separator = ", ";
        }
    }
}

char *
zp_hf_families_markdown(void)
{
    GString *table = g_string_new("| model | `model_type` | block class | needed keys |\n"
                                  "| --- | --- | --- | --- |\n");
    g_autoptr(GPtrArray) all = zp_families_load_all();
    for (guint i = 0; i < all->len; i++) {
        const ZpFamily *family = g_ptr_array_index(all, i);
        if (family->types[0] == NULL)
            continue;
        g_autofree char *types = g_strjoinv("`, `", family->types);
        g_autofree char *block = block_class(family);
        g_string_append_printf(table, "| %s | `%s` | `%s` | ", family->title, types, block);
        append_needs(table, family);
        g_string_append(table, " |\n");
    }
    return g_string_free(table, FALSE);
}
