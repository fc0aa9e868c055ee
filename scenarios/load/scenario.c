/* The way of a scenario, one stage after the other: text, settings, imported settings, values in
 * force, job. */
#include "scenarios/load/scenario.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <glib/gstdio.h>

#include "scenarios/imports/import.h"
#include "scenarios/load/resolve_internal.h"
#include "scenarios/readers/readers.h"

/* The file that zero.config names, read in the light of what the scenario says by itself. */
static GArray *
import(const ZpScenario *plain, const char *config, GPtrArray *warnings, GError **error)
{
    const ZpSettings *own = plain->state->settings;
    ZpImportScene scene = {
        .own = own,
        .job = &plain->job,
        .ranks = zp_scenario_state_integer(plain->state, ZP_KEY_RANKS),
        .sequence = zp_scenario_state_integer(plain->state, ZP_KEY_SEQUENCE),
        .attention = plain->state->effective[ZP_KEY_ATTENTION].present,
    };
    g_autofree char *path = zp_settings_file(own, ZP_KEY_ZERO_CONFIG, config);
    g_autofree char *name = zp_import_message_clean(config);
    GArray *entries = zp_import_settings(&scene, path, name, warnings, error);
    if (entries == NULL)
        g_prefix_error(error, "%s: [zero] config: ", own->keys[ZP_KEY_ZERO_CONFIG].origin);
    return entries;
}

/* Takes `own`. */
static ZpScenario *
make(ZpSettings *own, const ZpScenario *base, ZpProblems *problems, GError **error)
{
    g_autoptr(ZpScenario) plain = zp_scenario_resolve(own, base, problems);
    if (!zp_problems_raise(problems, error))
        return NULL;
    const char *config = plain->state->effective[ZP_KEY_ZERO_CONFIG].value.text;
    if (strcmp(config, "none") == 0)
        return g_steal_pointer(&plain);
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) entries = import(plain, config, warnings, error);
    if (entries == NULL)
        return NULL;
    ZpSettings *joined = zp_settings_join(plain->state->settings, entries, problems);
    g_autoptr(ZpScenario) scenario = zp_scenario_resolve(joined, base, problems);
    if (!zp_problems_raise(problems, error))
        return NULL;
    zp_settings_warn_overruled(joined, entries, warnings);
    for (guint i = 0; i < warnings->len; i++)
        g_ptr_array_insert(scenario->warnings, (gint)i, g_strdup(g_ptr_array_index(warnings, i)));
    return g_steal_pointer(&scenario);
}

ZpScenario *
zp_scenario_parse(const char *text, gssize length, const char *name, const char *const *sets,
                  GError **error)
{
    gsize size = length < 0 ? strlen(text) : (gsize)length;
    g_auto(ZpProblems) problems;
    zp_problems_init(&problems, name);
    return make(zp_settings_parse(text, size, name, sets, &problems), NULL, &problems, error);
}

ZpScenario *
zp_scenario_with(const ZpScenario *base, const char *const *sets, GError **error)
{
    g_auto(ZpProblems) problems;
    zp_problems_init(&problems, base->path);
    return make(zp_settings_with(base->state->settings, sets, &problems), base, &problems, error);
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
