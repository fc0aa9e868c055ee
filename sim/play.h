/* Playing a tape: what both players take and give.
 *
 * zp_player_play() (player.h) is the event engine: shared links, rendezvous, interference.
 * zp_maxplus_play() (maxplus.h) sweeps the instructions once with max and plus, without an event
 * queue.  Where nothing contends (no two works share a link at the same time, no interference)
 * both give the same times exactly; elsewhere max-plus is a lower bound.
 *
 * Time rules, for rank r:
 *  - The host executes instructions in tape order.  LAUNCH costs launch_overhead_ps, every other
 *    instruction instr_overhead_ps; the instruction takes effect at the end of its cost.
 *  - Run-ahead: with run_ahead > 0 at most that many launched works may be unfinished; launch
 *    number n (0-based) first blocks the host until launch n - run_ahead has ended.
 *  - An item of a stream is ready when the host has issued it and all earlier items are done.
 *    WAIT is done when also its event has happened.
 *  - A local work ready at t ends at t + fixed_ps + scaled(solo_ps).  A collective starts at the
 *    latest ready time of its group and ends for all members at the same time.
 *  - scaled(): works of category COMPUTE (and HOST_COMPUTE) take
 *    solo_ps * speed_ppm[r] / 1e6 * (1 + jitter), rounded down, at least 0; jitter is
 *    zp_rng_gaussian_ppm(seed, r, instr) * jitter_ppm / 1e6.  Other works are not scaled.
 *  - Sharing (event player): while n works occupy the same link of a rank, each progresses at
 *    1/n of its own speed; a collective progresses at the least share among its members.  While
 *    a work of another category runs on the rank, the rate is further multiplied by
 *    interference_ppm[own category][other category] / 1e6 (0 means 1e6: none).  The fixed part is
 *    never slowed.  A work occupies its link, and counts as running, from its start to its end.
 *  - Ties are processed in issue order; a release that shares its instant with an allocation it
 *    precedes in causal order happens first. */
#pragma once

#include "sim/memory.h"
#include "sim/observer.h"
#include "sim/tape.h"

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
    const ZpObserver *observer;              /* or NULL */
    gboolean keep_times;                     /* fill op_start/op_end of rank 0 */
    const volatile gint *cancelled; /* polled now and then when not NULL; nonzero stops the play */
} ZpPlayConfig;

typedef struct {
    ZpTime end;                        /* all streams drained and the host done */
    ZpTime busy[ZP_TAPE_N_CATEGORIES]; /* time with at least one such work running */
    ZpTime exposed;      /* time with communication or copies running and no compute running */
    ZpTime host_blocked; /* host waiting in SYNC or for run-ahead */
    ZpMemory memory[ZP_TAPE_N_SPACES];
} ZpPlayRank;

typedef struct {
    ZpPlayRank *ranks; /* n_ranks */
    gint32 n_ranks;
    ZpTime end;       /* latest over ranks */
    ZpTime *step_end; /* n_steps: latest end, over ranks, of the instructions of steps <= k */
    ZpTime
        *step_exposed; /* n_steps: exposed time of rank 0 up to step_end[k] (event player only) */
    gint32 n_steps;
    ZpTime *op_start, *op_end; /* rank 0, by instruction index; 0 where not a LAUNCH; or NULL */
    gint64 n_events; /* events processed (event player), instructions x ranks (max-plus) */
    gboolean cancelled;
} ZpPlayResult;

void zp_play_result_clear(ZpPlayResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpPlayResult, zp_play_result_clear)

typedef enum {
    ZP_PLAY_ERROR_GROUP,    /* a group does not divide the ranks */
    ZP_PLAY_ERROR_DEADLOCK, /* ranks wait for each other for ever (cannot happen with one tape) */
    ZP_PLAY_ERROR_OVERFLOW, /* time beyond int64 picoseconds */
    ZP_PLAY_ERROR_MEMORY,   /* n_ranks x tape would need more than the limit stated */
} ZpPlayError;
#define ZP_PLAY_ERROR (zp_play_error_quark())
GQuark zp_play_error_quark(void);

/* The buffers live right after the change that made the peak of `space`, as indices into
 * tape->buffers, largest first, ties by index; with their class at that moment.  Replays rank 0 of
 * the tape, so that a play itself need not keep track of buffers. */
typedef struct {
    gint32 buffer;
    guint8 class_id;
} ZpPlayLive;
GArray *zp_play_live_set(const ZpTape *tape, const ZpPlayConfig *config, ZpTapeSpace space);
