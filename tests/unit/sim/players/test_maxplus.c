/* Two players of one tape: the event engine and the max-plus sweep must agree wherever nothing
 * contends. */
#include "sim/players/maxplus.h"
#include "sim/players/player.h"
#include "tests/random_tape.h"

#include <string.h>

typedef struct {
    gint32 speeds[16];
    ZpPlayConfig config;
} Setting;

static void
random_setting(Setting *setting, GRand *rand, gint32 n_ranks)
{
    *setting = (Setting){0};
    ZpPlayConfig *config = &setting->config;
    config->n_ranks = n_ranks;
    config->keep_times = TRUE;
    config->seed = g_rand_int(rand);
    if (random_below(rand, 2))
        config->launch_overhead_ps = random_below(rand, 2000);
    if (random_below(rand, 2))
        config->instr_overhead_ps = random_below(rand, 300);
    if (random_below(rand, 2))
        config->run_ahead = 1 + random_below(rand, 8);
    if (random_below(rand, 2))
        config->jitter_ppm = random_below(rand, 300000);
    for (gint32 r = 0; r < n_ranks; r++)
        setting->speeds[r] = 500000 + random_below(rand, 1000000);
    if (random_below(rand, 2))
        config->speed_ppm = setting->speeds;
}

static ZpTape *
draw(GRand *rand, gint32 n_ranks, gboolean contends)
{
    RandomTapeOptions options = {
        .n_instrs = (guint32)random_below(rand, 150), .n_ranks = n_ranks, .contends = contends};
    ZpTape *tape = random_tape(rand, &options);
    g_autoptr(GError) error = NULL;
    zp_tape_check(tape, FALSE, 0, &error);
    g_assert_no_error(error);
    return tape;
}

static void
play_both(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayResult *events, ZpPlayResult *sweep)
{
    g_autoptr(GError) error = NULL;
    gboolean played = zp_player_play(tape, config, events, &error);
    g_assert_no_error(error);
    g_assert_true(played);
    played = zp_maxplus_play(tape, config, sweep, &error);
    g_assert_no_error(error);
    g_assert_true(played);
}

static void
assert_same_times(const ZpTape *tape, const ZpPlayResult *a, const ZpPlayResult *b)
{
    g_assert_cmpint(a->end, ==, b->end);
    g_assert_cmpint(a->n_ranks, ==, b->n_ranks);
    for (gint32 r = 0; r < a->n_ranks; r++) {
        g_assert_cmpint(a->ranks[r].end, ==, b->ranks[r].end);
        g_assert_cmpint(a->ranks[r].host_blocked, ==, b->ranks[r].host_blocked);
    }
    for (gint32 k = 0; k < tape->n_steps; k++)
        g_assert_cmpint(a->step_end[k], ==, b->step_end[k]);
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        g_assert_cmpint(a->op_start[i], ==, b->op_start[i]);
        g_assert_cmpint(a->op_end[i], ==, b->op_end[i]);
    }
}

static void
test_agree(void)
{
    static const gint32 ranks[] = {1, 2, 3, 4, 6, 8, 12, 16};
    g_autoptr(GRand) rand = g_rand_new_with_seed(20240607);
    g_autoptr(ZpPlayScratch) scratch = zp_play_scratch_new();
    g_auto(ZpPlayResult) events = {0};
    g_auto(ZpPlayResult) sweep = {0};
    for (int round = 0; round < 4000; round++) {
        gint32 n_ranks = ranks[random_below(rand, G_N_ELEMENTS(ranks))];
        g_autoptr(ZpTape) tape = draw(rand, n_ranks, FALSE);
        Setting setting;
        random_setting(&setting, rand, n_ranks);
        setting.config.scratch = scratch;
        play_both(tape, &setting.config, &events, &sweep);
        assert_same_times(tape, &events, &sweep);
    }
}

static void
test_lower_bound(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(77);
    int n_slower = 0;
    for (int round = 0; round < 2000; round++) {
        gint32 n_ranks = 1 + random_below(rand, 2) * 7;
        g_autoptr(ZpTape) tape = draw(rand, n_ranks, TRUE);
        g_auto(ZpPlayResult) events = {0};
        g_auto(ZpPlayResult) sweep = {0};
        Setting setting;
        random_setting(&setting, rand, n_ranks);
        for (int c = 0; c < ZP_TAPE_N_CATEGORIES * ZP_TAPE_N_CATEGORIES; c++)
            if (random_below(rand, 3) == 0)
                setting.config.interference_ppm[c / 4][c % 4] = 300000 + random_below(rand, 700000);
        play_both(tape, &setting.config, &events, &sweep);
        for (gint32 r = 0; r < n_ranks; r++)
            g_assert_cmpint(events.ranks[r].end, >=, sweep.ranks[r].end);
        for (gint32 i = 0; i < tape->n_instrs; i++) {
            g_assert_cmpint(events.op_start[i], >=, sweep.op_start[i]);
            g_assert_cmpint(events.op_end[i], >=, sweep.op_end[i]);
        }
        n_slower += events.end > sweep.end;
    }
    g_assert_cmpint(n_slower, >, 500); /* the tapes do contend */
}

/* Alike ranks are one rank. */
static void
test_alike(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(4711);
    for (int round = 0; round < 1500; round++) {
        g_autoptr(ZpTape) tape = draw(rand, 8, random_below(rand, 2) == 0);
        Setting setting;
        random_setting(&setting, rand, 8);
        setting.config.speed_ppm = NULL;
        setting.config.jitter_ppm = 0;
        for (int c = 0; c < ZP_TAPE_N_CATEGORIES * ZP_TAPE_N_CATEGORIES; c++)
            if (random_below(rand, 4) == 0)
                setting.config.interference_ppm[c / 4][c % 4] = 300000 + random_below(rand, 700000);
        ZpPlayConfig one = setting.config;
        one.n_ranks = 1;
        g_auto(ZpPlayResult) many = {0};
        g_auto(ZpPlayResult) single = {0};
        g_autoptr(GError) error = NULL;
        g_assert_true(zp_player_play(tape, &setting.config, &many, &error));
        g_assert_true(zp_player_play(tape, &one, &single, &error));
        for (gint32 r = 0; r < 8; r++)
            g_assert_true(memcmp(&many.ranks[r], single.ranks, sizeof(ZpPlayRank)) == 0);
        for (gint32 i = 0; i < tape->n_instrs; i++) {
            g_assert_cmpint(many.op_start[i], ==, single.op_start[i]);
            g_assert_cmpint(many.op_end[i], ==, single.op_end[i]);
        }
        for (gint32 k = 0; k < tape->n_steps; k++) {
            g_assert_cmpint(many.step_end[k], ==, single.step_end[k]);
            g_assert_cmpint(many.step_exposed[k], ==, single.step_exposed[k]);
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/maxplus/agrees-with-events", test_agree);
    g_test_add_func("/maxplus/is-a-lower-bound", test_lower_bound);
    g_test_add_func("/maxplus/alike-ranks-are-one", test_alike);
    return g_test_run();
}
