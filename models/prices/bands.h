/* How far figures can be wrong with nine chances of ten, from models/catalog/bands.ini, which
 * `zeropeak validate --bands` writes (models/published/bands.h says how). */
#pragma once

#include "models/words/grade.h"

/* Of a step's time: by the grade of the constants that price its layers, and by whose rules order
 * its work: a framework's own, or `ideal`, which stands for any other framework. */
ZpBand zp_bands_step(ZpGrade grade, gboolean ideal);
/* Of what a caching allocator reserves. */
ZpBand zp_bands_reserved(void);
/* Of the catalogue's memory outside the allocator. */
ZpBand zp_bands_overhead(void);

/* "measured ideal": the section of a class of steps; free with g_free(). */
char *zp_bands_class(ZpGrade grade, gboolean ideal);
