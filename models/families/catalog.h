/* Built-in models by name: dimensions as published (models/catalog/models.csv, embedded). */
#pragma once

#include "models/families/architecture.h"

typedef struct {
    const char *name;    /* "Llama-3-8B" */
    const char *summary; /* "32 layers, hidden 4096, 8.03e9 parameters" */
    const char *source;
} ZpCatalogEntry;

/* Name matching ignores case; the error names the nearest entries. */
ZpModel *zp_catalog_build(const char *name, const ZpArchitectureOptions *options, GError **error);
/* NULL-terminated by a NULL name; owned by the library, valid for ever. */
const ZpCatalogEntry *zp_catalog_entries(gsize *n);
