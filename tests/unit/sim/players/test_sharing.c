/* Links shared by ranks that differ, interference, rendezvous, run-ahead: every time of the event
 * player against the rules taken literally. */
#include "tests/naive_player.h"
#include "tests/small_tape.h"

static void
random_setting(ZpPlayConfig *config, gint32 *speeds, GRand *rand)
{
    static const gint32 ranks[] = {1, 2, 4, 6, 8};
    *config = (ZpPlayConfig){
        .n_ranks = ranks[random_below(rand, G_N_ELEMENTS(ranks))],
        .seed = g_rand_int(rand),
        .jitter_ppm = random_below(rand, 2) ? random_below(rand, 300000) : 0,
        .launch_overhead_ps = random_below(rand, 2) ? random_below(rand, 2000) : 0,
        .instr_overhead_ps = random_below(rand, 2) ? random_below(rand, 300) : 0,
        .run_ahead = random_below(rand, 2) ? 1 + random_below(rand, 6) : 0,
        .keep_times = TRUE,
    };
    for (gint32 r = 0; r < NAIVE_RANKS; r++)
        speeds[r] = 500000 + random_below(rand, 3) * 300000;
    if (random_below(rand, 2))
        config->speed_ppm = speeds;
    gboolean interferes = random_below(rand, 2);
    for (int c = 0; interferes && c < ZP_TAPE_N_CATEGORIES * ZP_TAPE_N_CATEGORIES; c++)
        if (random_below(rand, 3) == 0)
            config->interference_ppm[c / 4][c % 4] = 300000 + random_below(rand, 700000);
}

static void
assert_same(const Naive *naive, const ZpPlayResult *result)
{
    const ZpTape *tape = naive->tape;
    for (gint32 i = 0; i < tape->n_instrs; i++)
        if (tape->instrs[i].op == ZP_TAPE_LAUNCH)
            small_assert_span(result, i, naive->start[0][i], naive->done[0][i]);
    for (gint32 r = 0; r < result->n_ranks; r++) {
        const ZpPlayRank *rank = &result->ranks[r];
        ZpTime end = 0;
        for (gint32 i = 0; i < tape->n_instrs; i++) {
            g_assert_cmpint(naive->issued[r][i], >=, 0);
            end = MAX(end, MAX(naive->issued[r][i], naive->done[r][i]));
        }
        g_assert_cmpint(rank->end, ==, end);
        g_assert_cmpint(rank->host_blocked, ==, naive->blocked[r]);
        g_assert_cmpint(rank->exposed, ==, naive->exposed[r]);
        for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
            g_assert_cmpint(rank->busy[c], ==, naive->busy[r][c]);
    }
}

static void
test_rules(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1963);
    g_autofree Naive *naive = g_new(Naive, 1);
    for (int round = 0; round < 2000; round++) {
        ZpPlayConfig config;
        gint32 speeds[NAIVE_RANKS];
        random_setting(&config, speeds, rand);
        RandomTapeOptions options = {.n_instrs = 5 + (guint32)random_below(rand, 80),
                                     .n_ranks = config.n_ranks,
                                     .contends = TRUE};
        g_autoptr(ZpTape) tape = random_tape(rand, &options);
        g_auto(ZpPlayResult) result = {0};
        small_play(tape, &config, &result);
        naive_play(naive, tape, &config);
        assert_same(naive, &result);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sharing/rules-taken-literally", test_rules);
    return g_test_run();
}
