/* What each knob would change: the same job simulated with one setting altered at a time. */
#pragma once

#include "models/step/step.h"

typedef struct {
    const char *knob;        /* "zero.prefetch" */
    const char *change;      /* "off (now 2)": owned by the result */
    gint64 peak_delta_bytes; /* positive: the peak rises */
    ZpTime step_delta_ps;    /* positive: the step takes longer */
    ZpVerdict verdict;
} ZpKnobsRow;

/* Simulates every variation that is legal and differs from `base`; GArray of ZpKnobsRow in table
 * order, free with g_array_unref().  A variation that fails is left out. */
GArray *zp_knobs_compare(const ZpJob *job, const ZpStepSummary *base,
                         const volatile gint *cancelled);
