/* What a scenario says: each key with its value and where it is said, before anything follows from
 * it.  Text, settings from outside and imported settings become one plain value here.
 *
 * Strings are GRefStrings: copying settings copies references. */
#pragma once

#include "scenarios/language/schema.h"
#include "scenarios/settings/problems.h"

#define ZP_SCENARIO_MAX_BYTES ((gsize)16 * 1024 * 1024)
#define ZP_SCENARIO_MAX_LINE ((gsize)64 * 1024)
#define ZP_SCENARIO_MAX_ENTRIES 100000

typedef struct {
    gboolean given;
    gboolean imported; /* by zero.config: a copy leaves it out and imports anew */
    gboolean by_hand;  /* by --set, also as the axis of a sweep: no file says it */
    ZpSchemaValue value;
    char *origin; /* "FILE:LINE", "--set", "sweep" */
} ZpSetting;

#define ZP_N_LAYER_KEYS (ZP_KEY_LAYER_CHECKPOINT - ZP_KEY_LAYER_PARAMETERS + 1)

typedef struct {
    char *section; /* "layer NAME" */
    char *origin;
    ZpSetting keys[ZP_N_LAYER_KEYS]; /* by id - ZP_KEY_LAYER_PARAMETERS */
} ZpSettingsLayer;

static inline const char *
zp_settings_layer_name(const ZpSettingsLayer *layer)
{
    return layer->section + sizeof "layer " - 1;
}

typedef struct {
    const char *key;    /* "zero.stage" */
    const char *text;   /* "0, 1, 2, 3" */
    const char *origin; /* as above */
} ZpSettingsAxis;

typedef struct {
    char *path; /* of the file, or the name given for a text */
    ZpSetting keys[ZP_N_KEYS];
    GPtrArray *layers; /* ZpSettingsLayer; never changed while shared */
    GArray *axes;      /* ZpSettingsAxis, in the order of the file; never changed while shared */
} ZpSettings;

/* A setting that another program's file makes. */
typedef struct {
    const ZpSchemaKey *key;
    char *text;
    char *origin; /* "ds_config.json:12", "ds_config.json: default of its program" */
} ZpSettingsEntry;

/* Text and `sets` ("section.key=value", which win) as settings.  Never NULL; problems are added. */
ZpSettings *zp_settings_parse(const char *text, gsize length, const char *name,
                              const char *const *sets, ZpProblems *problems);
/* A copy of `base` with other settings and no axes; what `base` imported is left out. */
ZpSettings *zp_settings_with(const ZpSettings *base, const char *const *sets, ZpProblems *problems);
/* A copy of `own`, axes and all, in which entries (ZpSettingsEntry) hold where it says nothing. */
ZpSettings *zp_settings_join(const ZpSettings *own, const GArray *entries, ZpProblems *problems);
/* Adds a warning (char *) for each key that says something else than its entry. */
void zp_settings_warn_overruled(const ZpSettings *joined, const GArray *entries,
                                GPtrArray *warnings);
void zp_settings_free(ZpSettings *settings);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpSettings, zp_settings_free)

static inline gboolean
zp_settings_given(const ZpSettings *settings, ZpSchemaId id)
{
    return settings->keys[id].given;
}

/* The file that the text `given` of a key names.  A relative path starts where its reader looks for
 * it: at the folder of the scenario file that says it, at the working folder where --set does.
 * Absolute paths stay.  The caller frees it. */
char *zp_settings_file(const ZpSettings *settings, ZpSchemaId id, const char *given);
