/* check_cases [--markdown | --current FILE] DIR: the public cases of scenarios/cases.
 *
 * Prints a line per statement and exits with 1 when one does not come out as its scenario says.
 * --markdown prints the table for the docs instead; --current compares that table with FILE. */
#include "tests/check_cases/case.h"
#include "tests/check_cases/expression.h"
#include "tests/check_cases/table.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    guint n_cases, n_agree, n_differ, n_wrong;
    gboolean quiet;
    GString *sections;
} Run;

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GPtrArray *
scenario_paths(const char *folder, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
    if (dir == NULL)
        return NULL;
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL)
        if (g_str_has_suffix(name, ".ini"))
            g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
    g_ptr_array_sort(paths, by_name);
    return paths;
}

static void
report(Run *run, const Case *c, const CaseCheck *check, const Answer *answer)
{
    gboolean as_said = answer->holds != check->differs;
    run->n_agree += answer->holds ? 1 : 0;
    run->n_differ += answer->holds ? 0 : 1;
    run->n_wrong += as_said ? 0 : 1;
    if (!run->quiet)
        printf("%s %s %s:%d: %s (%s)\n", as_said ? "pass" : "FAIL",
               answer->holds ? "agrees " : "differs", c->path, check->line, check->statement,
               answer->got);
}

static gboolean
check_case(Run *run, const char *path, GError **error)
{
    g_autoptr(Case) c = case_load(path, error);
    if (c == NULL)
        return FALSE;
    g_autoptr(Figures) figures = figures_new(path);
    g_autoptr(GPtrArray) got = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < c->checks->len; i++) {
        const CaseCheck *check = g_ptr_array_index(c->checks, i);
        Answer answer = {0};
        if (!expression_check(figures, check->statement, &answer, error)) {
            g_prefix_error(error, "%s:%d: ", path, check->line);
            return FALSE;
        }
        report(run, c, check, &answer);
        g_ptr_array_add(got, answer.got);
    }
    table_add(c, (const char *const *)got->pdata, run->sections);
    run->n_cases++;
    return TRUE;
}

static char *
table_of(Run *run, const char *folder, GError **error)
{
    g_autoptr(GPtrArray) paths = scenario_paths(folder, error);
    if (paths == NULL)
        return NULL;
    for (guint i = 0; i < paths->len; i++)
        if (!check_case(run, g_ptr_array_index(paths, i), error))
            return NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *unasked = g_build_filename(folder, "not-asked.txt", NULL);
    table_head(run->n_agree, run->n_differ, run->n_cases, out);
    g_string_append(out, run->sections->str);
    g_return_val_if_fail(paths->len > 0, NULL);
    g_autoptr(Figures) figures = figures_new(g_ptr_array_index(paths, 0));
    if (!table_unasked(unasked, figures, out, error))
        return NULL;
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static int
is_current(const char *path, const char *table)
{
    g_autofree char *text = NULL;
    if (g_file_get_contents(path, &text, NULL, NULL) && g_str_equal(text, table))
        return 0;
    fprintf(stderr, "check_cases: %s is not current; write it with --markdown\n", path);
    return 1;
}

int
main(int argc, char **argv)
{
    gboolean markdown = argc == 3 && g_str_equal(argv[1], "--markdown");
    gboolean current = argc == 4 && g_str_equal(argv[1], "--current");
    if (argc != 2 && !markdown && !current) {
        fprintf(stderr, "usage: check_cases [--markdown | --current FILE] DIR\n");
        return 2;
    }
    Run run = {.quiet = markdown || current, .sections = g_string_new(NULL)};
    g_autoptr(GError) error = NULL;
    g_autofree char *table = table_of(&run, argv[argc - 1], &error);
    g_string_free(run.sections, TRUE);
    if (table == NULL) {
        fprintf(stderr, "check_cases: %s\n", error->message);
        return 1;
    }
    if (current)
        return is_current(argv[2], table);
    if (markdown)
        fputs(table, stdout);
    else
        printf("%u cases: %u statements agree, %u differ, %u not as written\n", run.n_cases,
               run.n_agree, run.n_differ, run.n_wrong);
    return run.n_wrong > 0;
}
