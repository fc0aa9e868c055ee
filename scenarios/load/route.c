/* The five ways to describe a model: which one a scenario takes, and what it then needs. */
#include "scenarios/load/resolve_internal.h"

static const ZpSchemaId required[] = {ZP_KEY_LAYERS, ZP_KEY_HIDDEN, ZP_KEY_HEADS, ZP_KEY_FFN,
                                      ZP_KEY_VOCABULARY};

static gboolean
is_dimension(int id)
{
    return id >= ZP_KEY_LAYERS && id <= ZP_KEY_FINAL_NORM;
}

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
        zp_schema_key(first)->key, resolve->state->settings->keys[first].origin);
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
    if (resolve->state->settings->layers->len > 0) {
        const ZpSettingsLayer *layer = g_ptr_array_index(resolve->state->settings->layers, 0);
        if (first != ZP_N_KEYS)
            zp_problems_add(resolve->problems, ZP_SCENARIO_ERROR_CONFLICT, layer->origin,
                            "[%s]: the model is already described by model.%s (%s); keep "
                            "one of them",
                            layer->section, zp_schema_key(first)->key,
                            resolve->state->settings->keys[first].origin);
        else
            resolve->route = ZP_ROUTE_LAYERS;
    } else if (first == ZP_N_KEYS) {
        zp_problems_add(
            resolve->problems, ZP_SCENARIO_ERROR_MISSING, NULL,
            "[model]: no model: give catalog, config, total_parameters, dimensions (layers, "
            "hidden, heads, ffn, vocabulary) or [layer NAME] groups");
    }
    mark_present(resolve);
    if (resolve->route == ZP_ROUTE_DIMENSIONS)
        derive_dimensions(resolve);
}
