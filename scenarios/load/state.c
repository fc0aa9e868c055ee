#include "scenarios/load/state.h"

#include <string.h>

#include "models/words/nearest.h"
#include "scenarios/load/text_internal.h"

static void
clear_setting(ZpScenarioSetting *setting)
{
    zp_schema_value_clear(&setting->value);
    g_clear_pointer(&setting->origin, g_ref_string_release);
    setting->given = setting->imported = setting->by_hand = FALSE;
}

static void
copy_setting(ZpScenarioSetting *to, const ZpScenarioSetting *from)
{
    if (!from->given || from->imported)
        return;
    to->given = TRUE;
    to->by_hand = from->by_hand;
    zp_schema_value_copy(&to->value, &from->value);
    to->origin = g_ref_string_acquire(from->origin);
}

static void
free_layer(gpointer data)
{
    ZpScenarioLayer *layer = data;
    for (int k = 0; k < ZP_N_LAYER_KEYS; k++)
        clear_setting(&layer->settings[k]);
    g_ref_string_release(layer->section);
    g_ref_string_release(layer->origin);
    g_free(layer);
}

ZpScenarioState *
zp_scenario_state_new(const char *path)
{
    ZpScenarioState *state = g_new0(ZpScenarioState, 1);
    state->path = g_ref_string_new(path);
    state->layers = g_ptr_array_new_with_free_func(free_layer);
    state->hardware = g_new0(ZpScenarioHardware, 1);
    g_atomic_ref_count_init(&state->hardware->references);
    state->hardware->hardware = zp_hardware_load();
    return state;
}

ZpScenarioState *
zp_scenario_state_copy(const ZpScenarioState *state)
{
    ZpScenarioState *copy = g_new0(ZpScenarioState, 1);
    for (int k = 0; k < ZP_N_KEYS; k++)
        copy_setting(&copy->settings[k], &state->settings[k]);
    copy->path = g_ref_string_acquire(state->path);
    copy->layers = g_ptr_array_ref(state->layers);
    copy->hardware = state->hardware;
    g_atomic_ref_count_inc(&copy->hardware->references);
    return copy;
}

void
zp_scenario_state_free(ZpScenarioState *state)
{
    if (state == NULL)
        return;
    for (int k = 0; k < ZP_N_KEYS; k++)
        clear_setting(&state->settings[k]);
    g_ptr_array_unref(state->layers);
    g_strfreev(state->leaf_classes);
    g_clear_pointer(&state->calibration, zp_calibration_free);
    g_clear_pointer(&state->tables, zp_cost_tables_free);
    if (g_atomic_ref_count_dec(&state->hardware->references)) {
        zp_hardware_free(state->hardware->hardware);
        g_free(state->hardware);
    }
    if (state->model != NULL && g_atomic_ref_count_dec(&state->model->references)) {
        zp_model_free(state->model->model);
        zp_model_free(state->model->last_stage);
        g_free(state->model);
    }
    g_clear_pointer(&state->path, g_ref_string_release);
    g_clear_pointer(&state->name, g_ref_string_release);
    g_free(state);
}

static gboolean
read_setting(ZpScenarioSetting *setting, const ZpSchemaKey *key, const char *text,
             const char *origin, GError **error)
{
    if (strcmp(text, "auto") == 0) {
        clear_setting(setting);
        return TRUE;
    }
    if (*text == '\0' && key->kind != ZP_SCHEMA_TEXT) {
        g_autofree char *legal = zp_schema_legal(key);
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_TYPE, "no value: legal is %s",
                    legal);
        return FALSE;
    }
    if (!zp_scenario_text_is_value(text)) {
        g_set_error_literal(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_SYNTAX,
                            "a value has no control characters, no ' #' and no blanks around it");
        return FALSE;
    }
    ZpSchemaValue value;
    if (!zp_schema_parse(key, text, &value, error))
        return FALSE;
    clear_setting(setting);
    *setting =
        (ZpScenarioSetting){.given = TRUE, .value = value, .origin = g_ref_string_new(origin)};
    return TRUE;
}

gboolean
zp_scenario_state_give(ZpScenarioState *state, const ZpSchemaKey *key, const char *text,
                       const char *origin, GError **error)
{
    return read_setting(&state->settings[key->id], key, text, origin, error);
}

char *
zp_scenario_state_file(const ZpScenarioState *state, ZpSchemaId id)
{
    const char *given = state->effective[id].value.text;
    g_autofree char *folder = g_path_get_dirname(state->path);
    if (state->settings[id].by_hand || g_path_is_absolute(given) || strcmp(folder, ".") == 0)
        return g_strdup(given);
    return g_build_filename(folder, given, NULL);
}

ZpScenarioLayer *
zp_scenario_state_add_layer(ZpScenarioState *state, const char *name, const char *origin)
{
    g_autofree char *section = g_strconcat("layer ", name, NULL);
    ZpScenarioLayer *layer = g_new0(ZpScenarioLayer, 1);
    layer->section = g_ref_string_new(section);
    layer->origin = g_ref_string_new(origin);
    g_ptr_array_add(state->layers, layer);
    return layer;
}

gboolean
zp_scenario_state_give_in(ZpScenarioLayer *layer, const ZpSchemaKey *key, const char *text,
                          const char *origin, GError **error)
{
    g_assert(key->id >= ZP_KEY_LAYER_PARAMETERS && key->id <= ZP_KEY_LAYER_CHECKPOINT);
    return read_setting(&layer->settings[key->id - ZP_KEY_LAYER_PARAMETERS], key, text, origin,
                        error);
}

/* Other scenarios may hold the same list: a change works on a copy. */
static void
copy_layers(ZpScenarioState *state)
{
    GPtrArray *copy = g_ptr_array_new_with_free_func(free_layer);
    for (guint l = 0; l < state->layers->len; l++) {
        const ZpScenarioLayer *from = g_ptr_array_index(state->layers, l);
        ZpScenarioLayer *to = g_new0(ZpScenarioLayer, 1);
        to->section = g_ref_string_acquire(from->section);
        to->origin = g_ref_string_acquire(from->origin);
        for (int k = 0; k < ZP_N_LAYER_KEYS; k++)
            copy_setting(&to->settings[k], &from->settings[k]);
        g_ptr_array_add(copy, to);
    }
    g_ptr_array_unref(state->layers);
    state->layers = copy;
}

gboolean
zp_scenario_state_give_layer(ZpScenarioState *state, const char *name, const char *key_name,
                             const char *text, const char *origin, GError **error)
{
    const ZpSchemaKey *key = zp_schema_find_in("layer", key_name);
    if (key == NULL) {
        g_autofree const char **keys = zp_schema_keys_of("layer");
        const char *nearest = zp_nearest_find(key_name, keys);
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                    "a layer has no key '%s'%s%s%s", key_name, nearest ? "; did you mean '" : "",
                    nearest ? nearest : "", nearest ? "'?" : "");
        return FALSE;
    }
    for (guint l = 0; l < state->layers->len; l++) {
        if (strcmp(zp_scenario_state_layer_name(g_ptr_array_index(state->layers, l)), name) != 0)
            continue;
        copy_layers(state);
        return zp_scenario_state_give_in(g_ptr_array_index(state->layers, l), key, text, origin,
                                         error);
    }
    g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                "the scenario has no group [layer %s]", name);
    return FALSE;
}
