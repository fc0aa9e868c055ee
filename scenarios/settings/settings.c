#include "scenarios/settings/settings.h"

#include <string.h>

#include "models/words/nearest.h"
#include "scenarios/language/axis.h"
#include "scenarios/settings/settings_internal.h"
#include "scenarios/settings/text_internal.h"

static void
clear_setting(ZpSetting *setting)
{
    zp_schema_value_clear(&setting->value);
    g_clear_pointer(&setting->origin, g_ref_string_release);
    setting->given = setting->imported = setting->by_hand = FALSE;
}

static void
copy_setting(ZpSetting *to, const ZpSetting *from)
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
    ZpSettingsLayer *layer = data;
    for (int k = 0; k < ZP_N_LAYER_KEYS; k++)
        clear_setting(&layer->keys[k]);
    g_ref_string_release(layer->section);
    g_ref_string_release(layer->origin);
    g_free(layer);
}

static void
clear_axis(gpointer data)
{
    ZpSettingsAxis *axis = data;
    g_free((char *)(gpointer)axis->key);
    g_free((char *)(gpointer)axis->text);
    g_free((char *)(gpointer)axis->origin);
}

ZpSettings *
zp_settings_new(const char *path)
{
    ZpSettings *settings = g_new0(ZpSettings, 1);
    settings->path = g_ref_string_new(path);
    settings->layers = g_ptr_array_new_with_free_func(free_layer);
    settings->axes = g_array_new(FALSE, FALSE, sizeof(ZpSettingsAxis));
    g_array_set_clear_func(settings->axes, clear_axis);
    return settings;
}

ZpSettings *
zp_settings_copy(const ZpSettings *settings)
{
    ZpSettings *copy = g_new0(ZpSettings, 1);
    for (int k = 0; k < ZP_N_KEYS; k++)
        copy_setting(&copy->keys[k], &settings->keys[k]);
    copy->path = g_ref_string_acquire(settings->path);
    copy->layers = g_ptr_array_ref(settings->layers);
    copy->axes = g_array_new(FALSE, FALSE, sizeof(ZpSettingsAxis));
    g_array_set_clear_func(copy->axes, clear_axis);
    return copy;
}

void
zp_settings_free(ZpSettings *settings)
{
    if (settings == NULL)
        return;
    for (int k = 0; k < ZP_N_KEYS; k++)
        clear_setting(&settings->keys[k]);
    g_ptr_array_unref(settings->layers);
    g_array_unref(settings->axes);
    g_ref_string_release(settings->path);
    g_free(settings);
}

static gboolean
read_setting(ZpSetting *setting, const ZpSchemaKey *key, const char *text, const char *origin,
             GError **error)
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
    if (!zp_settings_text_is_value(text)) {
        g_set_error_literal(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_SYNTAX,
                            "a value has no control characters, no ' #' and no blanks around it");
        return FALSE;
    }
    ZpSchemaValue value;
    if (!zp_schema_parse(key, text, &value, error))
        return FALSE;
    clear_setting(setting);
    *setting = (ZpSetting){.given = TRUE, .value = value, .origin = g_ref_string_new(origin)};
    return TRUE;
}

gboolean
zp_settings_give(ZpSettings *settings, const ZpSchemaKey *key, const char *text, const char *origin,
                 GError **error)
{
    return read_setting(&settings->keys[key->id], key, text, origin, error);
}

char *
zp_settings_file(const ZpSettings *settings, ZpSchemaId id, const char *given)
{
    g_autofree char *folder = g_path_get_dirname(settings->path);
    if (settings->keys[id].by_hand || g_path_is_absolute(given) || strcmp(folder, ".") == 0)
        return g_strdup(given);
    return g_build_filename(folder, given, NULL);
}

ZpSettingsLayer *
zp_settings_add_layer(ZpSettings *settings, const char *name, const char *origin)
{
    g_autofree char *section = g_strconcat("layer ", name, NULL);
    ZpSettingsLayer *layer = g_new0(ZpSettingsLayer, 1);
    layer->section = g_ref_string_new(section);
    layer->origin = g_ref_string_new(origin);
    g_ptr_array_add(settings->layers, layer);
    return layer;
}

gboolean
zp_settings_give_in(ZpSettingsLayer *layer, const ZpSchemaKey *key, const char *text,
                    const char *origin, GError **error)
{
    g_assert(key->id >= ZP_KEY_LAYER_PARAMETERS && key->id <= ZP_KEY_LAYER_CHECKPOINT);
    return read_setting(&layer->keys[key->id - ZP_KEY_LAYER_PARAMETERS], key, text, origin, error);
}

/* Other scenarios may hold the same list: a change works on a copy. */
static void
copy_layers(ZpSettings *settings)
{
    GPtrArray *copy = g_ptr_array_new_with_free_func(free_layer);
    for (guint l = 0; l < settings->layers->len; l++) {
        const ZpSettingsLayer *from = g_ptr_array_index(settings->layers, l);
        ZpSettingsLayer *to = g_new0(ZpSettingsLayer, 1);
        to->section = g_ref_string_acquire(from->section);
        to->origin = g_ref_string_acquire(from->origin);
        for (int k = 0; k < ZP_N_LAYER_KEYS; k++)
            copy_setting(&to->keys[k], &from->keys[k]);
        g_ptr_array_add(copy, to);
    }
    g_ptr_array_unref(settings->layers);
    settings->layers = copy;
}

gboolean
zp_settings_give_layer(ZpSettings *settings, const char *name, const char *key_name,
                       const char *text, const char *origin, GError **error)
{
    const ZpSchemaKey *key = zp_schema_find_in("layer", key_name);
    if (key == NULL) {
        g_autofree const char **keys = zp_schema_keys_of("layer");
        g_autofree char *hint = zp_nearest_hint(key_name, keys);
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                    "a layer has no key '%s'%s", key_name, hint);
        return FALSE;
    }
    for (guint l = 0; l < settings->layers->len; l++) {
        if (strcmp(zp_settings_layer_name(g_ptr_array_index(settings->layers, l)), name) != 0)
            continue;
        copy_layers(settings);
        return zp_settings_give_in(g_ptr_array_index(settings->layers, l), key, text, origin,
                                   error);
    }
    g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                "the scenario has no group [layer %s]", name);
    return FALSE;
}

gboolean
zp_settings_give_axis(ZpSettings *settings, const char *name, const char *text, const char *origin,
                      GError **error)
{
    g_autofree char *full = NULL;
    const ZpSchemaKey *key = zp_axis_key(name, &full, error);
    if (key == NULL || zp_axis_count(key, text, error) < 0)
        return FALSE;
    ZpSettingsAxis axis = {g_steal_pointer(&full), g_strdup(text), g_strdup(origin)};
    for (guint a = 0; a < settings->axes->len; a++) {
        ZpSettingsAxis *other = &g_array_index(settings->axes, ZpSettingsAxis, a);
        if (strcmp(other->key, axis.key) == 0) {
            clear_axis(other);
            *other = axis;
            return TRUE;
        }
    }
    g_array_append_val(settings->axes, axis);
    return TRUE;
}

gboolean
zp_settings_has_axis(const ZpSettings *settings, const char *name)
{
    g_autofree char *full = NULL;
    if (zp_axis_key(name, &full, NULL) == NULL)
        return FALSE;
    for (guint a = 0; a < settings->axes->len; a++) {
        if (strcmp(g_array_index(settings->axes, ZpSettingsAxis, a).key, full) == 0)
            return TRUE;
    }
    return FALSE;
}
