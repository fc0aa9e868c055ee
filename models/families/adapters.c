#include "models/families/adapters.h"

#include "models/families/forms_internal.h"
#include "models/job/job.h"
#include "models/words/names.h"

#include <string.h>

G_DEFINE_QUARK(zp - adapters - error - quark, zp_adapters_error)

gint64
zp_model_freeze(ZpModel *model, const char *pattern)
{
    g_autoptr(GPatternSpec) spec = g_pattern_spec_new(pattern);
    gint64 before = model->n_trainable_elements;
    for (guint i = 0; i < model->parameters->len; i++) {
        ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, i);
        if (parameter->tied_to == ZP_MODEL_NONE &&
            g_pattern_spec_match_string(spec, parameter->name))
            parameter->trainable = FALSE;
    }
    for (guint i = 0; i < model->parameters->len; i++) {
        ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, i);
        if (parameter->tied_to != ZP_MODEL_NONE)
            parameter->trainable = zp_model_parameter(model, parameter->tied_to)->trainable;
    }
    zp_model_finish(model);
    return before - model->n_trainable_elements;
}

static const char *
last_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Is this the weight of a matrix product in a module that `targets` names? */
static gboolean
is_target(const ZpModel *model, const ZpModelParameter *parameter, char **targets)
{
    if (parameter->n_dims != 2 || parameter->module == ZP_MODEL_NONE ||
        strcmp(last_name(parameter->name), "weight") != 0)
        return FALSE;
    const char *module = zp_model_module(model, parameter->module)->name;
    for (gsize t = 0; targets == NULL || targets[t]; t++) {
        if (targets == NULL)
            return TRUE;
        if (strcmp(last_name(module), targets[t]) == 0 ||
            g_pattern_match_simple(targets[t], module))
            return TRUE;
    }
    return FALSE;
}

static gint32
parameter_at(const ZpModel *model, gint32 layer, gint64 elements, int skip)
{
    for (gint32 p = 0; p < (gint32)model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, p);
        if (parameter->layer == layer && parameter->elements == elements && skip-- == 0)
            return p;
    }
    return ZP_MODEL_NONE;
}

guint64
zp_adapters_mask(const ZpModel *model, gint32 first, gint32 n_layers, const ZpModelScript *script,
                 const char *targets)
{
    enum { BITS = 64 };
    guint64 mask = 0;
    g_auto(GStrv) names = g_strsplit(targets, ",", -1);
    for (gsize i = 0; names[i]; i++)
        g_strstrip(names[i]);
    for (guint k = 0; k < MIN(script->parameters->len, BITS); k++) {
        const ZpModelScriptParameter *own =
            &g_array_index(script->parameters, ZpModelScriptParameter, k);
        int skip = 0;
        for (guint j = 0; j < k; j++) {
            const ZpModelScriptParameter *before =
                &g_array_index(script->parameters, ZpModelScriptParameter, j);
            skip += before->part == own->part && before->elements == own->elements;
        }
        gint32 p = own->part < n_layers
                       ? parameter_at(model, first + own->part, own->elements, skip)
                       : ZP_MODEL_NONE;
        if (p != ZP_MODEL_NONE && is_target(model, zp_model_parameter(model, p), names))
            mask |= G_GUINT64_CONSTANT(1) << k;
    }
    return mask;
}

/* Modules stored as [in, out]: GPT-2's Conv1D. */
static gboolean
is_transposed(const ZpModel *model, const ZpModelParameter *parameter)
{
    return strcmp(zp_model_module(model, parameter->module)->class_name, "Conv1D") == 0;
}

static void
refuse_targets(const ZpModel *model, const char *targets, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < model->parameters->len; i++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)i);
        if (!is_target(model, parameter, NULL))
            continue;
        const char *name = last_name(zp_model_module(model, parameter->module)->name);
        if (g_hash_table_add(seen, (gpointer)name) && g_hash_table_size(seen) <= 12)
            g_string_append_printf(known, "%s%s", known->len ? ", " : "", name);
    }
    g_set_error(error, ZP_ADAPTERS_ERROR, ZP_ADAPTERS_ERROR_NO_TARGET,
                "no module matches '%s'; there are: %s", targets,
                known->len ? known->str : "none with a matrix");
}

typedef struct {
    ZpModel *model;
    GArray *parameters, *modules; /* the new arrays */
    gint32 *new_module;           /* of each old module */
    gint32 *new_parameter;        /* of each old parameter */
    gint32 rank;
    char **targets;
    gint64 *kept; /* bytes per token that adapters add to each layer */
} Adapter;

/* Adds the module `name` with one weight [rows, columns]. */
static void
append_adapter(Adapter *adapter, const ZpModelParameter *base, gint32 parent, const char *name,
               gint64 rows, gint64 columns)
{
    const ZpModelModule *owner = &g_array_index(adapter->modules, ZpModelModule, parent);
    g_autofree char *full = g_strconcat(owner->name, ".", name, ".default", NULL);
    g_autofree char *weight = g_strconcat(full, ".weight", NULL);
    ZpModelModule module = {
        .name = zp_names_intern(full),
        .class_name = "Linear",
        .parent = parent,
        .first_parameter = (gint32)adapter->parameters->len,
        .n_parameters = 1,
        .layer = base->layer,
        .block = owner->block,
    };
    ZpModelParameter parameter = {
        .name = zp_names_intern(weight),
        .elements = rows * columns,
        .shape = {rows, columns},
        .n_dims = 2,
        .module = (gint32)adapter->modules->len,
        .layer = base->layer,
        .tied_to = ZP_MODEL_NONE,
        .trainable = TRUE,
        .expert = base->expert,
    };
    g_array_append_val(adapter->modules, module);
    g_array_append_val(adapter->parameters, parameter);
}

/* Of the residual stream, which a block's checkpoint is; 2 where no block says. */
static gint64
stream_number_bytes(const ZpModel *model)
{
    for (gint32 l = 0; l < (gint32)model->layers->len && model->hidden > 0; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        if (layer->block == ZP_MODEL_NONE || layer->activation == ZP_MODEL_NONE)
            continue;
        const ZpModelActivation *activation = zp_model_activation(model, layer->activation);
        gint64 input = activation->policies[ZP_CHECKPOINTING_FULL].kept.bytes_per_token;
        return MAX(input / model->hidden, 1);
    }
    return 2;
}

/* What the adapter of one weight adds to its layer's costs; an expert's counts like a dense one
 * where it is met, so it is scaled by how many experts a token meets. */
static void
add_costs(Adapter *adapter, const ZpModelParameter *base, gint64 elements, double met)
{
    if (base->layer == ZP_MODEL_NONE)
        return;
    ZpModelLayer *layer = &g_array_index(adapter->model->layers, ZpModelLayer, base->layer);
    gint64 used = (gint64)((double)elements * met);
    layer->elements += elements;
    layer->flops_per_token += 2 * used;
    adapter->model->n_active_elements += used;
    gint64 number_bytes = stream_number_bytes(adapter->model);
    adapter->kept[base->layer] += (gint64)((double)(number_bytes * adapter->rank) * met);
}

/* The share of a mixture's experts that a token meets. */
static double
share_met(const ZpModel *model)
{
    gint64 experts = 0;
    for (guint i = 0; i < model->parameters->len; i++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)i);
        experts += parameter->expert ? parameter->elements : 0;
    }
    gint64 idle = model->n_elements - model->n_active_elements;
    return experts > 0 ? 1.0 - (double)idle / (double)experts : 1.0;
}

static void
copy_module(Adapter *adapter, gint32 index)
{
    ZpModelModule module = *zp_model_module(adapter->model, index);
    gint32 first = module.first_parameter, n = module.n_parameters;
    module.parent =
        module.parent == ZP_MODEL_NONE ? ZP_MODEL_NONE : adapter->new_module[module.parent];
    module.first_parameter = (gint32)adapter->parameters->len;
    gint32 place = (gint32)adapter->modules->len;
    adapter->new_module[index] = place;
    g_array_append_val(adapter->modules, module);
    for (gint32 p = first; p < first + n; p++) {
        ZpModelParameter parameter = *zp_model_parameter(adapter->model, p);
        parameter.module = place;
        parameter.trainable = FALSE;
        adapter->new_parameter[p] = (gint32)adapter->parameters->len;
        g_array_append_val(adapter->parameters, parameter);
    }
}

static void
adapt_module(Adapter *adapter, gint32 index, double met)
{
    copy_module(adapter, index);
    const ZpModelModule *module = zp_model_module(adapter->model, index);
    for (gint32 p = module->first_parameter; p < module->first_parameter + module->n_parameters;
         p++) {
        const ZpModelParameter *base = zp_model_parameter(adapter->model, p);
        if (!is_target(adapter->model, base, adapter->targets))
            continue;
        gboolean transposed = is_transposed(adapter->model, base);
        gint64 in = base->shape[transposed ? 0 : 1], out = base->shape[transposed ? 1 : 0];
        gint32 parent = adapter->new_module[index];
        append_adapter(adapter, base, parent, "lora_A", adapter->rank, in);
        append_adapter(adapter, base, parent, "lora_B", out, adapter->rank);
        add_costs(adapter, base, adapter->rank * (in + out), base->expert ? met : 1.0);
    }
}

static void
replace_arrays(Adapter *adapter)
{
    ZpModel *model = adapter->model;
    for (guint i = 0; i < adapter->parameters->len; i++) {
        ZpModelParameter *parameter = &g_array_index(adapter->parameters, ZpModelParameter, i);
        if (parameter->tied_to != ZP_MODEL_NONE)
            parameter->tied_to = adapter->new_parameter[parameter->tied_to];
    }
    for (guint i = 0; i < model->modules->len; i++) {
        ZpModelModule *old = &g_array_index(model->modules, ZpModelModule, i);
        for (gint32 c = 0; c < old->n_calls; c++)
            old->calls[c] = adapter->new_module[old->calls[c]];
        old->calls = NULL; /* now the new entry's */
    }
    g_array_unref(model->parameters);
    model->parameters = adapter->parameters;
    /* The model's own array knows how to free the calls: refill it. */
    g_array_set_size(model->modules, 0);
    g_array_append_vals(model->modules, adapter->modules->data, adapter->modules->len);
    g_array_unref(adapter->modules);
}

/* Kept under a policy that brings nothing back, brought back under one that does. */
static void
add_bytes(ZpModelActivation *activation, gint64 bytes_per_token)
{
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
            gboolean dropped = set[p].recomputed.bytes_per_token > 0;
            (dropped ? &set[p].recomputed : &set[p].kept)->bytes_per_token += bytes_per_token;
        }
}

/* Layers that were alike and get the same stay alike. */
static void
add_activations(Adapter *adapter)
{
    ZpModel *model = adapter->model;
    g_autoptr(GHashTable) made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        gint64 bytes = adapter->kept[l];
        if (bytes == 0)
            continue;
        g_autofree char *key = g_strdup_printf("%d %" G_GINT64_FORMAT, layer->activation, bytes);
        gpointer known = g_hash_table_lookup(made, key);
        if (known == NULL) {
            ZpModelActivation activation = {0};
            if (layer->activation != ZP_MODEL_NONE)
                activation = *zp_model_activation(model, layer->activation);
            add_bytes(&activation, bytes);
            known = GINT_TO_POINTER(zp_model_add_activation(model, &activation) + 1);
            g_hash_table_insert(made, g_steal_pointer(&key), known);
        }
        layer->activation = GPOINTER_TO_INT(known) - 1;
    }
}

gboolean
zp_model_add_lora(ZpModel *model, gint32 rank, const char *targets, gboolean counted,
                  GError **error)
{
    g_auto(GStrv) names = g_strsplit(targets, ",", -1);
    for (gsize i = 0; names[i]; i++)
        g_strstrip(names[i]);
    if (rank <= 0) {
        g_set_error(error, ZP_ADAPTERS_ERROR, ZP_ADAPTERS_ERROR_RANGE, "rank %d is not at least 1",
                    rank);
        return FALSE;
    }
    gboolean any = FALSE;
    for (guint i = 0; i < model->parameters->len && !any; i++)
        any = is_target(model, zp_model_parameter(model, (gint32)i), names);
    if (!any) {
        refuse_targets(model, targets, error);
        return FALSE;
    }
    g_autoptr(GArray) new_module = g_array_new(FALSE, TRUE, sizeof(gint32));
    g_autoptr(GArray) new_parameter = g_array_new(FALSE, TRUE, sizeof(gint32));
    g_array_set_size(new_module, model->modules->len);
    g_array_set_size(new_parameter, model->parameters->len);
    g_autofree gint64 *kept = g_new0(gint64, model->layers->len);
    Adapter adapter = {
        .model = model,
        .kept = kept,
        .parameters = g_array_new(FALSE, TRUE, sizeof(ZpModelParameter)),
        .modules = g_array_new(FALSE, TRUE, sizeof(ZpModelModule)),
        .new_module = &g_array_index(new_module, gint32, 0),
        .new_parameter = &g_array_index(new_parameter, gint32, 0),
        .rank = rank,
        .targets = names,
    };
    double met = share_met(model);
    for (gint32 m = 0; m < (gint32)model->modules->len; m++)
        adapt_module(&adapter, m, met);
    replace_arrays(&adapter);
    if (!counted)
        add_activations(&adapter);
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        if (!counted)
            layer->script = 0; /* knows nothing of adapters */
        if (layer->module != ZP_MODEL_NONE)
            layer->module = adapter.new_module[layer->module];
    }
    zp_model_finish(model);
    return TRUE;
}
