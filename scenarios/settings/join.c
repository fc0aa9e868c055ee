/* Another program's settings beside a scenario's own. */
#include <string.h>

#include "scenarios/settings/settings_internal.h"

ZpSettings *
zp_settings_join(const ZpSettings *own, const GArray *entries, ZpProblems *problems)
{
    ZpSettings *joined = zp_settings_copy(own);
    g_array_unref(joined->axes);
    joined->axes = g_array_ref(own->axes);
    for (guint i = 0; i < entries->len; i++) {
        const ZpSettingsEntry *entry = &g_array_index(entries, ZpSettingsEntry, i);
        ZpSetting *setting = &joined->keys[entry->key->id];
        g_autoptr(GError) error = NULL;
        if (setting->given)
            continue;
        if (zp_settings_give(joined, entry->key, entry->text, entry->origin, &error))
            setting->imported = TRUE;
        else
            zp_problems_add_key(problems, ZP_SCENARIO_ERROR_RANGE, entry->origin,
                                entry->key->section, entry->key->key, error->message);
    }
    return joined;
}

void
zp_settings_warn_overruled(const ZpSettings *joined, const GArray *entries, GPtrArray *warnings)
{
    for (guint i = 0; i < entries->len; i++) {
        const ZpSettingsEntry *entry = &g_array_index(entries, ZpSettingsEntry, i);
        const ZpSetting *own = &joined->keys[entry->key->id];
        if (own->imported || !own->given || strcmp(own->origin, "--set") == 0 ||
            strcmp(own->origin, "sweep") == 0 || strstr(entry->origin, ": default") != NULL)
            continue;
        g_autofree char *text = zp_schema_print(entry->key, &own->value);
        if (strcmp(text, entry->text) != 0)
            g_ptr_array_add(warnings,
                            g_strdup_printf("%s: [%s] %s: %s wins over %s of %s", own->origin,
                                            entry->key->section, entry->key->key, text, entry->text,
                                            entry->origin));
    }
}
