#include "scenarios/load/state_internal.h"

ZpScenario *
zp_scenario_new(ZpSettings *settings, const ZpScenario *base)
{
    ZpScenario *scenario = g_new0(ZpScenario, 1);
    ZpScenarioState *state = g_new0(ZpScenarioState, 1);
    scenario->state = state;
    scenario->values = g_array_sized_new(FALSE, FALSE, sizeof(ZpScenarioValue), ZP_N_KEYS);
    scenario->warnings = g_ptr_array_new_with_free_func(g_free);
    scenario->axes = settings->axes;
    state->settings = settings;
    if (base != NULL) {
        state->hardware = base->state->hardware;
        g_atomic_ref_count_inc(&state->hardware->references);
        return scenario;
    }
    state->hardware = g_new0(ZpScenarioHardware, 1);
    g_atomic_ref_count_init(&state->hardware->references);
    state->hardware->hardware = zp_hardware_load();
    return scenario;
}

static void
free_state(ZpScenarioState *state)
{
    g_strfreev(state->leaf_classes);
    g_clear_pointer(&state->calibration, zp_calibration_free);
    g_clear_pointer(&state->tables, zp_cost_tables_free);
    if (g_atomic_ref_count_dec(&state->hardware->references)) {
        zp_hardware_free(state->hardware->hardware);
        g_free(state->hardware);
    }
    if (state->model != NULL && g_atomic_ref_count_dec(&state->model->references)) {
        zp_model_free(state->model->model);
        zp_model_free(state->model->last_stage);
        g_free(state->model);
    }
    g_clear_pointer(&state->name, g_ref_string_release);
    zp_settings_free(state->settings);
    g_free(state);
}

void
zp_scenario_free(ZpScenario *scenario)
{
    if (scenario == NULL)
        return;
    g_array_unref(scenario->values);
    g_ptr_array_unref(scenario->warnings);
    free_state(scenario->state);
    g_free(scenario);
}
