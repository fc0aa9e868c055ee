/* One job simulated: wrap, compile, play, check, summarise.  The only file of models/ that plays.
 */
#pragma once

#include "models/job/runtime.h"
#include "models/ledger/ledger.h"
#include "models/step/verdict.h"
#include "models/words/grade.h"
#include "sim/allocator/allocator.h"
#include "sim/players/play.h"

/* Collectives (and transfers) of one step by kind and phase. */
typedef struct {
    ZpKind kind;
    ZpPhase phase;
    gint64 count;
    gint64 bytes;      /* message bytes */
    gint64 wire_bytes; /* per rank, on the link */
    ZpTime busy_ps;    /* sum of durations alone on the link */
} ZpStepTraffic;

#define ZP_STEP_MAX_TRAFFIC 64

typedef struct {
    ZpTime step_ps;                       /* duration of the last step */
    ZpTime step_low_ps, step_high_ps;     /* its band (models/prices/bands.h) */
    ZpGrade grade;                        /* of the constants that priced its layers */
    ZpTime exposed_ps;                    /* of it, communication without compute */
    ZpTime busy_ps[ZP_TAPE_N_CATEGORIES]; /* whole play */
    ZpTime host_blocked_ps;
    gint64 tokens_per_step; /* all ranks together */
    gint64 tokens_per_rank; /* of each GPU: those that share a replica share its tokens */
    double model_flops;     /* per rank and step: 3 x forward, less what frozen weights save;
                             * recomputation not counted */
    double mfu;             /* model_flops / (step time x device peak) */
    /* Allocated peak of the worst rank. */
    gint32 peak_rank;
    gint64 peak_bytes; /* device, allocated by the framework + runtime overhead class */
    ZpTime peak_time;
    gint32 peak_instr;
    gint64 peak_by_class[ZP_N_CLASSES];
    gint64 persistent_bytes; /* live at the end of the last step */
    gint64 persistent_by_class[ZP_N_CLASSES];
    gint64 host_peak_bytes;
    /* With an allocator (job.device.allocator): what rank 0 got from it, and its segments with the
     * runtime overhead outside of them.  Given the capacity less contingency and overhead, it
     * empties its cache before it fails. */
    gboolean has_allocator;
    ZpAllocatorResult allocator;
    gint64 reserved_bytes;
    /* headroom = capacity - peak - contingency; with an allocator reserved takes the peak's place,
     * also in contingency. */
    gint64 capacity_bytes, contingency_bytes, headroom_bytes;
    /* The band of what is needed (reserved with an allocator, else the peak) without contingency,
     * and what follows. */
    gint64 needed_bytes, needed_low_bytes, needed_high_bytes;
    ZpVerdict verdict;
    gboolean fits; /* the simulated figure itself: headroom is not negative; TRUE where unlimited */
    gint32 first_over_instr; /* where the capacity is first exceeded, or ZP_TAPE_NONE */
    ZpStepTraffic traffic[ZP_STEP_MAX_TRAFFIC]; /* of the last step */
    int n_traffic;
    gint64 n_events;
    ZpTime slowest_rank_ps, fastest_rank_ps; /* end times over ranks */
} ZpStepSummary;

/* A workspace that a sweep reuses: tape and scratch memory. */
typedef struct _ZpStep ZpStep;
ZpStep *zp_step_new(void);
void zp_step_free(ZpStep *step);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpStep, zp_step_free)

/* Simulates `job`.  Fails on combinations the runtime refuses, on cancellation, and loudly when a
 * conservation check fails (ZP_STEP_ERROR_CHECK names the check).  `observer` may be NULL. */
gboolean zp_step_simulate(ZpStep *step, const ZpJob *job, const ZpObserver *observer,
                          const volatile gint *cancelled, ZpStepSummary *summary,
                          GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* Of the last simulation: had the job's mutant (job->mutant, job->ledger_mutant) anything to break?
 * Then it must have failed with the check that models/ledger/mutants.h names. */
gboolean zp_step_is_broken(const ZpStep *step);

/* Of the last simulation; valid until the next. */
const ZpTape *zp_step_tape(const ZpStep *step);
const ZpUnits *zp_step_units(const ZpStep *step);
const ZpLedger *zp_step_ledger(const ZpStep *step);
const ZpPlayResult *zp_step_result(const ZpStep *step);
/* Plays the last simulation, which was of `job`, once more: with the times of rank 0's operations
 * (op_start, op_end). */
void zp_step_replay(const ZpStep *step, const ZpJob *job, ZpPlayResult *result);
/* Live buffers at the device peak, largest first: GArray of ZpPlayLive. */
GArray *zp_step_live_set(const ZpStep *step, const ZpJob *job);

typedef enum {
    ZP_STEP_ERROR_CHECK,
    ZP_STEP_ERROR_CANCELLED,
    ZP_STEP_ERROR_RANGE,
} ZpStepError;
#define ZP_STEP_ERROR (zp_step_error_quark())
GQuark zp_step_error_quark(void);
