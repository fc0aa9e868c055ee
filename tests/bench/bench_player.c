/* The event player on a step of 80 units with gathered parameters: one rank, then thousands. */
#include "sim/players/player.h"

#include <stdio.h>
#include <sys/resource.h>

enum { UNITS = 80 };
enum { COMPUTE_STREAM, GATHER_STREAM, REDUCE_STREAM };
enum { NETWORK };
enum { PARAMETER, GRADIENT, ACTIVATION };

static const char *const classes[] = {"parameter", "gradient", "activation"};
static const char *const phases[] = {"forward", "backward"};
static const char *const kinds[] = {"kernel", "allgather", "reducescatter"};
static const char *const roles[] = {""};
static const ZpTapeVocabulary words = {classes, phases, kinds, roles, 3, 2, 3, 1};

typedef struct {
    ZpTape *tape;
    ZpTapeClock clock;
    gint8 group;
    gint32 gathered[UNITS], gathered_event[UNITS], done_event[UNITS], activation[UNITS];
} Build;

static void
launch(Build *build, guint8 stream, gint16 kind, ZpTapeCategory category, ZpTime solo_ps)
{
    gboolean moves = category == ZP_TAPE_COMMUNICATION;
    ZpTapeWork work = {
        .fixed_ps = moves ? 20 * ZP_TIME_PER_US : 0,
        .solo_ps = solo_ps,
        .kind = kind,
        .link = moves ? NETWORK : ZP_TAPE_NONE,
        .group = moves ? build->group : ZP_TAPE_NONE,
        .category = (guint8)category,
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(build->tape, stream, zp_tape_add_work(build->tape, &work));
}

/* Gathers the parameters of a unit, two units ahead of its compute. */
static void
gather(Build *build, int u)
{
    ZpTape *tape = build->tape;
    build->gathered[u] = zp_tape_make(tape, build->clock, GATHER_STREAM, PARAMETER, 0, 400000000);
    launch(build, GATHER_STREAM, 1, ZP_TAPE_COMMUNICATION, 900 * ZP_TIME_PER_US);
    build->gathered_event[u] = zp_tape_record(tape, GATHER_STREAM);
}

static void
forward(Build *build, int u)
{
    ZpTape *tape = build->tape;
    zp_tape_wait(tape, COMPUTE_STREAM, build->gathered_event[u]);
    build->activation[u] =
        zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, COMPUTE_STREAM, ACTIVATION, 0, 70000000);
    for (int k = 0; k < 2; k++)
        launch(build, COMPUTE_STREAM, 0, ZP_TAPE_COMPUTE, 500 * ZP_TIME_PER_US);
    build->done_event[u] = zp_tape_record(tape, COMPUTE_STREAM);
    zp_tape_free_buffer(tape, build->clock, COMPUTE_STREAM, build->gathered[u]);
    if (u + 2 < UNITS) {
        zp_tape_wait(tape, GATHER_STREAM, build->done_event[u]);
        gather(build, u + 2);
    }
}

static void
backward(Build *build, int u)
{
    ZpTape *tape = build->tape;
    zp_tape_wait(tape, COMPUTE_STREAM, build->gathered_event[u]);
    gint32 gradient =
        zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, COMPUTE_STREAM, GRADIENT, 0, 400000000);
    for (int k = 0; k < 2; k++)
        launch(build, COMPUTE_STREAM, 0, ZP_TAPE_COMPUTE, 1000 * ZP_TIME_PER_US);
    gint32 done = zp_tape_record(tape, COMPUTE_STREAM);
    zp_tape_free_buffer(tape, build->clock, COMPUTE_STREAM, build->gathered[u]);
    zp_tape_free_buffer(tape, ZP_TAPE_CLOCK_HOST, COMPUTE_STREAM, build->activation[u]);
    if (u >= 2) {
        zp_tape_wait(tape, GATHER_STREAM, done);
        gather(build, u - 2);
    }
    zp_tape_wait(tape, REDUCE_STREAM, done);
    launch(build, REDUCE_STREAM, 2, ZP_TAPE_COMMUNICATION, 900 * ZP_TIME_PER_US);
    zp_tape_free_buffer(tape, build->clock, REDUCE_STREAM, gradient);
}

static void
compile(ZpTape *tape, gint32 n_ranks, ZpTapeClock clock)
{
    Build build = {.tape = tape, .clock = clock};
    zp_tape_clear(tape);
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "reduce", ZP_TAPE_COMMUNICATION);
    zp_tape_add_link(tape, "network");
    build.group = zp_tape_add_group(tape, n_ranks, 1);
    for (int u = 0; u < UNITS; u++)
        zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, COMPUTE_STREAM, PARAMETER, 0, 10000000);
    zp_tape_begin_step(tape);
    gather(&build, 0);
    gather(&build, 1);
    for (int u = 0; u < UNITS; u++)
        forward(&build, u);
    gather(&build, UNITS - 1);
    gather(&build, UNITS - 2);
    for (int u = UNITS - 1; u >= 0; u--)
        backward(&build, u);
    /* What a framework's many small kernels and bookkeeping add. */
    for (int k = 0; k < 100; k++)
        launch(&build, COMPUTE_STREAM, 0, ZP_TAPE_COMPUTE, 100 * ZP_TIME_PER_US);
    zp_tape_sync(tape, zp_tape_record(tape, COMPUTE_STREAM));
}

static double
peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

typedef struct {
    const char *what;
    int repeats;
    ZpTapeClock clock; /* of gathered parameters and gradients */
    ZpPlayConfig config;
    const char *target;
} Case;

static void
play(ZpTape *tape, const Case *c)
{
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(ZpPlayScratch) scratch = zp_play_scratch_new();
    g_autoptr(GError) error = NULL;
    ZpPlayConfig config = c->config;
    config.launch_overhead_ps = 10 * ZP_TIME_PER_US;
    config.instr_overhead_ps = ZP_TIME_PER_US / 10;
    config.scratch = scratch;
    gint64 began = g_get_monotonic_time();
    for (int k = 0; k < c->repeats; k++) {
        compile(tape, config.n_ranks, c->clock);
        if (!zp_player_play(tape, &config, &result, &error)) {
            printf("%s: %s\n", c->what, error->message);
            return;
        }
    }
    double ms = (double)(g_get_monotonic_time() - began) / 1e3 / c->repeats;
    printf("%-44s %10.3f ms %8.2f M events/s %8.0f MiB  %s\n", c->what, ms,
           (double)result.n_events / ms / 1e3, peak_mib(), c->target);
}

#define INTERFERES                                         \
    {                                                      \
        [ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] = 950000, \
        [ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] = 900000, \
    }

int
main(void)
{
    const Case cases[] = {
        {"one rank", 2000, ZP_TAPE_CLOCK_HOST, {.n_ranks = 1}, "target 0.1 ms, at most 0.2"},
        {"one rank, memory on the device clock", 2000, ZP_TAPE_CLOCK_DEVICE, {.n_ranks = 1}, ""},
        {"one rank, run-ahead 64, interference",
         2000,
         ZP_TAPE_CLOCK_DEVICE,
         {.n_ranks = 1, .run_ahead = 64, .interference_ppm = INTERFERES},
         ""},
        {"4096 jittered ranks",
         1,
         ZP_TAPE_CLOCK_HOST,
         {.n_ranks = 4096, .jitter_ppm = 30000},
         "target 3000 ms, 512 MiB"},
        {"4096, device clock, run-ahead",
         1,
         ZP_TAPE_CLOCK_DEVICE,
         {.n_ranks = 4096, .jitter_ppm = 30000, .run_ahead = 64},
         "target 3000 ms, 512 MiB"},
        {"4096, and interference",
         1,
         ZP_TAPE_CLOCK_DEVICE,
         {.n_ranks = 4096, .jitter_ppm = 30000, .run_ahead = 64, .interference_ppm = INTERFERES},
         ""},
        {"16384, device clock, run-ahead",
         1,
         ZP_TAPE_CLOCK_DEVICE,
         {.n_ranks = 16384, .jitter_ppm = 30000, .run_ahead = 64},
         "target 2048 MiB"},
    };
    g_autoptr(ZpTape) tape = zp_tape_new(&words);
    compile(tape, 1, ZP_TAPE_CLOCK_HOST);
    printf("%d instructions; times include the compilation of the tape; MiB: peak so far\n",
           tape->n_instrs);
    for (gsize k = 0; k < G_N_ELEMENTS(cases); k++)
        play(tape, &cases[k]);
    return 0;
}
