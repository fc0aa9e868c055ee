/* The stages of a pipeline. */
#include "models/parallel/parallel.h"

/* Moves a range of entries to their places among those that stay. */
static void
keep_parameters(ZpModel *model, gint32 n_layers)
{
    g_autofree gint32 *place = g_new(gint32, model->parameters->len + 1);
    guint kept = 0;
    for (guint p = 0; p < model->parameters->len; p++) {
        gint32 layer = zp_model_parameter(model, (gint32)p)->layer;
        place[p] = (gint32)kept;
        kept += layer < n_layers; /* ZP_MODEL_NONE stays */
    }
    place[model->parameters->len] = (gint32)kept;
    for (guint m = 0; m < model->modules->len; m++) {
        ZpModelModule *module = &g_array_index(model->modules, ZpModelModule, m);
        if (module->n_parameters > 0) {
            gint32 end = module->first_parameter + module->n_parameters;
            module->first_parameter = place[module->first_parameter];
            module->n_parameters = place[end] - module->first_parameter;
        }
        if (module->layer >= n_layers)
            module->layer = ZP_MODEL_NONE;
    }
    for (guint p = 0; p < model->parameters->len; p++) {
        ZpModelParameter parameter = *zp_model_parameter(model, (gint32)p);
        if (parameter.layer >= n_layers)
            continue;
        if (parameter.tied_to != ZP_MODEL_NONE)
            parameter.tied_to = place[parameter.tied_to];
        g_array_index(model->parameters, ZpModelParameter, (guint)place[p]) = parameter;
    }
    g_array_set_size(model->parameters, kept);
}

static gint32
first_layer_of(const ZpModel *model, gint32 block)
{
    for (guint l = 0; l < model->layers->len; l++) {
        if (zp_model_layer(model, (gint32)l)->block == block)
            return (gint32)l;
    }
    g_assert_not_reached();
}

ZpModel *
zp_parallel_cut_stage(ZpModel *model, gint32 pipeline, GError **error)
{
    if (model->n_blocks == 0 || model->n_blocks % pipeline != 0) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_PIPELINE,
                    "%d stages do not divide %d blocks", pipeline, model->n_blocks);
        return NULL;
    }
    gint32 blocks = model->n_blocks / pipeline;
    gint32 end = first_layer_of(model, blocks);
    gint32 last = first_layer_of(model, model->n_blocks - blocks);
    ZpModel *other = zp_model_new(model->name);
    other->family = model->family;
    for (gint32 l = last; l < (gint32)model->layers->len; l++)
        g_array_append_val(other->layers, g_array_index(model->layers, ZpModelLayer, (guint)l));
    for (guint l = 0; l < other->layers->len; l++) /* pipelines play sums */
        g_array_index(other->layers, ZpModelLayer, l).script = 0;
    g_array_append_vals(other->activations, model->activations->data, model->activations->len);
    other->n_blocks = blocks;
    other->hidden = model->hidden;
    other->ffn = model->ffn;
    other->heads = model->heads;
    other->kv_heads = model->kv_heads;
    other->head_size = model->head_size;
    other->vocabulary = model->vocabulary;
    keep_parameters(model, end);
    g_array_set_size(model->layers, (guint)end);
    model->n_blocks = blocks;
    model->n_active_elements = 0; /* counted anew: what the stage has */
    zp_model_finish(model);
    return other;
}
