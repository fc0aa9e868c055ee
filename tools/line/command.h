/* What a subcommand is: its options as a table, its errors and exit codes.  Parsing, --help, the
 * man page and the shell completion all come from such tables. */
#pragma once

#include <glib.h>
#include <stddef.h>

#include "models/step/verdict.h"

/* Exit codes; documented in the man page from zp_command_exits(). */
typedef enum {
    ZP_EXIT_OK = 0,
    ZP_EXIT_USAGE = 2,
    ZP_EXIT_INPUT = 3,
    ZP_EXIT_IO = 4,
    ZP_EXIT_DATABASE = 5,
    ZP_EXIT_CHECK = 6,
    ZP_EXIT_NO_FIT = 7,
    ZP_EXIT_PLOT = 8,
    ZP_EXIT_INTERRUPTED = 130,
} ZpExit;

typedef struct {
    ZpExit code;
    const char *meaning;
} ZpCommandExit;
const ZpCommandExit *zp_command_exits(gsize *n);

/* Values of all options of all commands; a command reads those it lists. */
typedef struct {
    char **set;
    char *runs_file, *subset, *calibration;
    char *database, *output, *kind, *title, *axis, *sweep;
    char **runs;
    char *vendor;
    char *require_fit; /* NULL: not given; "tight", or "sure" */
    gboolean json, csv, trace, tape, dump, script, summary, lifecycle, bands, worst;
    gboolean no_database, why, no_color;
    int jobs, top;
} ZpCommandOptions;

void zp_command_options_clear(ZpCommandOptions *options);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpCommandOptions, zp_command_options_clear)

/* Where runs and sweeps are recorded: --database or its default. */
const char *zp_command_database(const ZpCommandOptions *options);

typedef struct {
    const char *name;
    char letter;          /* 0: none */
    GOptionArg type;      /* CALLBACK: --require-fit, whose value may be left out */
    gsize offset;         /* into ZpCommandOptions */
    const char *argument; /* "KEY=VALUE"; NULL for flags */
    const char *help;
} ZpCommandOption;

/* The row of --require-fit[=sure], and the exit code that it asks for. */
#define ZP_COMMAND_REQUIRE_FIT                                                                  \
    {                                                                                           \
        "require-fit", 0, G_OPTION_ARG_STRING, offsetof(ZpCommandOptions, require_fit), "sure", \
            "Exit with code 7 when the job does not fit; with =sure also when it is tight"      \
    }
int zp_command_fit_exit(const ZpCommandOptions *options, ZpVerdict verdict);

typedef struct {
    const char *name;
    const char *arguments; /* "FILE" */
    const char *summary;   /* one line */
    const char *description;
    const ZpCommandOption *options; /* ends with a NULL name */
    const char *const *examples;    /* NULL-terminated */
    /* Returns an exit code; on failure with `error` set. */
    int (*run)(const ZpCommandOptions *options, char **arguments, GError **error);
} ZpCommand;

/* Errors of the command line itself. */
typedef enum { ZP_COMMAND_ERROR_USAGE, ZP_COMMAND_ERROR_INPUT, ZP_COMMAND_ERROR_IO } ZpCommandError;
#define ZP_COMMAND_ERROR (zp_command_error_quark())
GQuark zp_command_error_quark(void);
/* The exit code that belongs to an error of any domain of the program. */
int zp_command_exit_code(const GError *error);
