/* The scenarios that come with the program: each loads without a warning, survives its dump, and
 * does what its opening comment says.
 *
 * The comment's lines behind "# Expect" are read: "#   [key=value: ]figure, figure, ..." where a
 * figure is "peak 35.1 GiB", "persistent 14 GB", "gathered 0.7 GB" (most ever gathered),
 * "step 2.08 s", "fits", "tight" or "does not fit".  A figure holds if the simulated value prints
 * to the same digits.  With ZP_UPDATE_REFERENCE set the figures are written instead, for a review.
 */
#include "models/step/step.h"
#include "scenarios/sweeps/sweep.h"
#include "tests/unit/fixtures/interned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    ZpStep *step;
    ZpStepSummary summary;
} Outcome;

static double
measured(const Outcome *outcome, const char *what)
{
    const ZpPlayRank *rank = &zp_step_result(outcome->step)->ranks[0];
    if (strcmp(what, "peak") == 0)
        return (double)outcome->summary.peak_bytes;
    if (strcmp(what, "persistent") == 0)
        return (double)outcome->summary.persistent_bytes;
    if (strcmp(what, "gathered") == 0)
        return (double)rank->memory[ZP_TAPE_SPACE_DEVICE].class_peak_bytes[ZP_CLASS_GATHERED];
    if (strcmp(what, "step") == 0)
        return zp_time_to_seconds(outcome->summary.step_ps);
    g_error("unknown figure '%s'", what);
}

static double
unit_of(const char *name)
{
    if (strcmp(name, "GiB") == 0)
        return 1073741824.0;
    if (strcmp(name, "GB") == 0)
        return 1e9;
    if (strcmp(name, "s") == 0)
        return 1;
    g_error("unknown unit '%s'", name);
}

static gboolean
is_verdict(const char *figure)
{
    for (int v = 0; v < ZP_N_VERDICTS; v++)
        if (strcmp(figure, zp_verdict_name((ZpVerdict)v)) == 0)
            return TRUE;
    return FALSE;
}

/* The figure as it is simulated, to the digits that the comment has. */
static char *
say_figure(const Outcome *outcome, const char *figure)
{
    if (is_verdict(figure))
        return g_strdup(zp_verdict_name(outcome->summary.verdict));
    g_auto(GStrv) words = g_strsplit(figure, " ", -1);
    g_assert_cmpuint(g_strv_length(words), ==, 3);
    const char *point = strchr(words[1], '.');
    int digits = point ? (int)strlen(point + 1) : 0;
    return g_strdup_printf("%s %.*f %s", words[0], digits,
                           measured(outcome, words[0]) / unit_of(words[2]), words[2]);
}

/* The line's point of the sweep, or the scenario itself; *figures gets what follows. */
static ZpScenario *
point_of(const ZpScenario *scenario, const char *line, const char **figures)
{
    const char *colon = strstr(line, ": ");
    g_autoptr(GError) error = NULL;
    g_autofree char *set = colon ? g_strndup(line, (gsize)(colon - line)) : NULL;
    const char *sets[] = {set, NULL};
    *figures = colon ? colon + 2 : line;
    ZpScenario *point = zp_scenario_with(scenario, sets, &error);
    g_assert_no_error(error);
    return point;
}

/* Simulates the line's point and says its figures; *line becomes what is simulated. */
static int
say_line(const ZpScenario *scenario, char **line)
{
    const char *list = NULL;
    g_autoptr(ZpScenario) point = point_of(scenario, *line + 4, &list);
    g_autoptr(ZpStep) step = zp_step_new();
    g_autoptr(GError) error = NULL;
    Outcome outcome = {.step = step};
    gboolean ok = zp_step_simulate(step, &point->job, NULL, NULL, &outcome.summary, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_autoptr(GString) said = g_string_new_len(*line, list - *line);
    g_auto(GStrv) figures = g_strsplit(list, ", ", -1);
    int n = 0;
    for (; figures[n] != NULL; n++) {
        g_autofree char *figure = say_figure(&outcome, figures[n]);
        g_string_append_printf(said, "%s%s", n > 0 ? ", " : "", figure);
    }
    g_free(*line);
    *line = g_string_free(g_steal_pointer(&said), FALSE);
    return n;
}

static int
check_expectations(const ZpScenario *scenario, const char *text)
{
    gboolean writes = g_getenv("ZP_UPDATE_REFERENCE") != NULL;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gboolean expecting = FALSE;
    int n = 0;
    for (gsize i = 0; lines[i] != NULL && lines[i][0] == '#'; i++) {
        if (g_str_has_prefix(lines[i], "# Expect"))
            expecting = TRUE;
        else if (!expecting || !g_str_has_prefix(lines[i], "#   "))
            continue;
        else {
            g_autofree char *before = g_strdup(lines[i]);
            n += say_line(scenario, &lines[i]);
            if (!writes && strcmp(before, lines[i]) != 0)
                g_error("%s:%d: simulated is '%s', the comment says '%s'", scenario->path,
                        (int)i + 1, lines[i] + 4, before + 4);
        }
    }
    if (writes) {
        g_autofree char *now = g_strjoinv("\n", lines);
        g_assert_true(g_file_set_contents(scenario->path, now, -1, NULL));
    }
    return n;
}

/* A sweep's points must all be legal: an example shows what works. */
static void
check_sweep(const ZpScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpSweep) sweep = zp_sweep_new(scenario, &error);
    g_assert_no_error(error);
    for (gint64 i = 0; i < zp_sweep_n_points(sweep); i++) {
        g_autoptr(ZpScenario) point = zp_sweep_point(sweep, i, &error);
        g_assert_no_error(error);
        g_assert_nonnull(point);
    }
}

static void
check_dump(const ZpScenario *scenario)
{
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_autoptr(GError) error = NULL;
    /* Files that it names are relative to its folder. */
    g_autofree char *folder = g_path_get_dirname(scenario->path);
    g_autofree char *name = g_build_filename(folder, "dump", NULL);
    g_autoptr(ZpScenario) back = zp_scenario_parse(dump->str, -1, name, NULL, &error);
    g_assert_no_error(error);
    /* A default that is written out says nothing, and so is not said to have no effect. */
    g_assert_cmpstr(g_ptr_array_index(back->warnings, 0), ==, NULL);
    g_assert_cmpuint(back->values->len, ==, scenario->values->len);
    for (guint i = 0; i < back->values->len; i++) {
        const ZpScenarioValue *a = &g_array_index(back->values, ZpScenarioValue, i);
        const ZpScenarioValue *b = &g_array_index(scenario->values, ZpScenarioValue, i);
        g_assert_cmpstr(a->key, ==, b->key);
        g_assert_cmpstr(a->text, ==, b->text);
    }
}

static void
test_file(gconstpointer data)
{
    const char *path = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, &error));
    g_autoptr(ZpScenario) scenario = zp_scenario_load(path, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(scenario->warnings->len, ==, 1); /* its end */
    g_assert_true(g_str_has_prefix(text, "# "));
    g_assert_cmpint(check_expectations(scenario, text), >=, 1);
    check_dump(scenario);
    if (scenario->axes->len > 0)
        check_sweep(scenario);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_autoptr(GDir) folder = g_dir_open(ZP_SOURCE_DIR "/scenarios", 0, NULL);
    const char *name;
    int n = 0;
    while ((name = g_dir_read_name(folder)) != NULL) {
        if (!g_str_has_suffix(name, ".ini"))
            continue;
        g_autofree char *test = g_strconcat("/scenario-files/", name, NULL);
        char *path = g_build_filename(ZP_SOURCE_DIR, "scenarios", name, NULL);
        g_test_add_data_func_full(test, path, test_file, g_free);
        n++;
    }
    g_assert_cmpint(n, >=, 12);
    return g_test_run();
}
