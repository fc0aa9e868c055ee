/* zeropeak import: other programs' files as a scenario. */
#include <stdio.h>
#include <string.h>

#include "scenarios/imports/import.h"
#include "scenarios/load/scenario.h"
#include "tools/commands/commands.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption import_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "A key that no file tells, such as world.ranks or device.gpu; wins over the files"},
    {"output", 'o', G_OPTION_ARG_FILENAME, OPTION(output), "FILE",
     "Scenario to write (default: print it)"},
    {0},
};

static const char *const import_examples[] = {
    "zeropeak import config.json ds_config.json --set world.ranks=16 --output my.ini",
    "zeropeak import config.json torchtitan.toml --set device.gpu=H100-SXM-80",
    NULL,
};

/* What the files are: at most one model and one set of settings. */
typedef struct {
    char *model, *settings;
} Found;

static void
found_clear(Found *found)
{
    g_free(found->model);
    g_free(found->settings);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Found, found_clear)

static gboolean
find_file(const char *path, Found *found, GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    if (!zp_import_read(path, &text, &length, error))
        return FALSE;
    ZpImportKind kind = zp_import_detect(path, text, length);
    char **place = kind == ZP_IMPORT_MODEL ? &found->model : &found->settings;
    if (kind == ZP_IMPORT_UNKNOWN || kind == ZP_IMPORT_SCENARIO || *place != NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_INPUT,
                    "%s: %s; legal are one config.json and one ds_config.json or FSDP settings",
                    path,
                    *place != NULL ? "a second file of its kind" : "no file that can be imported");
        return FALSE;
    }
    *place = g_canonicalize_filename(path, NULL);
    return TRUE;
}

static ZpScenario *
combine(const Found *found, const ZpCommandOptions *options, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (found->model != NULL)
        g_string_append_printf(text, "[model]\nconfig = %s\n", found->model);
    if (found->settings != NULL)
        g_string_append_printf(text, "[zero]\nconfig = %s\n", found->settings);
    g_autofree char *name = g_path_get_basename(
        options->output != NULL ? options->output
                                : (found->settings != NULL ? found->settings : found->model));
    return zp_scenario_parse(text->str, -1, name, (const char *const *)options->set, error);
}

/* Every key is spelled out, so the settings file is named in a comment only. */
static char *
written_out(const ZpScenario *scenario)
{
    g_autoptr(GString) out = g_string_new(NULL);
    zp_scenario_dump(scenario, out);
    const char *line = strstr(out->str, "\n[zero]\nconfig = ");
    if (line != NULL)
        g_string_insert(out, line + strlen("\n[zero]\n") - out->str, "# ");
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    g_auto(Found) found = {0};
    if (arguments[0] == NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE, "give a file to import");
        return ZP_EXIT_USAGE;
    }
    for (char **path = arguments; *path != NULL; path++) {
        if (!find_file(*path, &found, error))
            return ZP_EXIT_INPUT;
    }
    g_autoptr(ZpScenario) scenario = combine(&found, options, error);
    if (scenario == NULL)
        return ZP_EXIT_INPUT;
    for (guint i = 0; i + 1 < scenario->warnings->len; i++)
        fprintf(stderr, "warning: %s\n", (char *)g_ptr_array_index(scenario->warnings, i));
    g_autofree char *text = written_out(scenario);
    if (options->output == NULL)
        fputs(text, stdout);
    else if (!g_file_set_contents(options->output, text, -1, error))
        return ZP_EXIT_IO;
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_import = {
    .name = "import",
    .arguments = "FILE...",
    .summary = "Write the scenario that other programs' files describe",
    .description =
        "Combines a Hugging Face config.json and a DeepSpeed or FSDP settings file into a "
        "scenario\n"
        "with every key spelled out and its origin beside it.  What no file tells (ranks, GPU,\n"
        "sequence) comes from --set or keeps its default.  'zero.config' in a scenario does the "
        "same\n"
        "without writing a file.",
    .options = import_options,
    .examples = import_examples,
    .run = run,
};
