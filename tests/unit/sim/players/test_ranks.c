/* Many ranks: rendezvous, slow ranks, jitter; and what an observer may rely on. */
#include "tests/random_tape.h"
#include "tests/small_tape.h"

#include "sim/events/rng.h"

#include <string.h>

static void
test_slow_rank(void)
{
    g_autoptr(ZpTape) tape = small_tape(2);
    gint32 compute = small_compute(tape, 0, 100);
    zp_tape_wait(tape, 1, zp_tape_record(tape, 0));
    gint32 collective = small_launch(tape, (SmallWork){.stream = 1,
                                                       .category = ZP_TAPE_COMMUNICATION,
                                                       .fixed_ps = 5,
                                                       .solo_ps = 50,
                                                       .on_link = TRUE,
                                                       .in_group = TRUE});
    const gint32 speeds[] = {1000000, 2000000, 1000000, 1500000};
    ZpPlayConfig config = {.n_ranks = 4, .keep_times = TRUE, .speed_ppm = speeds};
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    small_assert_span(&result, compute, 0, 100);
    small_assert_span(&result, collective, 200, 255); /* waits for rank 1 */
    g_assert_cmpint(result.ranks[0].end, ==, 255);
    g_assert_cmpint(result.ranks[1].end, ==, 255);
    g_assert_cmpint(result.ranks[2].end, ==, 205); /* the other group waits for rank 3 */
    g_assert_cmpint(result.ranks[3].end, ==, 205);
    g_assert_cmpint(result.ranks[0].exposed, ==, 55);
    g_assert_cmpint(result.ranks[1].busy[ZP_TAPE_COMPUTE], ==, 200);
}

static void
test_strided_group(void)
{
    g_autoptr(ZpTape) tape = small_tape(2);
    tape->groups[0].stride = 2; /* {0, 2} and {1, 3} */
    small_compute(tape, 0, 100);
    small_launch(
        tape, (SmallWork){
                  .stream = 0, .category = ZP_TAPE_COMMUNICATION, .solo_ps = 10, .in_group = TRUE});
    const gint32 speeds[] = {1000000, 2000000, 3000000, 4000000};
    ZpPlayConfig config = {.n_ranks = 4, .speed_ppm = speeds};
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    g_assert_cmpint(result.ranks[0].end, ==, 310);
    g_assert_cmpint(result.ranks[1].end, ==, 410);
    g_assert_cmpint(result.ranks[2].end, ==, 310);
    g_assert_cmpint(result.ranks[3].end, ==, 410);
}

/* A step ends when its last rank is done; the first may be in the next by then. */
static void
test_steps_overlap(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    zp_tape_begin_step(tape);
    small_compute(tape, 0, 100);
    zp_tape_begin_step(tape);
    zp_tape_wait(tape, 1, zp_tape_record(tape, 0));
    small_transfer(tape, 1, 500);
    const gint32 speeds[] = {1000000, 3000000};
    ZpPlayConfig config = {.n_ranks = 2, .speed_ppm = speeds};
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    g_assert_cmpint(result.step_end[0], ==, 300);
    g_assert_cmpint(result.step_exposed[0], ==, 200);
    g_assert_cmpint(result.step_end[1], ==, 800);
    g_assert_cmpint(result.step_exposed[1], ==, 500);
}

/* A collective goes at the pace of its most crowded member. */
static void
test_least_share(void)
{
    g_autoptr(ZpTape) tape = small_tape(2);
    gint32 collective = small_launch(tape, (SmallWork){.stream = 1,
                                                       .category = ZP_TAPE_COMMUNICATION,
                                                       .solo_ps = 1000,
                                                       .on_link = TRUE,
                                                       .in_group = TRUE});
    small_compute(tape, 0, 100);
    gint32 transfer = small_transfer(tape, 0, 100);
    const gint32 speeds[] = {1000000, 3000000};
    ZpPlayConfig config = {.n_ranks = 2, .keep_times = TRUE, .speed_ppm = speeds};
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    /* Rank 0 shares from 100 to 300, rank 1 from 300 to 500: 200 lost. */
    small_assert_span(&result, transfer, 100, 300);
    small_assert_span(&result, collective, 0, 1200);
    g_assert_cmpint(result.ranks[1].busy[ZP_TAPE_COPY], ==, 200);
}

static void
test_jitter_is_keyed(void)
{
    g_autoptr(ZpTape) tape = small_tape(1);
    small_launch(tape, (SmallWork){.stream = 1, .category = ZP_TAPE_COPY, .solo_ps = 1000});
    gint32 compute = small_compute(tape, 0, 1000000);
    ZpPlayConfig config = {.n_ranks = 8, .jitter_ppm = 50000, .seed = 12};
    g_auto(ZpPlayResult) eight = {0};
    small_play(tape, &config, &eight);
    config.n_ranks = 3;
    g_auto(ZpPlayResult) three = {0};
    small_play(tape, &config, &three);
    for (gint32 r = 0; r < 8; r++) {
        /* 10^6 ps times a factor in ppm of ppm: the draw's millionths count whole picoseconds. */
        gint64 draw = zp_rng_gaussian_ppm(12, r, compute);
        gint64 factor = 1000000000000 + draw * 50000;
        g_assert_cmpint(eight.ranks[r].busy[ZP_TAPE_COMPUTE], ==, factor / 1000000);
        if (r < 3)
            g_assert_cmpint(three.ranks[r].end, ==, eight.ranks[r].end);
    }
    g_assert_cmpint(eight.ranks[0].end, !=, eight.ranks[1].end);
    config.seed = 13;
    small_play(tape, &config, &three);
    g_assert_cmpint(three.ranks[0].end, !=, eight.ranks[0].end);
}

static void
random_interference(ZpPlayConfig *config, GRand *rand)
{
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES * ZP_TAPE_N_CATEGORIES; c++)
        if (random_below(rand, 4) == 0)
            config->interference_ppm[c / 4][c % 4] = 300000 + random_below(rand, 700000);
}

static ZpTape *
draw(GRand *rand, gint32 n_ranks, gboolean contends)
{
    RandomTapeOptions options = {.n_instrs = 20 + (guint32)random_below(rand, 150),
                                 .n_ranks = n_ranks,
                                 .contends = contends};
    return random_tape(rand, &options);
}

/* Ranks that never meet play as if alone. */
static void
test_strangers(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(31);
    for (int round = 0; round < 500; round++) {
        g_autoptr(ZpTape) tape = draw(rand, 4, TRUE);
        for (gint32 w = 0; w < tape->n_works; w++)
            tape->works[w].group = ZP_TAPE_NONE;
        gint32 speeds[4];
        for (int r = 0; r < 4; r++)
            speeds[r] = 500000 + random_below(rand, 1000000);
        ZpPlayConfig config = {.n_ranks = 4, .speed_ppm = speeds, .run_ahead = 1 + round % 5};
        random_interference(&config, rand);
        g_auto(ZpPlayResult) together = {0};
        small_play(tape, &config, &together);
        config.n_ranks = 1;
        for (int r = 0; r < 4; r++) {
            config.speed_ppm = &speeds[r];
            g_auto(ZpPlayResult) alone = {0};
            small_play(tape, &config, &alone);
            g_assert_true(memcmp(&together.ranks[r], alone.ranks, sizeof(ZpPlayRank)) == 0);
        }
    }
}

typedef struct {
    gint64 class_bytes[ZP_TAPE_N_SPACES][8][3]; /* space, rank, class */
    gint64 total_bytes[ZP_TAPE_N_SPACES][8];
    gint64 peak_bytes[ZP_TAPE_N_SPACES][8];
    ZpTime last_time, last_end;
    gint64 n_changes, n_spans;
    guint hash;
    const ZpPlayResult *result;
} Seen;

static void
see_change(const ZpTape *tape, const ZpObserverChange *change, gpointer data)
{
    Seen *seen = data;
    gint64 *classes = seen->class_bytes[change->space][change->rank];
    gboolean is_retag = tape->instrs[change->instr].op == ZP_TAPE_RETAG;
    g_assert_cmpint(change->time, >=, MAX(seen->last_time, seen->last_end));
    seen->last_time = change->time;
    classes[change->class_id] = change->class_bytes;
    gint64 *total = &seen->total_bytes[change->space][change->rank];
    *total += change->delta_bytes;
    g_assert_cmpint(change->total_bytes, ==, *total);
    gint64 sum = classes[0] + classes[1] + classes[2];
    gboolean is_first_half = is_retag && sum != *total;
    if (!is_first_half)
        g_assert_cmpint(sum, ==, *total);
    gint64 *peak = &seen->peak_bytes[change->space][change->rank];
    *peak = MAX(*peak, *total);
    seen->n_changes++;
    seen->hash = seen->hash * 31 + (guint)change->time + (guint)change->instr * 7;
}

static void
see_span(const ZpTape *tape, const ZpObserverSpan *span, gpointer data)
{
    Seen *seen = data;
    g_assert_cmpint(tape->instrs[span->instr].op, ==, ZP_TAPE_LAUNCH);
    g_assert_cmpint(span->start, <=, span->end);
    g_assert_cmpint(span->end, >=, MAX(seen->last_end, seen->last_time));
    seen->last_end = span->end;
    seen->n_spans++;
    seen->hash = seen->hash * 31 + (guint)span->start + (guint)span->end * 3;
}

static void
check_seen(const ZpTape *tape, const ZpPlayResult *result, const Seen *seen)
{
    gint64 n_launches = 0, n_changes = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        n_launches += tape->instrs[i].op == ZP_TAPE_LAUNCH;
        n_changes += (tape->instrs[i].op <= ZP_TAPE_RETAG) + (tape->instrs[i].op == ZP_TAPE_RETAG);
    }
    g_assert_cmpint(seen->n_spans, ==, n_launches * result->n_ranks);
    g_assert_cmpint(seen->n_changes, ==, n_changes * result->n_ranks);
    for (gint32 r = 0; r < result->n_ranks; r++) {
        const ZpPlayRank *rank = &result->ranks[r];
        for (int space = 0; space < ZP_TAPE_N_SPACES; space++) {
            g_assert_cmpint(rank->memory[space].total_bytes, ==, seen->total_bytes[space][r]);
            g_assert_cmpint(rank->memory[space].peak_bytes, ==, seen->peak_bytes[space][r]);
        }
        for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
            g_assert_cmpint(rank->busy[c], <=, rank->end);
        g_assert_cmpint(rank->exposed, <=,
                        rank->busy[ZP_TAPE_COMMUNICATION] + rank->busy[ZP_TAPE_COPY]);
        g_assert_cmpint(rank->end, <=, result->end);
    }
    for (gint32 k = 0; k < tape->n_steps; k++)
        g_assert_cmpint(result->step_end[k], <=, result->end);
    if (tape->n_steps > 0)
        g_assert_cmpint(result->step_end[tape->n_steps - 1], ==, result->end);
}

/* The buffers live at the peak are the peak. */
static void
check_live(const ZpTape *tape, const ZpPlayConfig *config, const ZpPlayResult *result)
{
    for (int space = 0; space < ZP_TAPE_N_SPACES; space++) {
        const ZpMemory *memory = &result->ranks[0].memory[space];
        g_autoptr(GArray) live = zp_play_live_set(tape, config, (ZpTapeSpace)space);
        gint64 by_class[ZP_TAPE_MAX_CLASSES] = {0}, last = G_MAXINT64;
        for (guint k = 0; k < live->len; k++) {
            ZpPlayLive entry = g_array_index(live, ZpPlayLive, k);
            const ZpTapeBuffer *buffer = &tape->buffers[entry.buffer];
            g_assert_cmpint(buffer->space, ==, space);
            g_assert_cmpint(buffer->bytes, <=, last);
            last = buffer->bytes;
            by_class[entry.class_id] += buffer->bytes;
        }
        for (int c = 0; c < ZP_TAPE_MAX_CLASSES; c++)
            g_assert_cmpint(by_class[c], ==, memory->peak_bytes_by_class[c]);
    }
}

static void
test_observer(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(8);
    g_autoptr(ZpPlayScratch) scratch = zp_play_scratch_new();
    for (int round = 0; round < 1000; round++) {
        gint32 n_ranks = round % 2 == 0 ? 1 : 4;
        g_autoptr(ZpTape) tape = draw(rand, n_ranks, TRUE);
        Seen seen[2] = {{.hash = 1}, {.hash = 1}};
        ZpObserver observer = {
            .span = see_span, .change = see_change, .data = &seen[0], .rank = ZP_TAPE_NONE};
        ZpPlayConfig config = {.n_ranks = n_ranks,
                               .jitter_ppm = 20000,
                               .launch_overhead_ps = random_below(rand, 1000),
                               .instr_overhead_ps = random_below(rand, 100),
                               .observer = &observer};
        random_interference(&config, rand);
        g_auto(ZpPlayResult) first = {0};
        small_play(tape, &config, &first);
        check_seen(tape, &first, &seen[0]);
        check_live(tape, &config, &first);
        /* The same again, with memory that other plays have used. */
        observer.data = &seen[1];
        config.scratch = scratch;
        g_auto(ZpPlayResult) second = {0};
        small_play(tape, &config, &second);
        g_assert_cmpuint(seen[0].hash, ==, seen[1].hash);
        g_assert_cmpint(first.n_events, ==, second.n_events);
        g_assert_true(memcmp(first.ranks, second.ranks, (gsize)n_ranks * sizeof(ZpPlayRank)) == 0);
    }
}

/* Half the time on every link is never slower where each link has one queue. */
static void
test_more_bandwidth(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(9);
    int n_faster = 0;
    for (int round = 0; round < 1000; round++) {
        g_autoptr(ZpTape) tape = draw(rand, 4, FALSE);
        ZpPlayConfig config = {.n_ranks = 4, .jitter_ppm = 20000, .run_ahead = round % 4};
        g_auto(ZpPlayResult) slow = {0};
        small_play(tape, &config, &slow);
        for (gint32 w = 0; w < tape->n_works; w++)
            if (tape->works[w].link != ZP_TAPE_NONE)
                tape->works[w].solo_ps /= 2;
        g_auto(ZpPlayResult) fast = {0};
        small_play(tape, &config, &fast);
        for (gint32 r = 0; r < 4; r++)
            g_assert_cmpint(fast.ranks[r].end, <=, slow.ranks[r].end);
        n_faster += fast.end < slow.end;
    }
    g_assert_cmpint(n_faster, >, 500);
}

/* A link that is busy does the work of one link, however many share it. */
static void
test_link_conserves(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(10);
    for (int round = 0; round < 1000; round++) {
        g_autoptr(ZpTape) tape = draw(rand, 1, TRUE);
        ZpTime work_ps = 0;
        gint32 n_launches = 0;
        for (gint32 w = 0; w < tape->n_works; w++) {
            ZpTapeWork *work = &tape->works[w];
            work->link = work->link == 0 ? 0 : ZP_TAPE_NONE;
            work->fixed_ps = 0;
            work->category = work->link == 0 ? ZP_TAPE_COPY : ZP_TAPE_COMPUTE;
            work_ps += work->link == 0 ? work->solo_ps : 0;
            n_launches++;
        }
        ZpPlayConfig config = {.n_ranks = 1, .launch_overhead_ps = random_below(rand, 1000)};
        g_auto(ZpPlayResult) result = {0};
        small_play(tape, &config, &result);
        ZpTime busy = result.ranks[0].busy[ZP_TAPE_COPY];
        /* Each change of rates rounds at most five running works by a picosecond. */
        g_assert_cmpint(busy, >=, work_ps - 5 * n_launches);
        g_assert_cmpint(busy, <=, work_ps + 5 * 2 * n_launches);
    }
}

/* Thousands of ranks, each with a time of its own. */
static void
test_thousands(void)
{
    enum { RANKS = 16384 };
    g_autoptr(ZpTape) tape = small_tape(RANKS);
    gint8 node = zp_tape_add_group(tape, 8, 1);
    for (int k = 0; k < 6; k++) {
        gint32 buffer = zp_tape_make(tape, ZP_TAPE_CLOCK_DEVICE, 1, 0, 0, 10);
        gint32 launch = small_launch(tape, (SmallWork){.stream = 1,
                                                       .category = ZP_TAPE_COMMUNICATION,
                                                       .solo_ps = 1000,
                                                       .on_link = TRUE,
                                                       .in_group = TRUE});
        if (k % 2)
            tape->works[tape->instrs[launch].a].group = node;
        zp_tape_wait(tape, 0, zp_tape_record(tape, 1));
        small_compute(tape, 0, 100000);
        zp_tape_free_buffer(tape, ZP_TAPE_CLOCK_DEVICE, 0, buffer);
        zp_tape_wait(tape, 1, zp_tape_record(tape, 0));
    }
    ZpPlayConfig config = {.n_ranks = RANKS, .jitter_ppm = 100000, .seed = 3};
    g_auto(ZpPlayResult) result = {0};
    small_play(tape, &config, &result);
    GHashTable *ends = g_hash_table_new(g_int64_hash, g_int64_equal);
    for (gint32 r = 0; r < RANKS; r++) {
        g_hash_table_add(ends, &result.ranks[r].end);
        g_assert_cmpint(result.ranks[r].memory[0].peak_bytes, ==, 10);
    }
    g_assert_cmpuint(g_hash_table_size(ends), >, 1000);
    g_hash_table_unref(ends);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ranks/slow-rank", test_slow_rank);
    g_test_add_func("/ranks/strided-group", test_strided_group);
    g_test_add_func("/ranks/steps-overlap", test_steps_overlap);
    g_test_add_func("/ranks/least-share", test_least_share);
    g_test_add_func("/ranks/jitter-is-keyed", test_jitter_is_keyed);
    g_test_add_func("/ranks/strangers", test_strangers);
    g_test_add_func("/ranks/observer", test_observer);
    g_test_add_func("/ranks/more-bandwidth", test_more_bandwidth);
    g_test_add_func("/ranks/link-conserves", test_link_conserves);
    g_test_add_func("/ranks/thousands", test_thousands);
    return g_test_run();
}
