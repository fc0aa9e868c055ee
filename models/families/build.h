/* From a family and the dimensions read for it to a model. */
#pragma once

#include "models/families/architecture.h"
#include "models/families/trees/families.h"

/* Resolves the family's rules over `symbols` and builds.  `lists`: symbol name -> GArray of gint64
 * block numbers, or NULL.  Warnings are char *; may be NULL. */
ZpModel *zp_architecture_build_family(const ZpFamily *family, ZpSymbols *symbols, GHashTable *lists,
                                      const ZpArchitectureOptions *options, const char *name,
                                      GPtrArray *warnings, GError **error);
