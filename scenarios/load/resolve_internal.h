/* From settings to a job, in steps: derive what was not given, build the model, check what must fit
 * together, store.  Each step adds problems and leaves what it could do. */
#pragma once

#include "models/job/optimizer.h"
#include "models/job/runtime.h"
#include "scenarios/load/state_internal.h"

typedef enum {
    ZP_ROUTE_NONE,
    ZP_ROUTE_CATALOG,
    ZP_ROUTE_CONFIG,
    ZP_ROUTE_TOTAL,
    ZP_ROUTE_DIMENSIONS,
    ZP_ROUTE_LAYERS,
} ZpScenarioRoute;

typedef struct {
    ZpScenario *scenario;
    ZpScenarioState *state;
    const ZpScenario *base; /* or NULL */
    ZpProblems *problems;
    const ZpGpu *gpu;
    const ZpNode *node; /* NULL: none */
    const ZpOptimizer *optimizer;
    const ZpRuntime *runtime;
    ZpScenarioRoute route;
    double nominal[ZP_N_KEYS]; /* of reals with a rule: what the rule says, also where a value was
                                * given; 0: no rule said anything */
    gboolean own[ZP_N_KEYS];   /* stated by device.file */
} ZpScenarioResolve;

/* keys.c: one key.  "PLACE: [section] key: what": the place is where the key was given, else the
 * file. */
void zp_scenario_resolve_complain(ZpScenarioResolve *resolve, ZpSchemaId id, ZpScenarioError code,
                                  const char *format, ...) G_GNUC_PRINTF(4, 5);
void zp_scenario_resolve_warn(ZpScenarioResolve *resolve, ZpSchemaId id, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static inline gboolean
zp_scenario_resolve_given(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    return resolve->state->settings->keys[id].given;
}
/* Given by whoever wrote the scenario, not by the file it takes its settings from. */
static inline gboolean
zp_scenario_resolve_written(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    return resolve->state->settings->keys[id].given && !resolve->state->settings->keys[id].imported;
}
/* Is the value in force the key's plain default?  Never for a key with a rule. */
gboolean zp_scenario_resolve_is_default(const ZpScenarioResolve *resolve, ZpSchemaId id);
/* Written, and not a default written out (as a dump does), which says nothing. */
gboolean zp_scenario_resolve_says(const ZpScenarioResolve *resolve, ZpSchemaId id);
/* Puts a value that was not given; does nothing where one was.  `catalogue`: the entry it comes
 * from, NULL for a rule. */
void zp_scenario_resolve_put(ZpScenarioResolve *resolve, ZpSchemaId id, gint64 integer,
                             const char *catalogue);
void zp_scenario_resolve_put_real(ZpScenarioResolve *resolve, ZpSchemaId id, double real,
                                  const char *catalogue);
/* Puts a value that device.file, whose name is `file`, states: as good as given, which wins. */
void zp_scenario_resolve_put_own(ZpScenarioResolve *resolve, ZpSchemaId id,
                                 const ZpSchemaValue *value, const char *file);
/* The text is borrowed. */
void zp_scenario_resolve_put_text(ZpScenarioResolve *resolve, ZpSchemaId id, const char *text,
                                  const char *catalogue);
/* Complains of a key that names no `what` of `names` (NULL-terminated); `more`: what to say in
 * place of all legal names, or NULL. */
void zp_scenario_resolve_unknown(ZpScenarioResolve *resolve, ZpSchemaId id, const char *what,
                                 const char *const *names, const char *more);
/* What was stated over what would have held without; 1 where nothing was. */
double zp_scenario_resolve_stated(const ZpScenarioResolve *resolve, ZpSchemaId id);
static inline gint64
zp_scenario_key_integer(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    return resolve->state->effective[id].value.integer;
}
static inline const char *
zp_scenario_key_text(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    return resolve->state->effective[id].value.text;
}

/* derive.c: the rules behind "auto". */
void zp_scenario_derive(ZpScenarioResolve *resolve);
/* machine.c: the file of device.file, where there is one. */
void zp_scenario_read_machine(ZpScenarioResolve *resolve);
/* device.c: what the catalogue knows of GPU and node. */
void zp_scenario_derive_hardware(ZpScenarioResolve *resolve);
/* route.c: which way the model is described, and its dimensions. */
void zp_scenario_derive_route(ZpScenarioResolve *resolve);
/* parallel.c: the cuts of [parallel].  Data x context parallel ranks (at least 1); what
 * divides what; the model of one rank; the job of one rank, after it is filled. */
gint64 zp_scenario_data_ranks(const ZpScenarioResolve *resolve);
void zp_scenario_check_parallel(ZpScenarioResolve *resolve);
gboolean zp_scenario_cut_model(ZpScenarioResolve *resolve, ZpModel *model);
gboolean zp_scenario_cut_stages(ZpScenarioResolve *resolve, ZpScenarioModel *model);
void zp_scenario_place_parallel(ZpScenarioResolve *resolve);
/* idle.c: keys that do nothing here.  The first also tells which keys of frameworks are present. */
void zp_scenario_mark_frameworks(ZpScenarioResolve *resolve);
void zp_scenario_warn_idle(ZpScenarioResolve *resolve);
/* model.c */
void zp_scenario_build_model(ZpScenarioResolve *resolve);
/* check.c: rules between keys.  The second needs a model. */
void zp_scenario_check_keys(ZpScenarioResolve *resolve);
void zp_scenario_check_model(ZpScenarioResolve *resolve);
/* prices.c: which prices hold; then, after the job is filled, calibration and collective
 * prices, after the job is filled. */
void zp_scenario_derive_prices(ZpScenarioResolve *resolve);
void zp_scenario_set_prices(ZpScenarioResolve *resolve);
/* values.c: the list of effective inputs. */
void zp_scenario_list_values(ZpScenario *scenario, const ZpScenario *base);
/* resolve.c: all of the above, in order.  Takes `settings`; NULL where there are problems.  `base`:
 * a scenario whose results may be used where nothing changed, or NULL. */
ZpScenario *zp_scenario_resolve(ZpSettings *settings, const ZpScenario *base, ZpProblems *problems);
