/* The inside of a scenario: what was given, what follows from it, and what scenarios share.
 * Strings are GRefStrings. */
#pragma once

#include "models/machine/hardware.h"
#include "models/prices/calibration.h"
#include "models/prices/tables.h"
#include "scenarios/load/scenario.h"

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

/* What device.file adds to the catalogue. */
typedef struct {
    ZpGpu gpu;          /* without a name: none */
    ZpNode node;        /* likewise */
    const char *like;   /* GPU of the catalogue that its own is like; or NULL */
    double link_ratio;  /* links of the one over the other's */
    const char *fabric; /* node of the catalogue whose network it has; or NULL */
} ZpScenarioMachine;

struct _ZpScenarioState {
    ZpSettings *settings;
    ZpScenarioEffective effective[ZP_N_KEYS];
    ZpScenarioHardware *hardware;
    ZpScenarioMachine machine;
    ZpScenarioModel *model;
    ZpDeepspeed deepspeed; /* what job.deepspeed points to */
    ZpFsdp fsdp;
    ZpCalibration *calibration; /* read from a file; or NULL */
    ZpCostTables *tables;       /* network.measured points here; or NULL */
    char **leaf_classes;        /* deepspeed.leaf_classes points here */
    gint32 n_units;             /* as wrapped; 0: not counted */
    char *name;                 /* that ZpScenario shows */
};

/* Nothing is resolved yet.  Takes `settings`; `base`, or NULL: shares its catalogue. */
ZpScenario *zp_scenario_new(ZpSettings *settings, const ZpScenario *base);

static inline gint64
zp_scenario_state_integer(const ZpScenarioState *state, ZpSchemaId id)
{
    return state->effective[id].value.integer;
}
