#include "models/families/build.h"

#include "models/families/costs_internal.h"

static void
compile_rules(const ZpFamily *family, ZpExpressions *expressions, GArray *rules)
{
    for (guint i = 0; i < family->statements->len; i++) {
        const ZpFamilyStatement *s = g_ptr_array_index(family->statements, i);
        if (s->verb != ZP_FAMILY_EACH)
            continue;
        ZpTreeRule rule = {.symbol = zp_symbols_index(expressions->symbols, s->symbol)};
        const char *end;
        if (!zp_expressions_compile(expressions, s->argument, &end, &rule.value) || *end != '\0')
            g_error("family %s: cannot read '%s'", family->name, s->argument);
        g_array_append_val(rules, rule);
    }
}

static void
collect_lists(GHashTable *lists, ZpSymbols *symbols, GArray *collected)
{
    GHashTableIter iter;
    gpointer name, blocks;
    if (lists == NULL)
        return;
    g_hash_table_iter_init(&iter, lists);
    while (g_hash_table_iter_next(&iter, &name, &blocks)) {
        ZpTreeList list = {zp_symbols_index(symbols, name), blocks};
        g_array_append_val(collected, list);
    }
}

static void
fill_dimensions(ZpModel *model, const ZpSymbols *symbols, const GArray *facts)
{
    model->hidden = zp_symbols_get(symbols, "h");
    gint64 dense = zp_symbols_get(symbols, "f");
    model->ffn = dense ? dense : zp_symbols_get(symbols, "fe");
    model->heads = zp_symbols_get(symbols, "heads");
    model->kv_heads = zp_symbols_get(symbols, "kv_heads");
    model->head_size = zp_symbols_get(symbols, "d");
    model->vocabulary = zp_symbols_get(symbols, "V");
    for (guint l = 0; l < facts->len; l++) {
        const ZpTreeLayer *layer = &g_array_index(facts, ZpTreeLayer, l);
        model->n_active_elements += layer->active_elements;
        model->n_embedding_elements += layer->table_elements;
    }
    for (guint i = 0; i < model->parameters->len; i++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)i);
        if (parameter->tied_to != ZP_MODEL_NONE && parameter->layer != ZP_MODEL_NONE &&
            zp_model_layer(model, parameter->layer)->kind == ZP_LAYER_HEAD)
            model->tied = TRUE;
    }
}

ZpModel *
zp_architecture_build_family(const ZpFamily *family, ZpSymbols *symbols, GHashTable *lists,
                             const ZpArchitectureOptions *options, const char *name,
                             GPtrArray *warnings, GError **error)
{
    const char *tree = NULL;
    gint32 version = options->transformers ? options->transformers : ZP_TRANSFORMERS_NEWEST;
    zp_symbols_set(symbols, "hf5", version >= 5);
    if (!zp_family_resolve(family, symbols, &tree, warnings, error))
        return NULL;
    g_autoptr(ZpExpressions) expressions = zp_expressions_new(symbols);
    g_autoptr(GArray) rules = g_array_new(FALSE, TRUE, sizeof(ZpTreeRule));
    g_autoptr(GArray) in_blocks = g_array_new(FALSE, TRUE, sizeof(ZpTreeList));
    g_autoptr(GArray) facts = g_array_new(FALSE, TRUE, sizeof(ZpTreeLayer));
    compile_rules(family, expressions, rules);
    collect_lists(lists, symbols, in_blocks);
    ZpTreeInput input = {
        .text = zp_families_trees(),
        .tree = tree,
        .uses = family->uses,
        .symbols = symbols,
        .expressions = expressions,
        .rules = rules,
        .lists = in_blocks,
    };
    g_autoptr(ZpModel) model = zp_model_new(name);
    model->family = g_intern_string(family->name);
    if (!zp_tree_expand(&input, model, facts, error))
        return NULL;
    fill_dimensions(model, symbols, facts);
    zp_architecture_cost_layers(model, facts, symbols, options);
    zp_model_finish(model);
    return g_steal_pointer(&model);
}
