/* zeropeak check: is a file right, and what does it mean? */
#include <stdio.h>

#include "scenarios/scenario.h"
#include "tools/command.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption check_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "Override a key of the scenario (section.key); may be repeated"},
    {"dump", 'D', G_OPTION_ARG_NONE, OPTION(dump), NULL,
     "Print the effective scenario, every default spelled out with its origin; it loads back to "
     "itself"},
    {0},
};

static const char *const check_examples[] = {
    "zeropeak check scenarios/my-model.ini",
    "zeropeak check scenarios/my-model.ini --dump",
    NULL,
};

static gboolean
check_one(const ZpCommandOptions *options, const char *path, GError **error)
{
    g_autoptr(ZpScenario) scenario =
        zp_scenario_load(path, (const char *const *)options->set, error);
    if (scenario == NULL)
        return FALSE;
    for (guint i = 0; i < scenario->warnings->len; i++) {
        const char *text = g_ptr_array_index(scenario->warnings, i);
        if (text != NULL)
            fprintf(stderr, "warning: %s\n", text);
    }
    if (options->dump) {
        g_autoptr(GString) out = g_string_new(NULL);
        zp_scenario_dump(scenario, out);
        fputs(out->str, stdout);
    } else {
        printf("%s: ok: %s, %" G_GINT64_FORMAT " parameters, %d ranks, stage %d\n", path,
               scenario->model->name, scenario->model->n_elements, scenario->job.world.ranks,
               scenario->job.zero.stage);
    }
    return TRUE;
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE, "give a file to check");
        return ZP_EXIT_USAGE;
    }
    for (char **path = arguments; *path != NULL; path++) {
        if (!check_one(options, *path, error))
            return ZP_EXIT_INPUT;
    }
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_check = {
    .name = "check",
    .arguments = "FILE...",
    .summary = "Check files without running them",
    .description =
        "Reads scenario files strictly and says what is wrong, where, and what is legal.",
    .options = check_options,
    .examples = check_examples,
    .run = run,
};
