/* The hook tree of a model. */
#include <string.h>

#include "models/runtimes/deepspeed/modules/tree.h"

static void
add_parameters(ZpDsTree *tree, const ZpModel *model, gint32 module, gint32 first, gint32 n)
{
    for (gint32 p = first; p < first + n; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, p);
        gint32 owner = parameter->tied_to != ZP_MODEL_NONE ? parameter->tied_to : p;
        const ZpModelParameter *stored = zp_model_parameter(model, owner);
        gint32 id = zp_ds_tree_add_parameter(tree, module, stored->name, stored->elements,
                                             stored->trainable);
        zp_ds_tree_parameter(tree, id)->model_index = owner;
    }
}

/* Fed token ids: an embedding, and every module around one. */
static void
mark_no_post_backward(ZpDsTree *tree, gint32 module)
{
    for (gint32 m = module; m != ZP_MODEL_NONE; m = zp_ds_tree_module(tree, m)->parent)
        zp_ds_tree_module(tree, m)->no_post_backward = TRUE;
}

static ZpDsTree *
from_modules(const ZpModel *model)
{
    ZpDsTree *tree = zp_ds_tree_new();
    gint32 n = (gint32)model->modules->len;
    for (gint32 m = 0; m < n; m++) {
        const ZpModelModule *source = zp_model_module(model, m);
        gint32 index = zp_ds_tree_add_module(tree, source->name, source->parent);
        ZpDsModule *module = zp_ds_tree_module(tree, index);
        module->container = source->container;
        module->layer = source->layer;
        module->linear = strcmp(source->class_name, "Linear") == 0;
        /* Position angles are computed from constants: no gradient passes. */
        module->no_backward = strstr(source->class_name, "RotaryEmbedding") != NULL;
        add_parameters(tree, model, m, source->first_parameter, source->n_parameters);
        if (source->n_parameters > 0 && strstr(source->class_name, "Embedding") != NULL)
            mark_no_post_backward(tree, m);
    }
    zp_ds_tree_module(tree, 0)->no_post_backward = TRUE;
    for (gint32 m = 0; m < n; m++) {
        const ZpModelModule *source = zp_model_module(model, m);
        if (source->n_calls > 0)
            zp_ds_tree_set_calls(tree, m, source->calls, source->n_calls);
    }
    zp_ds_tree_finish(tree);
    return tree;
}

/* A model without modules: the root calls one module a layer. */
static ZpDsTree *
from_layers(const ZpModel *model)
{
    ZpDsTree *tree = zp_ds_tree_new();
    gint32 root = zp_ds_tree_add_module(tree, g_intern_static_string(""), ZP_MODEL_NONE);
    zp_ds_tree_module(tree, root)->no_post_backward = TRUE;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        gint32 module = zp_ds_tree_add_module(tree, layer->name, root);
        zp_ds_tree_module(tree, module)->layer = l;
        zp_ds_tree_module(tree, module)->no_post_backward = l == 0;
        for (gint32 p = 0; p < (gint32)model->parameters->len; p++)
            if (zp_model_parameter(model, p)->layer == l)
                add_parameters(tree, model, module, p, 1);
    }
    zp_ds_tree_finish(tree);
    return tree;
}

ZpDsTree *
zp_ds_tree_new_from_model(const ZpModel *model)
{
    return model->modules->len > 0 ? from_modules(model) : from_layers(model);
}
