#include "tools/line/command.h"

#include <gio/gio.h>
#include <string.h>

#include "models/job/runtime.h"
#include "models/ledger/checks.h"
#include "models/step/step.h"
#include "reports/pictures/plot.h"
#include "reports/store/store.h"
#include "scenarios/load/scenario.h"

G_DEFINE_QUARK(zp - command - error - quark, zp_command_error)

static const ZpCommandExit exits[] = {
    {ZP_EXIT_OK, "success; also when a model does not fit, unless --require-fit is given"},
    {ZP_EXIT_USAGE, "wrong command line"},
    {ZP_EXIT_INPUT, "a scenario or an imported file is wrong"},
    {ZP_EXIT_IO, "a file cannot be read or written, or the disk is full"},
    {ZP_EXIT_DATABASE, "the database is not one of zeropeak's, or is newer than this program"},
    {ZP_EXIT_CHECK, "an accounting check failed: a defect of zeropeak, please report it"},
    {ZP_EXIT_NO_FIT, "with --require-fit, or nothing fits: the device has less than is needed "
                     "(=sure: or is tight)"},
    {ZP_EXIT_PLOT, "gnuplot is missing or failed"},
    {ZP_EXIT_INTERRUPTED, "interrupted (Ctrl-C); what was not finished is not in the database"},
};

const ZpCommandExit *
zp_command_exits(gsize *n)
{
    *n = G_N_ELEMENTS(exits);
    return exits;
}

void
zp_command_options_clear(ZpCommandOptions *options)
{
    g_strfreev(options->set);
    g_strfreev(options->runs);
    g_free(options->database);
    g_free(options->output);
    g_free(options->kind);
    g_free(options->title);
    g_free(options->runs_file);
    g_free(options->subset);
    g_free(options->calibration);
    g_free(options->axis);
    g_free(options->vendor);
    g_free(options->require_fit);
    g_free(options->sweep);
}

const char *
zp_command_database(const ZpCommandOptions *options)
{
    return options->database != NULL ? options->database : "zeropeak.db";
}

int
zp_command_fit_exit(const ZpCommandOptions *options, ZpVerdict verdict)
{
    if (options->require_fit == NULL)
        return ZP_EXIT_OK;
    ZpVerdict least =
        strcmp(options->require_fit, "sure") == 0 ? ZP_VERDICT_FITS : ZP_VERDICT_TIGHT;
    return verdict > least ? ZP_EXIT_NO_FIT : ZP_EXIT_OK;
}

static int
plot_exit(int code)
{
    switch ((ZpPlotError)code) {
    case ZP_PLOT_ERROR_KIND:
    case ZP_PLOT_ERROR_FORMAT:
        return ZP_EXIT_USAGE;
    case ZP_PLOT_ERROR_DATA:
        return ZP_EXIT_INPUT;
    case ZP_PLOT_ERROR_WRITE:
        return ZP_EXIT_IO;
    case ZP_PLOT_ERROR_GNUPLOT:
        break;
    }
    return ZP_EXIT_PLOT;
}

static int
store_exit(int code)
{
    switch ((ZpStoreError)code) {
    case ZP_STORE_ERROR_FOREIGN:
    case ZP_STORE_ERROR_VERSION:
    case ZP_STORE_ERROR_CORRUPT:
        return ZP_EXIT_DATABASE;
    case ZP_STORE_ERROR_MISSING:
        return ZP_EXIT_INPUT;
    case ZP_STORE_ERROR_OPEN:
    case ZP_STORE_ERROR_WRITE:
    case ZP_STORE_ERROR_BUSY:
    case ZP_STORE_ERROR_QUERY:
        break;
    }
    return ZP_EXIT_IO;
}

int
zp_command_exit_code(const GError *error)
{
    if (error->domain == G_OPTION_ERROR ||
        g_error_matches(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE))
        return ZP_EXIT_USAGE;
    if (g_error_matches(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CANCELLED))
        return ZP_EXIT_INTERRUPTED;
    if (g_error_matches(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CHECK) ||
        error->domain == ZP_CHECKS_ERROR || error->domain == ZP_TAPE_ERROR ||
        g_error_matches(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_RACE))
        return ZP_EXIT_CHECK;
    if (error->domain == ZP_STORE_ERROR)
        return store_exit(error->code);
    if (error->domain == ZP_PLOT_ERROR)
        return plot_exit(error->code);
    if (error->domain == G_FILE_ERROR || error->domain == G_IO_ERROR ||
        g_error_matches(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_IO) ||
        g_error_matches(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_IO))
        return ZP_EXIT_IO;
    return ZP_EXIT_INPUT;
}
