/* The five ways to describe a model, and the model built from the one that was chosen. */
#include <string.h>

#include "models/catalog.h"
#include "scenarios/scenario_resolve.h"

static const ZpSchemaId required[] = {ZP_KEY_LAYERS, ZP_KEY_HIDDEN, ZP_KEY_HEADS, ZP_KEY_FFN,
                                      ZP_KEY_VOCABULARY};

static gboolean
is_dimension(int id)
{
    return id >= ZP_KEY_LAYERS && id <= ZP_KEY_FINAL_NORM;
}

/* --- which way --- */

/* The key that shows that a way was taken, or ZP_N_KEYS. */
static ZpSchemaId
sign_of(const ZpScenarioResolve *resolve, ZpScenarioRoute route)
{
    static const ZpSchemaId signs[] = {
        [ZP_ROUTE_CATALOG] = ZP_KEY_CATALOG,
        [ZP_ROUTE_CONFIG] = ZP_KEY_CONFIG,
        [ZP_ROUTE_TOTAL] = ZP_KEY_TOTAL_PARAMETERS,
    };
    if (route < ZP_ROUTE_DIMENSIONS)
        return zp_scenario_resolve_given(resolve, signs[route]) ? signs[route] : ZP_N_KEYS;
    for (int id = ZP_KEY_LAYERS; route == ZP_ROUTE_DIMENSIONS && id <= ZP_KEY_FINAL_NORM; id++) {
        if (zp_scenario_resolve_given(resolve, (ZpSchemaId)id))
            return (ZpSchemaId)id;
    }
    return ZP_N_KEYS;
}

static void
complain_two_ways(ZpScenarioResolve *resolve, ZpSchemaId first, ZpSchemaId second)
{
    zp_scenario_resolve_complain(
        resolve, second, ZP_SCENARIO_ERROR_CONFLICT,
        "the model is already described by model.%s (%s); keep one of catalog, config, "
        "total_parameters, dimensions or [layer NAME] groups (a value of 'auto' takes a key back)",
        zp_schema_key(first)->key, resolve->state->settings[first].origin);
}

static void
mark_present(ZpScenarioResolve *resolve)
{
    for (int id = ZP_KEY_CATALOG; id <= ZP_KEY_CAUSAL; id++) {
        gboolean present = FALSE;
        switch (resolve->route) {
        case ZP_ROUTE_CATALOG:
            present = id == ZP_KEY_CATALOG || id >= ZP_KEY_ATTENTION;
            break;
        case ZP_ROUTE_CONFIG:
            present = id == ZP_KEY_CONFIG || id >= ZP_KEY_ATTENTION;
            break;
        case ZP_ROUTE_TOTAL:
            present = id == ZP_KEY_TOTAL_PARAMETERS || id == ZP_KEY_PIECES;
            break;
        case ZP_ROUTE_DIMENSIONS:
            present = is_dimension(id) || id >= ZP_KEY_ATTENTION;
            break;
        case ZP_ROUTE_NONE:
        case ZP_ROUTE_LAYERS:
            break;
        }
        resolve->state->effective[id].present = present;
        if (!present && resolve->route != ZP_ROUTE_NONE &&
            zp_scenario_resolve_given(resolve, (ZpSchemaId)id) &&
            (id == ZP_KEY_PIECES || id >= ZP_KEY_ATTENTION))
            zp_scenario_resolve_warn(resolve, (ZpSchemaId)id,
                                     "has no effect on a model described in this way");
    }
}

static void
derive_dimensions(ZpScenarioResolve *resolve)
{
    const ZpScenarioState *state = resolve->state;
    g_autoptr(GString) missing = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(required); i++) {
        if (!zp_scenario_resolve_given(resolve, required[i]))
            g_string_append_printf(missing, "%s%s", missing->len > 0 ? ", " : "",
                                   zp_schema_key(required[i])->key);
    }
    if (missing->len > 0) {
        zp_scenario_resolve_complain(resolve, sign_of(resolve, ZP_ROUTE_DIMENSIONS),
                                     ZP_SCENARIO_ERROR_MISSING,
                                     "a model given by its dimensions also needs %s", missing->str);
        return;
    }
    gint64 heads = zp_scenario_state_integer(state, ZP_KEY_HEADS);
    gint64 hidden = zp_scenario_state_integer(state, ZP_KEY_HIDDEN);
    zp_scenario_resolve_put(resolve, ZP_KEY_KV_HEADS, heads, NULL);
    zp_scenario_resolve_put(resolve, ZP_KEY_QKV_BIAS,
                            zp_scenario_state_integer(state, ZP_KEY_ATTENTION_BIAS), NULL);
    gint64 kv_heads = zp_scenario_state_integer(state, ZP_KEY_KV_HEADS);
    if (heads % kv_heads != 0)
        zp_scenario_resolve_complain(resolve, ZP_KEY_KV_HEADS, ZP_SCENARIO_ERROR_RANGE,
                                     "%" G_GINT64_FORMAT
                                     " does not divide the number of heads, %" G_GINT64_FORMAT,
                                     kv_heads, heads);
    if (hidden % heads != 0 && !zp_scenario_resolve_given(resolve, ZP_KEY_HEAD_SIZE))
        zp_scenario_resolve_complain(resolve, ZP_KEY_HEADS, ZP_SCENARIO_ERROR_RANGE,
                                     "%" G_GINT64_FORMAT
                                     " heads do not divide hidden, %" G_GINT64_FORMAT
                                     ": state head_size if that is meant",
                                     heads, hidden);
    zp_scenario_resolve_put(resolve, ZP_KEY_HEAD_SIZE, MAX(1, hidden / heads), NULL);
    gint64 norms = zp_scenario_state_integer(state, ZP_KEY_NORMS_PER_BLOCK);
    if (norms == 3)
        zp_scenario_resolve_complain(resolve, ZP_KEY_NORMS_PER_BLOCK, ZP_SCENARIO_ERROR_RANGE,
                                     "legal are 1, 2 and 4");
}

void
zp_scenario_derive_route(ZpScenarioResolve *resolve)
{
    ZpSchemaId first = ZP_N_KEYS;
    for (int r = ZP_ROUTE_CATALOG; r <= ZP_ROUTE_DIMENSIONS; r++) {
        ZpSchemaId sign = sign_of(resolve, (ZpScenarioRoute)r);
        if (sign == ZP_N_KEYS)
            continue;
        if (first != ZP_N_KEYS) {
            complain_two_ways(resolve, first, sign);
            continue;
        }
        first = sign;
        resolve->route = (ZpScenarioRoute)r;
    }
    if (resolve->state->layers->len > 0) {
        const ZpScenarioLayer *layer = g_ptr_array_index(resolve->state->layers, 0);
        if (first != ZP_N_KEYS)
            zp_scenario_problems_add(resolve->problems, ZP_SCENARIO_ERROR_CONFLICT, layer->origin,
                                     "[%s]: the model is already described by model.%s (%s); keep "
                                     "one of them",
                                     layer->section, zp_schema_key(first)->key,
                                     resolve->state->settings[first].origin);
        else
            resolve->route = ZP_ROUTE_LAYERS;
    } else if (first == ZP_N_KEYS) {
        zp_scenario_problems_add(
            resolve->problems, ZP_SCENARIO_ERROR_MISSING, NULL,
            "[model]: no model: give catalog, config, total_parameters, dimensions (layers, "
            "hidden, heads, ffn, vocabulary) or [layer NAME] groups");
    }
    mark_present(resolve);
    if (resolve->route == ZP_ROUTE_DIMENSIONS)
        derive_dimensions(resolve);
}

/* --- the model --- */

static ZpArchitectureOptions
options_of(const ZpScenarioState *state)
{
    return (ZpArchitectureOptions){
        .compute = (ZpDtype)zp_scenario_state_integer(state, ZP_KEY_COMPUTE),
        .attention = (ZpAttentionImpl)zp_scenario_state_integer(state, ZP_KEY_ATTENTION),
        .causal = (gboolean)zp_scenario_state_integer(state, ZP_KEY_CAUSAL),
    };
}

static ZpModel *
build_from_dimensions(const ZpScenarioState *state, GError **error)
{
    ZpArchitectureOptions options = options_of(state);
    ZpArchitecture architecture = {
        .family = "",
        .layers = zp_scenario_state_integer(state, ZP_KEY_LAYERS),
        .hidden = zp_scenario_state_integer(state, ZP_KEY_HIDDEN),
        .heads = zp_scenario_state_integer(state, ZP_KEY_HEADS),
        .kv_heads = zp_scenario_state_integer(state, ZP_KEY_KV_HEADS),
        .head_size = zp_scenario_state_integer(state, ZP_KEY_HEAD_SIZE),
        .ffn = zp_scenario_state_integer(state, ZP_KEY_FFN),
        .vocabulary = zp_scenario_state_integer(state, ZP_KEY_VOCABULARY),
        .positions = zp_scenario_state_integer(state, ZP_KEY_POSITIONS),
        .gated = (gboolean)zp_scenario_state_integer(state, ZP_KEY_GATED),
        .tied = (gboolean)zp_scenario_state_integer(state, ZP_KEY_TIED),
        .attention_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_ATTENTION_BIAS),
        .qkv_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_QKV_BIAS),
        .mlp_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_MLP_BIAS),
        .head_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_HEAD_BIAS),
        .norm_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_NORM),
        .norms_per_block = (int)zp_scenario_state_integer(state, ZP_KEY_NORMS_PER_BLOCK),
        .final_norm = (gboolean)zp_scenario_state_integer(state, ZP_KEY_FINAL_NORM),
    };
    return zp_architecture_build(&architecture, &options, "dimensions", error);
}

/* A layer's setting or its default. */
static gint64
layer_integer(const ZpScenarioLayer *layer, ZpSchemaId id)
{
    const ZpScenarioSetting *setting = &layer->settings[id - ZP_KEY_LAYER_PARAMETERS];
    if (setting->given)
        return setting->value.integer;
    return id == ZP_KEY_LAYER_REPEAT ? 1 : id == ZP_KEY_LAYER_FLOPS ? -1 : 0;
}

/* Before anything is built: a refused scenario costs nothing. */
static gboolean
check_spelt_layers(ZpScenarioResolve *resolve)
{
    const GPtrArray *layers = resolve->state->layers;
    gint64 total = 0, n_layers = 0;
    for (guint l = 0; l < layers->len; l++) {
        const ZpScenarioLayer *layer = g_ptr_array_index(layers, l);
        gint64 repeat = layer_integer(layer, ZP_KEY_LAYER_REPEAT);
        gint64 elements = layer_integer(layer, ZP_KEY_LAYER_PARAMETERS);
        ZpScenarioError code = ZP_SCENARIO_ERROR_MISSING;
        const char *what = NULL;
        n_layers += repeat;
        if (!layer->settings[0].given) {
            what = "parameters is missing";
        } else if (n_layers > ZP_SCENARIO_MAX_LAYERS) {
            code = ZP_SCENARIO_ERROR_RANGE;
            what = "more than 10000 layers in all";
        } else if (elements > (ZP_SCENARIO_MAX_ELEMENTS - total) / repeat) {
            code = ZP_SCENARIO_ERROR_OVERFLOW;
            what = "more than 2^56 parameters in all";
        }
        if (what != NULL) {
            zp_scenario_problems_add(resolve->problems, code, layer->origin, "[%s]: %s",
                                     layer->section, what);
            return FALSE;
        }
        total += elements * repeat;
    }
    return TRUE;
}

static ZpModel *
build_from_layers(ZpScenarioResolve *resolve)
{
    if (!check_spelt_layers(resolve))
        return NULL;
    const GPtrArray *layers = resolve->state->layers;
    ZpModel *model = zp_model_new("layers");
    model->family = "hand-spelt";
    for (guint l = 0; l < layers->len; l++) {
        const ZpScenarioLayer *layer = g_ptr_array_index(layers, l);
        zp_model_add_layer(model, zp_scenario_state_layer_name(layer),
                           layer_integer(layer, ZP_KEY_LAYER_PARAMETERS),
                           (gint32)layer_integer(layer, ZP_KEY_LAYER_REPEAT),
                           layer_integer(layer, ZP_KEY_LAYER_FLOPS),
                           layer_integer(layer, ZP_KEY_LAYER_ACTIVATION),
                           layer_integer(layer, ZP_KEY_LAYER_CHECKPOINT));
    }
    zp_model_finish(model);
    return model;
}

static ZpModel *
build(ZpScenarioResolve *resolve, ZpSchemaId *about, GError **error)
{
    const ZpScenarioState *state = resolve->state;
    ZpArchitectureOptions options = options_of(state);
    switch (resolve->route) {
    case ZP_ROUTE_CATALOG:
        *about = ZP_KEY_CATALOG;
        return zp_catalog_build(state->effective[ZP_KEY_CATALOG].value.text, &options, error);
    case ZP_ROUTE_CONFIG:
        *about = ZP_KEY_CONFIG;
        g_set_error_literal(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                            "config.json files cannot be read: state the dimensions");
        return NULL;
    case ZP_ROUTE_TOTAL:
        return zp_model_new_total(zp_scenario_state_integer(state, ZP_KEY_TOTAL_PARAMETERS),
                                  (gint32)zp_scenario_state_integer(state, ZP_KEY_PIECES));
    case ZP_ROUTE_DIMENSIONS:
        *about = ZP_KEY_LAYERS;
        return build_from_dimensions(state, error);
    case ZP_ROUTE_LAYERS:
        return build_from_layers(resolve);
    case ZP_ROUTE_NONE:
        break;
    }
    g_assert_not_reached();
}

/* Does anything that shapes the model differ? */
static gboolean
same_model(const ZpScenarioResolve *resolve)
{
    if (resolve->base == NULL || resolve->base->state->layers != resolve->state->layers)
        return FALSE;
    for (int id = 0; id < ZP_N_KEYS; id++) {
        const ZpSchemaKey *key = zp_schema_key((ZpSchemaId)id);
        const ZpScenarioEffective *a = &resolve->base->state->effective[id];
        const ZpScenarioEffective *b = &resolve->state->effective[id];
        if (key->shapes_model &&
            (a->present != b->present || !zp_schema_value_equal(key, &a->value, &b->value)))
            return FALSE;
    }
    return TRUE;
}

void
zp_scenario_build_model(ZpScenarioResolve *resolve)
{
    g_autoptr(GError) error = NULL;
    ZpSchemaId about = ZP_KEY_TOTAL_PARAMETERS;
    if (same_model(resolve)) {
        resolve->state->model = resolve->base->state->model;
        g_atomic_ref_count_inc(&resolve->state->model->references);
        return;
    }
    ZpModel *model = build(resolve, &about, &error);
    if (error != NULL)
        zp_scenario_resolve_complain(
            resolve, about,
            g_error_matches(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_RANGE)
                ? ZP_SCENARIO_ERROR_RANGE
                : ZP_SCENARIO_ERROR_UNKNOWN,
            "%s", error->message);
    if (model == NULL)
        return;
    resolve->state->model = g_new0(ZpScenarioModel, 1);
    g_atomic_ref_count_init(&resolve->state->model->references);
    resolve->state->model->model = model;
}
