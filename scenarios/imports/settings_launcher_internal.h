/* FSDP settings in the light of a scene, whose own words win over the file's. */
#pragma once

#include "scenarios/imports/fsdp/config.h"
#include "scenarios/imports/settings.h"

/* What fills DeepSpeed's "auto" and its batch equation. */
ZpDsContext zp_import_settings_context(const ZpImportScene *scene);
/* As zp_fsdp_config_parse().  `world` is that of the file's degrees where neither scenario nor file
 * name one, and 0 where the scenario does. */
ZpFsdpConfig *zp_import_settings_parse_launcher(ZpFsdpSource source, const char *name,
                                                const char *text, gsize length,
                                                const ZpImportScene *scene);
/* zp_fsdp_apply_job() on a whole job.  Batch and degrees in `job` are the file's then, what follows
 * from them (shard group, accumulation) is of those that will hold; those degrees go to `held`. */
gboolean zp_import_settings_apply_launcher(ZpFsdpConfig *config, const ZpImportScene *scene,
                                           ZpFsdp *fsdp, ZpJob *job, ZpParallel *held,
                                           GError **error);
