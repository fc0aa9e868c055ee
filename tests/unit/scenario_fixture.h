/* Scenarios from a text, and what became of their keys. */
#pragma once

#include <string.h>

#include "scenarios/scenario.h"

#define MODEL "[model]\ntotal_parameters = 7e9\npieces = 32\n"

static inline ZpScenario *
scenario_fixture_parse(const char *text, const char *const *sets)
{
    g_autoptr(GError) error = NULL;
    ZpScenario *scenario = zp_scenario_parse(text, -1, "t.ini", sets, &error);
    g_assert_no_error(error);
    g_assert_nonnull(scenario);
    return scenario;
}

static inline const ZpScenarioValue *
scenario_fixture_find(const ZpScenario *scenario, const char *section, const char *key)
{
    for (guint i = 0; i < scenario->values->len; i++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, i);
        if (strcmp(value->section, section) == 0 && strcmp(value->key, key) == 0)
            return value;
    }
    return NULL;
}

static inline void
scenario_fixture_check(const ZpScenario *scenario, const char *section, const char *key,
                       const char *text, const char *origin)
{
    const ZpScenarioValue *value = scenario_fixture_find(scenario, section, key);
    g_assert_nonnull(value);
    if (text != NULL)
        g_assert_cmpstr(value->text, ==, text);
    g_assert_cmpstr(value->origin, ==, origin);
}
