#include "models/model.h"

static void
clear_module(gpointer data)
{
    ZpModelModule *module = data;
    g_free(module->calls);
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
    g_free(model);
}

gint32
zp_model_add_activation(ZpModel *model, const ZpModelActivation *activation)
{
    g_array_append_val(model->activations, *activation);
    return (gint32)model->activations->len - 1;
}

void
zp_model_add_layer(ZpModel *model, const char *name, gint64 elements, gint32 repeat,
                   gint64 flops_per_token, gint64 kept_bytes_per_token,
                   gint64 input_bytes_per_token)
{
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
            .kept_bytes_per_token = kept_bytes_per_token,
            .selective_bytes_per_token = kept_bytes_per_token,
            .input_bytes_per_token = input_bytes_per_token,
            .activation = ZP_MODEL_NONE,
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

void
zp_model_finish(ZpModel *model)
{
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
