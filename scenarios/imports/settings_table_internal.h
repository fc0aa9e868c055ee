/* Which keys of another program's file settle which key of a scenario: where a value stands. */
#pragma once

#include "scenarios/imports/deepspeed/schema.h"
#include "scenarios/language/schema.h"

typedef struct {
    ZpSchemaId id;
    ZpDsKey deepspeed;   /* ZP_DS_NONE: DeepSpeed does not settle it */
    const char *fsdp[6]; /* last names of keys, without "fsdp_"; the first that is there counts */
    /* A scenario's own rule for the key ("auto") is not the program's: the value is always
     * written. */
    gboolean own_rule;
} ZpImportSettingsRow;

const ZpImportSettingsRow *zp_import_settings_table(gsize *n);
