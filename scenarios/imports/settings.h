/* Another program's settings as settings of a scenario. */
#pragma once

#include "scenarios/settings/settings.h"

/* The scenario that names the file, as it would run without it. */
typedef struct {
    const ZpSettings *own; /* what it says itself */
    const ZpJob *job;      /* of one rank; with its model */
    gint64 ranks;          /* all GPUs */
    gint64 sequence;       /* uncut */
    gboolean attention;    /* model.attention plays a part */
} ZpImportScene;

/* Reads `path` (a ds_config.json or FSDP settings) in the light of `scene`, whose model and ranks
 * fill what the file leaves to a trainer ("auto"), and lists each key that the file sets or that
 * has another value under the file's program: GArray of ZpSettingsEntry, free with g_array_unref().
 * Stage and ranks that the scenario gives itself are taken for the file's.  Messages and origins
 * call the file `name`.  Warnings (char *) are added to `warnings`.  Errors name the file, its line
 * and the mend. */
GArray *zp_import_settings(const ZpImportScene *scene, const char *path, const char *name,
                           GPtrArray *warnings, GError **error);
