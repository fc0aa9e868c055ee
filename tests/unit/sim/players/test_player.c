/* The event player against plays computed by hand, and its properties on random tapes. */
#include "sim/players/player.h"

#include "tests/random_tape.h"
#include "tests/small_tape.h"

#include <string.h>

static const ZpPlayConfig plain = {.n_ranks = 1, .keep_times = TRUE};

static void
test_two_streams(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 first = small_compute(tape, 0, 100); /* issued at 10 */
    zp_tape_wait(tape, 1, zp_tape_record(tape, 0));
    gint32 second = small_compute(tape, 1, 50); /* issued at 22, waits for 110 */
    gint32 third = small_compute(tape, 0, 30);  /* issued at 32 */
    gint32 late = small_compute(tape, 2, 5);    /* issued at 42: the stream idles until then */
    ZpPlayConfig config = plain;
    config.launch_overhead_ps = 10;
    config.instr_overhead_ps = 1;
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    small_assert_span(&result, first, 10, 110);
    small_assert_span(&result, second, 110, 160);
    small_assert_span(&result, third, 110, 140);
    small_assert_span(&result, late, 42, 47);
    g_assert_cmpint(result.end, ==, 160);
    g_assert_cmpint(result.ranks[0].busy[ZP_TAPE_COMPUTE], ==, 150);
    g_assert_cmpint(result.ranks[0].exposed, ==, 0);
    g_assert_cmpint(result.ranks[0].host_blocked, ==, 0);
}

static void
test_run_ahead(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 launches[4];
    for (int k = 0; k < 4; k++)
        launches[k] = small_compute(tape, (guint8)(k % 2), 100);
    ZpPlayConfig config = plain;
    config.launch_overhead_ps = 10;
    config.run_ahead = 2;
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    small_assert_span(&result, launches[0], 10, 110);
    small_assert_span(&result, launches[1], 20, 120);
    small_assert_span(&result, launches[2], 120, 220); /* blocked until 110, then costs 10 */
    small_assert_span(&result, launches[3], 130, 230); /* blocked until 120 */
    g_assert_cmpint(result.ranks[0].host_blocked, ==, 90);
}

static void
test_sync(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 first = small_compute(tape, 0, 100);
    zp_tape_sync(tape, zp_tape_record(tape, 0)); /* from 12 until 110 */
    gint32 second = small_compute(tape, 1, 20);
    zp_tape_sync(tape, zp_tape_record(tape, 1)); /* from 122 until 140 */
    ZpPlayConfig config = plain;
    config.launch_overhead_ps = 10;
    config.instr_overhead_ps = 1;
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    small_assert_span(&result, first, 10, 110);
    small_assert_span(&result, second, 120, 140);
    g_assert_cmpint(result.ranks[0].host_blocked, ==, 98 + 18);
    g_assert_cmpint(result.end, ==, 140);
}

static void
test_two_share(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 longer = small_transfer(tape, 0, 100);
    gint32 shorter = small_transfer(tape, 1, 50);
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &plain, &result);
    small_assert_span(&result, shorter, 0, 100);
    small_assert_span(&result, longer, 0, 150); /* 50 at half speed, 50 alone */
    g_assert_cmpint(result.ranks[0].busy[ZP_TAPE_COPY], ==, 150);
    g_assert_cmpint(result.ranks[0].exposed, ==, 150);
}

/* The fixed part occupies the link and is not slowed. */
static void
test_fixed_part(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 slow = small_launch(tape, (SmallWork){.stream = 0,
                                                 .category = ZP_TAPE_COPY,
                                                 .fixed_ps = 20,
                                                 .solo_ps = 100,
                                                 .on_link = TRUE});
    gint32 other = small_transfer(tape, 1, 100);
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &plain, &result);
    small_assert_span(&result, other, 0, 200);
    small_assert_span(&result, slow, 0, 210); /* 180 at half speed, then 10 alone */
}

static void
test_three_share(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 a = small_transfer(tape, 0, 90);
    small_compute(tape, 1, 30);
    gint32 b = small_transfer(tape, 1, 90);
    small_compute(tape, 2, 60);
    gint32 c = small_transfer(tape, 2, 90);
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &plain, &result);
    /* a: 30 alone, 15 at half, 45 at a third: 30 + 30 + 135. */
    small_assert_span(&result, a, 0, 195);
    /* b: 15 at half, 45 at a third until 195, 30 at half. */
    small_assert_span(&result, b, 30, 255);
    /* c: 45 at a third, 30 at half until 255, 15 alone. */
    small_assert_span(&result, c, 60, 270);
}

/* Thirds of a picosecond: down when a rate changes, up to the end. */
static void
test_rounding(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 a = small_transfer(tape, 0, 100);
    gint32 b = small_transfer(tape, 1, 100);
    small_compute(tape, 2, 10);
    gint32 c = small_transfer(tape, 2, 10);
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &plain, &result);
    small_assert_span(&result, c, 10, 40);
    /* a and b: 5 by 10, 10 by 40, then 85 at half speed. */
    small_assert_span(&result, a, 0, 210);
    small_assert_span(&result, b, 0, 210);
}

static void
test_interference(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 compute = small_compute(tape, 0, 100);
    gint32 collective = small_launch(tape, (SmallWork){.stream = 1,
                                                       .category = ZP_TAPE_COMMUNICATION,
                                                       .solo_ps = 100,
                                                       .on_link = TRUE,
                                                       .in_group = TRUE});
    ZpPlayConfig config = plain;
    config.interference_ppm[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] = 500000;
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    small_assert_span(&result, collective, 0, 100);
    small_assert_span(&result, compute, 0, 150);
    g_assert_cmpint(result.ranks[0].busy[ZP_TAPE_COMPUTE], ==, 150);
    g_assert_cmpint(result.ranks[0].busy[ZP_TAPE_COMMUNICATION], ==, 100);
    g_assert_cmpint(result.ranks[0].exposed, ==, 0);
    /* Both ways: 100 at 4/5 end at 125; the compute did 50 of 100 in 100, 62 in 125. */
    config.interference_ppm[ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] = 800000;
    small_play(tape, &config, &result);
    small_assert_span(&result, collective, 0, 125);
    small_assert_span(&result, compute, 0, 163);
    /* Ends are rounded up: 100 at 7/10 end after 142.86; the compute did 71 of 100 by then. */
    config.interference_ppm[ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] = 700000;
    small_play(tape, &config, &result);
    small_assert_span(&result, collective, 0, 143);
    small_assert_span(&result, compute, 0, 172);
}

static void
test_steps(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    zp_tape_begin_step(tape);
    small_compute(tape, 0, 100);
    small_transfer(tape, 1, 150);
    zp_tape_begin_step(tape);
    small_transfer(tape, 1, 100);
    small_compute(tape, 0, 120);
    zp_tape_begin_step(tape);
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &plain, &result);
    g_assert_cmpint(result.n_steps, ==, 3);
    g_assert_cmpint(result.step_end[0], ==, 150);
    g_assert_cmpint(result.step_end[1], ==, 250);
    g_assert_cmpint(result.step_end[2], ==, 250);
    g_assert_cmpint(result.step_exposed[0], ==, 0);
    g_assert_cmpint(result.step_exposed[1], ==, 30); /* 220 to 250 */
    g_assert_cmpint(result.step_exposed[2], ==, 30);
}

/* A free that the host waits for comes before the allocation at the same instant. */
static void
test_causal_tie(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    gint32 old = zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, 0, 0, 0, 100);
    small_compute(tape, 0, 50);
    zp_tape_free_buffer(tape, ZP_TAPE_CLOCK_DEVICE, 0, old);
    gint32 event = zp_tape_record(tape, 0);
    zp_tape_sync(tape, event);
    zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, 0, 1, 0, 70);
    zp_tape_wait(tape, 1, event);
    gint32 third = zp_tape_make(tape, ZP_TAPE_CLOCK_DEVICE, 1, 2, 0, 60);
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &plain, &result);
    const ZpMemory *memory = &result.ranks[0].memory[ZP_TAPE_SPACE_DEVICE];
    g_assert_cmpint(memory->peak_bytes, ==, 130);
    g_assert_cmpint(memory->peak_time, ==, 50);
    g_assert_cmpint(memory->n_changes, ==, 4);
    g_autoptr(GArray) live = zp_play_live_set(tape, &plain, ZP_TAPE_SPACE_DEVICE);
    g_assert_cmpuint(live->len, ==, 2);
    g_assert_cmpint(g_array_index(live, ZpPlayLive, 0).buffer, ==, third - 1);
    g_assert_cmpint(g_array_index(live, ZpPlayLive, 1).buffer, ==, third);
    g_assert_cmpint(g_array_index(live, ZpPlayLive, 1).class_id, ==, 2);
    /* Had the host not waited, all three would be live at 0. */
    tape->instrs[4].op = ZP_TAPE_WAIT;
    tape->instrs[4].stream = 2;
    small_play(tape, &plain, &result);
    g_assert_cmpint(result.ranks[0].memory[0].peak_bytes, ==, 170);
    g_assert_cmpint(result.ranks[0].memory[0].peak_time, ==, 0);
}

static void
test_capacity(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, 0, 0, 0, 100);
    small_compute(tape, 0, 50);
    gint32 buffer = zp_tape_make(tape, ZP_TAPE_CLOCK_DEVICE, 0, 1, 0, 11);
    gint32 over = tape->n_instrs - 1;
    zp_tape_free_buffer(tape, ZP_TAPE_CLOCK_DEVICE, 0, buffer);
    ZpPlayConfig config = plain;
    config.capacity_bytes[ZP_TAPE_SPACE_DEVICE] = 110;
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    g_assert_cmpint(result.ranks[0].memory[0].first_over_instr, ==, over);
    g_assert_cmpint(result.ranks[0].memory[0].first_over_time, ==, 50);
    config.capacity_bytes[ZP_TAPE_SPACE_DEVICE] = 111;
    small_play(tape, &config, &result);
    g_assert_cmpint(result.ranks[0].memory[0].first_over_instr, ==, ZP_TAPE_NONE);
}

static void
test_empty(void)
{
    g_autoptr(ZpTape) nothing = zp_tape_new(&random_words);
    zp_tape_begin_step(nothing);
    g_autoptr(ZpTape) memory_only = small_tape(1);
    zp_tape_make(memory_only, ZP_TAPE_CLOCK_HOST, 0, 1, 0, 7);
    ZpPlayConfig config = plain;
    config.instr_overhead_ps = 3;
    for (config.n_ranks = 1; config.n_ranks <= 4; config.n_ranks += 3) {
        g_auto(ZpPlayResult) result = {0};
        small_play(nothing, &config, &result);
        g_assert_cmpint(result.end, ==, 0);
        g_assert_cmpint(result.step_end[0], ==, 0);
        small_play(memory_only, &config, &result);
        g_assert_cmpint(result.end, ==, 3);
        g_assert_cmpint(result.ranks[config.n_ranks - 1].memory[0].peak_time, ==, 3);
    }
}

static void
assert_play_fails(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayError code)
{
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_player_play(tape, config, &result, &error));
    g_assert_error(error, ZP_PLAY_ERROR, (gint)code);
}

static void
test_errors(void)
{
    g_autoptr(ZpTape) tape = small_tape(4);
    small_compute(tape, 0, G_MAXINT64 / 2);
    small_compute(tape, 0, G_MAXINT64 / 2);
    assert_play_fails(tape, &plain, ZP_PLAY_ERROR_OVERFLOW);
    /* The same where rates are looked at. */
    g_autoptr(ZpTape) longer = small_tape(1);
    small_transfer(longer, 1, 1);
    small_transfer(longer, 0, G_MAXINT64);
    assert_play_fails(longer, &plain, ZP_PLAY_ERROR_OVERFLOW);
    ZpPlayConfig config = plain;
    config.n_ranks = 6;
    assert_play_fails(tape, &config, ZP_PLAY_ERROR_GROUP);
    config.n_ranks = 0;
    assert_play_fails(tape, &config, ZP_PLAY_ERROR_CONFIG);
    config.n_ranks = 1 << 30;
    assert_play_fails(tape, &config, ZP_PLAY_ERROR_MEMORY);
    config = plain;
    config.interference_ppm[1][2] = 1000001;
    assert_play_fails(tape, &config, ZP_PLAY_ERROR_CONFIG);
    config = plain;
    config.launch_overhead_ps = ZP_TIME_MAX;
    assert_play_fails(tape, &config, ZP_PLAY_ERROR_OVERFLOW);
    /* Freed at 0 by the host, allocated at 10 by the device. */
    g_autoptr(ZpTape) race = small_tape(1);
    small_compute(race, 0, 10);
    gint32 buffer = zp_tape_make(race, ZP_TAPE_CLOCK_DEVICE, 0, 0, 0, 5);
    zp_tape_free_buffer(race, ZP_TAPE_CLOCK_HOST, 0, buffer);
    assert_play_fails(race, &plain, ZP_PLAY_ERROR_RACE);
}

static void
test_cancelled(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    small_compute(tape, 0, 10);
    gint cancelled = 1;
    ZpPlayConfig config = plain;
    config.cancelled = &cancelled;
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    g_assert_true(result.cancelled);
    cancelled = 0;
    small_play(tape, &config, &result);
    g_assert_false(result.cancelled);
    g_assert_cmpint(result.end, ==, 10);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/player/two-streams", test_two_streams);
    g_test_add_func("/player/run-ahead", test_run_ahead);
    g_test_add_func("/player/sync", test_sync);
    g_test_add_func("/player/two-share", test_two_share);
    g_test_add_func("/player/fixed-part", test_fixed_part);
    g_test_add_func("/player/three-share", test_three_share);
    g_test_add_func("/player/rounding", test_rounding);
    g_test_add_func("/player/interference", test_interference);
    g_test_add_func("/player/steps", test_steps);
    g_test_add_func("/player/causal-tie", test_causal_tie);
    g_test_add_func("/player/capacity", test_capacity);
    g_test_add_func("/player/empty", test_empty);
    g_test_add_func("/player/errors", test_errors);
    g_test_add_func("/player/cancelled", test_cancelled);
    return g_test_run();
}
