/* The tiny models of the recorded runs: who calls whom.  The cases list modules and parameters but
 * not the order of execution, which the classes' forward() decides. */
#pragma once

#include "deepspeed_case.h"

/* Also fills `groups` (torch parameter group by ds_id). */
ZpDsTree *ds_build_run_tree(JsonObject *root, gint32 *groups);
