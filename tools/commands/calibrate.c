/* zeropeak calibrate: constants of a GPU from one's own runs. */
#include <stdio.h>

#include "models/published/calibrate.h"
#include "models/words/resources.h"
#include "tools/commands/commands.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption calibrate_options[] = {
    {"runs", 'r', G_OPTION_ARG_FILENAME, OPTION(runs_file), "FILE",
     "CSV of runs with the columns of tests/reference/runs.csv (default: the built-in table)"},
    {"subset", 's', G_OPTION_ARG_STRING, OPTION(subset), "NAME", "Fit to this subset alone"},
    {"output", 'o', G_OPTION_ARG_FILENAME, OPTION(output), "FILE",
     "Write the constants there (default: print them)"},
    {0},
};

static const char *const calibrate_examples[] = {
    "zeropeak calibrate A100-80 --subset time_cal --output my-a100.ini",
    "zeropeak validate --calibration my-a100.ini --summary",
    NULL,
};

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || arguments[1] != NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give the name of one GPU; 'zeropeak list gpus' shows them");
        return ZP_EXIT_USAGE;
    }
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    const ZpGpu *gpu = zp_hardware_gpu(hardware, arguments[0]);
    if (gpu == NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_INPUT,
                    "unknown GPU '%s'; 'zeropeak list gpus' shows them", arguments[0]);
        return ZP_EXIT_INPUT;
    }
    g_autofree char *table = NULL;
    if (options->runs_file != NULL && !g_file_get_contents(options->runs_file, &table, NULL, error))
        return ZP_EXIT_IO;
    const char *csv = table != NULL ? table : zp_resources_text("catalog/runs.csv");
    g_autoptr(ZpCalibrate) fit = zp_calibrate_run(csv, gpu->name, options->subset, error);
    if (fit == NULL)
        return ZP_EXIT_INPUT;
    if (fit->n_unused > 0)
        fprintf(stderr, "%d row%s not used:\n%s\n", fit->n_unused, fit->n_unused > 1 ? "s" : "",
                fit->unused);
    g_autofree char *file = zp_calibrate_file(fit);
    if (options->output == NULL) {
        fputs(file, stdout);
        return ZP_EXIT_OK;
    }
    if (!g_file_set_contents(options->output, file, -1, error))
        return ZP_EXIT_IO;
    printf("%s: %s\n", options->output, fit->evidence);
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_calibrate = {
    .name = "calibrate",
    .arguments = "GPU",
    .summary = "Fit a GPU's constants to measured runs",
    .description =
        "Fits what no lone benchmark can give to a table of measured runs, states the error\n"
        "of each run predicted without itself, and writes a hardware file.  A scenario takes it\n"
        "as [device] calibration = FILE.",
    .options = calibrate_options,
    .examples = calibrate_examples,
    .run = run,
};
