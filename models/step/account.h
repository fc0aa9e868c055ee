/* Where the time of the last step went, so that the parts sum to the step.
 *
 * Every instant of rank 0's last step belongs to one part: the kernel that computes then (of
 * several at once the first of ZpKind); else the collective or transfer that is under way, which
 * computation waits for; else the host's own work; else nothing of the above runs, and the device
 * waits for the host, or for other ranks.  What a kernel takes beyond its time alone is a part of
 * its own: it shares the device with communication (or is a slow rank's, or jitters). */
#pragma once

#include "models/step/step.h"

typedef enum {
    ZP_STEP_PART_COMPUTE, /* kernels of `kind`, at their speed alone */
    ZP_STEP_PART_SLOWED,  /* kernels of any kind, beyond their time alone */
    ZP_STEP_PART_WAITING, /* for the collective or transfer `kind` */
    ZP_STEP_PART_HOST,    /* the host computes: `kind` */
    ZP_STEP_PART_IDLE,    /* neither */
} ZpStepPartKind;

typedef struct {
    ZpStepPartKind part;
    ZpKind kind; /* unless SLOWED or IDLE */
    ZpTime time_ps;
} ZpStepPart;

/* "compute", "slowed", "waiting", "host", "idle"; a static string. */
const char *zp_step_part_name(ZpStepPartKind part);

/* When the device is where the memory peak is: the time of the change, or, where the host decides
 * it ahead of the device, the end of what computation was launched before (rank 0's).  Plays the
 * last simulation of `step`, which was of `job`, once more. */
ZpTime zp_step_peak_time(const ZpStep *step, const ZpJob *job, const ZpStepSummary *summary);

/* Plays the last simulation of `step`, which was of `job`, once more.  GArray of ZpStepPart without
 * empty ones, in order of ZpStepPartKind, then ZpKind; the times sum to the summary's step_ps. */
GArray *zp_step_account(const ZpStep *step, const ZpJob *job);
