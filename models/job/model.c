#include "models/job/model.h"

#include <string.h>

static void
clear_module(gpointer data)
{
    ZpModelModule *module = data;
    g_free(module->calls);
}

void
zp_model_scripts_clear(ZpModelScripts *scripts)
{
    for (int p = 0; p < ZP_MODEL_POLICIES; p++)
        for (int alone = 0; alone <= 1; alone++)
            g_clear_pointer(&scripts->of[p][alone], zp_model_script_unref);
}

static void
clear_scripts(gpointer data)
{
    zp_model_scripts_clear(data);
}

ZpModel *
zp_model_new(const char *name)
{
    static gint next_serial = 1; /* a counter, nothing that a result depends on */
    ZpModel *model = g_new0(ZpModel, 1);
    model->serial = g_atomic_int_add(&next_serial, 1);
    model->name = g_intern_string(name);
    model->family = "";
    model->parameters = g_array_new(FALSE, TRUE, sizeof(ZpModelParameter));
    model->modules = g_array_new(FALSE, TRUE, sizeof(ZpModelModule));
    g_array_set_clear_func(model->modules, clear_module);
    model->layers = g_array_new(FALSE, TRUE, sizeof(ZpModelLayer));
    model->activations = g_array_new(FALSE, TRUE, sizeof(ZpModelActivation));
    model->scripts = g_array_new(FALSE, TRUE, sizeof(ZpModelScripts));
    g_array_set_clear_func(model->scripts, clear_scripts);
    for (gsize i = 0; i < G_N_ELEMENTS(model->head_events); i++)
        model->head_events[i] = g_array_new(FALSE, TRUE, sizeof(ZpModelEvent));
    return model;
}

void
zp_model_free(ZpModel *model)
{
    if (model == NULL)
        return;
    g_array_unref(model->parameters);
    g_array_unref(model->modules);
    g_array_unref(model->layers);
    g_array_unref(model->activations);
    g_array_unref(model->scripts);
    for (gsize i = 0; i < G_N_ELEMENTS(model->head_events); i++)
        g_array_unref(model->head_events[i]);
    g_free(model);
}

/* Field by field: a peak has padding and forms past its count, which say nothing. */
static gboolean
equal_peaks(const ZpModelPeak *a, const ZpModelPeak *b)
{
    return a->n_forms == b->n_forms &&
           memcmp(a->forms, b->forms, (gsize)a->n_forms * sizeof *a->forms) == 0;
}

static gboolean
equal_policies(const ZpModelPolicyBytes *a, const ZpModelPolicyBytes *b)
{
    return memcmp(&a->kept, &b->kept, sizeof a->kept) == 0 &&
           memcmp(&a->recomputed, &b->recomputed, sizeof a->recomputed) == 0 &&
           equal_peaks(&a->forward, &b->forward) && equal_peaks(&a->recompute, &b->recompute) &&
           equal_peaks(&a->backward, &b->backward);
}

static gboolean
equal_activations(const ZpModelActivation *a, const ZpModelActivation *b)
{
    gboolean equal = a->differs_alone == b->differs_alone &&
                     memcmp(&a->handed, &b->handed, sizeof a->handed) == 0;
    for (int p = 0; p < ZP_MODEL_POLICIES && equal; p++)
        equal = equal_policies(&a->policies[p], &b->policies[p]) &&
                (!a->differs_alone || equal_policies(&a->alone[p], &b->alone[p]));
    return equal;
}

gint32
zp_model_add_activation(ZpModel *model, const ZpModelActivation *activation)
{
    const ZpModelActivation nothing = {0};
    if (equal_activations(activation, &nothing))
        return ZP_MODEL_NONE;
    for (guint a = 0; a < model->activations->len; a++)
        if (equal_activations(activation, zp_model_activation(model, (gint32)a)))
            return (gint32)a;
    g_array_append_val(model->activations, *activation);
    return (gint32)model->activations->len - 1;
}

static ZpModelBytes
difference(const ZpModelBytes *a, const ZpModelBytes *b)
{
    return (ZpModelBytes){
        .constant_bytes = a->constant_bytes - b->constant_bytes,
        .bytes_per_token = a->bytes_per_token - b->bytes_per_token,
        .bytes_per_pair = a->bytes_per_pair - b->bytes_per_pair,
        .bytes_per_position = a->bytes_per_position - b->bytes_per_position,
        .bytes_per_position_pair = a->bytes_per_position_pair - b->bytes_per_position_pair,
        .bytes_per_sequence = a->bytes_per_sequence - b->bytes_per_sequence,
    };
}

ZpModelActivation
zp_model_activation_of(const ZpModelBytes *kept, const ZpModelBytes *selective,
                       const ZpModelBytes *input)
{
    return (ZpModelActivation){.policies = {
                                   {.kept = *kept},
                                   {.kept = *selective, .recomputed = difference(kept, selective)},
                                   {.kept = *input, .recomputed = difference(kept, input)},
                               }};
}

void
zp_model_add_layer(ZpModel *model, const char *name, gint64 elements, gint32 repeat,
                   gint64 flops_per_token, gint64 kept_bytes_per_token,
                   gint64 input_bytes_per_token)
{
    const ZpModelBytes kept = {.bytes_per_token = kept_bytes_per_token};
    const ZpModelBytes input = {.bytes_per_token = input_bytes_per_token};
    ZpModelActivation activation = zp_model_activation_of(&kept, &kept, &input);
    gint32 entry = zp_model_add_activation(model, &activation);
    for (gint32 i = 0; i < repeat; i++) {
        g_autofree char *full = repeat == 1 ? g_strdup(name) : g_strdup_printf("%s.%d", name, i);
        gint32 index = (gint32)model->layers->len;
        ZpModelLayer layer = {
            .name = g_intern_string(full),
            .kind = ZP_LAYER_OTHER,
            .block = index,
            .module = ZP_MODEL_NONE,
            .elements = elements,
            .flops_per_token = flops_per_token < 0 ? 2 * elements : flops_per_token,
            .activation = entry,
        };
        g_array_append_val(model->layers, layer);
        g_autofree char *weight = g_strconcat(full, ".weight", NULL);
        ZpModelParameter parameter = {
            .name = g_intern_string(weight),
            .elements = elements,
            .shape = {elements},
            .n_dims = 1,
            .module = ZP_MODEL_NONE,
            .layer = index,
            .tied_to = ZP_MODEL_NONE,
            .trainable = TRUE,
        };
        g_array_append_val(model->parameters, parameter);
    }
    model->n_blocks = (gint32)model->layers->len;
}

ZpModel *
zp_model_new_total(gint64 n_elements, gint32 n_layers)
{
    ZpModel *model = zp_model_new("total");
    model->family = "total";
    gint64 each = n_elements / n_layers;
    gint32 remainder = (gint32)(n_elements % n_layers);
    for (gint32 i = 0; i < n_layers; i++) {
        g_autofree char *name = g_strdup_printf("layer.%d", i);
        zp_model_add_layer(model, name, each + (i < remainder), 1, -1, 0, 0);
    }
    zp_model_finish(model);
    return model;
}

/* An embedding looks its rows up, a vector is added or multiplied in: only matrices are in
 * products. Layers of a hand-spelt model have their weights as one vector. */
static void
count_weights(ZpModel *model)
{
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        layer->weight_elements = layer->frozen_weight_elements = 0;
    }
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->layer == ZP_MODEL_NONE ||
            (parameter->n_dims < 2 && parameter->module != ZP_MODEL_NONE))
            continue;
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, (guint)parameter->layer);
        if (layer->kind == ZP_LAYER_EMBEDDING)
            continue;
        layer->weight_elements += parameter->elements;
        if (!parameter->trainable)
            layer->frozen_weight_elements += parameter->elements;
    }
}

void
zp_model_finish(ZpModel *model)
{
    count_weights(model);
    model->n_elements = model->n_trainable_elements = 0;
    for (guint i = 0; i < model->parameters->len; i++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)i);
        if (parameter->tied_to != ZP_MODEL_NONE)
            continue;
        model->n_elements += parameter->elements;
        if (parameter->trainable)
            model->n_trainable_elements += parameter->elements;
    }
    if (model->n_active_elements == 0)
        model->n_active_elements = model->n_elements;
}
