/* Before and after the event player runs: checks, memory, results. */
#include "sim/players/player.h"

#include "sim/players/player_state_internal.h"

/* One slot for each group of ranks on each stream where the tape launches works of the group. */
static void
place_slots(ZpPlayer *player)
{
    const ZpTape *tape = player->tape;
    gboolean used[ZP_TAPE_MAX_GROUPS][ZP_TAPE_MAX_STREAMS] = {0};
    for (int s = 0; s < tape->n_streams && player->config->n_ranks > 1; s++)
        for (gint32 k = player->program.begin[s]; k < player->program.begin[s + 1]; k++) {
            const ZpPlayerItem *item = &player->program.items[k];
            if (item->op == ZP_TAPE_LAUNCH && tape->works[item->target].group != ZP_TAPE_NONE)
                used[tape->works[item->target].group][s] = TRUE;
        }
    for (int g = 0; g < tape->n_groups; g++)
        for (int s = 0; s < tape->n_streams; s++) {
            player->slot_base[g][s] = used[g][s] ? (gint32)player->n_slots : ZP_TAPE_NONE;
            if (used[g][s])
                player->n_slots += player->config->n_ranks / tape->groups[g].size;
        }
}

static gboolean
check_size(const ZpPlayer *player, GError **error)
{
    const ZpTape *tape = player->tape;
    gint64 n_ranks = player->config->n_ranks;
    gint64 per_rank = (gint64)player->stride * (gint64)sizeof(gint64) +
                      (gint64)sizeof(ZpPlayerRank) + (gint64)sizeof(ZpPlayRank) +
                      tape->n_streams * (gint64)sizeof(ZpPlayerStream);
    gint64 per_slot = (gint64)sizeof(ZpPlayerSlot);
    if (player->program.contends)
        per_slot += (gint64)tape->n_streams * ZP_PLAYER_RATES_PER_STREAM * (gint64)sizeof(guint32);
    gint64 need = n_ranks * per_rank + player->n_slots * per_slot;
    if (need <= ZP_PLAY_MAX_SCRATCH_BYTES &&
        n_ranks * MAX(tape->n_streams, 1) + player->n_slots < G_MAXINT32)
        return TRUE;
    g_set_error(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_MEMORY,
                "%" G_GINT64_FORMAT " ranks of this tape need %" G_GINT64_FORMAT
                " bytes; the limit is %" G_GINT64_FORMAT,
                n_ranks, need, ZP_PLAY_MAX_SCRATCH_BYTES);
    return FALSE;
}

static void
lay_out(ZpPlayer *player)
{
    gint32 n_launches = player->config->run_ahead > 0 ? player->program.n_launches : 0;
    player->launches_at = player->tape->n_events;
    player->shifts_at = player->launches_at + n_launches;
    player->changes_at = player->shifts_at + player->program.n_blocks + 1;
    player->stride = (gsize)player->changes_at + (gsize)player->program.n_device_changes;
}

static void
prepare_slots(ZpPlayer *player)
{
    const ZpTape *tape = player->tape;
    gsize n_slots = (gsize)player->n_slots;
    player->slots =
        zp_play_scratch_get(player->scratch, ZP_PLAYER_SLOTS, n_slots, sizeof *player->slots);
    for (int g = 0; g < tape->n_groups; g++)
        for (int s = 0; s < tape->n_streams; s++) {
            gint32 base = player->slot_base[g][s], stride = tape->groups[g].stride;
            if (base == ZP_TAPE_NONE)
                continue;
            for (gint32 q = 0; q < player->config->n_ranks / tape->groups[g].size; q++)
                player->slots[base + q] = (ZpPlayerSlot){
                    .work.state = ZP_PLAYER_IDLE,
                    .first = q / stride * stride * tape->groups[g].size + q % stride,
                    .least = ZP_PLAYER_NO_RATE,
                    .group = (guint8)g,
                    .stream = (guint8)s,
                };
        }
    if (!player->program.contends)
        return;
    gsize n_counts = n_slots * (gsize)tape->n_streams * ZP_PLAYER_RATES_PER_STREAM;
    player->slot_counts =
        zp_play_scratch_get(player->scratch, ZP_PLAYER_COUNTS, n_counts, sizeof(guint32));
    memset(player->slot_counts, 0, n_counts * sizeof(guint32));
    player->dirty_slots =
        zp_play_scratch_get(player->scratch, ZP_PLAYER_DIRTY_SLOTS, n_slots, sizeof(gint32));
    player->dirty_ranks = zp_play_scratch_get(player->scratch, ZP_PLAYER_DIRTY_RANKS,
                                              (gsize)player->config->n_ranks, sizeof(gint32));
}

static void
prepare_ranks(ZpPlayer *player)
{
    gsize n_ranks = (gsize)player->config->n_ranks, n_streams = (gsize)player->tape->n_streams;
    ZpPlayScratch *scratch = player->scratch;
    player->ranks = zp_play_scratch_get(scratch, ZP_PLAYER_RANKS, n_ranks, sizeof *player->ranks);
    player->streams = zp_play_scratch_get(scratch, ZP_PLAYER_STREAMS, n_ranks * n_streams,
                                          sizeof *player->streams);
    player->times =
        zp_play_scratch_get(scratch, ZP_PLAYER_TIMES, n_ranks * player->stride, sizeof(gint64));
    memset(player->times, 0xff, n_ranks * player->stride * sizeof(gint64));
    for (gsize r = 0; r < n_ranks; r++) {
        player->ranks[r] = (ZpPlayerRank){
            .awaited_event = ZP_TAPE_NONE,
            .awaited_launch = ZP_TAPE_NONE,
            .ready = (guint16)((1u << n_streams) - 1u),
        };
        player->times[r * player->stride + (gsize)player->shifts_at] = 0;
        for (gsize s = 0; s < n_streams; s++)
            player->streams[r * n_streams + s] = (ZpPlayerStream){
                .work.queued = ZP_TIME_MAX,
                .next = player->program.begin[s],
                .slot = ZP_TAPE_NONE,
            };
    }
}

static void
prepare_result(ZpPlayer *player)
{
    const ZpPlayConfig *config = player->config;
    zp_play_result_prepare(player->result, player->tape, config->n_ranks, config->keep_times);
    zp_queue_reset(&player->scratch->queue);
    g_array_set_size(player->scratch->spans, 0);
    g_array_set_size(player->scratch->intervals, 0);
    g_array_set_size(player->scratch->observed, 0);
}

/* FALSE when a stream or the host waits for something that never comes. */
static gboolean
finish_rank(ZpPlayer *player, gint32 r)
{
    const ZpPlayerRank *rank = &player->ranks[r];
    const ZpPlayerProgram *program = &player->program;
    ZpPlayRank *out = &player->result->ranks[r];
    if (rank->block < program->n_blocks)
        return FALSE;
    out->end = zp_player_host_time(player, r, program->host_cost_ps, program->n_blocks);
    for (int s = 0; s < player->tape->n_streams; s++) {
        const ZpPlayerStream *stream = &player->streams[r * player->tape->n_streams + s];
        if (stream->next < program->begin[s + 1])
            return FALSE;
        out->end = MAX(out->end, stream->clock);
    }
    memcpy(out->busy, rank->busy, sizeof out->busy);
    out->exposed = rank->exposed;
    out->host_blocked = rank->blocked;
    player->result->end = MAX(player->result->end, out->end);
    for (gint32 k = 0; k < player->tape->n_steps; k++) {
        const ZpPlayerChange *host = &program->host_steps[k];
        ZpTime time = zp_player_host_time(player, r, host->cost_ps, host->block);
        player->result->step_end[k] = MAX(player->result->step_end[k], time);
    }
    return TRUE;
}

static void
finish_steps(ZpPlayer *player)
{
    ZpPlayResult *result = player->result;
    const GArray *intervals = player->scratch->intervals;
    guint next = 0;
    ZpTime exposed = 0; /* of the intervals before next */
    for (gint32 k = 0; k < result->n_steps; k++) {
        if (k > 0)
            result->step_end[k] = MAX(result->step_end[k], result->step_end[k - 1]);
        ZpTime end = result->step_end[k];
        const ZpPlayerInterval *interval = NULL;
        for (; next < intervals->len; next++) {
            interval = &g_array_index(intervals, ZpPlayerInterval, next);
            if (interval->to > end)
                break;
            exposed += interval->to - interval->from;
        }
        gboolean cut = next < intervals->len && interval->from < end;
        result->step_exposed[k] = exposed + (cut ? end - interval->from : 0);
    }
}

static gboolean
finish(ZpPlayer *player, GError **error)
{
    for (gint32 r = 0; r < player->config->n_ranks && !player->overflow; r++)
        if (!finish_rank(player, r)) {
            g_set_error(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_DEADLOCK,
                        "rank %d waits for something that never happens", r);
            return FALSE;
        }
    if (player->overflow || player->result->end > ZP_PLAY_MAX_TIME) {
        g_set_error_literal(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_OVERFLOW,
                            "simulated time passes 2^62 picoseconds (53 days)");
        return FALSE;
    }
    finish_steps(player);
    if (!zp_player_count_memory(player, error))
        return FALSE;
    if (player->config->observer)
        zp_player_observe(player);
    return TRUE;
}

static gboolean
play(ZpPlayer *player, GError **error)
{
    if (!zp_player_build(&player->program, player->tape, player->config, player->scratch)) {
        g_set_error_literal(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_OVERFLOW,
                            "the host's own time passes 2^62 picoseconds (53 days)");
        return FALSE;
    }
    place_slots(player);
    lay_out(player);
    if (!check_size(player, error))
        return FALSE;
    player->first_slot_payload = player->config->n_ranks * player->tape->n_streams;
    prepare_slots(player);
    prepare_ranks(player);
    prepare_result(player);
    zp_player_run(player);
    return player->result->cancelled || finish(player, error);
}

gboolean
zp_player_play(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayResult *result, GError **error)
{
    if (!zp_play_check_config(tape, config, error))
        return FALSE;
    g_autoptr(ZpPlayScratch) own = config->scratch ? NULL : zp_play_scratch_new();
    ZpPlayer player = {
        .tape = tape,
        .config = config,
        .scratch = config->scratch ? config->scratch : own,
        .result = result,
    };
    return play(&player, error);
}
