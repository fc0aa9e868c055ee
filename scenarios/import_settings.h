/* Another program's settings as settings of a scenario. */
#pragma once

#include "scenarios/scenario.h"

typedef struct {
    const ZpSchemaKey *key;
    char *text;
} ZpImportSetting;

/* Reads `path` (a ds_config.json or FSDP settings) in the light of `scenario`, whose model and
 * ranks fill what the file leaves to a trainer ("auto"), and lists each key whose value the file
 * changes: GArray of ZpImportSetting, free with g_array_unref().  Warnings (char *) are added to
 * `warnings`.  Errors name the file, its line and the mend. */
GArray *zp_import_settings(const ZpScenario *scenario, const char *path, GPtrArray *warnings,
                           GError **error);
