/* "Did you mean": the known name nearest to a misspelt one. */
#pragma once

#include <glib.h>

/* The entry of `names` (NULL-terminated) with the least edit distance (insertions, deletions,
 * replacements, swaps of neighbours; case counts half) to `name`, the first one of equals; NULL
 * when none is near enough to be worth saying: more than a third of the letters are wrong.  A name
 * that begins with `name` counts as one letter away. */
const char *zp_nearest_find(const char *name, const char *const *names);
