/* The event player: hosts, streams and rendezvous in order of time.
 *
 * Only works are events: zero-length items take their times as soon as all they depend on is
 * known, even ahead of the present, and the host runs as far as nothing blocks it. */
#include "sim/players/player_occupy_internal.h"

/* A work that occupies links starts now: its end is queued, or found by the next flush. */
static void
start_clock(ZpPlayer *player, ZpPlayerWork *work, ZpTime fixed_ps, guint32 payload)
{
    work->updated = zp_time_add(player->now, fixed_ps);
    work->queued = ZP_TIME_MAX;
    work->end = zp_time_add(work->updated, work->remaining);
    if (!player->program.contends)
        zp_player_push(player, work, work->end, payload);
}

static void
start_local(ZpPlayer *player, gint32 r, gint32 s)
{
    gint32 index = r * player->tape->n_streams + s;
    ZpPlayerStream *stream = &player->streams[index];
    zp_player_occupy(player, r, s);
    gint32 work = player->program.items[stream->next].target;
    start_clock(player, &stream->work, player->tape->works[work].fixed_ps, (guint32)index);
}

static inline gint32
member_of(const ZpPlayer *player, const ZpPlayerSlot *slot, gint32 k)
{
    return slot->first + k * player->tape->groups[slot->group].stride;
}

static void
start_slot(ZpPlayer *player, gint32 index)
{
    ZpPlayerSlot *slot = &player->slots[index];
    const ZpTapeWork *work = &player->tape->works[player->program.items[slot->item].target];
    guint32 payload = (guint32)(player->first_slot_payload + index);
    slot->work = (ZpPlayerWork){
        .remaining = work->solo_ps,
        .rate = ZP_PLAYER_NO_RATE,
        .state = ZP_PLAYER_RUNNING,
        .category = work->category,
        .link = work->link,
    };
    slot->least = ZP_PLAYER_NO_RATE;
    if (work->fixed_ps == 0 && work->solo_ps == 0) {
        slot->work.end = player->now;
        zp_player_push(player, &slot->work, player->now, payload);
        return;
    }
    for (gint32 k = 0; k < player->tape->groups[slot->group].size; k++)
        zp_player_occupy(player, member_of(player, slot, k), slot->stream);
    start_clock(player, &slot->work, work->fixed_ps, payload);
}

/* The stream is ready for its collective at `time`, perhaps ahead of the present. */
static void
arrive(ZpPlayer *player, gint32 r, gint32 s, const ZpTapeWork *work, ZpTime time)
{
    ZpPlayerStream *stream = &player->streams[r * player->tape->n_streams + s];
    const ZpTapeGroup *group = &player->tape->groups[work->group];
    gint32 span = group->size * group->stride;
    gint32 index = player->slot_base[work->group][s] + r / span * group->stride + r % group->stride;
    ZpPlayerSlot *slot = &player->slots[index];
    stream->work.state = ZP_PLAYER_ARRIVED;
    stream->work.category = work->category;
    stream->work.link = work->link;
    stream->work.queued = ZP_TIME_MAX; /* entries of earlier works are stale */
    stream->slot = index;
    slot->item = stream->next;
    slot->start = MAX(slot->start, time);
    if (++slot->n_arrived < group->size)
        return;
    if (slot->start <= player->now) {
        start_slot(player, index);
        return;
    }
    slot->work.state = ZP_PLAYER_QUEUED;
    zp_player_push(player, &slot->work, slot->start, (guint32)(player->first_slot_payload + index));
}

/* A work or another item of a stream is done at `end`. */
static inline void
note_item(ZpPlayer *player, const ZpPlayerItem *item, ZpTime end)
{
    if (item->step_last != ZP_TAPE_NONE) {
        ZpTime *step_end = &player->result->step_end[item->step_last];
        *step_end = MAX(*step_end, end);
    }
}

static void
note_work(ZpPlayer *player, gint32 r, const ZpPlayerItem *item, ZpTime start, ZpTime end)
{
    ZpPlayerRank *rank = &player->ranks[r];
    note_item(player, item, end);
    if (player->config->run_ahead > 0) {
        zp_player_times(player, r)[player->launches_at + item->launch] = end;
        if (rank->awaited_launch == item->launch)
            rank->host_ready = TRUE;
    }
    if (r == 0 && player->result->op_start) {
        player->result->op_start[item->instr] = start;
        player->result->op_end[item->instr] = end;
    }
    if (zp_player_observes(player, r) && player->config->observer->span) {
        ZpPlayerSpan span = {.start = start, .end = end, .instr = item->instr, .rank = r};
        g_array_append_val(player->scratch->spans, span);
    }
}

/* TRUE when the work takes no time and is done already. */
static gboolean
launch(ZpPlayer *player, gint32 r, gint32 s, const ZpPlayerItem *item, ZpTime time)
{
    gint32 index = r * player->tape->n_streams + s;
    ZpPlayerStream *stream = &player->streams[index];
    const ZpTapeWork *work = &player->tape->works[item->target];
    if (work->group != ZP_TAPE_NONE && player->config->n_ranks > 1) {
        arrive(player, r, s, work, time);
        return FALSE;
    }
    ZpTime scaled = zp_player_scaled_ps(player, r, item, work);
    if (work->fixed_ps == 0 && scaled == 0) {
        note_work(player, r, item, time, time);
        return TRUE;
    }
    stream->slot = ZP_TAPE_NONE;
    stream->work.remaining = scaled;
    stream->work.category = work->category;
    stream->work.link = work->link;
    if (time <= player->now) {
        start_local(player, r, s);
        return FALSE;
    }
    stream->work.state = ZP_PLAYER_QUEUED;
    zp_player_push(player, &stream->work, time, (guint32)index);
    return FALSE;
}

static void
record(ZpPlayer *player, gint32 r, gint32 event, ZpTime time)
{
    ZpPlayerRank *rank = &player->ranks[r];
    zp_player_times(player, r)[event] = time;
    if (rank->awaited_event == event)
        rank->host_ready = TRUE;
    const ZpPlayerStream *streams = &player->streams[(gsize)r * (gsize)player->tape->n_streams];
    for (guint bits = rank->in_wait; bits != 0; bits &= bits - 1) {
        int s = __builtin_ctz(bits);
        if (streams[s].awaited == event)
            rank->ready = (guint16)(rank->ready | 1u << s);
    }
}

/* Takes the stream as far as it comes. */
static void
run_stream(ZpPlayer *player, gint32 r, gint32 s)
{
    ZpPlayerRank *rank = &player->ranks[r];
    ZpPlayerStream *stream = &player->streams[r * player->tape->n_streams + s];
    gint64 *times = zp_player_times(player, r);
    guint16 bit = (guint16)(1u << s);
    gint32 end = player->program.begin[s + 1];
    rank->in_wait = (guint16)(rank->in_wait & ~bit);
    for (; stream->next < end; stream->next++) {
        const ZpPlayerItem *item = &player->program.items[stream->next];
        if (item->block > rank->block) {
            rank->unissued |= bit;
            return;
        }
        ZpTime issued = item->cost_ps + times[player->shifts_at + item->block];
        ZpTime time = MAX(stream->clock, issued);
        switch ((ZpTapeOp)item->op) {
        case ZP_TAPE_RECORD:
            record(player, r, item->target, time);
            break;
        case ZP_TAPE_WAIT:
            if (times[item->target] < 0) {
                stream->awaited = item->target;
                rank->in_wait |= bit;
                return;
            }
            time = MAX(time, times[item->target]);
            break;
        case ZP_TAPE_LAUNCH:
            if (!launch(player, r, s, item, time))
                return;
            break;
        case ZP_TAPE_ALLOC:
        case ZP_TAPE_FREE:
        case ZP_TAPE_RETAG:
            times[player->changes_at + item->target] = time;
            break;
        case ZP_TAPE_USE:
        case ZP_TAPE_SYNC:
            g_assert_not_reached();
        }
        if (item->op != ZP_TAPE_LAUNCH)
            note_item(player, item, time);
        stream->clock = time;
    }
}

/* Takes the host through its blocks as far as what it waits for is known. */
static void
run_host(ZpPlayer *player, gint32 r)
{
    ZpPlayerRank *rank = &player->ranks[r];
    gint64 *times = zp_player_times(player, r);
    gint64 *shifts = times + player->shifts_at;
    rank->awaited_event = rank->awaited_launch = ZP_TAPE_NONE;
    for (; rank->block < player->program.n_blocks; rank->block++) {
        const ZpPlayerBlock *block = &player->program.blocks[rank->block];
        ZpTime known =
            times[block->is_launch ? player->launches_at + block->awaited : block->awaited];
        if (known < 0) {
            *(block->is_launch ? &rank->awaited_launch : &rank->awaited_event) = block->awaited;
            break;
        }
        ZpTime late = known - (block->cost_ps + shifts[rank->block]);
        late = MAX(late, 0);
        rank->blocked += late;
        shifts[rank->block + 1] = shifts[rank->block] + late;
        if (shifts[rank->block + 1] > ZP_PLAY_MAX_TIME)
            player->overflow = TRUE;
    }
    rank->ready |= rank->unissued;
    rank->unissued = 0;
}

/* Lets host and streams of the rank go on until all of them wait. */
static void
settle(ZpPlayer *player, gint32 r)
{
    ZpPlayerRank *rank = &player->ranks[r];
    while ((rank->ready || rank->host_ready) && !player->overflow) {
        if (rank->host_ready) {
            rank->host_ready = FALSE;
            run_host(player, r);
            continue;
        }
        gint32 s = __builtin_ctz(rank->ready);
        rank->ready = (guint16)(rank->ready & (rank->ready - 1u));
        run_stream(player, r, s);
    }
}

/* The work that the stream is at ended now. */
static void
finish(ZpPlayer *player, gint32 r, gint32 s)
{
    ZpPlayerStream *stream = &player->streams[r * player->tape->n_streams + s];
    note_work(player, r, &player->program.items[stream->next], stream->clock, player->now);
    stream->work.state = ZP_PLAYER_IDLE;
    stream->clock = player->now;
    stream->next++;
    player->ranks[r].ready = (guint16)(player->ranks[r].ready | 1u << s);
}

static void
finish_slot(ZpPlayer *player, gint32 index)
{
    ZpPlayerSlot *slot = &player->slots[index];
    gint32 n_streams = player->tape->n_streams;
    gint32 size = player->tape->groups[slot->group].size;
    slot->work.state = ZP_PLAYER_IDLE;
    slot->start = 0;
    slot->n_arrived = 0;
    if (player->program.contends) {
        gsize n_codes = (gsize)n_streams * ZP_PLAYER_RATES_PER_STREAM;
        memset(player->slot_counts + (gsize)index * n_codes, 0, n_codes * sizeof(guint32));
    }
    for (gint32 k = 0; k < size; k++) {
        gint32 r = member_of(player, slot, k);
        ZpPlayerStream *stream = &player->streams[r * n_streams + slot->stream];
        if (stream->work.state == ZP_PLAYER_RUNNING)
            zp_player_vacate(player, r, slot->stream);
        else
            stream->clock = player->now; /* took no time: it never occupied anything */
        finish(player, r, slot->stream);
        settle(player, r);
    }
}

/* An entry of the queue is stale unless its work still says `now`; works that were slowed since
 * go back into the queue. */
static void
handle(ZpPlayer *player, guint32 payload)
{
    gboolean is_slot = payload >= (guint32)player->first_slot_payload;
    gint32 index = (gint32)payload - (is_slot ? player->first_slot_payload : 0);
    ZpPlayerWork *work = is_slot ? &player->slots[index].work : &player->streams[index].work;
    if (work->queued != player->now)
        return;
    gint32 r = index / player->tape->n_streams, s = index % player->tape->n_streams;
    if (work->state == ZP_PLAYER_QUEUED) {
        if (is_slot)
            start_slot(player, index);
        else
            start_local(player, r, s);
    } else if (work->state == ZP_PLAYER_RUNNING) {
        if (work->end > player->now) {
            zp_player_push(player, work, work->end, payload);
        } else if (is_slot) {
            finish_slot(player, index);
        } else {
            zp_player_vacate(player, r, s);
            finish(player, r, s);
            settle(player, r);
        }
    }
}

#define CANCEL_INTERVAL 4096 /* events between two looks */

void
zp_player_run(ZpPlayer *player)
{
    ZpQueue *queue = &player->scratch->queue;
    const volatile gint *cancelled = player->config->cancelled;
    ZpPlayResult *result = player->result;
    guint32 payload;
    for (gint32 r = 0; r < player->config->n_ranks && !player->overflow; r++) {
        if (cancelled && r % CANCEL_INTERVAL == 0 && g_atomic_int_get(cancelled)) {
            result->cancelled = TRUE;
            return;
        }
        player->ranks[r].host_ready = TRUE;
        settle(player, r);
    }
    while (!player->overflow) {
        if (player->n_dirty_ranks > 0 && zp_queue_next_time(queue) > player->now)
            zp_player_flush(player);
        if (!zp_queue_pop(queue, &player->now, &payload))
            break;
        if (cancelled && result->n_events % CANCEL_INTERVAL == 0 && g_atomic_int_get(cancelled)) {
            result->cancelled = TRUE;
            break;
        }
        result->n_events++;
        handle(player, payload);
    }
}
