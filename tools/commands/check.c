/* zeropeak check: is a file right, and what does it mean? */
#include <stdio.h>

#include "scenarios/checks/check_file.h"
#include "scenarios/load/scenario.h"
#include "tools/commands/commands.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption check_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "Override a key of a scenario (section.key); may be repeated"},
    {"json", 'j', G_OPTION_ARG_NONE, OPTION(json), NULL,
     "Print JSON (schema zeropeak-check/1): verdict, messages with line and key, model and units"},
    {"dump", 'D', G_OPTION_ARG_NONE, OPTION(dump), NULL,
     "Print the effective scenario, every default spelled out with its origin; it loads back to "
     "itself"},
    {0},
};

static const char *const check_examples[] = {
    "zeropeak check scenarios/my-model.ini",
    "zeropeak check scenarios/my-model.ini --dump",
    "zeropeak check config.json ds_config.json fsdp.yaml",
    NULL,
};

static gboolean
dump(const ZpCommandOptions *options, const char *path, GError **error)
{
    g_autoptr(ZpScenario) scenario =
        zp_scenario_load(path, (const char *const *)options->set, error);
    if (scenario == NULL)
        return FALSE;
    g_autoptr(GString) out = g_string_new(NULL);
    zp_scenario_dump(scenario, out);
    fputs(out->str, stdout);
    return TRUE;
}

/* TRUE when the file is in order or has warnings alone. */
static gboolean
check_one(const ZpCommandOptions *options, const char *path, GError **error)
{
    g_auto(ZpCheckFile) check = {0};
    if (!zp_check_file_read(path, (const char *const *)options->set, &check, error))
        return FALSE;
    g_autofree char *text = options->json ? zp_check_file_json(&check) : zp_check_file_text(&check);
    fputs(text, stdout);
    return check.report->verdict != ZP_IMPORT_REFUSED;
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || (options->json && options->dump)) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give a file to check, and at most one of --json and --dump");
        return ZP_EXIT_USAGE;
    }
    int code = ZP_EXIT_OK;
    for (char **path = arguments; *path != NULL && *error == NULL; path++) {
        gboolean good =
            options->dump ? dump(options, *path, error) : check_one(options, *path, error);
        if (!good)
            code = ZP_EXIT_INPUT;
    }
    return code;
}

const ZpCommand zp_command_check = {
    .name = "check",
    .arguments = "FILE...",
    .summary = "Check files without running them",
    .description =
        "Reads scenario files, Hugging Face config.json, DeepSpeed configurations and FSDP "
        "settings\n"
        "(accelerate YAML, HF Trainer JSON, torchtitan TOML) strictly, and says what is wrong, "
        "where,\n"
        "and what is legal; for settings files also what each key does here and which are ignored.",
    .options = check_options,
    .examples = check_examples,
    .run = run,
};
