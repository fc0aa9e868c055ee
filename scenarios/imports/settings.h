/* Another program's settings as settings of a scenario. */
#pragma once

#include "scenarios/load/scenario.h"

typedef struct {
    const ZpSchemaKey *key;
    char *text;
    char *origin; /* "ds_config.json:12", "ds_config.json: default of its program" */
} ZpImportSetting;

/* Reads `path` (a ds_config.json or FSDP settings) in the light of `scenario`, whose model and
 * ranks fill what the file leaves to a trainer ("auto"), and lists each key that the file sets or
 * that has another value under the file's program: GArray of ZpImportSetting, free with
 * g_array_unref().  Stage and ranks that `scenario` gives itself are taken for the file's.
 * Messages and origins call the file `name`.  Warnings (char *) are added to `warnings`.  Errors
 * name the file, its line and the mend. */
GArray *zp_import_settings(const ZpScenario *scenario, const char *path, const char *name,
                           GPtrArray *warnings, GError **error);
