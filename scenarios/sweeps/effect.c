#include "scenarios/sweeps/effect.h"

#include "models/step/same.h"

#include <string.h>

/* About a second's work. */
#define MAX_INSTRUCTIONS G_GINT64_CONSTANT(6000000)

static gboolean
is_given(const ZpScenarioValue *value)
{
    return value->given && strcmp(value->section, "scenario") != 0 &&
           strcmp(value->section, "sweep") != 0 && !g_str_has_prefix(value->section, "layer ");
}

static gboolean
is_spoken_of(const ZpScenario *scenario, const ZpScenarioValue *value)
{
    g_autofree char *place = g_strdup_printf("[%s] %s:", value->section, value->key);
    for (guint w = 0; w < scenario->warnings->len; w++) {
        const char *warning = g_ptr_array_index(scenario->warnings, w);
        if (warning != NULL && strstr(warning, place) != NULL)
            return TRUE;
    }
    return FALSE;
}

static gboolean
says_the_same(const ZpScenario *other, const ZpScenarioValue *value)
{
    for (guint v = 0; v < other->values->len; v++) {
        const ZpScenarioValue *there = &g_array_index(other->values, ZpScenarioValue, v);
        if (strcmp(there->section, value->section) == 0 && strcmp(there->key, value->key) == 0)
            return strcmp(there->text, value->text) == 0;
    }
    return FALSE;
}

/* TRUE where the key could be taken away and the step is the same. */
static gboolean
is_idle(const ZpScenario *scenario, const ZpScenarioValue *value, const ZpStepSummary *summary,
        ZpStep *step, const volatile gint *cancelled)
{
    g_autofree char *set = g_strdup_printf("%s.%s=auto", value->section, value->key);
    const char *sets[] = {set, NULL};
    g_autoptr(ZpScenario) without = zp_scenario_with(scenario, sets, NULL);
    ZpStepSummary other;
    return without != NULL && !says_the_same(without, value) &&
           zp_step_simulate(step, &without->job, NULL, cancelled, &other, NULL) &&
           zp_step_same(summary, &other);
}

GPtrArray *
zp_effect_idle(const ZpScenario *scenario, const ZpStepSummary *summary, gint32 n_instrs,
               const volatile gint *cancelled)
{
    GPtrArray *warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ZpStep) step = zp_step_new();
    gint64 spent = 0;
    for (guint v = 0; v < scenario->values->len; v++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, v);
        if (!is_given(value) || is_spoken_of(scenario, value))
            continue;
        spent += n_instrs;
        if (spent > MAX_INSTRUCTIONS)
            break;
        if (is_idle(scenario, value, summary, step, cancelled))
            g_ptr_array_add(
                warnings, g_strdup_printf("%s: [%s] %s = %s: does nothing here: the step is the "
                                          "same without it",
                                          value->origin, value->section, value->key, value->text));
    }
    return warnings;
}
