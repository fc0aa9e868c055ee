/* The inside of a scenario: what was given, what follows from it, and what scenarios share. */
#pragma once

#include "models/machine/hardware.h"
#include "models/prices/calibration.h"
#include "models/prices/tables.h"
#include "scenarios/load/problems.h"

/* Strings here are GRefStrings: copying a scenario copies references. */

typedef struct {
    gboolean given;
    gboolean imported; /* by zero.config: a copy leaves it out and imports anew */
    gboolean by_hand;  /* by --set, also as the axis of a sweep: no file says it */
    ZpSchemaValue value;
    char *origin;
} ZpScenarioSetting;

#define ZP_N_LAYER_KEYS (ZP_KEY_LAYER_CHECKPOINT - ZP_KEY_LAYER_PARAMETERS + 1)

typedef struct {
    char *section; /* "layer NAME" */
    char *origin;
    ZpScenarioSetting settings[ZP_N_LAYER_KEYS]; /* by id - ZP_KEY_LAYER_PARAMETERS */
} ZpScenarioLayer;

static inline const char *
zp_scenario_state_layer_name(const ZpScenarioLayer *layer)
{
    return layer->section + sizeof "layer " - 1;
}

typedef enum {
    ZP_SCENARIO_DEFAULT,
    ZP_SCENARIO_AUTO,
    ZP_SCENARIO_CATALOGUE,
    ZP_SCENARIO_GIVEN,
} ZpScenarioSource;

/* The value in force.  Strings are borrowed from settings, the catalogue or the program. */
typedef struct {
    gboolean present; /* FALSE: the key plays no part in this scenario */
    ZpSchemaValue value;
    ZpScenarioSource source;
    const char *origin; /* GIVEN: where; CATALOGUE: name */
} ZpScenarioEffective;

/* Shared between a scenario and those made from it. */
typedef struct {
    gatomicrefcount references;
    ZpHardware *hardware;
} ZpScenarioHardware;

typedef struct {
    gatomicrefcount references;
    ZpModel *model;
    ZpModel *last_stage; /* of a pipeline; or NULL */
} ZpScenarioModel;

struct _ZpScenarioState {
    ZpScenarioSetting settings[ZP_N_KEYS];
    ZpScenarioEffective effective[ZP_N_KEYS];
    GPtrArray *layers; /* ZpScenarioLayer; never changed while shared */
    ZpScenarioHardware *hardware;
    ZpScenarioModel *model;
    ZpDeepspeed deepspeed; /* what job.deepspeed points to */
    ZpFsdp fsdp;
    ZpCalibration *calibration; /* read from a file; or NULL */
    ZpCostTables *tables;       /* network.measured points here; or NULL */
    char **leaf_classes;        /* deepspeed.leaf_classes points here */
    gint32 n_units;             /* as wrapped; 0: not counted */
    char *path;                 /* strings that ZpScenario shows */
    char *name;
};

ZpScenarioState *zp_scenario_state_new(const char *path);
ZpScenarioState *zp_scenario_state_copy(const ZpScenarioState *state);
void zp_scenario_state_free(ZpScenarioState *state);

/* Changes one setting; `text` "auto" takes it back.  Errors of ZP_SCHEMA_ERROR, ZP_QUANTITY_ERROR
 * or ZP_SCENARIO_ERROR, without place. */
gboolean zp_scenario_state_give(ZpScenarioState *state, const ZpSchemaKey *key, const char *text,
                                const char *origin, GError **error);
/* The same for a key of [layer NAME]; an unknown NAME is an error. */
gboolean zp_scenario_state_give_layer(ZpScenarioState *state, const char *name, const char *key,
                                      const char *text, const char *origin, GError **error);
/* Appends a layer without settings and returns it. */
ZpScenarioLayer *zp_scenario_state_add_layer(ZpScenarioState *state, const char *name,
                                             const char *origin);
/* Reads a layer's setting in place. */
gboolean zp_scenario_state_give_in(ZpScenarioLayer *layer, const ZpSchemaKey *key, const char *text,
                                   const char *origin, GError **error);

/* The file that a text key names.  A relative path starts where its reader looks for it: at the
 * folder of the scenario file that says it, at the working folder where --set does.  Absolute paths
 * stay.  The caller frees it. */
char *zp_scenario_state_file(const ZpScenarioState *state, ZpSchemaId id);

/* Fills job, model, values and warnings from the settings.  `base`: a scenario whose results may
 * be used where nothing changed, or NULL. */
gboolean zp_scenario_state_resolve(ZpScenario *scenario, const ZpScenario *base,
                                   ZpScenarioProblems *problems);

static inline gint64
zp_scenario_state_integer(const ZpScenarioState *state, ZpSchemaId id)
{
    return state->effective[id].value.integer;
}
