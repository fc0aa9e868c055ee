/* How far a figure can be wrong, from published runs: the text of models/catalog/bands.ini.
 *
 * A run's step belongs to a class (models/prices/bands.h).  The band of a class is the shortest
 * interval that holds nine of ten of its rows' measured / simulated - 1; no row that a constant was
 * fitted to counts (subset time_cal).  Boards without constants of their own have the band of
 * measured ones and the error of the scaling rule together, as independent: 12.8 % within a chip,
 * 33 % from another chip (90th percentiles of models/prices/board.h).
 *
 * Reserved memory: the same interval over rows that state it.  Memory outside the allocator:
 * smallest and largest over the median of seven public runs on several GPUs with PyTorch 2.1 or
 * newer (0.387, 1.122 and 1.600 GB). */
#pragma once

#include "models/published/validate.h"

/* The text; free with g_free(). */
char *zp_validate_bands(const ZpValidation *validation);
/* Simulated rows of a subset, and how many of them lie inside their band. */
void zp_validate_bands_hold(const ZpValidation *validation, const char *subset, int *rows,
                            int *inside);
