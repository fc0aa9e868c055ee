/* Why a public case is not asked, so that it can be found untrue: a denial that no longer holds is
 * an error, and the case is to be asked.
 *
 *   report            the report does not say enough
 *   elsewhere PATH    PATH, below the sources, answers it
 *   key SECTION.KEY   no scenario has such a key; SECTION.* no such section
 *   figure NAME(SETS) no figure of that name (tests/check_cases/figures.h) under those settings,
 *                     which are legal
 *   same NAME(SETS)   the settings, which are legal, do not change the figure */
#pragma once

#include "tests/check_cases/figures.h"

/* `figures` of any scenario; `root` the folder of the sources.  Fails with the reason why the
 * denial is untrue, or is none. */
gboolean denial_check(Figures *figures, const char *root, const char *denied, GError **error);
