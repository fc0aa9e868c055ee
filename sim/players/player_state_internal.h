/* What the parts of the event player share; private to the players.
 *
 * The host needs no event per instruction: between two places where it may block its clock is a
 * sum of costs known before the play.  So a program lists, for each stream, its items with the
 * host time of their issue if the host never blocked; a rank keeps by how much each block has
 * shifted the rest. */
#pragma once

#include "sim/events/queue.h"
#include "sim/players/play.h"

typedef struct {
    ZpTime cost_ps; /* host time of its issue, without blocks */
    gint32 instr;
    gint32 target;    /* work, event, or number of the device-clock change */
    gint32 block;     /* blocks at or before it */
    gint32 launch;    /* LAUNCH: its number */
    gint32 step_last; /* the step whose last item on this stream it is, or ZP_TAPE_NONE */
    guint8 op;
} ZpPlayerItem;

/* A place where the host may block. */
typedef struct {
    ZpTime cost_ps; /* host time when it does, without earlier blocks */
    gint32 awaited; /* event, or launch number */
    gint32 is_launch;
} ZpPlayerBlock;

/* A change of memory: who decides its time. */
typedef struct {
    ZpTime cost_ps; /* host clock: as for items */
    gint32 instr;
    gint32 block;
    gint32 device; /* number of the device-clock change, or ZP_TAPE_NONE: host clock */
} ZpPlayerChange;

#define ZP_PLAYER_MAX_SOURCES (1 + ZP_TAPE_MAX_STREAMS)

typedef struct {
    const ZpTape *tape;
    ZpPlayerItem *items;                   /* stream after stream */
    gint32 begin[ZP_TAPE_MAX_STREAMS + 1]; /* of each stream in items */
    ZpPlayerBlock *blocks;
    /* Of the host, then of stream after stream; in each in tape order, which is order of time. */
    ZpPlayerChange *changes;
    gint32 source_begin[ZP_PLAYER_MAX_SOURCES + 1];
    ZpPlayerChange *host_steps; /* n_steps: the end of each step's last instruction on the host */
    gint32 n_items, n_blocks, n_launches, n_changes, n_device_changes;
    ZpTime host_cost_ps; /* of the whole tape */
    gboolean contends;   /* works may share a link or interfere */
} ZpPlayerProgram;

/* A running work, of a rank or of a group. */
typedef struct {
    ZpTime end;       /* at the present rate */
    ZpTime queued;    /* time of its entry in the queue, ZP_TIME_MAX: none */
    ZpTime updated;   /* since when `remaining` is what it is; start + fixed at first */
    gint64 remaining; /* picoseconds of work alone on the link */
    guint16 rate;     /* a rate code, see player_share.c */
    guint8 state;     /* ZpPlayerState */
    guint8 category;
    gint8 link;
} ZpPlayerWork;

typedef enum {
    ZP_PLAYER_IDLE,    /* nothing launched; the masks of the rank say what it waits for */
    ZP_PLAYER_QUEUED,  /* starts at `queued` */
    ZP_PLAYER_ARRIVED, /* waits for the rest of its group */
    ZP_PLAYER_RUNNING,
} ZpPlayerState;

#define ZP_PLAYER_NO_RATE 0xffff

typedef struct {
    ZpPlayerWork work;
    ZpTime clock;   /* when the items before `next` were done; start of a running work */
    gint32 next;    /* index into items */
    gint32 awaited; /* event, while blocked in WAIT */
    gint32 slot;    /* of a collective, or ZP_TAPE_NONE */
} ZpPlayerStream;

typedef struct {
    ZpTime accounted_ps; /* busy and exposed are right up to here */
    ZpTime busy[ZP_TAPE_N_CATEGORIES], exposed, blocked;
    gint32 block;                              /* the next block of the host */
    gint32 awaited_event, awaited_launch;      /* by the host, or ZP_TAPE_NONE */
    guint16 ready, unissued, in_wait, running; /* streams, as bits */
    guint8 n_running[ZP_TAPE_N_CATEGORIES];
    guint8 n_on_link[ZP_TAPE_MAX_LINKS];
    guint8 host_ready;
    guint8 is_dirty; /* in the list of ranks whose rates must be looked at */
} ZpPlayerRank;

/* A collective of one group on one stream.  All members launch the same works of the group on a
 * stream in the same order, so that one is in flight at most. */
typedef struct {
    ZpPlayerWork work;
    ZpTime start;
    gint32 n_arrived;
    gint32 item;
    gint32 first;  /* member */
    guint16 least; /* rate code */
    guint8 group, stream;
    guint8 is_dirty;
} ZpPlayerSlot;

typedef struct {
    ZpTime start, end;
    gint32 instr, rank;
} ZpPlayerSpan;

typedef struct {
    ZpTime from, to;
} ZpPlayerInterval;

/* An array that only grows. */
typedef struct {
    gpointer data;
    gsize bytes;
} ZpPlayerArena;

typedef enum {
    ZP_PLAYER_ITEMS,
    ZP_PLAYER_BLOCKS,
    ZP_PLAYER_CHANGES,
    ZP_PLAYER_HOST_STEPS,
    ZP_PLAYER_STREAMS,
    ZP_PLAYER_RANKS,
    ZP_PLAYER_TIMES,
    ZP_PLAYER_SLOTS,
    ZP_PLAYER_COUNTS,
    ZP_PLAYER_DIRTY_RANKS,
    ZP_PLAYER_DIRTY_SLOTS,
    ZP_PLAYER_CLASSES,
    ZP_PLAYER_N_ARENAS,
} ZpPlayerArenaId;

struct _ZpPlayScratch {
    ZpPlayerArena arenas[ZP_PLAYER_N_ARENAS];
    ZpQueue queue;
    GArray *spans;     /* ZpPlayerSpan */
    GArray *intervals; /* ZpPlayerInterval: rank 0 exposed */
    GArray *observed;  /* ZpObserverChange */
};

/* Room for n elements, never NULL; the content is undefined. */
gpointer zp_play_scratch_get(ZpPlayScratch *scratch, ZpPlayerArenaId id, gsize n, gsize size);

typedef struct {
    ZpPlayerProgram program;
    const ZpTape *tape;
    const ZpPlayConfig *config;
    ZpPlayScratch *scratch;
    ZpPlayResult *result;
    ZpPlayerRank *ranks;
    ZpPlayerStream *streams; /* n_streams of rank 0, then of rank 1 ... */
    /* Per rank `stride` times: events, launches, shifts after n blocks, device-clock changes;
     * -1 where not known yet. */
    gint64 *times;
    gsize stride;
    gint32 launches_at, shifts_at, changes_at;
    ZpPlayerSlot *slots;
    guint32 *slot_counts; /* contention: per slot the number of members at each rate */
    gint32 slot_base[ZP_TAPE_MAX_GROUPS][ZP_TAPE_MAX_STREAMS]; /* or ZP_TAPE_NONE */
    gint64 n_slots;
    gint32 first_slot_payload;
    gint32 *dirty_ranks, *dirty_slots;
    gint32 n_dirty_ranks, n_dirty_slots;
    ZpTime now;
    gboolean overflow;
} ZpPlayer;

/* player_program.c: the tape as items, blocks and changes.  FALSE when the host's own costs pass
 * ZP_PLAY_MAX_TIME. */
gboolean zp_player_build(ZpPlayerProgram *program, const ZpTape *tape, const ZpPlayConfig *config,
                         ZpPlayScratch *scratch);

/* player_run.c: from the first instant to the last; sets cancelled, overflow and n_events. */
void zp_player_run(ZpPlayer *player);

/* player_share.c: the time that a work takes alone on its link, see scaled() in play.h. */
ZpTime zp_player_scaled_ps(const ZpPlayer *player, gint32 r, const ZpPlayerItem *item,
                           const ZpTapeWork *work);

/* player_share.c: rates.  Marks a rank whose set of running works changed; a flush at the end of
 * an instant gives new works their first rate, re-rates what changed, and queues the ends. */
#define ZP_PLAYER_RATES_PER_STREAM 16 /* a slot counts members by (sharers, categories) */
static inline void
zp_player_mark(ZpPlayer *player, gint32 r)
{
    if (!player->ranks[r].is_dirty) {
        player->ranks[r].is_dirty = TRUE;
        player->dirty_ranks[player->n_dirty_ranks++] = r;
    }
}
void zp_player_flush(ZpPlayer *player);

/* player_memory.c: memory and observers, from the times that the play found. */
gboolean zp_player_count_memory(ZpPlayer *player, GError **error);
void zp_player_observe(ZpPlayer *player);

static inline gboolean
zp_player_observes(const ZpPlayer *player, gint32 r)
{
    const ZpObserver *observer = player->config->observer;
    return observer && (observer->rank == ZP_TAPE_NONE || observer->rank == r);
}

static inline gint64 *
zp_player_times(const ZpPlayer *player, gint32 r)
{
    return player->times + (gsize)r * player->stride;
}

/* Host time of something of the program for a rank that has passed its blocks. */
static inline ZpTime
zp_player_host_time(const ZpPlayer *player, gint32 r, ZpTime cost_ps, gint32 block)
{
    return cost_ps + zp_player_times(player, r)[player->shifts_at + block];
}
