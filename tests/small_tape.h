/* Tapes short enough to be played with a pencil: streams named a, b, c, one link, one group. */
#pragma once

#include "sim/players/player.h"
#include "tests/random_tape.h"

typedef struct {
    guint8 stream;
    ZpTapeCategory category;
    ZpTime solo_ps, fixed_ps;
    gboolean on_link, in_group;
} SmallWork;

static inline ZpTape *
small_tape(gint32 group_size)
{
    ZpTape *tape = zp_tape_new(&random_words);
    zp_tape_add_stream(tape, "a", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "b", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "c", ZP_TAPE_COPY);
    zp_tape_add_link(tape, "network");
    zp_tape_add_group(tape, group_size, 1);
    return tape;
}

/* Returns the instruction. */
static inline gint32
small_launch(ZpTape *tape, SmallWork small)
{
    ZpTapeWork work = {
        .fixed_ps = small.fixed_ps,
        .solo_ps = small.solo_ps,
        .link = small.on_link ? 0 : ZP_TAPE_NONE,
        .group = small.in_group ? 0 : ZP_TAPE_NONE,
        .category = (guint8)small.category,
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(tape, small.stream, zp_tape_add_work(tape, &work));
    return tape->n_instrs - 1;
}

static inline gint32
small_compute(ZpTape *tape, guint8 stream, ZpTime solo_ps)
{
    return small_launch(
        tape, (SmallWork){.stream = stream, .category = ZP_TAPE_COMPUTE, .solo_ps = solo_ps});
}

/* A local transfer on the link. */
static inline gint32
small_transfer(ZpTape *tape, guint8 stream, ZpTime solo_ps)
{
    return small_launch(
        tape, (SmallWork){
                  .stream = stream, .category = ZP_TAPE_COPY, .solo_ps = solo_ps, .on_link = TRUE});
}

static inline void
small_play(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayResult *result)
{
    g_autoptr(GError) error = NULL;
    zp_tape_check(tape, FALSE, 0, &error);
    g_assert_no_error(error);
    gboolean played = zp_player_play(tape, config, result, &error);
    g_assert_no_error(error);
    g_assert_true(played);
}

static inline void
small_assert_span(const ZpPlayResult *result, gint32 instr, ZpTime start, ZpTime end)
{
    g_assert_cmpint(result->op_start[instr], ==, start);
    g_assert_cmpint(result->op_end[instr], ==, end);
}
