/* "A REL B [within TOLERANCE]": A and B are sums and products of figures (figures.h) and numbers
 * with units (B, MiB, GiB, MB, GB, us, ms, s), evaluated from left to right, * and / first; REL is
 * ==, <, >, <=, >=, or contains for words.  A tolerance is "5 %" of B or an amount; without one ==
 * is exact. */
#pragma once

#include "tests/check_cases/figures.h"

typedef struct {
    gboolean holds;
    char *got; /* what A is, in the unit of B */
} Answer;

gboolean expression_check(Figures *figures, const char *statement, Answer *answer, GError **error);
