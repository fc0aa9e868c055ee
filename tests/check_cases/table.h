/* The table of all cases as Markdown. */
#pragma once

#include "tests/check_cases/case.h"
#include "tests/check_cases/figures.h"

/* Appends the section of one case; `got` has an entry per check. */
void table_add(const Case *c, const char *const *got, GString *out);
/* What stands before the cases: how many agree.  And behind them: the cases that no scenario can
 * ask, from lines "ID;title;source;reason;denied" (denial.h; comments from '#'). */
void table_head(guint n_agree, guint n_differ, guint n_cases, GString *out);
gboolean table_unasked(const char *path, Figures *figures, GString *out, GError **error);
