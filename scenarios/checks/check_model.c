#include "scenarios/checks/check_model_internal.h"

#include <string.h>

#include "scenarios/imports/import.h"
#include "scenarios/readers/readers.h"

/* A unit is a run of layers of one block, or one layer outside the blocks. */
typedef struct {
    gint32 first, last;
    gint64 elements;
} Unit;

static GArray *
find_units(const ZpModel *model)
{
    GArray *units = g_array_new(FALSE, FALSE, sizeof(Unit));
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        Unit *last = units->len > 0 ? &g_array_index(units, Unit, units->len - 1) : NULL;
        if (last != NULL && layer->block != ZP_MODEL_NONE &&
            zp_model_layer(model, last->first)->block == layer->block) {
            last->last = l;
            last->elements += layer->elements;
            continue;
        }
        Unit unit = {.first = l, .last = l, .elements = layer->elements};
        g_array_append_val(units, unit);
    }
    return units;
}

static char *
unit_name(const ZpModel *model, const Unit *unit)
{
    const ZpModelLayer *layer = zp_model_layer(model, unit->first);
    if (layer->block == ZP_MODEL_NONE || layer->kind == ZP_LAYER_OTHER)
        return g_strdup(layer->name);
    return g_strdup_printf("block.%d", layer->block);
}

char *
zp_check_model_text(const ZpModel *model)
{
    g_autoptr(GArray) units = find_units(model);
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint i = 0; i < units->len; i++) {
        const Unit *unit = &g_array_index(units, Unit, i);
        guint same = 1;
        while (i + same < units->len &&
               zp_model_layer(model, unit->first)->block != ZP_MODEL_NONE &&
               zp_model_layer(model, g_array_index(units, Unit, i + same).first)->block !=
                   ZP_MODEL_NONE &&
               g_array_index(units, Unit, i + same).elements == unit->elements)
            same++;
        g_autofree char *name = unit_name(model, unit);
        g_string_append_printf(out, "  %-24s %16" G_GINT64_FORMAT " parameters", name,
                               unit->elements);
        if (same > 1)
            g_string_append_printf(out, ", and %u more like it", same - 1);
        g_string_append_c(out, '\n');
        i += same - 1;
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void
add_parameter(const ZpModel *model, const ZpModelParameter *parameter, JsonBuilder *builder)
{
    json_builder_begin_object(builder);
    zp_json_write_text(builder, "name", parameter->name);
    zp_json_write_int(builder, "elements", parameter->elements);
    zp_json_write_array(builder, "shape");
    for (gint32 d = 0; d < parameter->n_dims; d++)
        json_builder_add_int_value(builder, parameter->shape[d]);
    json_builder_end_array(builder);
    if (parameter->tied_to != ZP_MODEL_NONE)
        zp_json_write_text(builder, "tied_to", zp_model_parameter(model, parameter->tied_to)->name);
    json_builder_end_object(builder);
}

/* The parameters that the unit's layers use first. */
static void
add_unit(const ZpModel *model, const Unit *unit, JsonBuilder *builder)
{
    g_autofree char *name = unit_name(model, unit);
    json_builder_begin_object(builder);
    zp_json_write_text(builder, "name", name);
    zp_json_write_int(builder, "elements", unit->elements);
    zp_json_write_array(builder, "parameters");
    for (gint32 p = 0; p < (gint32)model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, p);
        if (parameter->layer >= unit->first && parameter->layer <= unit->last)
            add_parameter(model, parameter, builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}

void
zp_check_model_members(const ZpModel *model, JsonBuilder *builder)
{
    zp_json_write_object(builder, "model");
    zp_json_write_text(builder, "name", model->name);
    zp_json_write_text(builder, "family", model->family);
    zp_json_write_int(builder, "parameters", model->n_elements);
    zp_json_write_int(builder, "trainable_parameters", model->n_trainable_elements);
    zp_json_write_int(builder, "active_parameters", model->n_active_elements);
    zp_json_write_bool(builder, "tied", model->tied);
    zp_json_write_text(builder, "block_class", zp_classes_block(model));
    zp_json_write_int(builder, "blocks", model->n_blocks);
    zp_json_write_int(builder, "hidden", model->hidden);
    zp_json_write_int(builder, "heads", model->heads);
    zp_json_write_int(builder, "kv_heads", model->kv_heads);
    zp_json_write_int(builder, "head_size", model->head_size);
    zp_json_write_int(builder, "ffn", model->ffn);
    zp_json_write_int(builder, "vocabulary", model->vocabulary);
    json_builder_end_object(builder);
    zp_json_write_array(builder, "units");
    g_autoptr(GArray) units = find_units(model);
    for (guint i = 0; i < units->len; i++)
        add_unit(model, &g_array_index(units, Unit, i), builder);
    json_builder_end_array(builder);
}
