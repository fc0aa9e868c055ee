#include "tools/program.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "models/words/nearest.h"
#include "tools/manual.h"
#include "tools/table.h"

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
    gsize n;
    const ZpCommand *const *commands = zp_table_commands(&n);
    g_autofree const char **names = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++)
        names[i] = commands[i]->name;
    const char *nearest = zp_nearest_find(name, names);
    fprintf(stderr, "zeropeak: unknown command '%s'", name);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean '%s'?", nearest);
    fprintf(stderr, "\n'zeropeak --help' lists the commands\n");
    return ZP_EXIT_USAGE;
}

int
zp_program_run(int argc, char **argv)
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
    const ZpCommand *command = zp_table_find(argv[1]);
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
