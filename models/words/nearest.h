/* "Did you mean": the known name nearest to a misspelt one. */
#pragma once

#include <glib.h>

/* The entry of `names` (NULL-terminated) with the least edit distance (insertions, deletions,
 * replacements, swaps of neighbours; case counts half) to `name`, the first one of equals; NULL
 * when none is near enough to be worth saying: more than a third of the letters are wrong.  A name
 * that begins with `name` counts as one letter away. */
const char *zp_nearest_find(const char *name, const char *const *names);
/* The same for the first `n` of `names`. */
const char *zp_nearest_find_among(const char *name, const char *const *names, gsize n);

/* "; did you mean 'NAME'?" to hang on a message, or "" when none is near enough.  The caller frees
 * it. */
char *zp_nearest_hint(const char *name, const char *const *names);

/* Edit distance in letters, rounded up; 99 where either name is longer than 64. */
int zp_nearest_distance(const char *a, const char *b);
