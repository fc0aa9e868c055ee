/* The model of a row of a table of runs: the columns' dimensions, and of the two usual shapes of a
 * transformer the one that the row means; rules in models/published/validate.h. */
#pragma once

#include "models/families/architecture.h"
#include "models/published/record_internal.h"

/* Uncut, with activations and costs for `options`.  `imply`: where the row states none
 * it is what the parameter count leaves for the tables. */
ZpModel *zp_validate_model_build(const ZpValidateRecord *record,
                                 const ZpArchitectureOptions *options, gboolean imply,
                                 GError **error);
