/* Models from a Hugging Face config.json.
 *
 * Which keys mean what, per model_type, is data: models/catalog/families.txt
 * (models/families/trees/families.h). A file without model_type is recognised by `architectures`.
 */
#pragma once

#include "models/families/architecture.h"
#include "scenarios/imports/huggingface/errors.h"

/* `warnings` gets char * (may be NULL); errors name the file, and the line and key where there is
 * one.  All missing keys are named at once, and so are all wrong values. */
ZpModel *zp_hf_load(const char *path, const ZpArchitectureOptions *options, GPtrArray *warnings,
                    GError **error);
/* `length` -1: NUL-terminated.  `name`: what messages call the file, and the model. */
ZpModel *zp_hf_parse(const char *json, gssize length, const char *name,
                     const ZpArchitectureOptions *options, GPtrArray *warnings, GError **error);
/* A JSON object with a model_type or architectures key? */
gboolean zp_hf_looks_like(const char *json, gssize length);

/* The table of families as Markdown: what model_type, which module class is the block. */
char *zp_hf_families_markdown(void);
