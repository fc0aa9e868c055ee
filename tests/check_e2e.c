/* check_e2e [--known FILE | --write-known FILE] DIR [CONFIGS]: whole models as they were run
 * against the simulator (tests/reference/e2e/README.md).
 *
 * Configurations are in CONFIGS, or DIR/configs.  Prints errors by family, feature and phase, and
 * the cases that are off.  --known: errors that are known; --write-known writes that file.  Exit
 * code 0 when no figure is worse than known (or than LIMIT_PERCENT), 1 when one is, 2 on wrong
 * usage. */
#include "check_e2e/e2e.h"

#include <glib/gstdio.h>
#include <stdio.h>

static const double LIMIT_PERCENT = 0.5;

static GPtrArray *
run(const char *folder, const char *configs, GError **error)
{
    g_autofree char *own = g_build_filename(folder, "configs", NULL);
    g_autofree char *scratch = g_dir_make_tmp("check_e2e-XXXXXX", error);
    if (scratch == NULL)
        return NULL;
    GPtrArray *cases = e2e_run(folder, configs ? configs : own, scratch, error);
    g_rmdir(scratch);
    return cases;
}

int
main(int argc, char **argv)
{
    g_autofree char *known = NULL, *write_known = NULL;
    GOptionEntry entries[] = {
        {"known", 0, 0, G_OPTION_ARG_FILENAME, &known, "Errors that are known", "FILE"},
        {"write-known", 0, 0, G_OPTION_ARG_FILENAME, &write_known, "Writes that file", "FILE"},
        {0},
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(GOptionContext) options = g_option_context_new("DIR [CONFIGS]");
    g_option_context_add_main_entries(options, entries, NULL);
    gboolean parsed = g_option_context_parse(options, &argc, &argv, &error);
    if (!parsed || argc < 2 || argc > 3) {
        fprintf(stderr, "check_e2e: %s\n", error ? error->message : "wants DIR [CONFIGS]");
        return 2;
    }
    g_autoptr(GPtrArray) cases = run(argv[1], argc > 2 ? argv[2] : NULL, &error);
    if (cases == NULL) {
        fprintf(stderr, "check_e2e: %s\n", error->message);
        return 2;
    }
    e2e_report(cases, LIMIT_PERCENT);
    if (write_known && !e2e_write_known(cases, write_known, LIMIT_PERCENT, &error)) {
        fprintf(stderr, "check_e2e: %s\n", error->message);
        return 2;
    }
    return e2e_check_known(cases, write_known ? write_known : known, LIMIT_PERCENT) > 0;
}
