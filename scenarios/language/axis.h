/* One axis of a sweep: a key and its values as text.
 *
 * Items stand between commas; for counts, bytes and times an item may be a range: "1..8" (step 1),
 * "8..64 +8", "1..64 x2" (geometric).  A range ends at or before its second bound.  Counting never
 * expands. */
#pragma once

#include "scenarios/language/schema.h"

/* The key that `name` ("zero.stage", "stage", "layer.NAME.parameters") stands for; *full gets its
 * full name.  NULL for unknown keys and those of [sweep]. */
const ZpSchemaKey *zp_axis_key(const char *name, char **full, GError **error);
/* Number of values, or -1: an item is not legal for the key. */
gint64 zp_axis_count(const ZpSchemaKey *key, const char *text, GError **error);
/* NULL-terminated; `text` must have been counted, and few enough. */
char **zp_axis_expand(const ZpSchemaKey *key, const char *text);
