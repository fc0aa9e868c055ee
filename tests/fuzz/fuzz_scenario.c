/* Any text as a scenario file: it is refused with a message, or it dumps to a file that loads to
 * the same values; some points of its sweep are made too. */
#include <stdint.h>
#include <string.h>

#include "scenarios/sweeps/sweep.h"
#include "tests/unit/fixtures/interned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_dump(const ZpScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_autoptr(ZpScenario) back =
        zp_scenario_parse(dump->str, (gssize)dump->len, scenario->path, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(back->values->len, ==, scenario->values->len);
    for (guint i = 0; i < back->values->len; i++) {
        const ZpScenarioValue *a = &g_array_index(back->values, ZpScenarioValue, i);
        const ZpScenarioValue *b = &g_array_index(scenario->values, ZpScenarioValue, i);
        g_assert_cmpstr(a->key, ==, b->key);
        g_assert_cmpstr(a->text, ==, b->text);
    }
}

static void
make_points(const ZpScenario *scenario)
{
    g_autoptr(ZpSweep) sweep = zp_sweep_new(scenario, NULL);
    for (gint64 i = 0; sweep != NULL && i < MIN(4, zp_sweep_n_points(sweep)); i++) {
        g_autoptr(ZpScenario) point = zp_sweep_point(sweep, i, NULL);
        if (point != NULL)
            check_dump(point);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    /* Files that a scenario names are another fuzz target's. */
    if (g_strstr_len((const char *)data, (gssize)size, "config") != NULL)
        return 0;
    g_autoptr(ZpScenario) scenario =
        zp_scenario_parse((const char *)data, (gssize)size, "fuzz.ini", NULL, &error);
    if (scenario == NULL) {
        g_assert_cmpint(error->domain, ==, ZP_SCENARIO_ERROR);
        g_assert_true(g_utf8_validate(error->message, -1, NULL));
        return 0;
    }
    check_dump(scenario);
    make_points(scenario);
    return 0;
}
