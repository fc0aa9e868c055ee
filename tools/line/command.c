#include "tools/line/command.h"

#include <gio/gio.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "models/ledger/checks.h"
#include "models/runtimes/runtime.h"
#include "models/step/step.h"
#include "models/words/nearest.h"
#include "reports/pictures/plot.h"
#include "reports/store/store.h"
#include "scenarios/load/scenario.h"
#include "tools/line/manual_internal.h"

G_DEFINE_QUARK(zp - command - error - quark, zp_command_error)

static const ZpCommand *const commands[] = {
    &zp_command_run,    &zp_command_sweep,    &zp_command_fit,       &zp_command_plot,
    &zp_command_ledger, &zp_command_check,    &zp_command_import,    &zp_command_explain,
    &zp_command_list,   &zp_command_validate, &zp_command_calibrate,
};

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

const ZpCommand *const *
zp_command_table(gsize *n)
{
    *n = G_N_ELEMENTS(commands);
    return commands;
}

const ZpCommand *
zp_command_find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
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

ZpExit
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

static GOptionEntry *
option_entries(const ZpCommand *command, ZpCommandOptions *options)
{
    gsize n = 0;
    while (command->options[n].name != NULL)
        n++;
    GOptionEntry *entries = g_new0(GOptionEntry, n + 1);
    for (gsize i = 0; i < n; i++) {
        const ZpCommandOption *option = &command->options[i];
        entries[i] = (GOptionEntry){
            .long_name = option->name,
            .short_name = option->letter,
            .arg = option->type,
            .arg_data = (char *)options + option->offset,
            .description = option->help,
            .arg_description = option->argument,
        };
    }
    return entries;
}

static int
run_command(const ZpCommand *command, int argc, char **argv, GError **error)
{
    g_auto(ZpCommandOptions) options = {0};
    g_autofree GOptionEntry *entries = option_entries(command, &options);
    g_autofree char *usage = g_strdup_printf("%s %s", command->name, command->arguments);
    g_autoptr(GOptionContext) context = g_option_context_new(usage);
    g_autofree char *description = zp_manual_command_text(command);
    g_option_context_set_summary(context, command->summary);
    g_option_context_set_description(context, description);
    g_option_context_add_main_entries(context, entries, NULL);
    /* argv[0] stays the program's name; the command itself is consumed. */
    static char require_tight[] = "--require-fit=tight";
    g_autofree char **rest = g_new0(char *, (gsize)argc + 1);
    rest[0] = argv[0];
    /* GLib would take what follows for the value that may be left out. */
    for (int i = 2; i < argc; i++)
        rest[i - 1] = strcmp(argv[i], "--require-fit") == 0 ? require_tight : argv[i];
    int n = argc - 1;
    char **list = rest;
    if (!g_option_context_parse(context, &n, &list, error))
        return ZP_EXIT_USAGE;
    if (options.require_fit != NULL && strcmp(options.require_fit, "tight") != 0 &&
        strcmp(options.require_fit, "sure") != 0) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "--require-fit takes no value, or 'sure'; not '%s'", options.require_fit);
        return ZP_EXIT_USAGE;
    }
    int code = command->run(&options, list + 1, error);
    if (*error != NULL)
        return zp_command_exit_code(*error);
    return code;
}

static int
unknown_command(const char *name)
{
    const char *names[G_N_ELEMENTS(commands) + 1] = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        names[i] = commands[i]->name;
    const char *nearest = zp_nearest_find(name, names);
    fprintf(stderr, "zeropeak: unknown command '%s'", name);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean '%s'?", nearest);
    fprintf(stderr, "\n'zeropeak --help' lists the commands\n");
    return ZP_EXIT_USAGE;
}

int
zp_command_main(int argc, char **argv)
{
    (void)setlocale(LC_ALL, "C.UTF-8"); /* numbers and messages do not depend on the machine */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        g_autofree char *text = zp_manual_overview();
        fputs(text, argc < 2 ? stderr : stdout);
        return argc < 2 ? ZP_EXIT_USAGE : ZP_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("zeropeak %s\n", ZP_VERSION);
        return ZP_EXIT_OK;
    }
    if (zp_manual_generate(argv[1]))
        return ZP_EXIT_OK;
    const ZpCommand *command = zp_command_find(argv[1]);
    if (command == NULL)
        return unknown_command(argv[1]);
    g_autoptr(GError) error = NULL;
    int code = run_command(command, argc, argv, &error);
    if (error != NULL)
        fprintf(stderr, "zeropeak %s: %s\n", command->name, error->message);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "zeropeak %s: cannot write the output: disk full or pipe closed\n",
                command->name);
        return code == ZP_EXIT_OK ? ZP_EXIT_IO : code;
    }
    return code;
}
