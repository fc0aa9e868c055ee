#include "tests/check_cases/table.h"

#include <string.h>

#include "tests/check_cases/denial.h"

static void
cell(GString *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *text);
    }
}

static void
row(const CaseCheck *check, const char *got, GString *out)
{
    g_string_append(out, "| `");
    cell(out, check->statement);
    g_string_append(out, "` | ");
    cell(out, got);
    if (check->differs) {
        g_string_append(out, " | differs: ");
        cell(out, check->because);
    } else {
        g_string_append(out, " | agrees");
    }
    g_string_append(out, " |\n");
}

void
table_add(const Case *c, const char *const *got, GString *out)
{
    g_autofree char *file = g_path_get_basename(c->path);
    g_string_append_printf(out, "\n## %s %s\n\n", c->id, c->title);
    g_string_append_printf(out, "Source: %s. Scenario: `scenarios/cases/%s`.\n\n", c->source, file);
    g_string_append_printf(out, "Observed: %s\n", c->observed);
    if (c->assumed != NULL)
        g_string_append_printf(out, "\nAssumed: %s\n", c->assumed);
    g_string_append(out, "\n| Asked | zeropeak says | Verdict |\n|---|---|---|\n");
    for (guint i = 0; i < c->checks->len; i++)
        row(g_ptr_array_index(c->checks, i), got[i], out);
}

void
table_head(guint n_agree, guint n_differ, guint n_cases, GString *out)
{
    g_string_append_printf(
        out,
        "# Public cases\n\n"
        "Reports of people who met the memory or the speed of a training run, as scenarios: what\n"
        "they saw, what zeropeak says, and whether the two agree.  `check_cases --markdown\n"
        "scenarios/cases` writes this file from the scenarios; a test fails when it is not\n"
        "current, when a statement that agreed no longer does, and when one that differed now\n"
        "agrees.  Settings come from the reports; what a report does not say is listed as\n"
        "assumed.\n\n"
        "%u cases with %u statements: %u agree, %u differ.\n",
        n_cases, n_agree + n_differ, n_agree, n_differ);
}

gboolean
table_unasked(const char *path, Figures *figures, GString *out, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *root = g_build_filename(folder, "..", "..", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_string_append(out, "\n## Not asked\n\nCases that no scenario can express yet.\n\n"
                         "| Case | Source | Why not |\n|---|---|---|\n");
    for (char **line = lines; *line != NULL; line++) {
        if (**line == '#' || **line == '\0')
            continue;
        g_auto(GStrv) fields = g_strsplit(*line, ";", 5);
        if (g_strv_length(fields) != 5) {
            g_set_error(error, CASE_ERROR, 0, "%s: '%s' is not ID;title;source;reason;denied", path,
                        *line);
            return FALSE;
        }
        if (!denial_check(figures, root, fields[4], error)) {
            g_prefix_error(error, "%s: %s: ", path, fields[0]);
            return FALSE;
        }
        g_string_append_printf(out, "| %s %s | ", fields[0], fields[1]);
        cell(out, fields[2]);
        g_string_append(out, " | ");
        cell(out, fields[3]);
        g_string_append(out, " |\n");
    }
    return TRUE;
}
