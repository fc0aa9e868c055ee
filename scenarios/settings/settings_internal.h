/* How settings are made, one at a time. */
#pragma once

#include "scenarios/settings/settings.h"

ZpSettings *zp_settings_new(const char *path);
/* Without axes and without what was imported. */
ZpSettings *zp_settings_copy(const ZpSettings *settings);

/* Changes one setting; `text` "auto" takes it back.  Errors of ZP_SCHEMA_ERROR, ZP_QUANTITY_ERROR
 * or ZP_SCENARIO_ERROR, without place. */
gboolean zp_settings_give(ZpSettings *settings, const ZpSchemaKey *key, const char *text,
                          const char *origin, GError **error);
/* The same for a key of [layer NAME]; an unknown NAME is an error. */
gboolean zp_settings_give_layer(ZpSettings *settings, const char *name, const char *key,
                                const char *text, const char *origin, GError **error);
/* Appends a layer without settings and returns it. */
ZpSettingsLayer *zp_settings_add_layer(ZpSettings *settings, const char *name, const char *origin);
/* Reads a layer's setting in place. */
gboolean zp_settings_give_in(ZpSettingsLayer *layer, const ZpSchemaKey *key, const char *text,
                             const char *origin, GError **error);
/* Adds an axis, or replaces the one over the same key. */
gboolean zp_settings_give_axis(ZpSettings *settings, const char *name, const char *text,
                               const char *origin, GError **error);
gboolean zp_settings_has_axis(const ZpSettings *settings, const char *name);

/* Settings from outside, over `settings`.  `base`: whose axes a sweep takes its points from; NULL
 * where they come from the command line. */
void zp_settings_apply_sets(ZpSettings *settings, const ZpSettings *base, const char *const *sets,
                            ZpProblems *problems);
