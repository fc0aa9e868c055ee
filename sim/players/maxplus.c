/* One sweep over the tape.  Every dependence points back in the tape, so one pass in tape order
 * knows all it needs; all ranks take an instruction together, a vector each of host, stream and
 * event times. */
#include "sim/players/maxplus.h"

#include "sim/events/rng.h"

#include <string.h>

typedef struct {
    const ZpTape *tape;
    const ZpPlayConfig *config;
    ZpPlayResult *result;
    gsize n;           /* ranks */
    ZpTime *host;      /* n: what the host has done so far */
    ZpTime *streams;   /* n_streams x n: what each stream has done so far */
    ZpTime *events;    /* n_events x n */
    ZpTime *launches;  /* run_ahead x n: ends of the last launches, a ring; or NULL */
    ZpTime *durations; /* n: of the present work */
    ZpTime *blocked;   /* n */
    gint64 n_launched;
    gboolean overflow;
} Sweep;

/* Bounds every sum: all times stay within 2^62, and so do the addends. */
static inline ZpTime
bounded(Sweep *sweep, ZpTime time)
{
    sweep->overflow |= time > ZP_PLAY_MAX_TIME;
    return MIN(time, ZP_PLAY_MAX_TIME);
}

static void
advance_host(Sweep *sweep, ZpTime cost_ps)
{
    ZpTime latest = 0;
    cost_ps = bounded(sweep, cost_ps);
    for (gsize r = 0; r < sweep->n; r++) {
        sweep->host[r] += cost_ps;
        latest = MAX(latest, sweep->host[r]);
    }
    if (latest > ZP_PLAY_MAX_TIME)
        for (gsize r = 0; r < sweep->n; r++)
            sweep->host[r] = bounded(sweep, sweep->host[r]);
}

static void
block_host(Sweep *sweep, const ZpTime *until)
{
    for (gsize r = 0; r < sweep->n; r++) {
        ZpTime late = MAX(until[r] - sweep->host[r], 0);
        sweep->blocked[r] += late;
        sweep->host[r] += late;
    }
}

/* Items start when the host has issued them. */
static void
join_host(const Sweep *sweep, ZpTime *stream)
{
    for (gsize r = 0; r < sweep->n; r++)
        stream[r] = MAX(stream[r], sweep->host[r]);
}

static void
join(const Sweep *sweep, ZpTime *stream, const ZpTime *event)
{
    for (gsize r = 0; r < sweep->n; r++)
        stream[r] = MAX(stream[r], event[r]);
}

/* The product of up to 63 + 31 + 54 bits does not fit one machine type: multiply the time by the
 * factor in two halves of nine decimal digits. */
static ZpTime
jittered(ZpTime solo_ps, gint64 speed_ppm, gint64 factor_1e12)
{
    if (factor_1e12 <= 0 || speed_ppm <= 0)
        return 0;
    __extension__ typedef unsigned __int128 Wide;
    const guint64 giga = 1000000000;
    Wide a = (Wide)(guint64)solo_ps * (guint64)speed_ppm; /* x 10^6 */
    Wide a_high = a / giga, a_low = a % giga;
    guint64 f = (guint64)factor_1e12;
    if (a_high > 0 && a_high > ((Wide)ZP_PLAY_MAX_TIME * giga + giga) / f + 1)
        return ZP_TIME_MAX;
    Wide low = a_low * f;
    Wide sum = a_high * f + low / giga; /* a * f / 10^9, rounded down */
    Wide time = sum / giga;
    return time > (Wide)ZP_PLAY_MAX_TIME ? ZP_TIME_MAX : (ZpTime)time;
}

static void
fill_durations(Sweep *sweep, gint32 i, const ZpTapeWork *work)
{
    const ZpPlayConfig *config = sweep->config;
    gboolean scales = work->group == ZP_TAPE_NONE &&
                      (work->category == ZP_TAPE_COMPUTE || work->category == ZP_TAPE_HOST_COMPUTE);
    ZpTime fixed = bounded(sweep, work->fixed_ps);
    if (!scales || (config->speed_ppm == NULL && config->jitter_ppm == 0)) {
        ZpTime all = bounded(sweep, fixed + bounded(sweep, work->solo_ps));
        for (gsize r = 0; r < sweep->n; r++)
            sweep->durations[r] = all;
        return;
    }
    for (gsize r = 0; r < sweep->n; r++) {
        gint64 factor = 1000000000000;
        if (config->jitter_ppm > 0)
            factor += zp_rng_gaussian_ppm(config->seed, (gint32)r, i) * config->jitter_ppm;
        gint64 speed = config->speed_ppm ? config->speed_ppm[r] : 1000000;
        ZpTime scaled = bounded(sweep, jittered(work->solo_ps, speed, factor));
        sweep->durations[r] = bounded(sweep, fixed + scaled);
    }
}

/* All members of a group start when the last is ready. */
static void
meet(const Sweep *sweep, const ZpTapeGroup *group, ZpTime *stream)
{
    gsize size = (gsize)group->size, stride = (gsize)group->stride;
    for (gsize base = 0; base < sweep->n; base += size * stride)
        for (gsize first = base; first < base + stride; first++) {
            ZpTime latest = 0;
            for (gsize k = 0; k < size; k++)
                latest = MAX(latest, stream[first + k * stride]);
            for (gsize k = 0; k < size; k++)
                stream[first + k * stride] = latest;
        }
}

static void
launch(Sweep *sweep, gint32 i, ZpTime *stream)
{
    const ZpTapeWork *work = &sweep->tape->works[sweep->tape->instrs[i].a];
    gint64 run_ahead = sweep->config->run_ahead;
    ZpTime *end = NULL; /* where the end of this launch is kept */
    if (run_ahead > 0) {
        end = sweep->launches + (gsize)(sweep->n_launched % run_ahead) * sweep->n;
        if (sweep->n_launched >= run_ahead)
            block_host(sweep, end);
    }
    sweep->n_launched++;
    advance_host(sweep, sweep->config->launch_overhead_ps);
    join_host(sweep, stream);
    if (work->group != ZP_TAPE_NONE && sweep->n > 1)
        meet(sweep, &sweep->tape->groups[work->group], stream);
    fill_durations(sweep, i, work);
    if (sweep->result->op_start)
        sweep->result->op_start[i] = stream[0];
    ZpTime latest = 0;
    for (gsize r = 0; r < sweep->n; r++) {
        stream[r] += sweep->durations[r];
        latest = MAX(latest, stream[r]);
    }
    if (latest > ZP_PLAY_MAX_TIME)
        for (gsize r = 0; r < sweep->n; r++)
            stream[r] = bounded(sweep, stream[r]);
    if (sweep->result->op_end)
        sweep->result->op_end[i] = stream[0];
    if (end)
        memcpy(end, stream, sweep->n * sizeof *end);
}

static void
step(Sweep *sweep, gint32 i)
{
    const ZpTapeInstr *instr = &sweep->tape->instrs[i];
    ZpTime *stream = sweep->streams + (gsize)instr->stream * sweep->n;
    if (instr->op == ZP_TAPE_LAUNCH) {
        launch(sweep, i, stream);
        return;
    }
    advance_host(sweep, sweep->config->instr_overhead_ps);
    switch ((ZpTapeOp)instr->op) {
    case ZP_TAPE_ALLOC:
    case ZP_TAPE_FREE:
    case ZP_TAPE_RETAG:
        if (instr->clock == ZP_TAPE_CLOCK_DEVICE)
            join_host(sweep, stream);
        break;
    case ZP_TAPE_RECORD:
        join_host(sweep, stream);
        memcpy(sweep->events + (gsize)instr->a * sweep->n, stream, sweep->n * sizeof *stream);
        break;
    case ZP_TAPE_WAIT:
        join_host(sweep, stream);
        join(sweep, stream, sweep->events + (gsize)instr->a * sweep->n);
        break;
    case ZP_TAPE_SYNC:
        block_host(sweep, sweep->events + (gsize)instr->a * sweep->n);
        break;
    case ZP_TAPE_USE:
    case ZP_TAPE_LAUNCH:
        break;
    }
}

/* The latest end so far. */
static ZpTime
latest_of(const Sweep *sweep)
{
    ZpTime latest = 0;
    for (gsize r = 0; r < sweep->n; r++)
        latest = MAX(latest, sweep->host[r]);
    for (gsize k = 0; k < (gsize)sweep->tape->n_streams * sweep->n; k++)
        latest = MAX(latest, sweep->streams[k]);
    return latest;
}

static void
finish(Sweep *sweep)
{
    ZpPlayResult *result = sweep->result;
    for (gsize r = 0; r < sweep->n; r++) {
        ZpPlayRank *rank = &result->ranks[r];
        rank->end = sweep->host[r];
        for (int s = 0; s < sweep->tape->n_streams; s++)
            rank->end = MAX(rank->end, sweep->streams[(gsize)s * sweep->n + r]);
        rank->host_blocked = sweep->blocked[r];
    }
    result->end = latest_of(sweep);
    result->n_events = (gint64)sweep->tape->n_instrs * (gint64)sweep->n;
}

static void
sweep_tape(Sweep *sweep)
{
    const ZpTape *tape = sweep->tape;
    const volatile gint *cancelled = sweep->config->cancelled;
    gint32 k = 0;
    for (gint32 i = 0; i < tape->n_instrs && !sweep->overflow; i++) {
        while (k + 1 < tape->n_steps && tape->step_begin[k + 1] == i)
            sweep->result->step_end[k++] = latest_of(sweep);
        if (cancelled && i % 64 == 0 && g_atomic_int_get(cancelled)) {
            sweep->result->cancelled = TRUE;
            return;
        }
        step(sweep, i);
    }
    while (k < tape->n_steps)
        sweep->result->step_end[k++] = latest_of(sweep);
}

/* The vectors come in one piece: host, blocked, durations, streams, events, launches. */
static gboolean
check_size(const ZpPlayConfig *config, gint64 n_vectors, GError **error)
{
    gint64 need = n_vectors * config->n_ranks;
    if (need <= ZP_PLAY_MAX_SCRATCH_BYTES / (gint64)sizeof(ZpTime))
        return TRUE;
    g_set_error(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_MEMORY,
                "%d ranks of this tape need %" G_GINT64_FORMAT
                " times; the limit is %" G_GINT64_FORMAT " bytes",
                config->n_ranks, need, ZP_PLAY_MAX_SCRATCH_BYTES);
    return FALSE;
}

gboolean
zp_maxplus_play(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayResult *result,
                GError **error)
{
    if (!zp_play_check_config(tape, config, error))
        return FALSE;
    /* A ring longer than the tape is never full. */
    ZpPlayConfig bounded_config = *config;
    if (config->run_ahead > tape->n_instrs)
        bounded_config.run_ahead = 0;
    gint64 n_vectors = 3 + (gint64)tape->n_streams + tape->n_events + bounded_config.run_ahead;
    if (!check_size(config, n_vectors, error))
        return FALSE;
    gsize n = (gsize)config->n_ranks;
    g_autofree ZpTime *vectors = g_new0(ZpTime, (gsize)n_vectors * n);
    Sweep sweep = {
        .tape = tape,
        .config = &bounded_config,
        .result = result,
        .n = n,
        .host = vectors,
        .blocked = vectors + n,
        .durations = vectors + 2 * n,
        .streams = vectors + 3 * n,
        .events = vectors + (gsize)(3 + tape->n_streams) * n,
        .launches = vectors + (gsize)(3 + tape->n_streams + tape->n_events) * n,
    };
    zp_play_result_prepare(result, tape, config->n_ranks, config->keep_times);
    sweep_tape(&sweep);
    if (sweep.overflow) {
        g_set_error_literal(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_OVERFLOW,
                            "simulated time passes 2^62 picoseconds (53 days)");
        return FALSE;
    }
    if (!result->cancelled)
        finish(&sweep);
    return TRUE;
}
