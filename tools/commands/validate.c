/* zeropeak validate: published runs against the simulator. */
#include <stdio.h>

#include "models/published/bands.h"
#include "models/words/resources.h"
#include "reports/receipts/receipt.h"
#include "tools/commands/commands.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption validate_options[] = {
    {"runs", 'r', G_OPTION_ARG_FILENAME, OPTION(runs_file), "FILE",
     "CSV of runs with the columns of tests/reference/runs.csv (default: the built-in table)"},
    {"subset", 's', G_OPTION_ARG_STRING, OPTION(subset), "NAMES",
     "Simulate these subsets alone, separated by blanks (default: all)"},
    {"calibration", 'c', G_OPTION_ARG_FILENAME, OPTION(calibration), "FILE",
     "Constants of a GPU made by 'zeropeak calibrate', in place of the built-in ones"},
    {"json", 'j', G_OPTION_ARG_NONE, OPTION(json), NULL,
     "Print rows and summary as JSON (schema zeropeak-validation/1)"},
    {"bands", 0, G_OPTION_ARG_NONE, OPTION(bands), NULL,
     "Print the band file: how far step times and memory can be wrong, by what they rest on"},
    {"worst", 0, G_OPTION_ARG_NONE, OPTION(worst), NULL,
     "Print groups of runs, worst first, as a table in Markdown"},
    {"summary", 0, G_OPTION_ARG_NONE, OPTION(summary), NULL, "Print the summary without the rows"},
    {0},
};

static const char *const validate_examples[] = {
    "zeropeak validate --summary",
    "zeropeak validate --subset time_cal",
    NULL,
};

static char *
text_of(const ZpCommandOptions *options, const ZpValidation *validation)
{
    if (options->worst)
        return zp_validate_worst(validation);
    if (options->bands)
        return zp_validate_bands(validation);
    if (options->json)
        return zp_receipt_validation_json(validation);
    g_autofree char *summary = zp_validate_summary(validation);
    if (options->summary)
        return g_steal_pointer(&summary);
    g_autofree char *rows = zp_validate_table(validation);
    return g_strconcat(rows, "\n", summary, NULL);
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] != NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "no argument is taken; --runs names a table");
        return ZP_EXIT_USAGE;
    }
    if (options->worst + options->bands + options->json + options->summary > 1) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give one of --worst, --bands, --json and --summary");
        return ZP_EXIT_USAGE;
    }
    g_autoptr(ZpCalibration) own = NULL;
    g_autofree char *constants = NULL;
    if (options->calibration != NULL &&
        !g_file_get_contents(options->calibration, &constants, NULL, error))
        return ZP_EXIT_IO;
    if (constants != NULL && (own = zp_calibration_parse(constants, error)) == NULL)
        return ZP_EXIT_INPUT;
    if (own != NULL)
        zp_calibration_set_origin(own, options->calibration);
    g_autofree char *table = NULL;
    if (options->runs_file != NULL && !g_file_get_contents(options->runs_file, &table, NULL, error))
        return ZP_EXIT_IO;
    const char *csv = table != NULL ? table : zp_resources_text("catalog/runs.csv");
    g_autoptr(ZpValidation) validation = zp_validate_run(csv, own, options->subset, error);
    if (validation == NULL)
        return ZP_EXIT_INPUT;
    g_autofree char *text = text_of(options, validation);
    fputs(text, stdout);
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_validate = {
    .name = "validate",
    .arguments = "",
    .summary = "Simulate published runs and show the error of each",
    .description =
        "Simulates a table of published training runs and prints measured and simulated step "
        "time,\n"
        "the error, and what most of the step went to; where a row states its peak memory also "
        "that,\n"
        "measured and simulated; then figures by subset, GPU and family\n"
        "beside those of a null model (FLOPs over one constant).  Rows that come out wrong stay.",
    .options = validate_options,
    .examples = validate_examples,
    .run = run,
};
