#include "scenarios/load/resolve_internal.h"

#include <string.h>

void
zp_scenario_resolve_complain(ZpScenarioResolve *resolve, ZpSchemaId id, ZpScenarioError code,
                             const char *format, ...)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    const ZpScenarioSetting *setting = &resolve->state->settings[id];
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_scenario_problems_add(resolve->problems, code, setting->given ? setting->origin : NULL,
                             "[%s] %s: %s", key->section, key->key, what);
}

void
zp_scenario_resolve_warn(ZpScenarioResolve *resolve, ZpSchemaId id, const char *format, ...)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    const ZpScenarioSetting *setting = &resolve->state->settings[id];
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_ptr_array_add(resolve->scenario->warnings,
                    g_strdup_printf("%s: [%s] %s: %s",
                                    setting->given ? setting->origin : resolve->problems->name,
                                    key->section, key->key, what));
}

gboolean
zp_scenario_resolve_is_default(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    ZpSchemaValue fallback = {0};
    if (key->rule != NULL || key->fallback == NULL ||
        !zp_schema_parse(key, key->fallback, &fallback, NULL))
        return FALSE;
    gboolean same = zp_schema_value_equal(key, &fallback, &resolve->state->effective[id].value);
    zp_schema_value_clear(&fallback);
    return same;
}

gboolean
zp_scenario_resolve_says(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    return zp_scenario_resolve_written(resolve, id) && !zp_scenario_resolve_is_default(resolve, id);
}

static void
put(ZpScenarioResolve *resolve, ZpSchemaId id, const ZpSchemaValue *value, const char *catalogue)
{
    ZpScenarioEffective *effective = &resolve->state->effective[id];
    effective->present = TRUE;
    if (resolve->state->settings[id].given)
        return;
    effective->value = *value;
    effective->source = catalogue ? ZP_SCENARIO_CATALOGUE : ZP_SCENARIO_AUTO;
    effective->origin = catalogue;
}

void
zp_scenario_resolve_put(ZpScenarioResolve *resolve, ZpSchemaId id, gint64 integer,
                        const char *catalogue)
{
    put(resolve, id, &(ZpSchemaValue){.integer = integer}, catalogue);
}

void
zp_scenario_resolve_put_real(ZpScenarioResolve *resolve, ZpSchemaId id, double real,
                             const char *catalogue)
{
    put(resolve, id, &(ZpSchemaValue){.real = real}, catalogue);
}

/* What was given, and plain defaults.  Everything starts present but for the model's description,
 * of which the route chooses a part. */
static void
start(ZpScenarioResolve *resolve)
{
    for (int id = 0; id < ZP_N_KEYS; id++) {
        const ZpSchemaKey *key = zp_schema_key((ZpSchemaId)id);
        const ZpScenarioSetting *setting = &resolve->state->settings[id];
        ZpScenarioEffective *effective = &resolve->state->effective[id];
        *effective = (ZpScenarioEffective){.present = id < ZP_KEY_CATALOG || id > ZP_KEY_CAUSAL};
        if (id >= ZP_KEY_LAYER_PARAMETERS && id <= ZP_KEY_LAYER_CHECKPOINT)
            effective->present = FALSE;
        if (setting->given) {
            effective->value = setting->value;
            effective->source = ZP_SCENARIO_GIVEN;
            effective->origin = setting->origin;
        } else if (resolve->base != NULL && !resolve->base->state->settings[id].given) {
            effective->value = resolve->base->state->effective[id].value;
        } else if (key->fallback != NULL && key->rule == NULL && key->kind == ZP_SCHEMA_TEXT) {
            effective->value.text = (char *)(gpointer)key->fallback;
        } else if (key->fallback != NULL && key->rule == NULL) {
            gboolean ok = zp_schema_parse(key, key->fallback, &effective->value, NULL);
            g_assert(ok);
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
    scenario->path = resolve->state->path;
    scenario->sweep_limit = zp_scenario_state_integer(resolve->state, ZP_KEY_LIMIT);
}

gboolean
zp_scenario_state_resolve(ZpScenario *scenario, const ZpScenario *base,
                          ZpScenarioProblems *problems)
{
    ZpScenarioResolve resolve = {
        .scenario = scenario, .state = scenario->state, .base = base, .problems = problems};
    start(&resolve);
    zp_scenario_derive_route(&resolve);
    zp_scenario_derive(&resolve);
    if (resolve.optimizer != NULL && resolve.runtime != NULL && resolve.gpu != NULL)
        zp_scenario_check_keys(&resolve);
    if (zp_scenario_problems_any(problems))
        return FALSE;
    zp_scenario_build_model(&resolve);
    if (zp_scenario_problems_any(problems))
        return FALSE;
    store(&resolve);
    zp_scenario_set_prices(&resolve);
    zp_scenario_check_model(&resolve);
    if (zp_scenario_problems_any(problems))
        return FALSE;
    zp_scenario_list_values(scenario, base);
    g_ptr_array_add(scenario->warnings, NULL);
    return TRUE;
}
