/* How a figure came to be. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_GRADE_COUNTED,  /* follows from rules checked against the framework's own code */
    ZP_GRADE_MEASURED, /* interpolated in measurements of this very chip, board or fabric */
    ZP_GRADE_SCALED,   /* from a measured relative by a stated ratio */
    ZP_GRADE_ASSUMED,  /* data sheet times what is usual in its class */
    ZP_N_GRADES,
} ZpGrade;

/* "counted" and the like; static strings. */
const char *zp_grade_name(ZpGrade grade);

/* Relative bounds of a figure that hold with 90 %: value x (1 - low) to value x (1 + high). */
typedef struct {
    double low, high;
} ZpBand;

/* Bands of parts of one sum.  Parts of one rule err together, so their bounds add; rules err
 * independently, so theirs add as squares.  `parts` are (value, rule, band); rules are told apart
 * by `rule`.  The sum's band, relative to the sum of the values. */
typedef struct {
    double value; /* not negative */
    int rule;
    ZpBand band;
} ZpBandPart;
ZpBand zp_band_of_sum(const ZpBandPart *parts, gsize n);
