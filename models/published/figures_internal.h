/* Errors of a validation summed up. */
#pragma once

#include "models/published/validate.h"

/* Of signed errors (double), which are replaced by sorted absolute ones. */
ZpValidateFigures zp_validate_figures_of(GArray *errors);
/* Sorts; NAN of none. */
double zp_validate_figures_median(GArray *values);
