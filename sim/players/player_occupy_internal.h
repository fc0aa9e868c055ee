/* Who is at work on a rank: streams that begin and end a work, and the rank's busy and exposed
 * times up to that instant.  Inline: these are the inner loop of player_run.c. */
#pragma once

#include "sim/players/player_state_internal.h"

/* Brings busy and exposed times of the rank up to now. */
static inline void
zp_player_account(ZpPlayer *player, gint32 r)
{
    ZpPlayerRank *rank = &player->ranks[r];
    ZpTime passed = player->now - rank->accounted_ps;
    if (passed == 0)
        return;
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
        rank->busy[c] += rank->n_running[c] > 0 ? passed : 0;
    gboolean moves =
        rank->n_running[ZP_TAPE_COMMUNICATION] > 0 || rank->n_running[ZP_TAPE_COPY] > 0;
    if (moves && rank->n_running[ZP_TAPE_COMPUTE] == 0) {
        rank->exposed += passed;
        if (r == 0) {
            ZpPlayerInterval interval = {rank->accounted_ps, player->now};
            g_array_append_val(player->scratch->intervals, interval);
        }
    }
    rank->accounted_ps = player->now;
}

static inline void
zp_player_push(ZpPlayer *player, ZpPlayerWork *work, ZpTime time, guint32 payload)
{
    if (time > ZP_PLAY_MAX_TIME) {
        player->overflow = TRUE;
        return;
    }
    work->queued = time;
    zp_queue_push(&player->scratch->queue, time, payload);
}

/* The stream's work, whose figures are set, starts now on the rank. */
static inline void
zp_player_occupy(ZpPlayer *player, gint32 r, gint32 s)
{
    ZpPlayerRank *rank = &player->ranks[r];
    ZpPlayerStream *stream = &player->streams[r * player->tape->n_streams + s];
    zp_player_account(player, r);
    stream->work.state = ZP_PLAYER_RUNNING;
    stream->work.rate = ZP_PLAYER_NO_RATE;
    stream->clock = player->now;
    rank->running = (guint16)(rank->running | 1u << s);
    rank->n_running[stream->work.category]++;
    if (stream->work.link != ZP_TAPE_NONE)
        rank->n_on_link[stream->work.link]++;
    if (player->program.contends)
        zp_player_mark(player, r);
}

static inline void
zp_player_vacate(ZpPlayer *player, gint32 r, gint32 s)
{
    ZpPlayerRank *rank = &player->ranks[r];
    ZpPlayerStream *stream = &player->streams[r * player->tape->n_streams + s];
    zp_player_account(player, r);
    rank->running = (guint16)(rank->running & ~(1u << s));
    rank->n_running[stream->work.category]--;
    if (stream->work.link != ZP_TAPE_NONE)
        rank->n_on_link[stream->work.link]--;
    if (player->program.contends)
        zp_player_mark(player, r);
}
