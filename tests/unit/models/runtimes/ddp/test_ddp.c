/* The ddp runtime: overlap of buckets, ZeroRedundancyOptimizer, and the product's path. */
#include "models/runtimes/ddp/ddp.h"

#include "sim/players/player.h"
#include "tests/unit/fixtures/fsdp_fixture.h"
#include "tests/unit/fixtures/job_fixture.h"

/* Nine parameters of sizes 9..1 on four ranks, largest first to the least loaded:
 * 9 | 8 | 7 | 6, then 5 to 6, 4 to 7, 3 to 8, 2 to 9, 1 to the first of equals. */
static void
test_partition(void)
{
    static const gint64 owned[] = {9 + 2 + 1, 8 + 3, 7 + 4, 6 + 5};
    for (gint32 rank = 0; rank < 4; rank++) {
        g_autoptr(ZpFsdpPlan) plan = zp_fsdp_plan_new();
        plan->replicate = 4;
        plan->rank = rank;
        plan->stored_bytes = plan->moment_bytes = 4;
        plan->moments = 2;
        gint32 unit = toy_add_unit(plan, "model", TRUE, 0);
        g_array_append_val(plan->state_order, unit);
        for (gint32 size = 1; size <= 9; size++) {
            toy_add_parameter(plan, 1, size, unit);
            toy_add_step(plan, ZP_FSDP_CALL, unit, size - 1, ZP_FSDP_NONE);
        }
        ZpFsdpMicroBatch micro_batch = {TRUE, TRUE, TRUE, TRUE};
        g_array_append_val(plan->micro_batches, micro_batch);
        zp_fsdp_plan_finish(plan);
        g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
        zp_ddp_compile(plan, NULL, TRUE, 1, tape);
        Figures figures = figures_of(tape);
        g_assert_cmpint(figures.start_bytes, ==, 45 * 4 + 45 * 4 + 2 * 4 * owned[rank]);
        g_assert_cmpint(figures.count[ZP_KIND_BROADCAST], ==, 9);
        g_assert_cmpint(figures.bytes[ZP_KIND_BROADCAST], ==, 45 * 4);
        figures_clear(&figures);
    }
}

static ZpTime
play_steps(const Toy *toy, gboolean first_step, ZpTime *exposed)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1024 * 1024, 2 * toy->n_blocks);
    fixture.job.optimizer = &fixture.optimizer;
    ZpFsdp settings = *zp_fsdp_defaults();
    settings.first_step = first_step;
    settings.bucket_cap_bytes = 8 * MIB;
    fixture.job.fsdp = &settings;
    fixture.job.zero.stage = 0;
    fixture.job.network.link_bytes_per_s = 10e9;
    g_autoptr(ZpUnits) units = zp_wrapping_apply(fixture.model, &fixture.job.zero);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_runtime_ddp.compile(&fixture.job, units, tape, &error));
    ZpPlayConfig config = {.n_ranks = 1};
    g_auto(ZpPlayResult) result = {0};
    g_assert_true(zp_player_play(tape, &config, &result, &error));
    *exposed = result.ranks[0].exposed;
    ZpTime end = result.end;
    job_fixture_clear(&fixture);
    return end;
}

/* A run's first step reduces everything at the end; later ones overlap all but the last bucket. */
static void
test_overlap(void)
{
    Toy toy = toy_default();
    ZpTime first_exposed, later_exposed;
    ZpTime first = play_steps(&toy, TRUE, &first_exposed);
    ZpTime later = play_steps(&toy, FALSE, &later_exposed);
    g_assert_cmpint(later, <, first);
    g_assert_cmpint(later_exposed * 3, <, first_exposed);
}

static void
test_stage_1(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 16);
    fixture.job.optimizer = &fixture.optimizer;
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    gint64 start[2];
    for (int stage = 0; stage < 2; stage++) {
        g_autoptr(GError) error = NULL;
        fixture.job.zero.stage = stage;
        g_autoptr(ZpUnits) units = zp_wrapping_apply(fixture.model, &fixture.job.zero);
        zp_tape_clear(tape);
        g_assert_true(zp_runtime_ddp.compile(&fixture.job, units, tape, &error));
        g_assert_true(zp_tape_check(
            tape, TRUE, ZP_CLASSES_PERSISTENT | (1u << ZP_CLASS_COMMUNICATION), &error));
        g_assert_no_error(error);
        Figures figures = figures_of(tape);
        start[stage] = figures.start_bytes;
        figures_clear(&figures);
    }
    /* fp32 parameters and buckets; two moments, whole or of 16 / 8 layers. */
    g_assert_cmpint(start[0], ==, 16 * G_GINT64_CONSTANT(16000000));
    g_assert_cmpint(start[1], ==, 16 * G_GINT64_CONSTANT(8000000) + 2 * 8000000);
    job_fixture_clear(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ddp/partition", test_partition);
    g_test_add_func("/ddp/overlap", test_overlap);
    g_test_add_func("/ddp/stage-1", test_stage_1);
    return g_test_run();
}
