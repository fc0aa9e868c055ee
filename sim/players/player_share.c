/* How long works take: their own time, and their rates under shared links and interference.
 *
 * A rate is 1/n of the link times a factor for each other category that runs on the rank.  Its
 * code says (own category, n - 1, set of the others) and the fraction is made from it on demand,
 * exactly: no rounding depends on the order in which works came and went.  Rates are looked at
 * once per instant, when everything that happens then has happened, for the same reason. */
#include "sim/events/rng.h"
#include "sim/players/player_state_internal.h"

__extension__ typedef unsigned __int128 Wide;
__extension__ typedef __int128 SignedWide;

ZpTime
zp_player_scaled_ps(const ZpPlayer *player, gint32 r, const ZpPlayerItem *item,
                    const ZpTapeWork *work)
{
    const ZpPlayConfig *config = player->config;
    gboolean scales = work->category == ZP_TAPE_COMPUTE || work->category == ZP_TAPE_HOST_COMPUTE;
    if (!scales || work->group != ZP_TAPE_NONE || (!config->speed_ppm && config->jitter_ppm == 0))
        return work->solo_ps;
    SignedWide time =
        (SignedWide)work->solo_ps * (config->speed_ppm ? config->speed_ppm[r] : 1000000);
    if (config->jitter_ppm == 0) {
        time /= 1000000;
        return time > ZP_TIME_MAX ? ZP_TIME_MAX : (ZpTime)time;
    }
    gint64 factor = G_GINT64_CONSTANT(1000000000000) +
                    zp_rng_gaussian_ppm(config->seed, r, item->instr) * config->jitter_ppm;
    if (factor <= 0)
        return 0;
    if (__builtin_mul_overflow(time, (SignedWide)factor, &time))
        return ZP_TIME_MAX;
    time /= G_GINT64_CONSTANT(1000000000000000000);
    return time > ZP_TIME_MAX ? ZP_TIME_MAX : (ZpTime)time;
}

typedef struct {
    guint64 num, den;
} Fraction;

#define CODES_PER_SHARE (1u << ZP_TAPE_N_CATEGORIES)

static Fraction
fraction_of(const ZpPlayConfig *config, guint rate)
{
    guint others = rate % CODES_PER_SHARE;
    guint sharers = rate / CODES_PER_SHARE % ZP_TAPE_MAX_STREAMS + 1;
    guint own = rate / CODES_PER_SHARE / ZP_TAPE_MAX_STREAMS;
    Fraction f = {1, sharers};
    for (guint other = 0; others >> other != 0; other++) {
        gint32 ppm = config->interference_ppm[own][other];
        if ((others >> other & 1u) == 0 || ppm == 0 || ppm == 1000000)
            continue;
        f.num *= (guint64)ppm;
        f.den *= 1000000;
    }
    return f;
}

/* <0, 0, >0 as a is slower than, equal to, faster than b. */
static int
compare_rates(const ZpPlayConfig *config, guint a, guint b)
{
    if (a == b)
        return 0;
    Fraction x = fraction_of(config, a), y = fraction_of(config, b);
    Wide left = (Wide)x.num * y.den, right = (Wide)y.num * x.den;
    return (left > right) - (left < right);
}

static guint
rate_on(const ZpPlayer *player, gint32 r, const ZpPlayerWork *work)
{
    const ZpPlayerRank *rank = &player->ranks[r];
    guint sharers = work->link == ZP_TAPE_NONE ? 1 : rank->n_on_link[work->link];
    guint others = 0;
    for (guint c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
        if (c != work->category && rank->n_running[c] > 0)
            others |= 1u << c;
    return (work->category * (guint)ZP_TAPE_MAX_STREAMS + sharers - 1) * CODES_PER_SHARE + others;
}

static void
set_rate(ZpPlayer *player, ZpPlayerWork *work, guint rate, guint32 payload)
{
    const ZpPlayConfig *config = player->config;
    if (work->rate != ZP_PLAYER_NO_RATE) {
        if (compare_rates(config, work->rate, rate) == 0) {
            work->rate = (guint16)rate;
            return;
        }
        if (player->now > work->updated) {
            Fraction old = fraction_of(config, work->rate);
            guint64 passed = (guint64)(player->now - work->updated);
            Wide done = old.num == old.den ? passed : (Wide)passed * old.num / old.den;
            work->remaining -= done < (Wide)work->remaining ? (gint64)done : work->remaining;
            work->updated = player->now;
        }
    }
    work->rate = (guint16)rate;
    Fraction f = fraction_of(config, rate);
    Wide left = (guint64)work->remaining;
    if (f.num != f.den)
        left = (left * f.den + f.num - 1) / f.num;
    gint64 span = left < (Wide)ZP_TIME_MAX ? (gint64)left : ZP_TIME_MAX;
    work->end = zp_time_add(work->updated, span);
    if (work->end > ZP_PLAY_MAX_TIME)
        player->overflow = TRUE;
    /* A later end is found when the present entry comes up. */
    if (work->end < work->queued) {
        work->queued = work->end;
        zp_queue_push(&player->scratch->queue, work->end, payload);
    }
}

/* Codes of one category, counted per slot. */
static inline guint
n_codes(const ZpPlayer *player)
{
    return (guint)player->tape->n_streams * CODES_PER_SHARE;
}

static inline guint
local_code(guint rate)
{
    return rate % (ZP_TAPE_MAX_STREAMS * CODES_PER_SHARE);
}

static void
mark_slot(ZpPlayer *player, gint32 s)
{
    if (!player->slots[s].is_dirty) {
        player->slots[s].is_dirty = TRUE;
        player->dirty_slots[player->n_dirty_slots++] = s;
    }
}

/* One member of a collective has a new rate. */
static void
move_member(ZpPlayer *player, ZpPlayerStream *stream, guint rate)
{
    guint old = stream->work.rate;
    if (old == rate)
        return;
    ZpPlayerSlot *slot = &player->slots[stream->slot];
    guint32 *counts = player->slot_counts + (gsize)stream->slot * n_codes(player);
    stream->work.rate = (guint16)rate;
    counts[local_code(rate)]++;
    gboolean emptied = old != ZP_PLAYER_NO_RATE && --counts[local_code(old)] == 0;
    if (slot->least == ZP_PLAYER_NO_RATE || (emptied && old == slot->least) ||
        compare_rates(player->config, rate, slot->least) < 0)
        mark_slot(player, stream->slot);
}

static void
flush_slot(ZpPlayer *player, gint32 s)
{
    ZpPlayerSlot *slot = &player->slots[s];
    slot->is_dirty = FALSE;
    if (slot->work.state != ZP_PLAYER_RUNNING)
        return;
    const guint32 *counts = player->slot_counts + (gsize)s * n_codes(player);
    guint base = slot->work.category * (guint)ZP_TAPE_MAX_STREAMS * CODES_PER_SHARE;
    guint least = ZP_PLAYER_NO_RATE;
    for (guint code = 0; code < n_codes(player); code++)
        if (counts[code] > 0 &&
            (least == ZP_PLAYER_NO_RATE || compare_rates(player->config, base + code, least) < 0))
            least = base + code;
    g_assert(least != ZP_PLAYER_NO_RATE);
    slot->least = (guint16)least;
    set_rate(player, &slot->work, least, (guint32)(player->first_slot_payload + s));
}

void
zp_player_flush(ZpPlayer *player)
{
    gint32 n_streams = player->tape->n_streams;
    for (gint32 k = 0; k < player->n_dirty_ranks; k++) {
        gint32 r = player->dirty_ranks[k];
        player->ranks[r].is_dirty = FALSE;
        for (guint bits = player->ranks[r].running; bits != 0; bits &= bits - 1) {
            gint32 s = __builtin_ctz(bits);
            ZpPlayerStream *stream = &player->streams[r * n_streams + s];
            guint rate = rate_on(player, r, &stream->work);
            if (stream->slot != ZP_TAPE_NONE)
                move_member(player, stream, rate);
            else if (rate != stream->work.rate)
                set_rate(player, &stream->work, rate, (guint32)(r * n_streams + s));
        }
    }
    player->n_dirty_ranks = 0;
    for (gint32 k = 0; k < player->n_dirty_slots; k++)
        flush_slot(player, player->dirty_slots[k]);
    player->n_dirty_slots = 0;
}
