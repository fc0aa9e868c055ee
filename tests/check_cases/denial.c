#include "tests/check_cases/denial.h"

#include <string.h>

#include "scenarios/language/schema.h"
#include "tests/check_cases/case.h"

static gboolean
untrue(GError **error, const char *denied, const char *why)
{
    g_set_error(error, CASE_ERROR, 0, "'%s' is denied, but %s", denied, why);
    return FALSE;
}

static gboolean
check_key(const char *name, const char *denied, GError **error)
{
    const char *point = strchr(name, '.');
    if (point == NULL)
        return untrue(error, denied, "is not SECTION.KEY");
    g_autofree char *section = g_strndup(name, (gsize)(point - name));
    g_autofree const char **sections = zp_schema_sections();
    gboolean has_section = g_strv_contains(sections, section);
    gboolean exists =
        g_str_equal(point, ".*") ? has_section : zp_schema_find_in(section, point + 1) != NULL;
    return !exists || untrue(error, denied, "scenarios have it");
}

/* Splits "NAME(SETS)". */
static gboolean
split(const char *text, char **name, char **sets)
{
    const char *open = strchr(text, '(');
    if (open == NULL || !g_str_has_suffix(text, ")"))
        return FALSE;
    *name = g_strndup(text, (gsize)(open - text));
    *sets = g_strndup(open + 1, strlen(open + 1) - 1);
    return TRUE;
}

static gboolean
is_legal(Figures *figures, const char *sets, const char *denied, GError **error)
{
    Figure peak = {0};
    if (figures_get(figures, "peak", sets, &peak, error))
        return TRUE;
    g_prefix_error(error, "'%s' denies what cannot be asked: ", denied);
    return FALSE;
}

static gboolean
check_figure(Figures *figures, const char *text, gboolean same, const char *denied, GError **error)
{
    g_autofree char *name = NULL, *sets = NULL;
    Figure with = {0}, without = {0};
    if (!split(text, &name, &sets))
        return untrue(error, denied, "is not NAME(SETS)");
    if (!is_legal(figures, sets, denied, error))
        return FALSE;
    gboolean known = figures_get(figures, name, sets, &with, NULL);
    g_free(with.word);
    if (!same)
        return !known || untrue(error, denied, "there is such a figure");
    gboolean usual = figures_get(figures, name, "", &without, NULL);
    g_free(without.word);
    if (!known || !usual)
        return untrue(error, denied, "there is no such figure");
    return !(with.number < without.number || with.number > without.number) ||
           untrue(error, denied, "the settings change it");
}

gboolean
denial_check(Figures *figures, const char *root, const char *denied, GError **error)
{
    g_auto(GStrv) words = g_strsplit(denied, " ", 2);
    const char *what = words[0] != NULL && words[1] != NULL ? words[1] : NULL;
    if (g_str_equal(denied, "report"))
        return TRUE;
    if (what == NULL)
        return untrue(error, denied, "is no denial");
    if (g_str_equal(words[0], "elsewhere")) {
        g_autofree char *path = g_build_filename(root, what, NULL);
        return g_file_test(path, G_FILE_TEST_EXISTS) || untrue(error, denied, "is not there");
    }
    if (g_str_equal(words[0], "key"))
        return check_key(what, denied, error);
    gboolean same = g_str_equal(words[0], "same");
    if (same || g_str_equal(words[0], "figure"))
        return check_figure(figures, what, same, denied, error);
    return untrue(error, denied, "is no denial");
}
