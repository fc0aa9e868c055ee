/* Settings from outside: the command line, the points of a sweep. */
#include <string.h>

#include "scenarios/settings/settings_internal.h"

static const char *
origin_of(const ZpSettings *base)
{
    return base != NULL ? "sweep" : "--set";
}

/* A point of a sweep has its values from the axes: some of the file, some of --set. */
static gboolean
is_by_hand(const ZpSettings *base, const char *name)
{
    if (base == NULL)
        return TRUE;
    for (guint a = 0; a < base->axes->len; a++) {
        const ZpSettingsAxis *axis = &g_array_index(base->axes, ZpSettingsAxis, a);
        if (strcmp(axis->key, name) == 0)
            return strcmp(axis->origin, "--set") == 0;
    }
    return FALSE;
}

static gboolean
apply_set(ZpSettings *settings, const ZpSettings *base, const char *name, const char *value,
          GError **error)
{
    const char *origin = origin_of(base);
    const char *last = strrchr(name, '.');
    if (g_str_has_prefix(name, "layer.") && last > name + strlen("layer.")) {
        g_autofree char *layer = g_strndup(name + 6, (gsize)(last - name - 6));
        return zp_settings_give_layer(settings, layer, last + 1, value, origin, error);
    }
    if (g_str_has_prefix(name, "sweep.") && strcmp(name, "sweep.limit") != 0)
        return zp_settings_give_axis(settings, name + strlen("sweep."), value, origin, error);
    const ZpSchemaKey *key = zp_schema_find(name, error);
    if (key == NULL)
        return FALSE;
    if (strcmp(key->section, "layer") == 0) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                    "which layer? write layer.NAME.%s", key->key);
        return FALSE;
    }
    if (!zp_settings_give(settings, key, value, origin, error))
        return FALSE;
    settings->keys[key->id].by_hand = is_by_hand(base, name);
    return TRUE;
}

void
zp_settings_apply_sets(ZpSettings *settings, const ZpSettings *base, const char *const *sets,
                       ZpProblems *problems)
{
    const char *origin = origin_of(base);
    for (gsize i = 0; sets != NULL && sets[i] != NULL; i++) {
        const char *equals = strchr(sets[i], '=');
        if (equals == NULL) {
            zp_problems_add(problems, ZP_SCENARIO_ERROR_SYNTAX, origin, "'%s' is not KEY=VALUE",
                            sets[i]);
            continue;
        }
        g_autofree char *name = g_strstrip(g_strndup(sets[i], (gsize)(equals - sets[i])));
        g_autofree char *value = g_strstrip(g_strdup(equals + 1));
        g_autoptr(GError) error = NULL;
        if (!apply_set(settings, base, name, value, &error))
            zp_problems_add(problems, zp_problems_reason(error), origin, "%s: %s", name,
                            error->message);
    }
}

ZpSettings *
zp_settings_with(const ZpSettings *base, const char *const *sets, ZpProblems *problems)
{
    ZpSettings *settings = zp_settings_copy(base);
    zp_settings_apply_sets(settings, base, sets, problems);
    return settings;
}
