/* Does it fit?  Three answers, for a figure has a band.
 *
 * What a rank needs (reserved memory with an allocator, else allocated, with what lives outside of
 * it and the contingency kept free) lies in a band around the simulated figure.
 *  - fits: the capacity lies above the band, and the allocator never had to empty its cache;
 *  - tight: the capacity lies inside the band, or the cache had to be emptied;
 *  - does not fit: the capacity lies below the band.
 * Without a capacity there is no verdict. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_VERDICT_NONE, /* memory is unlimited */
    ZP_VERDICT_FITS,
    ZP_VERDICT_TIGHT,
    ZP_VERDICT_DOES_NOT_FIT,
    ZP_N_VERDICTS,
} ZpVerdict;

/* All in bytes, without the contingency. */
typedef struct {
    gint64 needed_bytes;
    gint64 low_bytes, high_bytes; /* the band: low <= needed <= high */
    gint64 capacity_bytes;        /* 0: unlimited */
    double contingency;           /* ratio kept free of what is needed */
    gboolean flushed;             /* the allocator emptied its cache for lack of memory */
} ZpVerdictQuestion;

ZpVerdict zp_verdict_of(const ZpVerdictQuestion *question);

/* "unlimited", "fits", "tight", "does not fit"; static strings. */
const char *zp_verdict_name(ZpVerdict verdict);
