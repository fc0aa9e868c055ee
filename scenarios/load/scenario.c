#include "scenarios/load/scenario.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <glib/gstdio.h>

#include "models/words/nearest.h"
#include "scenarios/imports/settings.h"
#include "scenarios/language/axis.h"
#include "scenarios/load/resolve_internal.h"
#include "scenarios/load/text_internal.h"

static void
clear_axis(gpointer data)
{
    ZpScenarioAxis *axis = data;
    g_free((char *)(gpointer)axis->key);
    g_free((char *)(gpointer)axis->text);
    g_free((char *)(gpointer)axis->origin);
}

static ZpScenario *
new_scenario(ZpScenarioState *state)
{
    ZpScenario *scenario = g_new0(ZpScenario, 1);
    scenario->state = state;
    scenario->values = g_array_sized_new(FALSE, FALSE, sizeof(ZpScenarioValue), ZP_N_KEYS);
    scenario->warnings = g_ptr_array_new_with_free_func(g_free);
    scenario->axes = g_array_new(FALSE, FALSE, sizeof(ZpScenarioAxis));
    g_array_set_clear_func(scenario->axes, clear_axis);
    return scenario;
}

void
zp_scenario_free(ZpScenario *scenario)
{
    if (scenario == NULL)
        return;
    g_array_unref(scenario->values);
    g_array_unref(scenario->axes);
    g_ptr_array_unref(scenario->warnings);
    zp_scenario_state_free(scenario->state);
    g_free(scenario);
}

/* --- axes --- */

/* Adds an axis, or replaces the one over the same key. */
static gboolean
give_axis(ZpScenario *scenario, const char *name, const char *text, const char *origin,
          GError **error)
{
    g_autofree char *full = NULL;
    const ZpSchemaKey *key = zp_axis_key(name, &full, error);
    if (key == NULL || zp_axis_count(key, text, error) < 0)
        return FALSE;
    ZpScenarioAxis axis = {g_steal_pointer(&full), g_strdup(text), g_strdup(origin)};
    for (guint a = 0; a < scenario->axes->len; a++) {
        ZpScenarioAxis *other = &g_array_index(scenario->axes, ZpScenarioAxis, a);
        if (strcmp(other->key, axis.key) == 0) {
            clear_axis(other);
            *other = axis;
            return TRUE;
        }
    }
    g_array_append_val(scenario->axes, axis);
    return TRUE;
}

static gboolean
has_axis(const ZpScenario *scenario, const char *name)
{
    g_autofree char *full = NULL;
    if (zp_axis_key(name, &full, NULL) == NULL)
        return FALSE;
    for (guint a = 0; a < scenario->axes->len; a++) {
        if (strcmp(g_array_index(scenario->axes, ZpScenarioAxis, a).key, full) == 0)
            return TRUE;
    }
    return FALSE;
}

/* --- the file's entries --- */

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
apply_entry(ZpScenario *scenario, const char *group, ZpScenarioLayer *layer,
            const ZpScenarioTextEntry *entry, const char *where, GError **error)
{
    const char *section = layer != NULL ? "layer" : group;
    const ZpSchemaKey *key = zp_schema_find_in(section, entry->key);
    if (strcmp(group, "sweep") == 0 && key == NULL) {
        if (has_axis(scenario, entry->key)) {
            g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_DUPLICATE,
                        "the sweep already has an axis over this key");
            return FALSE;
        }
        return give_axis(scenario, entry->key, entry->value, where, error);
    }
    if (key == NULL) {
        g_autofree char *more = advice(section, entry->key);
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN, "unknown key%s", more);
        return FALSE;
    }
    if (layer != NULL)
        return zp_scenario_state_give_in(layer, key, entry->value, where, error);
    return zp_scenario_state_give(scenario->state, key, entry->value, where, error);
}

/* FALSE for a group that no section answers to. */
static gboolean
open_group(ZpScenario *scenario, const ZpScenarioTextGroup *group, ZpScenarioProblems *problems,
           ZpScenarioLayer **layer)
{
    g_autofree char *where = g_strdup_printf("%s:%d", problems->name, group->line);
    g_autofree const char **sections = zp_schema_sections();
    *layer = NULL;
    if (g_str_has_prefix(group->name, "layer ")) {
        g_autofree char *name = g_strstrip(g_strdup(group->name + strlen("layer ")));
        *layer = zp_scenario_state_add_layer(scenario->state, name, where);
        return TRUE;
    }
    if (strcmp(group->name, "layer") == 0) {
        zp_scenario_problems_add(problems, ZP_SCENARIO_ERROR_SYNTAX, where,
                                 "[layer] needs a name: write [layer NAME]");
        return FALSE;
    }
    if (g_strv_contains(sections, group->name))
        return TRUE;
    const char *nearest = zp_nearest_find(group->name, sections);
    g_autofree char *legal = g_strjoinv("], [", (char **)(gpointer)sections);
    zp_scenario_problems_add(problems, ZP_SCENARIO_ERROR_UNKNOWN, where, "unknown group [%s]%s%s%s",
                             group->name, nearest ? "; did you mean [" : "; legal are [",
                             nearest ? nearest : legal, nearest ? "]?" : "]");
    return FALSE;
}

static void
apply_text(ZpScenario *scenario, const ZpScenarioText *text, ZpScenarioProblems *problems)
{
    guint next = 0;
    for (guint g = 0; g < text->groups->len && !zp_scenario_problems_full(problems); g++) {
        const ZpScenarioTextGroup *group = &g_array_index(text->groups, ZpScenarioTextGroup, g);
        ZpScenarioLayer *layer = NULL;
        gboolean known = open_group(scenario, group, problems, &layer);
        for (; next < text->entries->len && !zp_scenario_problems_full(problems); next++) {
            const ZpScenarioTextEntry *entry =
                &g_array_index(text->entries, ZpScenarioTextEntry, next);
            if (entry->group != g)
                break;
            g_autofree char *where = g_strdup_printf("%s:%d", problems->name, entry->line);
            g_autoptr(GError) error = NULL;
            if (known && !apply_entry(scenario, group->name, layer, entry, where, &error))
                zp_scenario_problems_add(problems, zp_scenario_problems_reason(error), where,
                                         "[%s] %s: %s", group->name, entry->key, error->message);
        }
    }
}

/* --- settings from outside --- */

static const char *
origin_of(const ZpScenario *base)
{
    return base != NULL ? "sweep" : "--set";
}

/* A point of a sweep has its values from the axes: some of the file, some of --set. */
static gboolean
is_by_hand(const ZpScenario *base, const char *name)
{
    if (base == NULL)
        return TRUE;
    for (guint a = 0; a < base->axes->len; a++) {
        const ZpScenarioAxis *axis = &g_array_index(base->axes, ZpScenarioAxis, a);
        if (strcmp(axis->key, name) == 0)
            return strcmp(axis->origin, "--set") == 0;
    }
    return FALSE;
}

static gboolean
apply_set(ZpScenario *scenario, const ZpScenario *base, const char *name, const char *value,
          GError **error)
{
    const char *origin = origin_of(base);
    const char *last = strrchr(name, '.');
    if (g_str_has_prefix(name, "layer.") && last > name + strlen("layer.")) {
        g_autofree char *layer = g_strndup(name + 6, (gsize)(last - name - 6));
        return zp_scenario_state_give_layer(scenario->state, layer, last + 1, value, origin, error);
    }
    if (g_str_has_prefix(name, "sweep.") && strcmp(name, "sweep.limit") != 0)
        return give_axis(scenario, name + strlen("sweep."), value, origin, error);
    const ZpSchemaKey *key = zp_schema_find(name, error);
    if (key == NULL)
        return FALSE;
    if (strcmp(key->section, "layer") == 0) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_UNKNOWN,
                    "which layer? write layer.NAME.%s", key->key);
        return FALSE;
    }
    if (!zp_scenario_state_give(scenario->state, key, value, origin, error))
        return FALSE;
    scenario->state->settings[key->id].by_hand = is_by_hand(base, name);
    return TRUE;
}

static void
apply_sets(ZpScenario *scenario, const ZpScenario *base, const char *const *sets,
           ZpScenarioProblems *problems)
{
    const char *origin = origin_of(base);
    for (gsize i = 0; sets != NULL && sets[i] != NULL; i++) {
        const char *equals = strchr(sets[i], '=');
        if (equals == NULL) {
            zp_scenario_problems_add(problems, ZP_SCENARIO_ERROR_SYNTAX, origin,
                                     "'%s' is not KEY=VALUE", sets[i]);
            continue;
        }
        g_autofree char *name = g_strstrip(g_strndup(sets[i], (gsize)(equals - sets[i])));
        g_autofree char *value = g_strstrip(g_strdup(equals + 1));
        g_autoptr(GError) error = NULL;
        if (!apply_set(scenario, base, name, value, &error))
            zp_scenario_problems_add(problems, zp_scenario_problems_reason(error), origin, "%s: %s",
                                     name, error->message);
    }
}

static ZpScenario *
finish(ZpScenario *scenario, const ZpScenario *base, ZpScenarioProblems *problems, GError **error)
{
    if (!zp_scenario_problems_any(problems))
        zp_scenario_state_resolve(scenario, base, problems);
    if (zp_scenario_problems_raise(problems, error))
        return scenario;
    zp_scenario_free(scenario);
    return NULL;
}

/* Imported settings hold where neither the text nor `sets` say anything. */
static void
apply_imported(ZpScenario *scenario, const GArray *settings, ZpScenarioProblems *problems)
{
    for (guint i = 0; settings != NULL && i < settings->len; i++) {
        const ZpImportSetting *setting = &g_array_index(settings, ZpImportSetting, i);
        ZpScenarioSetting *own = &scenario->state->settings[setting->key->id];
        g_autoptr(GError) error = NULL;
        if (own->given)
            continue;
        if (zp_scenario_state_give(scenario->state, setting->key, setting->text, setting->origin,
                                   &error))
            own->imported = TRUE;
        else
            zp_scenario_problems_add(problems, ZP_SCENARIO_ERROR_RANGE, setting->origin,
                                     "[%s] %s: %s", setting->key->section, setting->key->key,
                                     error->message);
    }
}

/* What a scenario is made from: a text, or another scenario. */
typedef struct {
    const char *text;
    gsize length;
    const char *name; /* of the text */
    const ZpScenario *base;
    const char *const *sets;
} Material;

static ZpScenario *
make_once(const Material *material, const GArray *imported, GError **error)
{
    const ZpScenario *base = material->base;
    g_auto(ZpScenarioProblems) problems;
    zp_scenario_problems_init(&problems, material->name);
    ZpScenario *scenario = new_scenario(base != NULL ? zp_scenario_state_copy(base->state)
                                                     : zp_scenario_state_new(material->name));
    if (base == NULL) {
        g_autoptr(ZpScenarioText) parts =
            zp_scenario_text_scan(material->text, material->length, &problems);
        apply_text(scenario, parts, &problems);
    }
    apply_sets(scenario, base, material->sets, &problems);
    apply_imported(scenario, imported, &problems);
    return finish(scenario, base, &problems, error);
}

/* A key of the scenario that says something else than the file it takes its settings from. */
static void
warn_overruled(const ZpScenario *scenario, const GArray *settings, GPtrArray *warnings)
{
    for (guint i = 0; i < settings->len; i++) {
        const ZpImportSetting *setting = &g_array_index(settings, ZpImportSetting, i);
        const ZpScenarioSetting *own = &scenario->state->settings[setting->key->id];
        if (own->imported || !own->given || strcmp(own->origin, "--set") == 0 ||
            strcmp(own->origin, "sweep") == 0 || strstr(setting->origin, ": default") != NULL)
            continue;
        g_autofree char *text = zp_schema_print(setting->key, &own->value);
        if (strcmp(text, setting->text) != 0)
            g_ptr_array_add(warnings,
                            g_strdup_printf("%s: [%s] %s: %s wins over %s of %s", own->origin,
                                            setting->key->section, setting->key->key, text,
                                            setting->text, setting->origin));
    }
}

static ZpScenario *
make(const Material *material, GError **error)
{
    g_autoptr(ZpScenario) plain = make_once(material, NULL, error);
    const char *config =
        plain != NULL ? plain->state->effective[ZP_KEY_ZERO_CONFIG].value.text : "none";
    if (plain == NULL || strcmp(config, "none") == 0)
        return g_steal_pointer(&plain);
    /* The file is read in the light of what the scenario says by itself, then joins it. */
    g_autofree char *path = zp_scenario_state_file(plain->state, ZP_KEY_ZERO_CONFIG);
    g_autofree char *name = zp_scenario_problems_printable(config);
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) settings = zp_import_settings(plain, path, name, warnings, error);
    if (settings == NULL) {
        g_prefix_error(error,
                       "%s: [zero] config: ", plain->state->settings[ZP_KEY_ZERO_CONFIG].origin);
        return NULL;
    }
    ZpScenario *scenario = make_once(material, settings, error);
    if (scenario == NULL)
        return NULL;
    warn_overruled(scenario, settings, warnings);
    for (guint i = 0; i < warnings->len; i++)
        g_ptr_array_insert(scenario->warnings, (gint)i, g_strdup(g_ptr_array_index(warnings, i)));
    return scenario;
}

ZpScenario *
zp_scenario_parse(const char *text, gssize length, const char *name, const char *const *sets,
                  GError **error)
{
    gsize size = length < 0 ? strlen(text) : (gsize)length;
    return make(&(Material){text, size, name, NULL, sets}, error);
}

ZpScenario *
zp_scenario_with(const ZpScenario *base, const char *const *sets, GError **error)
{
    return make(&(Material){.name = base->path, .base = base, .sets = sets}, error);
}

/* Reads no more than a scenario may have, whatever the path is (a pipe, a device). */
static char *
read_bounded(const char *path, gsize *length, GError **error)
{
    /* A named pipe would wait for its writer for ever; the shell's <(...) has one. */
    struct stat info;
    if (stat(path, &info) == 0 && S_ISFIFO(info.st_mode) && !g_str_has_prefix(path, "/dev/") &&
        !g_str_has_prefix(path, "/proc/")) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_IO, "%s: a named pipe", path);
        return NULL;
    }
    FILE *file = g_fopen(path, "rb");
    if (file == NULL) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_IO, "%s: %s", path,
                    g_strerror(errno));
        return NULL;
    }
    g_autoptr(GString) content = g_string_new(NULL);
    char buffer[16384];
    gsize n;
    while (content->len <= ZP_SCENARIO_MAX_BYTES && (n = fread(buffer, 1, sizeof buffer, file)) > 0)
        g_string_append_len(content, buffer, (gssize)n);
    gboolean failed = ferror(file) != 0;
    int reason = errno;
    fclose(file);
    if (failed) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_IO, "%s: %s", path,
                    g_strerror(reason));
        return NULL;
    }
    *length = content->len;
    return g_string_free(g_steal_pointer(&content), FALSE);
}

ZpScenario *
zp_scenario_load(const char *path, const char *const *sets, GError **error)
{
    gsize length = 0;
    g_autofree char *text = read_bounded(path, &length, error);
    if (text == NULL)
        return NULL;
    return zp_scenario_parse(text, (gssize)length, path, sets, error);
}
