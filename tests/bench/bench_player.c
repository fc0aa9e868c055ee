/* The event player on a step of 80 units with gathered parameters: one rank, then thousands. */
#include "sim/player.h"

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

static void
play(const char *what, ZpTape *tape, const ZpPlayConfig *config, int repeats, const char *target)
{
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(ZpPlayScratch) scratch = zp_play_scratch_new();
    g_autoptr(GError) error = NULL;
    ZpPlayConfig copy = *config;
    copy.scratch = scratch;
    gint64 began = g_get_monotonic_time();
    for (int k = 0; k < repeats; k++) {
        compile(tape, config->n_ranks, tape->instrs ? (ZpTapeClock)config->keep_times : 0);
        if (!zp_player_play(tape, &copy, &result, &error)) {
            printf("%s: %s\n", what, error->message);
            return;
        }
    }
    double ms = (double)(g_get_monotonic_time() - began) / 1e3 / repeats;
    printf("%-44s %10.3f ms %8.2f M events/s %8.0f MiB  %s\n", what, ms,
           (double)result.n_events / ms / 1e3, peak_mib(), target);
}

int
main(void)
{
    g_autoptr(ZpTape) tape = zp_tape_new(&words);
    ZpPlayConfig config = {
        .n_ranks = 1, .launch_overhead_ps = 10 * ZP_TIME_PER_US, .instr_overhead_ps = 100000};
    compile(tape, 1, ZP_TAPE_CLOCK_HOST);
    printf("%d instructions; times include compilation of the tape\n", tape->n_instrs);
    play("one rank", tape, &config, 2000, "target 0.1 ms, at most 0.2");
    config.keep_times = TRUE; /* with device-clock memory */
    play("one rank, memory on the device clock", tape, &config, 2000, "");
    config.run_ahead = 64;
    config.interference_ppm[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] = 950000;
    play("one rank, run-ahead and interference", tape, &config, 1000, "");
    config = (ZpPlayConfig){.n_ranks = 4096,
                            .launch_overhead_ps = 10 * ZP_TIME_PER_US,
                            .instr_overhead_ps = 100000,
                            .jitter_ppm = 30000,
                            .seed = 1};
    play("4096 jittered ranks", tape, &config, 1, "target 3000 ms, 512 MiB");
    config.keep_times = TRUE;
    config.run_ahead = 64;
    play("4096, device memory, run-ahead", tape, &config, 1, "target 3000 ms, 512 MiB");
    config.n_ranks = 16384;
    play("16384, the same", tape, &config, 1, "target 2048 MiB");
    config.interference_ppm[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] = 950000;
    config.interference_ppm[ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] = 900000;
    config.n_ranks = 4096;
    play("4096, the same with interference", tape, &config, 1, "");
    return 0;
}
