#include "models/runtimes/fsdp/own_units_internal.h"

static gboolean
is_wrapped(const ZpModelParameter *parameter, const gboolean *has_children)
{
    return parameter->module != ZP_MODEL_NONE && !has_children[parameter->module] &&
           parameter->trainable && parameter->layer != ZP_MODEL_NONE &&
           parameter->tied_to == ZP_MODEL_NONE && g_str_has_suffix(parameter->name, "weight");
}

void
zp_fsdp_own_units_find(ZpFsdpOwnUnits *own, const ZpModel *model, gboolean wanted,
                       gint32 first_unit)
{
    g_autofree gboolean *has_children = g_new0(gboolean, model->modules->len + 1);
    *own = (ZpFsdpOwnUnits){
        .of_module = g_new(gint32, model->modules->len + 1),
        .layers = g_array_new(FALSE, FALSE, sizeof(gint32)),
    };
    for (guint m = 0; m < model->modules->len; m++) {
        const ZpModelModule *module = zp_model_module(model, (gint32)m);
        own->of_module[m] = ZP_FSDP_NONE;
        if (module->parent != ZP_MODEL_NONE)
            has_children[module->parent] = TRUE;
    }
    for (guint p = 0; p < model->parameters->len && wanted; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (!is_wrapped(parameter, has_children))
            continue;
        own->of_module[parameter->module] = first_unit + (gint32)own->layers->len;
        g_array_append_val(own->layers, parameter->layer);
    }
}

void
zp_fsdp_own_units_clear(ZpFsdpOwnUnits *own)
{
    g_clear_pointer(&own->of_module, g_free);
    g_clear_pointer(&own->layers, g_array_unref);
}

const char *
zp_fsdp_own_unit_name(const ZpFsdpOwnUnits *own, const ZpModel *model, gint32 unit)
{
    for (guint m = 0; m < model->modules->len; m++) {
        if (own->of_module[m] == unit)
            return g_intern_string(zp_model_module(model, (gint32)m)->name);
    }
    g_assert_not_reached();
}
