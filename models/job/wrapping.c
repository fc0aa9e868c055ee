#include "models/job/wrapping.h"

#include <string.h>

/* Key of the unit a layer falls into; equal keys share a unit. */
enum { KEY_ROOT = -1, KEY_EMBEDDING = -2, KEY_HEAD = -3 };

static gboolean
is_outer(const ZpModelLayer *layer)
{
    return layer->block == ZP_MODEL_NONE;
}

static gint64
outer_key(const ZpModel *model, const ZpModelLayer *layer, const ZpZero *zero)
{
    if (zero->outer == ZP_OUTER_ROOT || zero->wrap == ZP_WRAP_MODEL)
        return KEY_ROOT;
    if (model->tied || layer->kind == ZP_LAYER_EMBEDDING)
        return KEY_EMBEDDING;
    return KEY_HEAD;
}

/* Keys of block layers under the size rule count up as units close. */
typedef struct {
    gint64 key;
    gint64 elements;
} SizeState;

static gint64
size_key(SizeState *state, const ZpModelLayer *layer, const ZpZero *zero)
{
    if (state->elements >= zero->wrap_elements) {
        state->key++;
        state->elements = 0;
    }
    state->elements += layer->elements;
    return state->key;
}

static gint64
layer_key(const ZpModel *model, gint32 index, const ZpZero *zero, SizeState *state)
{
    const ZpModelLayer *layer = zp_model_layer(model, index);
    if (is_outer(layer))
        return outer_key(model, layer, zero);
    switch (zero->wrap) {
    case ZP_WRAP_SUBLAYER:
        return index;
    case ZP_WRAP_BLOCK:
        return layer->block / MAX(1, zero->wrap_blocks);
    case ZP_WRAP_SIZE:
        return size_key(state, layer, zero);
    case ZP_WRAP_MODEL:
        return KEY_ROOT;
    }
    g_assert_not_reached();
}

static const char *
unit_name(const ZpModelLayer *layer, gint64 key, const ZpZero *zero)
{
    switch (key) {
    case KEY_ROOT:
        return zero->wrap == ZP_WRAP_MODEL ? "model" : "root";
    case KEY_EMBEDDING:
        return "embedding";
    case KEY_HEAD:
        return "head";
    default:
        break;
    }
    if (zero->wrap == ZP_WRAP_SUBLAYER || layer->kind == ZP_LAYER_OTHER)
        return layer->name;
    g_autofree char *name =
        g_strdup_printf("%s.%" G_GINT64_FORMAT,
                        zero->wrap == ZP_WRAP_BLOCK && zero->wrap_blocks > 1 ? "blocks"
                        : zero->wrap == ZP_WRAP_SIZE                         ? "unit"
                                                                             : "block",
                        key);
    return g_intern_string(name);
}

static void
count_parameters(const ZpModel *model, ZpUnits *units)
{
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->tied_to != ZP_MODEL_NONE || parameter->layer == ZP_MODEL_NONE)
            continue;
        ZpUnit *unit = &units->units[units->unit_of_layer[parameter->layer]];
        unit->elements += parameter->elements;
        if (parameter->trainable)
            unit->trainable_elements += parameter->elements;
        unit->largest_parameter_elements =
            MAX(unit->largest_parameter_elements, parameter->elements);
    }
}

ZpUnits *
zp_wrapping_apply(const ZpModel *model, const ZpZero *zero)
{
    gint32 n_layers = (gint32)model->layers->len;
    g_assert(n_layers > 0);
    ZpUnits *units = g_new0(ZpUnits, 1);
    units->units = g_new0(ZpUnit, (gsize)n_layers);
    units->unit_of_layer = g_new0(gint32, (gsize)n_layers);
    units->n_layers = n_layers;

    g_autofree gint64 *keys = g_new(gint64, (gsize)n_layers);
    gint32 outer_unit[4] = {-1, -1, -1, -1};
    SizeState state = {0};
    for (gint32 l = 0; l < n_layers; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        gint64 key = layer_key(model, l, zero, &state);
        gint32 last = units->n_units - 1;
        gint32 unit = -1;
        gboolean empty = layer->elements == 0 && layer->tied_elements == 0;
        if (key < 0)
            unit = outer_unit[-key];
        else if (last >= 0 && (keys[last] == key || empty))
            unit = last;
        if (unit < 0) {
            unit = units->n_units++;
            keys[unit] = key;
            units->units[unit].name = unit_name(layer, key, zero);
            units->units[unit].first_layer = l;
            if (key < 0)
                outer_unit[-key] = unit;
        }
        units->unit_of_layer[l] = unit;
        units->units[unit].last_layer = l;
    }
    count_parameters(model, units);
    return units;
}

void
zp_wrapping_free(ZpUnits *units)
{
    if (units == NULL)
        return;
    g_free(units->units);
    g_free(units->unit_of_layer);
    g_free(units);
}
