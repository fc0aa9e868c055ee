/* The effective inputs as text with their origin, and the file made from them. */
#include <string.h>

#include "scenarios/load/resolve_internal.h"
#include "scenarios/readers/readers.h"

static void
clear_value(gpointer data)
{
    ZpScenarioValue *value = data;
    g_ref_string_release((char *)(gpointer)value->text);
    g_ref_string_release((char *)(gpointer)value->origin);
}

static char *
origin_text(const ZpSchemaKey *key, const ZpScenarioEffective *effective)
{
    switch (effective->source) {
    case ZP_SCENARIO_DEFAULT:
        return g_ref_string_new("default");
    case ZP_SCENARIO_GIVEN:
        return g_ref_string_new(effective->origin);
    case ZP_SCENARIO_AUTO: {
        g_autofree char *text = g_strconcat("auto: ", key->rule, NULL);
        return g_ref_string_new(text);
    }
    case ZP_SCENARIO_CATALOGUE: {
        g_autofree char *text = g_strconcat("catalogue: ", effective->origin, NULL);
        return g_ref_string_new(text);
    }
    }
    g_assert_not_reached();
}

static gboolean
same(const ZpSchemaKey *key, const ZpScenarioEffective *a, const ZpScenarioEffective *b)
{
    return a->present == b->present && a->source == b->source &&
           (a->origin == b->origin || g_strcmp0(a->origin, b->origin) == 0) &&
           zp_schema_value_equal(key, &a->value, &b->value);
}

/* `before`: the base's value of this key, or NULL; its strings serve again where nothing changed.
 */
static void
add_key(ZpScenario *scenario, const ZpScenario *base, ZpSchemaId id, const ZpScenarioValue *before)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    const ZpScenarioEffective *effective = &scenario->state->effective[id];
    ZpScenarioValue value = {
        .section = key->section, .key = key->key, .given = effective->source == ZP_SCENARIO_GIVEN};
    if (before != NULL && same(key, effective, &base->state->effective[id])) {
        value.text = g_ref_string_acquire((char *)(gpointer)before->text);
        value.origin = g_ref_string_acquire((char *)(gpointer)before->origin);
    } else {
        g_autofree char *text = zp_schema_print(key, &effective->value);
        value.text = g_ref_string_new(text);
        value.origin = origin_text(key, effective);
    }
    g_array_append_val(scenario->values, value);
}

static void
add_layer(ZpScenario *scenario, const ZpSettingsLayer *layer)
{
    for (int k = 0; k < ZP_N_LAYER_KEYS; k++) {
        const ZpSchemaKey *key = zp_schema_key((ZpSchemaId)(ZP_KEY_LAYER_PARAMETERS + k));
        const ZpSetting *setting = &layer->keys[k];
        ZpScenarioEffective effective = {.source = ZP_SCENARIO_GIVEN, .origin = setting->origin};
        if (setting->given) {
            effective.value = setting->value;
        } else if (key->rule != NULL) {
            effective.source = ZP_SCENARIO_AUTO;
            effective.value.integer = 2 * layer->keys[0].value.integer;
        } else {
            effective.source = ZP_SCENARIO_DEFAULT;
            zp_schema_default(key, &effective.value);
        }
        g_autofree char *text = zp_schema_print(key, &effective.value);
        ZpScenarioValue value = {layer->section, key->key, g_ref_string_new(text),
                                 origin_text(key, &effective),
                                 effective.source == ZP_SCENARIO_GIVEN};
        g_array_append_val(scenario->values, value);
    }
}

static void
add_axes(ZpScenario *scenario)
{
    for (guint a = 0; a < scenario->axes->len; a++) {
        const ZpSettingsAxis *axis = &g_array_index(scenario->axes, ZpSettingsAxis, a);
        ZpScenarioValue value = {"sweep", axis->key, g_ref_string_new(axis->text),
                                 g_ref_string_new(axis->origin), TRUE};
        g_array_append_val(scenario->values, value);
    }
}

void
zp_scenario_list_values(ZpScenario *scenario, const ZpScenario *base)
{
    guint next = 0; /* of the base's values, in the same order */
    g_array_set_clear_func(scenario->values, clear_value);
    for (int id = 0; id < ZP_N_KEYS; id++) {
        if (id == ZP_KEY_LAYER_PARAMETERS) {
            for (guint l = 0; l < scenario->state->settings->layers->len; l++)
                add_layer(scenario, g_ptr_array_index(scenario->state->settings->layers, l));
        }
        const ZpScenarioValue *before = NULL;
        if (base != NULL && base->state->effective[id].present) {
            const char *key = zp_schema_key((ZpSchemaId)id)->key;
            const char *section = zp_schema_key((ZpSchemaId)id)->section;
            do {
                g_assert(next < base->values->len);
                before = &g_array_index(base->values, ZpScenarioValue, next++);
            } while (before->key != key || before->section != section);
        }
        if (scenario->state->effective[id].present)
            add_key(scenario, base, (ZpSchemaId)id, before);
    }
    add_axes(scenario);
}

void
zp_scenario_dump(const ZpScenario *scenario, GString *out)
{
    const char *section = "";
    const ZpScenarioState *state = scenario->state;
    gboolean imports = strcmp(state->effective[ZP_KEY_ZERO_CONFIG].value.text, "none") != 0;
    g_autofree char *path = zp_import_message_clean(scenario->path);
    g_string_append_printf(out, "# The effective scenario of %s.\n", path);
    for (guint i = 0; i < scenario->values->len; i++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, i);
        if (strcmp(section, value->section) != 0)
            g_string_append_printf(out, "\n[%s]\n", value->section);
        section = value->section;
        const ZpSchemaKey *key = zp_schema_find_in(value->section, value->key);
        gboolean derived = g_str_has_prefix(value->origin, "auto: ") ||
                           g_str_has_prefix(value->origin, "catalogue: ") ||
                           (imports && (strcmp(value->origin, "default") == 0 ||
                                        (key != NULL && state->settings->keys[key->id].imported)));
        /* The name derives from the file's, which no axis changes and the dump's file would. */
        gboolean name = strcmp(value->section, "scenario") == 0;
        if (derived && !name && scenario->axes->len > 0)
            g_string_append_printf(out, "%s = auto  # %s; %s\n", value->key, value->text,
                                   value->origin);
        else
            g_string_append_printf(out, "%s = %s  # %s\n", value->key, value->text, value->origin);
    }
}
