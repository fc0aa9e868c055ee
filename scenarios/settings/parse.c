/* The groups and keys of a text as settings. */
#include <string.h>

#include "models/words/nearest.h"
#include "scenarios/settings/settings_internal.h"
#include "scenarios/settings/text_internal.h"

/* Advice for an unknown key: the nearest of its section, or the section that has it. */
static char *
advice(const char *section, const char *name)
{
    g_autofree const char **keys = zp_schema_keys_of(section);
    const char *nearest = zp_nearest_find(name, keys);
    const ZpSchemaKey *elsewhere = zp_schema_find(name, NULL);
    if (strchr(name, '.') != NULL)
        elsewhere = NULL; /* a full name belongs into no group */
    if (elsewhere != NULL && nearest != NULL)
        return g_strdup_printf("; did you mean '%s', or '%s' of [%s]?", nearest, name,
                               elsewhere->section);
    if (elsewhere != NULL)
        return g_strdup_printf("; it is a key of [%s]", elsewhere->section);
    if (nearest != NULL)
        return g_strdup_printf("; did you mean '%s'?", nearest);
    g_autofree char *legal = g_strjoinv(", ", (char **)(gpointer)keys);
    return g_strconcat("; legal are ", legal, NULL);
}

static gboolean
apply_entry(ZpSettings *settings, const char *group, ZpSettingsLayer *layer,
            const ZpSettingsTextEntry *entry, const char *where, GError **error)
{
    const char *section = layer != NULL ? "layer" : group;
    const ZpSchemaKey *key = zp_schema_find_in(section, entry->key);
    if (strcmp(group, "sweep") == 0 && key == NULL) {
        if (zp_settings_has_axis(settings, entry->key)) {
            g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_DUPLICATE,
                        "the sweep already has an axis over this key");
            return FALSE;
        }
        return zp_settings_give_axis(settings, entry->key, entry->value, where, error);
    }
    if (key == NULL) {
        g_autofree char *more = advice(section, entry->key);
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN, "unknown key%s", more);
        return FALSE;
    }
    if (layer != NULL)
        return zp_settings_give_in(layer, key, entry->value, where, error);
    return zp_settings_give(settings, key, entry->value, where, error);
}

/* FALSE for a group that no section answers to. */
static gboolean
open_group(ZpSettings *settings, const ZpSettingsTextGroup *group, ZpProblems *problems,
           ZpSettingsLayer **layer)
{
    g_autofree char *where = g_strdup_printf("%s:%d", problems->name, group->line);
    g_autofree const char **sections = zp_schema_sections();
    *layer = NULL;
    if (g_str_has_prefix(group->name, "layer ")) {
        g_autofree char *name = g_strstrip(g_strdup(group->name + strlen("layer ")));
        *layer = zp_settings_add_layer(settings, name, where);
        return TRUE;
    }
    if (strcmp(group->name, "layer") == 0) {
        zp_problems_add(problems, ZP_SCENARIO_ERROR_SYNTAX, where,
                        "[layer] needs a name: write [layer NAME]");
        return FALSE;
    }
    if (g_strv_contains(sections, group->name))
        return TRUE;
    const char *nearest = zp_nearest_find(group->name, sections);
    g_autofree char *legal = g_strjoinv("], [", (char **)(gpointer)sections);
    zp_problems_add(problems, ZP_SCENARIO_ERROR_UNKNOWN, where, "unknown group [%s]%s%s%s",
                    group->name, nearest ? "; did you mean [" : "; legal are [",
                    nearest ? nearest : legal, nearest ? "]?" : "]");
    return FALSE;
}

static void
apply_text(ZpSettings *settings, const ZpSettingsText *text, ZpProblems *problems)
{
    guint next = 0;
    for (guint g = 0; g < text->groups->len && !zp_problems_full(problems); g++) {
        const ZpSettingsTextGroup *group = &g_array_index(text->groups, ZpSettingsTextGroup, g);
        ZpSettingsLayer *layer = NULL;
        gboolean known = open_group(settings, group, problems, &layer);
        for (; next < text->entries->len && !zp_problems_full(problems); next++) {
            const ZpSettingsTextEntry *entry =
                &g_array_index(text->entries, ZpSettingsTextEntry, next);
            if (entry->group != g)
                break;
            g_autofree char *where = g_strdup_printf("%s:%d", problems->name, entry->line);
            g_autoptr(GError) error = NULL;
            if (known && !apply_entry(settings, group->name, layer, entry, where, &error))
                zp_problems_add_key(problems, zp_problems_reason(error), where, group->name,
                                    entry->key, error->message);
        }
    }
}

ZpSettings *
zp_settings_parse(const char *text, gsize length, const char *name, const char *const *sets,
                  ZpProblems *problems)
{
    ZpSettings *settings = zp_settings_new(name);
    g_autoptr(ZpSettingsText) parts = zp_settings_text_scan(text, length, problems);
    apply_text(settings, parts, problems);
    zp_settings_apply_sets(settings, NULL, sets, problems);
    return settings;
}
