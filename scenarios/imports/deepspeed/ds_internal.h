/* What the files of the DeepSpeed importer share; nobody else includes it. */
#pragma once

#include "scenarios/imports/deepspeed/config.h"

/* DeepSpeed versions as major * 1000000 + minor * 1000 + patch. */
#define ZP_DS_VERSION_NEWEST G_MAXINT
#define ZP_DS_VERSION_REMOVALS 19006   /* the last one that still reads what was removed */
#define ZP_DS_VERSION_PYDANTIC_2 15001 /* from here on a fraction is no integer */

typedef struct {
    const ZpTree *tree;
    ZpDsKey key; /* where it belongs */
} ZpDsMisplaced;

typedef struct {
    ZpDsConfig *config;
    const ZpDsContext *context;
    int version;
    GArray *misplaced; /* ZpDsMisplaced at the top level */
} ZpDsReader;

/* record.c.  Says it about the key, at the place of its value. */
void zp_ds_internal_say(const ZpDsReader *reader, ZpImportSeverity severity, ZpDsKey key,
                        const char *mend, const char *format, ...) G_GNUC_PRINTF(5, 6);
void zp_ds_internal_explain(const ZpDsReader *reader, ZpDsKey key, const char *format, ...)
    G_GNUC_PRINTF(3, 4); /* sets `detail` */
void zp_ds_internal_conclude(const ZpDsReader *reader, ZpDsKey key, const char *format, ...)
    G_GNUC_PRINTF(3, 4); /* sets `consequence` */
/* Sets a count (and its number) with that origin. */
void zp_ds_internal_set_count(const ZpDsReader *reader, ZpDsKey key, gint64 count,
                              ZpDsOrigin origin);

/* value.c: reads one value of a key that is not a block; `strict` as its block is. */
void zp_ds_value_read(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree, gboolean strict);
/* value.c: the default from the table. */
void zp_ds_value_reset(ZpDsValue *value, ZpDsKey key);
void zp_ds_value_clear(ZpDsValue *value);
/* walk.c: reads all blocks, then lets deprecated keys set their successors. */
void zp_ds_walk_root(ZpDsReader *reader, const ZpTree *root);
/* auto.c: fills "auto". */
void zp_ds_auto_fill(const ZpDsReader *reader);
/* batch.c: the batch equation. */
void zp_ds_batch_check(const ZpDsReader *reader);
/* rules.c: keys that depend on each other: precision, offload, sizes. */
void zp_ds_rules_check(const ZpDsReader *reader);
/* stages.c: keys without effect at this stage, misplaced blocks. */
void zp_ds_stages_check(const ZpDsReader *reader);
