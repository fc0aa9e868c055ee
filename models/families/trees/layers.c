#include "models/families/trees/tree.h"

#include "models/words/names.h"

typedef struct {
    ZpModel *model;
    const GArray *notes;
    GArray *layers;
    GArray *ends;    /* gint32: after the last descendant of each module */
    GArray *visited; /* gboolean */
} Walker;

static void
count_ends(const ZpModel *model, GArray *ends)
{
    g_array_set_size(ends, model->modules->len);
    gint32 *end = &g_array_index(ends, gint32, 0);
    for (gint32 m = (gint32)model->modules->len - 1; m >= 0; m--) {
        end[m] = MAX(end[m], m + 1);
        gint32 parent = zp_model_module(model, m)->parent;
        if (parent != ZP_MODEL_NONE)
            end[parent] = MAX(end[parent], end[m]);
    }
}

/* The layer of that name in that block, made where it is new. */
static gint32
find_layer(Walker *walker, gint32 module)
{
    const ZpTreeNote *note = &g_array_index(walker->notes, ZpTreeNote, module);
    gint32 block = zp_model_module(walker->model, module)->block;
    const char *name = note->layer_name;
    g_autofree char *full = NULL;
    if (block != ZP_MODEL_NONE) {
        full = g_strdup_printf("block.%d.%s", block, note->layer_name);
        name = zp_names_intern(full);
    }
    for (gint32 l = (gint32)walker->model->layers->len - 1; l >= 0; l--) {
        const ZpModelLayer *layer = zp_model_layer(walker->model, l);
        if (layer->name == name)
            return l;
        if (block != ZP_MODEL_NONE && layer->block != block)
            break;
    }
    ZpModelLayer layer = {.name = name,
                          .kind = note->layer_kind,
                          .block = block,
                          .module = ZP_MODEL_NONE,
                          .activation = ZP_MODEL_NONE};
    ZpTreeLayer facts = {0};
    g_array_append_val(walker->model->layers, layer);
    g_array_append_val(walker->layers, facts);
    return (gint32)walker->model->layers->len - 1;
}

static void
add_facts(ZpTreeLayer *sum, const ZpTreeLayer *part)
{
    sum->norms_width += part->norms_width;
    sum->residual_width = MAX(sum->residual_width, part->residual_width);
    sum->latent_width += part->latent_width;
    sum->inner_width += part->inner_width;
    sum->expert_inner_width += part->expert_inner_width;
    sum->chosen_experts = MAX(sum->chosen_experts, part->chosen_experts);
    sum->experts = MAX(sum->experts, part->experts);
    sum->expert_matrix_elements += part->expert_matrix_elements;
    sum->matrix_elements += part->matrix_elements;
    sum->active_elements += part->active_elements;
    sum->table_elements += part->table_elements;
    if (part->heads > 0) {
        sum->heads = part->heads;
        sum->kv_heads = part->kv_heads;
        sum->qk_width = part->qk_width;
        sum->v_width = part->v_width;
    }
}

static void
visit(Walker *walker, gint32 index)
{
    g_array_index(walker->visited, gboolean, index) = TRUE;
    const ZpTreeNote *note = &g_array_index(walker->notes, ZpTreeNote, index);
    if (note->layer_name == NULL)
        return;
    gint32 l = find_layer(walker, index);
    ZpModelModule *module = &g_array_index(walker->model->modules, ZpModelModule, index);
    module->layer = l;
    ZpModelLayer *layer = &g_array_index(walker->model->layers, ZpModelLayer, l);
    gboolean is_norm = note->facts.norms_width > 0 && layer->kind != ZP_LAYER_NORM;
    if (layer->module == ZP_MODEL_NONE && !is_norm)
        layer->module = index;
    add_facts(&g_array_index(walker->layers, ZpTreeLayer, l), &note->facts);
}

static void
walk(Walker *walker, gint32 index)
{
    visit(walker, index);
    const ZpModelModule *module = zp_model_module(walker->model, index);
    for (gint32 c = 0; c < module->n_calls; c++)
        walk(walker, module->calls[c]);
    gint32 end = g_array_index(walker->ends, gint32, index);
    for (gint32 child = index + 1; child < end; child = g_array_index(walker->ends, gint32, child))
        if (!g_array_index(walker->visited, gboolean, child))
            walk(walker, child);
}

static void
place_parameters(ZpModel *model)
{
    for (guint i = 0; i < model->parameters->len; i++) {
        ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, i);
        parameter->layer = zp_model_module(model, parameter->module)->layer;
        if (parameter->layer == ZP_MODEL_NONE)
            continue;
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, parameter->layer);
        if (parameter->tied_to == ZP_MODEL_NONE)
            layer->elements += parameter->elements;
        else if (zp_model_parameter(model, parameter->tied_to)->layer != parameter->layer)
            layer->tied_elements += parameter->elements;
    }
}

void
zp_tree_assign_layers(ZpModel *model, const GArray *notes, GArray *layers)
{
    g_autoptr(GArray) ends = g_array_new(FALSE, TRUE, sizeof(gint32));
    g_autoptr(GArray) visited = g_array_new(FALSE, TRUE, sizeof(gboolean));
    g_array_set_size(visited, model->modules->len);
    count_ends(model, ends);
    Walker walker = {model, notes, layers, ends, visited};
    walk(&walker, 0);
    place_parameters(model);
}
