/* Taking settings out of a tree, one by one: each is checked, becomes a row of the table, and is
 * marked; what is left at the end is unknown.  Shared by the FSDP importers only. */
#pragma once

#include "scenarios/imports/fsdp/config.h"

typedef struct {
    ZpFsdpConfig *config;
    const ZpFsdpContext *context;
    const ZpTree *root;
    GHashTable *taken; /* ZpTree that have been read */
} ZpFsdpReader;

/* How a setting shows in the table. */
typedef struct {
    const char *path; /* dotted */
    unsigned effect;  /* of ZpDsEffect */
    const char *unit;
    const char *fallback; /* shown where the key is missing; NULL: no row then */
    const char *remark;   /* why it has no effect, or what follows; NULL */
} ZpFsdpField;

void zp_fsdp_reader_say(const ZpFsdpReader *reader, ZpImportSeverity severity, const char *path,
                        const char *mend, const char *format, ...) G_GNUC_PRINTF(5, 6);
/* Is there a value at the path that is not null?  Marks nothing. */
gboolean zp_fsdp_reader_given(const ZpFsdpReader *reader, const char *path);
/* The value at the path, marked as read, with its row; NULL if missing or null (a default row is
 * added).  `more` replaces the remark if not NULL. */
const ZpTree *zp_fsdp_reader_take(const ZpFsdpReader *reader, const ZpFsdpField *field,
                                  const char *more);
/* Each leaves *value alone where the key is missing or refused, and tells whether it was set. */
gboolean zp_fsdp_reader_boolean(const ZpFsdpReader *reader, const ZpFsdpField *field,
                                gboolean *value);
gboolean zp_fsdp_reader_count(const ZpFsdpReader *reader, const ZpFsdpField *field, gint64 least,
                              gint64 *value);
/* One of `names` in any case (NULL-terminated), or its number where `first` > 0: names[0] is
 * `first`.  *value gets the index. */
gboolean zp_fsdp_reader_choice(const ZpFsdpReader *reader, const ZpFsdpField *field,
                               const char *const *names, int first, int *value);
gboolean zp_fsdp_reader_format(const ZpFsdpReader *reader, const ZpFsdpField *field,
                               ZpDtype *value);
/* A list of names, or one text with commas. */
gboolean zp_fsdp_reader_names(const ZpFsdpReader *reader, const ZpFsdpField *field, GStrv *value);
/* Marks keys that are known but have no effect here. */
void zp_fsdp_reader_skip(const ZpFsdpReader *reader, const char *block, const char *const *names,
                         const char *reason);
/* What `block` ("" for the root) holds beside what was taken: unknown keys, said at `severity`
 * with the nearest of `known` (NULL-terminated).  With `only_near`, keys that resemble none of
 * them are left alone. */
void zp_fsdp_reader_rest(const ZpFsdpReader *reader, const char *block, ZpImportSeverity severity,
                         gboolean only_near, const char *const *known, const char *consequence);

/* One per source; the tree's root is a block. */
void zp_fsdp_accelerate_read(ZpFsdpReader *reader);
void zp_fsdp_trainer_read(ZpFsdpReader *reader);
void zp_fsdp_titan_read(ZpFsdpReader *reader);
/* accelerate's deepspeed_config; the translated configuration goes to reader->config. */
void zp_fsdp_deepspeed_read(ZpFsdpReader *reader, const ZpTree *block);
