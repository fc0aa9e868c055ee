/* Random valid tapes for property tests and fuzzers: every choice comes from a stream of numbers,
 * so a seed is a tape. */
#pragma once

#include "sim/tape/tape.h"

static const char *const random_classes[] = {"parameter", "gradient", "activation"};
static const char *const random_phases[] = {"forward", "backward"};
static const char *const random_kinds[] = {"gemm", "allgather", "copy"};
static const char *const random_roles[] = {"", "shard"};
static const ZpTapeVocabulary random_words = {
    .classes = random_classes,
    .phases = random_phases,
    .kinds = random_kinds,
    .roles = random_roles,
    .n_classes = 3,
    .n_phases = 2,
    .n_kinds = 3,
    .n_roles = 2,
};

typedef struct {
    guint32 n_instrs;   /* about */
    gint32 n_ranks;     /* groups divide it */
    gboolean contends;  /* links are used by any stream, not by one each */
    gboolean same_solo; /* all works of a link take the same time: a first-in first-out link */
} RandomTapeOptions;

static inline gint32
random_below(GRand *rand, gint32 n)
{
    return g_rand_int_range(rand, 0, n);
}

static void
random_declare(ZpTape *tape, GRand *rand, const RandomTapeOptions *options)
{
    static const char *const names[] = {"s0", "s1", "s2", "s3", "s4"};
    gint32 n_streams = 1 + random_below(rand, 5);
    for (gint32 s = 0; s < n_streams; s++)
        zp_tape_add_stream(tape, names[s], (ZpTapeCategory)(s % ZP_TAPE_N_CATEGORIES));
    for (gint32 l = 0; l < n_streams; l++)
        zp_tape_add_link(tape, names[l]);
    zp_tape_add_group(tape, options->n_ranks, 1);
    for (gint32 size = 2; size < options->n_ranks; size++)
        if (options->n_ranks % size == 0 && tape->n_groups < ZP_TAPE_MAX_GROUPS - 1) {
            zp_tape_add_group(tape, size, 1);
            zp_tape_add_group(tape, size, options->n_ranks / size);
        }
}

static void
random_launch(ZpTape *tape, GRand *rand, const RandomTapeOptions *options, guint8 stream)
{
    ZpTapeWork work = {
        .fixed_ps = random_below(rand, 3) == 0 ? random_below(rand, 1000) : 0,
        .solo_ps = random_below(rand, 8) == 0 ? 0 : random_below(rand, 10000),
        .category = (guint8)random_below(rand, ZP_TAPE_N_CATEGORIES),
        .kind = (gint16)random_below(rand, 3),
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .label = ZP_TAPE_NONE,
    };
    if (random_below(rand, 2) == 0)
        work.link = (gint8)(options->contends ? random_below(rand, MIN(tape->n_links, 2)) : stream);
    if (random_below(rand, 3) == 0)
        work.group = (gint8)random_below(rand, tape->n_groups);
    if (options->same_solo)
        work.fixed_ps = 0;
    zp_tape_launch(tape, stream, zp_tape_add_work(tape, &work));
}

/* Buffers that die on the clock and stream of their birth: nothing races. */
static void
random_memory(ZpTape *tape, GRand *rand, guint8 stream, GArray *live)
{
    gint32 what = random_below(rand, 4);
    ZpTapeClock clock = random_below(rand, 2) ? ZP_TAPE_CLOCK_DEVICE : ZP_TAPE_CLOCK_HOST;
    if (what < 2 || live->len == 0) {
        gint32 buffer =
            zp_tape_add_buffer(tape, (guint8)random_below(rand, 3), 0, random_below(rand, 1000));
        tape->buffers[buffer].space = (guint8)(random_below(rand, 4) == 0);
        ZpTapeInstr birth = {.clock = (guint8)clock, .stream = stream, .a = buffer};
        zp_tape_alloc(tape, clock, stream, buffer);
        g_array_append_val(live, birth);
        return;
    }
    guint index = (guint)random_below(rand, (gint32)live->len);
    ZpTapeInstr birth = g_array_index(live, ZpTapeInstr, index);
    if (what == 2) {
        zp_tape_retag(tape, (ZpTapeClock)birth.clock, birth.stream, birth.a,
                      (guint8)random_below(rand, 3), 1);
        return;
    }
    zp_tape_free_buffer(tape, (ZpTapeClock)birth.clock, birth.stream, birth.a);
    g_array_remove_index_fast(live, index);
}

static inline ZpTape *
random_tape(GRand *rand, const RandomTapeOptions *options)
{
    ZpTape *tape = zp_tape_new(&random_words);
    random_declare(tape, rand, options);
    g_autoptr(GArray) live = g_array_new(FALSE, FALSE, sizeof(ZpTapeInstr));
    g_autoptr(GArray) events = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (guint32 i = 0; i < options->n_instrs; i++) {
        guint8 stream = (guint8)random_below(rand, tape->n_streams);
        if (random_below(rand, 40) == 0)
            zp_tape_begin_step(tape);
        gint32 what = random_below(rand, 12);
        if (what < 5) {
            random_launch(tape, rand, options, stream);
        } else if (what < 7) {
            gint32 event = zp_tape_record(tape, stream);
            g_array_append_val(events, event);
        } else if (what < 9 && events->len > 0) {
            gint32 last = (gint32)events->len;
            gint32 event =
                g_array_index(events, gint32, last - 1 - random_below(rand, MIN(last, 4)));
            if (what == 8 && random_below(rand, 3) == 0)
                zp_tape_sync(tape, event);
            else
                zp_tape_wait(tape, stream, event);
        } else {
            random_memory(tape, rand, stream, live);
        }
    }
    return tape;
}
