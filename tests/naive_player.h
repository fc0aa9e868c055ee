/* The time rules of play.h taken literally: at every instant everything is looked at until nothing
 * changes, then all rates are computed afresh.  Slow, and without a queue, shifts, masks or slots:
 * what it shares with the event player is the rules alone. */
#pragma once

#include "sim/events/rng.h"
#include "sim/players/play.h"

#include <string.h>

enum { NAIVE_RANKS = 8, NAIVE_INSTRS = 200 };

__extension__ typedef unsigned __int128 NaiveWide;

typedef struct {
    gboolean runs;
    ZpTime updated, end;
    gint64 remaining;
    guint64 num, den; /* rate; 0/0: none yet */
} NaiveWork;

typedef struct {
    const ZpTape *tape;
    const ZpPlayConfig *config;
    ZpTime now;
    /* By rank and instruction; -1: not yet. */
    ZpTime issued[NAIVE_RANKS][NAIVE_INSTRS], start[NAIVE_RANKS][NAIVE_INSTRS],
        done[NAIVE_RANKS][NAIVE_INSTRS];
    NaiveWork works[NAIVE_RANKS][NAIVE_INSTRS];
    gint32 host_next[NAIVE_RANKS];
    ZpTime host_ready[NAIVE_RANKS]; /* when the cost of host_next is paid, -1: not begun */
    ZpTime host_free[NAIVE_RANKS];
    ZpTime busy[NAIVE_RANKS][ZP_TAPE_N_CATEGORIES], exposed[NAIVE_RANKS], blocked[NAIVE_RANKS];
} Naive;

static inline const ZpTapeWork *
naive_work(const Naive *naive, gint32 i)
{
    return &naive->tape->works[naive->tape->instrs[i].a];
}

static inline gboolean
naive_is_item(const ZpTapeInstr *instr)
{
    if (instr->op <= ZP_TAPE_RETAG)
        return instr->clock == ZP_TAPE_CLOCK_DEVICE;
    return instr->op == ZP_TAPE_LAUNCH || instr->op == ZP_TAPE_RECORD || instr->op == ZP_TAPE_WAIT;
}

/* When the event happened on the rank, -1: not yet. */
static inline ZpTime
naive_event(const Naive *naive, gint32 r, gint32 event)
{
    for (gint32 i = 0; i < naive->tape->n_instrs; i++)
        if (naive->tape->instrs[i].op == ZP_TAPE_RECORD && naive->tape->instrs[i].a == event)
            return naive->done[r][i];
    g_assert_not_reached();
}

/* The launch that launch `i` must see ended, or ZP_TAPE_NONE. */
static inline gint32
naive_run_ahead(const Naive *naive, gint32 i)
{
    gint32 back = naive->config->run_ahead;
    for (gint32 k = i - 1; back > 0 && k >= 0; k--)
        if (naive->tape->instrs[k].op == ZP_TAPE_LAUNCH && --back == 0)
            return k;
    return ZP_TAPE_NONE;
}

/* One move of the host, if it has one at this instant. */
static inline gboolean
naive_move_host(Naive *naive, gint32 r)
{
    gint32 i = naive->host_next[r];
    if (i == naive->tape->n_instrs)
        return FALSE;
    const ZpTapeInstr *instr = &naive->tape->instrs[i];
    gboolean is_launch = instr->op == ZP_TAPE_LAUNCH;
    if (naive->host_ready[r] < 0) {
        gint32 before = is_launch ? naive_run_ahead(naive, i) : ZP_TAPE_NONE;
        if (before != ZP_TAPE_NONE && naive->done[r][before] < 0)
            return FALSE;
        naive->blocked[r] += naive->now - naive->host_free[r];
        naive->host_ready[r] = naive->now + (is_launch ? naive->config->launch_overhead_ps
                                                       : naive->config->instr_overhead_ps);
        return TRUE;
    }
    if (naive->host_ready[r] > naive->now)
        return FALSE;
    if (instr->op == ZP_TAPE_SYNC && naive_event(naive, r, instr->a) < 0)
        return FALSE;
    naive->blocked[r] += naive->now - naive->host_ready[r];
    naive->issued[r][i] = naive->host_free[r] = naive->now;
    naive->host_ready[r] = -1;
    naive->host_next[r]++;
    return TRUE;
}

/* All earlier items of the stream are done and the host has issued this one. */
static inline gboolean
naive_is_ready(const Naive *naive, gint32 r, gint32 i)
{
    if (naive->issued[r][i] < 0)
        return FALSE;
    for (gint32 k = 0; k < i; k++)
        if (naive_is_item(&naive->tape->instrs[k]) &&
            naive->tape->instrs[k].stream == naive->tape->instrs[i].stream && naive->done[r][k] < 0)
            return FALSE;
    return TRUE;
}

static inline gint64
naive_solo(const Naive *naive, gint32 r, gint32 i)
{
    const ZpTapeWork *work = naive_work(naive, i);
    if (work->group != ZP_TAPE_NONE ||
        (work->category != ZP_TAPE_COMPUTE && work->category != ZP_TAPE_HOST_COMPUTE))
        return work->solo_ps;
    gint64 draw = zp_rng_gaussian_ppm(naive->config->seed, r, i) * naive->config->jitter_ppm;
    gint64 speed = naive->config->speed_ppm ? naive->config->speed_ppm[r] : 1000000;
    __extension__ __int128 time = (__int128)work->solo_ps * speed * (1000000000000 + draw);
    return time < 0 ? 0 : (gint64)(time / 1000000000 / 1000000000);
}

static inline gboolean
naive_may_start(const Naive *naive, gint32 r, gint32 i)
{
    const ZpTapeWork *work = naive_work(naive, i);
    if (work->group == ZP_TAPE_NONE)
        return naive_is_ready(naive, r, i);
    const ZpTapeGroup *group = &naive->tape->groups[work->group];
    for (gint32 q = 0; q < naive->config->n_ranks; q++)
        if (q / (group->size * group->stride) == r / (group->size * group->stride) &&
            q % group->stride == r % group->stride && !naive_is_ready(naive, q, i))
            return FALSE;
    return TRUE;
}

static inline gboolean
naive_move_work(Naive *naive, gint32 r, gint32 i)
{
    NaiveWork *work = &naive->works[r][i];
    if (work->runs) {
        if (work->den == 0 || work->end > naive->now)
            return FALSE;
        work->runs = FALSE;
        naive->done[r][i] = naive->now;
        return TRUE;
    }
    if (naive->start[r][i] >= 0 || !naive_may_start(naive, r, i))
        return FALSE;
    naive->start[r][i] = naive->now;
    work->remaining = naive_solo(naive, r, i);
    work->updated = naive->now + naive_work(naive, i)->fixed_ps;
    work->runs = work->updated + work->remaining > naive->now;
    if (!work->runs)
        naive->done[r][i] = naive->now;
    return TRUE;
}

static inline gboolean
naive_move_item(Naive *naive, gint32 r, gint32 i)
{
    const ZpTapeInstr *instr = &naive->tape->instrs[i];
    if (naive->done[r][i] >= 0 || !naive_is_item(instr))
        return FALSE;
    if (instr->op == ZP_TAPE_LAUNCH)
        return naive_move_work(naive, r, i);
    if (!naive_is_ready(naive, r, i) ||
        (instr->op == ZP_TAPE_WAIT && naive_event(naive, r, instr->a) < 0))
        return FALSE;
    naive->done[r][i] = naive->now;
    return TRUE;
}

static inline gboolean
naive_has_category(const Naive *naive, gint32 r, int category)
{
    for (gint32 i = 0; i < naive->tape->n_instrs; i++)
        if (naive->works[r][i].runs && naive_work(naive, i)->category == category)
            return TRUE;
    return FALSE;
}

/* The rate of a running work by what runs on this one rank. */
static inline void
naive_rate(const Naive *naive, gint32 r, gint32 i, guint64 *num, guint64 *den)
{
    const ZpTapeWork *work = naive_work(naive, i);
    *num = *den = 1;
    if (work->link != ZP_TAPE_NONE) {
        *den = 0;
        for (gint32 k = 0; k < naive->tape->n_instrs; k++)
            *den += naive->works[r][k].runs && naive_work(naive, k)->link == work->link;
    }
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++) {
        gint32 ppm = naive->config->interference_ppm[work->category][c];
        if (c == work->category || ppm == 0 || !naive_has_category(naive, r, c))
            continue;
        *num *= (guint64)ppm;
        *den *= 1000000;
    }
}

static inline void
naive_set_rate(const Naive *naive, NaiveWork *work, guint64 num, guint64 den)
{
    if (work->den != 0) {
        if ((NaiveWide)work->num * den == (NaiveWide)num * work->den)
            return;
        if (naive->now > work->updated) {
            NaiveWide passed = (guint64)(naive->now - work->updated);
            work->remaining -= (gint64)(passed * work->num / work->den);
            work->updated = naive->now;
        }
    }
    work->num = num;
    work->den = den;
    work->end =
        work->updated + (gint64)(((NaiveWide)(guint64)work->remaining * den + num - 1) / num);
}

static inline void
naive_rate_all(Naive *naive)
{
    for (gint32 i = 0; i < naive->tape->n_instrs; i++)
        for (gint32 r = 0; r < naive->config->n_ranks; r++) {
            if (!naive->works[r][i].runs)
                continue;
            guint64 num, den;
            naive_rate(naive, r, i, &num, &den);
            gint8 g = naive_work(naive, i)->group;
            const ZpTapeGroup *group = g == ZP_TAPE_NONE ? NULL : &naive->tape->groups[g];
            for (gint32 q = 0; group && q < naive->config->n_ranks; q++) {
                gint32 span = group->size * group->stride;
                if (q / span != r / span || q % group->stride != r % group->stride)
                    continue;
                guint64 other_num, other_den;
                naive_rate(naive, q, i, &other_num, &other_den);
                if ((NaiveWide)other_num * den < (NaiveWide)num * other_den) {
                    num = other_num;
                    den = other_den;
                }
            }
            naive_set_rate(naive, &naive->works[r][i], num, den);
        }
}

/* Moves the clock to the next instant; FALSE when there is none. */
static inline gboolean
naive_next(Naive *naive)
{
    ZpTime next = ZP_TIME_MAX;
    for (gint32 r = 0; r < naive->config->n_ranks; r++) {
        if (naive->host_ready[r] > naive->now)
            next = MIN(next, naive->host_ready[r]);
        for (gint32 i = 0; i < naive->tape->n_instrs; i++)
            if (naive->works[r][i].runs)
                next = MIN(next, naive->works[r][i].end);
    }
    if (next == ZP_TIME_MAX)
        return FALSE;
    for (gint32 r = 0; r < naive->config->n_ranks; r++) {
        gboolean has[ZP_TAPE_N_CATEGORIES];
        for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++) {
            has[c] = naive_has_category(naive, r, c);
            naive->busy[r][c] += has[c] ? next - naive->now : 0;
        }
        if ((has[ZP_TAPE_COMMUNICATION] || has[ZP_TAPE_COPY]) && !has[ZP_TAPE_COMPUTE])
            naive->exposed[r] += next - naive->now;
    }
    naive->now = next;
    return TRUE;
}

static inline void
naive_play(Naive *naive, const ZpTape *tape, const ZpPlayConfig *config)
{
    g_assert(config->n_ranks <= NAIVE_RANKS && tape->n_instrs <= NAIVE_INSTRS);
    memset(naive, 0, sizeof *naive);
    memset(naive->issued, 0xff, sizeof naive->issued);
    memset(naive->start, 0xff, sizeof naive->start);
    memset(naive->done, 0xff, sizeof naive->done);
    memset(naive->host_ready, 0xff, sizeof naive->host_ready);
    naive->tape = tape;
    naive->config = config;
    do {
        gboolean moved = TRUE;
        while (moved) {
            moved = FALSE;
            for (gint32 r = 0; r < config->n_ranks; r++) {
                moved |= naive_move_host(naive, r);
                for (gint32 i = 0; i < tape->n_instrs; i++)
                    moved |= naive_move_item(naive, r, i);
            }
        }
        naive_rate_all(naive);
    } while (naive_next(naive));
}
