/* One file of any kind that the program reads, checked alone: scenarios, HF config.json, DeepSpeed
 * and FSDP settings. */
#pragma once

#include "models/job/model.h"
#include "scenarios/imports/import.h"

typedef struct {
    ZpImportReport *report; /* kind, verdict, messages, rows */
    ZpModel *model;         /* of a config.json that is in order; NULL otherwise */
    char *headline;         /* one line on what was found; NULL for settings files */
} ZpCheckFile;

void zp_check_file_clear(ZpCheckFile *check);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpCheckFile, zp_check_file_clear)

/* `sets` are for scenarios.  Fails only where nothing can be read. */
gboolean zp_check_file_read(const char *path, const char *const *sets, ZpCheckFile *check,
                            GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* Text for people; JSON "zeropeak-check/1": schema, the members of zp_import_report_json(), and for
 * a model {"model": {name, family, parameters, trainable_parameters, active_parameters, tied,
 * block_class, blocks, hidden, heads, kv_heads, head_size, ffn, vocabulary}, "units": [{name,
 * elements, parameters: [{name, elements, shape, tied_to}]}]}.  Units: embedding, each block, final
 * norm, head. */
char *zp_check_file_text(const ZpCheckFile *check);
char *zp_check_file_json(const ZpCheckFile *check);
