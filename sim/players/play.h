/* Playing a tape: what both players take and give.
 *
 * zp_player_play() (player.h) is the event engine: shared links, rendezvous, interference.
 * zp_maxplus_play() (maxplus.h) sweeps the instructions once with max and plus, without an event
 * queue.  Where nothing contends (no two works share a link at the same time, no interference)
 * both give the same times exactly; elsewhere max-plus is a lower bound.
 *
 * Time rules, for rank r:
 *  - The host executes instructions in tape order.  LAUNCH costs launch_overhead_ps, every other
 *    instruction instr_overhead_ps; the instruction takes effect at the end of its cost.  SYNC
 *    ends at the end of its cost or when the event happens, whichever is later.
 *  - Run-ahead: with run_ahead > 0 at most that many launched works may be unfinished; launch
 *    number n (0-based) first blocks the host until launch n - run_ahead has ended, then costs.
 *  - An item of a stream is ready when the host has issued it and all earlier items are done.
 *    WAIT is done when also its event has happened.  USE is no item: it costs host time only.
 *  - A local work ready at t ends at t + fixed_ps + scaled(solo_ps).  A collective starts at the
 *    latest ready time of its group and ends for all members at the same time.
 *  - scaled(): local works of category COMPUTE and HOST_COMPUTE take
 *    solo_ps * speed_ppm[r] * (10^12 + zp_rng_gaussian_ppm(seed, r, instr) * jitter_ppm) / 10^18,
 *    computed exactly, then rounded down, at least 0.  Other works and all collectives are not
 *    scaled.
 *  - Sharing (event player): while n works occupy the same link of a rank, each progresses at
 *    1/n of its own speed; a collective progresses at the least rate among its members.  While
 *    works of other categories run on the rank, the rate is further multiplied, once for each such
 *    category, by interference_ppm[own category][other category] / 1e6 (0 means 1e6: none).  The
 *    fixed part comes first and is never slowed.  A work occupies its link, and counts as
 *    running, from its start to its end.  Progress is rounded down to the picosecond whenever a
 *    rate changes; a work whose rate never leaves 1 is exact.
 *  - What happens at one instant happens in tape order.  Every dependence points back in the tape,
 *    so this is a causal order: a release that an allocation waits for comes first.
 *
 * A tape must have passed zp_tape_check(). */
#pragma once

#include "sim/players/memory.h"
#include "sim/players/observer.h"
#include "sim/tape/tape.h"

/* Memory that plays reuse: a sweep makes one per thread and allocates nothing after its first
 * plays.  One play at a time. */
typedef struct _ZpPlayScratch ZpPlayScratch;
ZpPlayScratch *zp_play_scratch_new(void);
void zp_play_scratch_free(ZpPlayScratch *scratch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpPlayScratch, zp_play_scratch_free)

#define ZP_PLAY_MAX_SCRATCH_BYTES (G_GINT64_CONSTANT(8) << 30)
#define ZP_PLAY_MAX_TIME (G_GINT64_CONSTANT(1) << 62) /* later times are an overflow: 53 days */

typedef struct {
    gint32 n_ranks;          /* 1: one representative; collectives need no partner then.
                              * Otherwise every group's size * stride must divide n_ranks. */
    const gint32 *speed_ppm; /* n_ranks entries (1000000 = nominal, more is slower), or NULL */
    gint32 jitter_ppm;       /* standard deviation of compute times */
    guint64 seed;
    ZpTime launch_overhead_ps, instr_overhead_ps;
    gint32 run_ahead; /* 0: unlimited */
    gint32 interference_ppm[ZP_TAPE_N_CATEGORIES][ZP_TAPE_N_CATEGORIES];
    gint64 capacity_bytes[ZP_TAPE_N_SPACES]; /* 0: unlimited */
    /* Or NULL.  Called when the play is complete, never for one that failed or was cancelled;
     * spans (by end) and changes come merged in order of time, then instruction, then rank. */
    const ZpObserver *observer;
    gboolean keep_times;            /* fill op_start/op_end of rank 0 */
    const volatile gint *cancelled; /* polled now and then when not NULL; nonzero stops the play */
    ZpPlayScratch *scratch;         /* or NULL: the play allocates and frees its own */
} ZpPlayConfig;

typedef struct {
    ZpTime end;                        /* all streams drained and the host done */
    ZpTime busy[ZP_TAPE_N_CATEGORIES]; /* time with at least one such work running */
    ZpTime exposed;      /* time with communication or copies running and no compute running */
    ZpTime host_blocked; /* host waiting in SYNC or for run-ahead */
    ZpMemory memory[ZP_TAPE_N_SPACES];
} ZpPlayRank;

/* {0}, or what an earlier play left: its arrays are reused. */
typedef struct {
    ZpPlayRank *ranks; /* n_ranks */
    gint32 n_ranks;
    ZpTime end;       /* latest over ranks */
    ZpTime *step_end; /* n_steps: latest end, over ranks, of the instructions of steps <= k */
    /* n_steps: exposed time of rank 0 up to step_end[k] (event player only) */
    ZpTime *step_exposed;
    gint32 n_steps;
    ZpTime *op_start, *op_end; /* rank 0, by instruction index; 0 where not a LAUNCH; or NULL */
    gint64 n_events;    /* events processed (event player), instructions x ranks (max-plus) */
    gboolean cancelled; /* stopped early: everything else is undefined; not an error */
    gint32 cap_ranks, cap_steps, cap_instrs; /* private */
    ZpTime *times;                           /* private: what op_start and op_end point into */
} ZpPlayResult;

void zp_play_result_clear(ZpPlayResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpPlayResult, zp_play_result_clear)

typedef enum {
    ZP_PLAY_ERROR_GROUP,    /* a group's size * stride does not divide the ranks */
    ZP_PLAY_ERROR_DEADLOCK, /* ranks wait for each other for ever (cannot happen with one tape) */
    ZP_PLAY_ERROR_OVERFLOW, /* a time beyond ZP_PLAY_MAX_TIME */
    ZP_PLAY_ERROR_MEMORY,   /* n_ranks x tape would need more than ZP_PLAY_MAX_SCRATCH_BYTES */
    ZP_PLAY_ERROR_RACE,     /* on the clock, a buffer is freed or retagged while it is not live */
    ZP_PLAY_ERROR_CONFIG,   /* a number of the configuration out of range */
} ZpPlayError;
#define ZP_PLAY_ERROR (zp_play_error_quark())
GQuark zp_play_error_quark(void);

/* For players: refuses a configuration out of range or groups that do not divide the ranks, and
 * sizes the arrays of a result and zeroes them. */
gboolean zp_play_check_config(const ZpTape *tape, const ZpPlayConfig *config, GError **error);
void zp_play_result_prepare(ZpPlayResult *result, const ZpTape *tape, gint32 n_ranks,
                            gboolean keep_times);

/* The buffers live right after the change that made the peak of `space`, as indices into
 * tape->buffers, largest first, ties by index; with their class at that moment.  Replays rank 0 of
 * the tape (with its fellows), so that a play itself need not keep track of buffers.  NULL if the
 * play fails. */
typedef struct {
    gint32 buffer;
    guint8 class_id;
} ZpPlayLive;
GArray *zp_play_live_set(const ZpTape *tape, const ZpPlayConfig *config, ZpTapeSpace space);
