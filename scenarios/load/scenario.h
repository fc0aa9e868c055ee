/* Scenario files: text to job, strictly, with the origin of every value.
 *
 * Syntax: groups in brackets, "key = value", comments from '#' at the start of a line or after a
 * blank.  A key or a group that comes twice, an unknown name, a value that does not fit its key:
 * all of a file's errors are reported together, one a line, "FILE:LINE: [group] key: what is wrong
 * and what is legal".  The value "auto" is the same as not writing the key.
 *
 * `sets` are "section.key=value" strings that win over the file; "layer.NAME.key" and
 * "sweep.section.key" are understood, and the section may be left out where only one has the key.
 */
#pragma once

#include "models/job/job.h"
#include "scenarios/settings/settings.h"

/* One effective input. */
typedef struct {
    const char *section; /* "zero", "layer embedding", "sweep" */
    const char *key;
    const char *text;   /* with its unit: "80 GiB" */
    const char *origin; /* "default", "auto: RULE", "catalogue: NAME", "FILE:LINE", "--set" */
    gboolean given;     /* by a person or a file that is imported, not by a rule */
} ZpScenarioValue;

typedef struct _ZpScenarioState ZpScenarioState;

/* Everything belongs to the scenario; `model` may be shared with scenarios made from this one and
 * lives as long as any of them. */
typedef struct {
    const char *name;
    const char *path; /* of the file, or the name given for a text */
    ZpJob job;
    const ZpModel *model;
    GArray *values;      /* ZpScenarioValue, in the order of the schema */
    GPtrArray *warnings; /* strings; the last entry is NULL */
    GArray *axes;        /* ZpSettingsAxis, in the order of the file */
    gint64 sweep_limit;
    ZpScenarioState *state;
} ZpScenario;

ZpScenario *zp_scenario_load(const char *path, const char *const *sets, GError **error);
/* `length` -1: up to the NUL; `name` stands for the file in messages and origins. */
ZpScenario *zp_scenario_parse(const char *text, gssize length, const char *name,
                              const char *const *sets, GError **error);
/* A copy of `base` with other settings and no axes; what was derived is derived anew, the model is
 * built anew only if a setting changes it.  Safe from several threads that share `base`. */
ZpScenario *zp_scenario_with(const ZpScenario *base, const char *const *sets, GError **error);
void zp_scenario_free(ZpScenario *scenario);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpScenario, zp_scenario_free)

/* The effective scenario as a file that loads to the same values, origins as comments.  With a
 * sweep, derived values are written as "auto" (their value in the comment), for an axis may change
 * what they derive from. */
void zp_scenario_dump(const ZpScenario *scenario, GString *out);
