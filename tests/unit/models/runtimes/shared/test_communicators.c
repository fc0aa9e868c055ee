/* One communicator serialises, several share the link: by hand on a small tape, and as a property
 * of what every runtime compiles. */
#include "models/job/deepspeed.h"
#include "models/job/fsdp.h"
#include "models/runtimes/registry.h"
#include "models/runtimes/shared/communicators.h"
#include "models/step/step.h"
#include "sim/players/maxplus.h"
#include "sim/players/player.h"
#include "tests/unit/fixtures/job_fixture.h"

enum { COMPUTE, GATHER, REDUCE };

static ZpTape *
make_tape(void)
{
    ZpTape *tape = zp_tape_new(zp_vocabulary_get());
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "reduce", ZP_TAPE_COMMUNICATION);
    zp_tape_add_link(tape, "network");
    zp_tape_add_group(tape, 8, 1);
    zp_tape_add_group(tape, 2, 8);
    zp_tape_begin_step(tape);
    return tape;
}

static gint32
add_work(ZpTape *tape, ZpKind kind, gint8 group, ZpTime solo_ps)
{
    ZpTapeWork work = {.solo_ps = solo_ps,
                       .kind = (gint16)kind,
                       .link = group == ZP_TAPE_NONE ? ZP_TAPE_NONE : 0,
                       .group = group,
                       .category = group == ZP_TAPE_NONE ? ZP_TAPE_COMPUTE : ZP_TAPE_COMMUNICATION,
                       .label = ZP_TAPE_NONE};
    return zp_tape_add_work(tape, &work);
}

/* A kernel of 1000, a reduce-scatter of 100 after it and a gather of 10 that needs no kernel, of
 * these groups; returns when the gather and the reduce-scatter end. */
static void
play_pair(gboolean separate, gint8 gather_group, ZpTime *gathered, ZpTime *reduced)
{
    g_autoptr(ZpTape) tape = make_tape();
    ZpCommunicators communicators;
    zp_communicators_init(&communicators, separate);
    gint32 kernel = add_work(tape, ZP_KIND_BACKWARD, ZP_TAPE_NONE, 1000);
    zp_communicators_launch(&communicators, tape, COMPUTE, kernel);
    zp_tape_wait(tape, REDUCE, zp_tape_record(tape, COMPUTE));
    gint32 scatter = add_work(tape, ZP_KIND_REDUCE_SCATTER, 0, 100);
    zp_communicators_launch(&communicators, tape, REDUCE, scatter);
    gint32 gather = add_work(tape, ZP_KIND_ALL_GATHER, gather_group, 10);
    zp_communicators_launch(&communicators, tape, GATHER, gather);
    ZpPlayConfig config = {.n_ranks = 1, .keep_times = TRUE};
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_tape_check(tape, FALSE, 0, &error));
    g_assert_true(zp_player_play(tape, &config, &result, &error));
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        if (tape->instrs[i].op == ZP_TAPE_LAUNCH && tape->instrs[i].a == gather)
            *gathered = result.op_end[i];
        if (tape->instrs[i].op == ZP_TAPE_LAUNCH && tape->instrs[i].a == scatter)
            *reduced = result.op_end[i];
    }
}

static void
test_order(void)
{
    ZpTime gathered = 0, reduced = 0;
    play_pair(FALSE, 0, &gathered, &reduced); /* issued later: waits behind the scatter's kernel */
    g_assert_cmpint(reduced, ==, 1100);
    g_assert_cmpint(gathered, ==, 1110);
    play_pair(TRUE, 0, &gathered, &reduced);
    g_assert_cmpint(gathered, ==, 10);
    g_assert_cmpint(reduced, ==, 1100);
    play_pair(FALSE, 1, &gathered, &reduced);
    g_assert_cmpint(gathered, ==, 10);
    g_assert_cmpint(reduced, ==, 1100);
}

/* How often two collectives of one group overlap in time, or are out of host order. */
static int
count_overlaps(const ZpTape *tape, const ZpPlayResult *result)
{
    int n = 0;
    for (int g = 0; g < tape->n_groups; g++) {
        ZpTime end = 0;
        for (gint32 i = 0; i < tape->n_instrs; i++) {
            if (tape->instrs[i].op != ZP_TAPE_LAUNCH || tape->works[tape->instrs[i].a].group != g)
                continue;
            n += result->op_start[i] < end;
            end = MAX(end, result->op_end[i]);
        }
    }
    return n;
}

/* Collectives take longer than the kernels, so that they would overlap if they could. */
static ZpTape *
compile(JobFixture *fixture, const char *runtime)
{
    fixture->job.runtime = runtime;
    fixture->job.optimizer = &fixture->optimizer;
    fixture->job.network.link_bytes_per_s = 5e9;
    fixture->job.network.network_bytes_per_s = 5e9;
    fixture->job.zero.overlap = TRUE;
    fixture->job.zero.prefetch_forward = fixture->job.zero.prefetch_backward = 1;
    fixture->job.zero.bucket_elements = 1;
    fixture->job.training.accumulation = 2;
    fixture->job.simulation.steps = 2;
    g_autoptr(ZpUnits) units = zp_wrapping_apply(fixture->model, &fixture->job.zero);
    ZpTape *tape = zp_tape_new(zp_vocabulary_get());
    g_autoptr(GError) error = NULL;
    gboolean ok = zp_registry_find(runtime)->compile(&fixture->job, units, tape, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return tape;
}

static const char *const runtimes[] = {"ideal", "ddp", "fsdp1", "fsdp2", "deepspeed"};

static void
test_runtimes(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        for (gint32 shard = 8; shard <= 16; shard *= 2) {
            JobFixture fixture;
            job_fixture_init(&fixture, 3000017, 6);
            fixture.job.world.ranks = 16;
            fixture.job.world.shard_group = strcmp(runtimes[r], "deepspeed") == 0 ? 16 : shard;
            fixture.job.zero.stage = strcmp(runtimes[r], "ddp") == 0 ? 0 : 3;
            g_autoptr(ZpTape) tape = compile(&fixture, runtimes[r]);
            ZpPlayConfig config = {.n_ranks = 1, .keep_times = TRUE};
            g_auto(ZpPlayResult) events = {0};
            g_auto(ZpPlayResult) sweep = {0};
            g_assert_true(zp_player_play(tape, &config, &events, NULL));
            g_assert_true(zp_maxplus_play(tape, &config, &sweep, NULL));
            g_assert_cmpint(count_overlaps(tape, &events), ==, 0);
            /* One communicator on a link: nothing contends, and both players agree. */
            if (shard == 16) {
                g_assert_cmpint(events.end, ==, sweep.end);
                for (gint32 i = 0; i < tape->n_instrs; i++)
                    g_assert_cmpint(events.op_end[i], ==, sweep.op_end[i]);
            }
            job_fixture_clear(&fixture);
        }
    }
}

static void
test_separate(void)
{
    ZpTime end[2];
    for (int separate = 0; separate < 2; separate++) {
        JobFixture fixture;
        job_fixture_init(&fixture, 3000017, 6);
        ZpFsdp settings = *zp_fsdp_defaults();
        settings.separate_reduce_scatter = separate;
        fixture.job.fsdp = &settings;
        g_autoptr(ZpTape) tape = compile(&fixture, "fsdp2");
        ZpPlayConfig config = {.n_ranks = 1, .keep_times = TRUE};
        g_auto(ZpPlayResult) result = {0};
        g_assert_true(zp_player_play(tape, &config, &result, NULL));
        g_assert_cmpint(count_overlaps(tape, &result) > 0, ==, separate);
        end[separate] = result.end;
        job_fixture_clear(&fixture);
    }
    g_assert_cmpint(end[0], !=, end[1]);
}

/* hpZ gathers among the ranks of a node on a communicator beside that of the reductions. */
static void
test_secondary(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 3000017, 6);
    ZpDeepspeed settings;
    zp_deepspeed_init(&settings);
    settings.hpz_partition_ranks = 8;
    fixture.job.deepspeed = &settings;
    fixture.job.world = (ZpWorld){.ranks = 16, .shard_group = 16};
    g_autoptr(ZpTape) tape = compile(&fixture, "deepspeed");
    guint streams_of_size[17] = {0};
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        if (tape->instrs[i].op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &tape->works[tape->instrs[i].a];
        if (work->group != ZP_TAPE_NONE)
            streams_of_size[tape->groups[work->group].size] |= 1u << tape->instrs[i].stream;
    }
    g_assert_cmpuint(streams_of_size[8], !=, 0);
    g_assert_cmpuint(streams_of_size[16], !=, 0);
    g_assert_cmpuint(streams_of_size[8] & streams_of_size[16], ==, 0);
    job_fixture_clear(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/communicators/order", test_order);
    g_test_add_func("/communicators/runtimes", test_runtimes);
    g_test_add_func("/communicators/separate", test_separate);
    g_test_add_func("/communicators/secondary", test_secondary);
    return g_test_run();
}
