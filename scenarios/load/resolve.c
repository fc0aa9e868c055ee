#include "scenarios/load/resolve_internal.h"

#include <string.h>

/* What was given, and plain defaults.  Everything starts present but for the model's description,
 * of which the route chooses a part. */
static void
start(ZpScenarioResolve *resolve)
{
    for (int id = 0; id < ZP_N_KEYS; id++) {
        const ZpSchemaKey *key = zp_schema_key((ZpSchemaId)id);
        const ZpSetting *setting = &resolve->state->settings->keys[id];
        ZpScenarioEffective *effective = &resolve->state->effective[id];
        *effective = (ZpScenarioEffective){.present = id < ZP_KEY_CATALOG || id > ZP_KEY_CAUSAL};
        if (id >= ZP_KEY_LAYER_PARAMETERS && id <= ZP_KEY_LAYER_CHECKPOINT)
            effective->present = FALSE;
        if (setting->given) {
            effective->value = setting->value;
            effective->source = ZP_SCENARIO_GIVEN;
            effective->origin = setting->origin;
        } else if (resolve->base != NULL && !resolve->base->state->settings->keys[id].given) {
            effective->value = resolve->base->state->effective[id].value;
        } else {
            zp_schema_default(key, &effective->value);
        }
    }
    resolve->state->effective[ZP_KEY_LIMIT].present = resolve->scenario->axes->len > 0;
}

static void
store_leaf_classes(ZpScenarioState *state)
{
    const char *text = state->effective[ZP_KEY_DS_LEAF_CLASSES].value.text;
    if (strcmp(text, "none") == 0)
        return;
    state->leaf_classes = g_strsplit(text, ",", -1);
    for (char **name = state->leaf_classes; *name != NULL; name++)
        g_strstrip(*name);
    state->deepspeed.leaf_classes = (const char *const *)state->leaf_classes;
}

static void
store(ZpScenarioResolve *resolve)
{
    ZpScenario *scenario = resolve->scenario;
    ZpJob *job = &scenario->job;
    ZpScenarioState *state = resolve->state;
    zp_deepspeed_init(&state->deepspeed);
    state->fsdp = *zp_fsdp_defaults();
    ZpSchemaPlaces places = {job, &state->deepspeed, &state->fsdp};
    for (int id = 0; id < ZP_N_KEYS; id++)
        zp_schema_store(zp_schema_key((ZpSchemaId)id), &state->effective[id].value, &places);
    store_leaf_classes(state);
    job->deepspeed = &state->deepspeed;
    job->fsdp = &state->fsdp;
    state->fsdp.unwrapped = strcmp(resolve->runtime->name, "none") == 0;
    zp_scenario_place_parallel(resolve);
    if (job->simulation.simulated_ranks == 0)
        job->simulation.simulated_ranks = job->world.ranks;
    if (job->simulation.slow_rank == ZP_MODEL_NONE)
        job->simulation.slow_ppm = 1000000;
    job->runtime = resolve->runtime->name;
    job->optimizer = resolve->optimizer;
    if (!zp_optimizer_keeps_master(job->optimizer, job->precision.parameter, job->precision.master))
        job->precision.master = ZP_DTYPE_NONE;
    job->model = scenario->model = resolve->state->model->model;
    job->last_stage = resolve->state->model->last_stage;
    scenario->name = resolve->state->effective[ZP_KEY_NAME].value.text;
    scenario->path = resolve->state->settings->path;
    scenario->sweep_limit = zp_scenario_key_integer(resolve, ZP_KEY_LIMIT);
}

/* Each stage adds problems; the next one needs a scenario without. */
static void
run(ZpScenarioResolve *resolve)
{
    start(resolve);
    zp_scenario_derive_route(resolve);
    zp_scenario_derive(resolve);
    if (resolve->optimizer != NULL && resolve->runtime != NULL && resolve->gpu != NULL)
        zp_scenario_check_keys(resolve);
    if (zp_problems_any(resolve->problems))
        return;
    zp_scenario_warn_idle(resolve);
    zp_scenario_build_model(resolve);
    if (zp_problems_any(resolve->problems))
        return;
    store(resolve);
    zp_scenario_set_prices(resolve);
    zp_scenario_check_model(resolve);
    if (zp_problems_any(resolve->problems))
        return;
    zp_scenario_list_values(resolve->scenario, resolve->base);
    g_ptr_array_add(resolve->scenario->warnings, NULL);
}

ZpScenario *
zp_scenario_resolve(ZpSettings *settings, const ZpScenario *base, ZpProblems *problems)
{
    g_autoptr(ZpScenario) scenario = zp_scenario_new(settings, base);
    ZpScenarioResolve resolve = {
        .scenario = scenario, .state = scenario->state, .base = base, .problems = problems};
    if (!zp_problems_any(problems))
        run(&resolve);
    return zp_problems_any(problems) ? NULL : g_steal_pointer(&scenario);
}
