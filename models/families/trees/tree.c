#include "models/families/trees/tree.h"

#include "models/families/trees/error.h"
#include "models/words/names.h"

#include <string.h>

typedef struct {
    const ZpTreeInput *input;
    const ZpTemplate *template;
    ZpModel *model;
    GArray *notes; /* ZpTreeNote */
    GString *path;
    gint32 index_symbol, experts_symbol, chosen_symbol;
    gint64 total_elements; /* tied ones too */
    gboolean in_range;
    char *culprit; /* the parameter that is out of range, owned; NULL: none or the tree's size */
} Expander;

/* Inherited on the way down. */
typedef struct {
    gint32 parent, block;
    const char *layer_name;
    ZpLayerKind layer_kind;
    gboolean expert;
} Scope;

static gint64
evaluate(Expander *expander, ZpExpression expression)
{
    gint64 value;
    if (!zp_expressions_eval(expander->input->expressions, expression, &value))
        expander->in_range = FALSE;
    return value;
}

static gboolean
holds(Expander *expander, ZpExpression condition)
{
    return condition.length == 0 || evaluate(expander, condition) != 0;
}

static void
accumulate(Expander *expander, gint64 *sum, gint64 value)
{
    if (__builtin_add_overflow(*sum, value, sum))
        expander->in_range = FALSE;
}

static gint64
symbol(const Expander *expander, gint32 index)
{
    return g_array_index(expander->input->symbols->values, gint64, index);
}

static gint32
find_parameter(const ZpModel *model, const char *interned)
{
    for (gint32 i = 0; i < (gint32)model->parameters->len; i++)
        if (zp_model_parameter(model, i)->name == interned)
            return i;
    g_error("family trees: tied to '%s', which is not there", interned);
}

/* Elements that one token uses: of a mixture's experts only the chosen ones. */
static gint64
active(const Expander *expander, gint64 elements, gboolean expert)
{
    gint64 experts = symbol(expander, expander->experts_symbol);
    if (!expert || experts <= 0)
        return elements;
    return elements / experts * MIN(experts, symbol(expander, expander->chosen_symbol));
}

static void
blame(Expander *expander, const ZpTemplateParameter *spec, const ZpModelParameter *parameter)
{
    GString *text = g_string_new(NULL);
    g_string_printf(text, "%s.%s would be", expander->path->str, spec->name);
    for (gint32 d = 0; d < parameter->n_dims; d++)
        g_string_append_printf(text, "%s %" G_GINT64_FORMAT, d ? " x" : "", parameter->shape[d]);
    expander->culprit = g_string_free(text, FALSE);
}

static void
add_parameter(Expander *expander, const ZpTemplateParameter *spec, gint32 module, gboolean expert,
              const char *tie)
{
    if (!expander->in_range || !holds(expander, spec->condition))
        return;
    ZpModelParameter parameter = {
        .elements = 1,
        .n_dims = spec->n_dims,
        .module = module,
        .layer = ZP_MODEL_NONE,
        .tied_to = tie ? find_parameter(expander->model, tie) : ZP_MODEL_NONE,
        .trainable = !spec->untrained,
        .expert = expert,
    };
    for (gint32 d = 0; d < spec->n_dims; d++) {
        gint64 size = evaluate(expander, spec->dims[d]);
        parameter.shape[d] = size;
        if (size <= 0 || __builtin_mul_overflow(parameter.elements, size, &parameter.elements))
            expander->in_range = FALSE;
    }
    accumulate(expander, &expander->total_elements, parameter.elements);
    if (expander->total_elements > ZP_TREE_MAX_ELEMENTS)
        expander->in_range = FALSE;
    if (!expander->in_range) {
        blame(expander, spec, &parameter);
        return;
    }
    gsize length = expander->path->len;
    if (length > 0)
        g_string_append_c(expander->path, '.');
    g_string_append(expander->path, spec->name);
    parameter.name = zp_names_intern(expander->path->str);
    g_string_truncate(expander->path, length);
    g_array_append_val(expander->model->parameters, parameter);
    g_array_index(expander->model->modules, ZpModelModule, module).n_parameters++;

    ZpTreeLayer *facts = &g_array_index(expander->notes, ZpTreeNote, module).facts;
    gint64 used = active(expander, parameter.elements, expert);
    accumulate(expander, &facts->active_elements, tie ? 0 : used);
    if (spec->use == ZP_TEMPLATE_MATRIX)
        accumulate(expander, expert ? &facts->expert_matrix_elements : &facts->matrix_elements,
                   used);
    if (expert) {
        facts->chosen_experts = symbol(expander, expander->chosen_symbol);
        facts->experts = symbol(expander, expander->experts_symbol);
    }
    if (spec->use == ZP_TEMPLATE_TABLE && !tie)
        accumulate(expander, &facts->table_elements, parameter.elements);
}

static void
note_facts(Expander *expander, const ZpTemplateNode *node, ZpTreeLayer *facts)
{
    if (node->norm.length > 0)
        facts->norms_width = facts->residual_width = evaluate(expander, node->norm);
    if (node->stream.length > 0)
        facts->residual_width = evaluate(expander, node->stream);
    if (node->latent.length > 0)
        facts->latent_width = evaluate(expander, node->latent);
    if (node->inner[0].length > 0)
        facts->inner_width = evaluate(expander, node->inner[0]);
    if (node->inner[1].length > 0)
        facts->expert_inner_width = evaluate(expander, node->inner[1]);
    if (node->core[0].length > 0) {
        facts->heads = evaluate(expander, node->core[0]);
        facts->kv_heads = evaluate(expander, node->core[1]);
        facts->qk_width = evaluate(expander, node->core[2]);
        facts->v_width = evaluate(expander, node->core[3]);
    }
}

static void
enter_block(Expander *expander, gint64 index)
{
    const ZpTreeInput *input = expander->input;
    gint64 *values = &g_array_index(input->symbols->values, gint64, 0);
    values[expander->index_symbol] = index;
    for (guint l = 0; input->lists && l < input->lists->len; l++) {
        const ZpTreeList *list = &g_array_index(input->lists, ZpTreeList, l);
        values[list->symbol] = 0;
        for (guint b = 0; b < list->blocks->len; b++)
            if (g_array_index(list->blocks, gint64, b) == index)
                values[list->symbol] = 1;
    }
    for (guint r = 0; input->rules && r < input->rules->len; r++) {
        const ZpTreeRule *rule = &g_array_index(input->rules, ZpTreeRule, r);
        values[rule->symbol] = evaluate(expander, rule->value);
    }
}

static void expand_children(Expander *expander, gint32 node_index, gint32 module, Scope scope);

static gint32
add_module(Expander *expander, const ZpTemplateNode *node, Scope *scope)
{
    gint32 module = (gint32)expander->model->modules->len;
    if (node->block)
        scope->block = expander->model->n_blocks++;
    if (node->layer_name) {
        scope->layer_name = node->layer_name;
        scope->layer_kind = node->layer_kind;
    }
    scope->expert = scope->expert || node->expert;
    ZpModelModule entry = {
        .name = zp_names_intern(expander->path->str),
        .class_name = node->class_name,
        .parent = scope->parent,
        .first_parameter = (gint32)expander->model->parameters->len,
        .layer = ZP_MODEL_NONE,
        .block = scope->block,
        .container = g_str_equal(node->class_name, "ModuleList"),
        .is_block = node->block,
    };
    g_array_append_val(expander->model->modules, entry);
    ZpTreeNote note = {.layer_name = scope->layer_name, .layer_kind = scope->layer_kind};
    note_facts(expander, node, &note.facts);
    g_array_append_val(expander->notes, note);
    return module;
}

/* One module with its parameters and children; the path gains its name and loses it again. */
static void
expand_module(Expander *expander, gint32 node_index, const char *name, Scope scope)
{
    const ZpTemplateNode *node =
        &g_array_index(expander->template->nodes, ZpTemplateNode, node_index);
    if (expander->model->modules->len + expander->model->parameters->len > ZP_TREE_MAX_PARTS)
        expander->in_range = FALSE;
    if (!expander->in_range || !holds(expander, node->condition))
        return;
    gsize length = expander->path->len;
    if (length > 0)
        g_string_append_c(expander->path, '.');
    g_string_append(expander->path, name);
    gint32 module = add_module(expander, node, &scope);
    gboolean tied = node->tie && holds(expander, node->tie_condition);
    for (gint32 p = 0; p < node->n_parameters; p++)
        add_parameter(expander,
                      &g_array_index(expander->template->parameters, ZpTemplateParameter,
                                     node->first_parameter + p),
                      module, scope.expert, tied && p == 0 ? node->tie : NULL);
    scope.parent = module;
    expand_children(expander, node_index, module, scope);
    g_string_truncate(expander->path, length);
}

static void
expand_repeated(Expander *expander, gint32 node_index, Scope scope)
{
    const ZpTemplateNode *nodes = &g_array_index(expander->template->nodes, ZpTemplateNode, 0);
    gint64 n = evaluate(expander, nodes[node_index].repeat);
    for (gint64 i = 0; i < n && expander->in_range; i++) {
        char name[24];
        g_snprintf(name, sizeof name, "%" G_GINT64_FORMAT, i);
        if (scope.block == ZP_MODEL_NONE)
            enter_block(expander, i);
        for (gint32 child = node_index + 1; child < nodes[node_index].end; child = nodes[child].end)
            expand_module(expander, child, name, scope);
    }
}

typedef struct {
    gint32 order, module;
} Call;

static gint
compare_calls(gconstpointer a, gconstpointer b)
{
    const Call *x = a, *y = b;
    return x->order != y->order ? (x->order > y->order) - (x->order < y->order)
                                : (x->module > y->module) - (x->module < y->module);
}

static void
expand_children(Expander *expander, gint32 node_index, gint32 module, Scope scope)
{
    const ZpTemplateNode *nodes = &g_array_index(expander->template->nodes, ZpTemplateNode, 0);
    if (nodes[node_index].repeat.length > 0) {
        expand_repeated(expander, node_index, scope);
        return;
    }
    Call calls[32];
    gint32 n_calls = 0;
    for (gint32 child = node_index + 1; child < nodes[node_index].end; child = nodes[child].end) {
        gint32 index = (gint32)expander->model->modules->len;
        expand_module(expander, child, nodes[child].name, scope);
        gboolean made = (gint32)expander->model->modules->len > index;
        if (made && nodes[child].call_order > 0) {
            g_assert(n_calls < (gint32)G_N_ELEMENTS(calls));
            calls[n_calls++] = (Call){nodes[child].call_order, index};
        }
    }
    if (n_calls == 0)
        return;
    qsort(calls, (size_t)n_calls, sizeof calls[0], compare_calls);
    ZpModelModule *owner = &g_array_index(expander->model->modules, ZpModelModule, module);
    owner->n_calls = n_calls;
    owner->calls = g_new(gint32, (gsize)n_calls);
    for (gint32 i = 0; i < n_calls; i++)
        owner->calls[i] = calls[i].module;
}

gboolean
zp_tree_expand(const ZpTreeInput *input, ZpModel *model, GArray *layers, GError **error)
{
    g_autoptr(ZpTemplate) template =
        zp_template_parse(input->text, input->tree, input->uses, input->expressions);
    g_autoptr(GArray) notes = g_array_new(FALSE, TRUE, sizeof(ZpTreeNote));
    g_autoptr(GString) path = g_string_sized_new(128);
    Expander expander = {
        .input = input,
        .template = template,
        .model = model,
        .notes = notes,
        .path = path,
        .index_symbol = zp_symbols_index(input->symbols, "i"),
        .experts_symbol = zp_symbols_index(input->symbols, "E"),
        .chosen_symbol = zp_symbols_index(input->symbols, "k"),
        .in_range = TRUE,
    };
    Scope root = {.parent = ZP_MODEL_NONE, .block = ZP_MODEL_NONE};
    expand_module(&expander, 0, "", root);
    g_autofree char *culprit = expander.culprit;
    if (!expander.in_range) {
        g_set_error(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_RANGE,
                    "%s; sizes must be positive, and a model has at most %" G_GINT64_FORMAT
                    " elements in %d modules and parameters",
                    culprit ? culprit : "the model is too large", ZP_TREE_MAX_ELEMENTS,
                    ZP_TREE_MAX_PARTS);
        return FALSE;
    }
    zp_tree_assign_layers(model, notes, layers);
    return TRUE;
}
