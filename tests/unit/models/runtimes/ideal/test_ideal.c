/* The ideal runtime against sums done by hand.
 *
 * Fixture: 4 layers of 1,000,000 parameters, 8 ranks, bf16 + fp32 Adam (16 bytes a parameter),
 * 1,000 tokens, 100 activation bytes per token and layer (input 10), 1 ms forward a layer.
 *   persistent at stage 3   4e6 * 16 / 8        = 8,000,000
 *   gathered unit           2e6 * 7 / 8         = 1,750,000
 *   bucket of one unit      1e6 * 2             = 2,000,000
 *   activations             4 * 1000 * 100      =   400,000 */
#include <string.h>

#include "models/prices/cost.h"
#include "tests/unit/fixtures/job_fixture.h"

static gint64
peak_of(JobFixture *fixture)
{
    g_autoptr(ZpStep) step = zp_step_new();
    return job_fixture_run(fixture, step).peak_bytes;
}

static void
test_peak_stage_3(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    g_assert_cmpint(peak_of(&fixture), ==, 8000000 + 1750000 + 2000000 + 400000);
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 1;
    g_assert_cmpint(peak_of(&fixture), ==, 8000000 + 2 * 1750000 + 2000000 + 400000);
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 2;
    g_assert_cmpint(peak_of(&fixture), ==, 8000000 + 3 * 1750000 + 2000000 + 400000);
    job_fixture_clear(&fixture);
}

/* With overlap the bucket of the last unit is in reduction while the next one fills; the first
 * activations are gone by then. */
static void
test_peak_overlap(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 1;
    fixture.job.zero.overlap = TRUE;
    g_assert_cmpint(peak_of(&fixture), ==, 8000000 + 2 * 1750000 + 2 * 2000000 + 300000);
    job_fixture_clear(&fixture);
}

static void
test_peak_without_reshard(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.zero.reshard_after_forward = FALSE;
    g_assert_cmpint(peak_of(&fixture), ==, 8000000 + 4 * 1750000 + 2000000 + 400000);
    job_fixture_clear(&fixture);
}

static void
test_peak_other_stages(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.zero.stage = 0;
    g_assert_cmpint(peak_of(&fixture), ==, 4 * 16000000 + 2000000 + 400000);
    fixture.job.zero.stage = 1;
    g_assert_cmpint(peak_of(&fixture), ==, 4 * (4000000 + 1500000) + 2000000 + 400000);
    fixture.job.zero.stage = 2;
    g_assert_cmpint(peak_of(&fixture), ==, 4 * (2000000 + 1750000) + 2000000 + 400000);
    job_fixture_clear(&fixture);
}

/* A bucket of two units holds both gradients. */
static void
test_bucket_of_two_units(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.zero.stage = 2;
    fixture.job.zero.bucket_elements = 1500000;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary = job_fixture_run(&fixture, step);
    g_assert_cmpint(summary.peak_by_class[ZP_CLASS_COMMUNICATION], ==, 4000000);
    job_fixture_clear(&fixture);
}

/* Full: inputs stay (10 bytes a token), the rest of one layer comes back; selective keeps what the
 * layer says (all, in this fixture). */
static void
test_checkpointing(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpTime none = job_fixture_run(&fixture, step).step_ps;
    fixture.job.training.checkpointing = ZP_CHECKPOINTING_FULL;
    ZpStepSummary full = job_fixture_run(&fixture, step);
    g_assert_cmpint(full.peak_bytes, ==, 8000000 + 1750000 + 2000000 + 4 * 10000 + 90000);
    /* One more forward of 1 ms a layer. */
    g_assert_cmpint(full.step_ps - none, ==, 4 * ZP_TIME_PER_MS);
    fixture.job.training.checkpointing = ZP_CHECKPOINTING_SELECTIVE;
    g_assert_cmpint(job_fixture_run(&fixture, step).step_ps, ==, none);
    job_fixture_clear(&fixture);
}

/* No overlap, no prefetch: the step is the plain sum of its parts. */
static void
test_step_time(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary = job_fixture_run(&fixture, step);
    ZpTime collective =
        zp_time_from_seconds(1750000.0 / 300e9) + fixture.job.network.link_latency_ps;
    ZpTime optimizer = zp_time_from_seconds(500000.0 * 30.0 / 2e12);
    g_assert_cmpint(summary.step_ps, ==, 12 * ZP_TIME_PER_MS + 12 * collective + optimizer);
    g_assert_cmpint(summary.exposed_ps, ==, 12 * collective);
    /* A prefetched gather hides behind the layer before; the first of each pass cannot. */
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 1;
    g_assert_cmpint(job_fixture_run(&fixture, step).exposed_ps, ==, (2 + 4) * collective);
    fixture.job.zero.overlap = TRUE;
    ZpStepSummary overlapped = job_fixture_run(&fixture, step);
    g_assert_cmpint(overlapped.exposed_ps, ==, 3 * collective);
    job_fixture_clear(&fixture);
}

/* Gathers of updated parameters, after the step and beside the next forward: there only that of the
 * first unit is waited for.  One step stands for all: the second takes as long. */
static void
test_overlap_gather(void)
{
    g_autoptr(ZpStep) step = zp_step_new();
    for (int stage = 1; stage <= 2; stage++) {
        JobFixture fixture;
        job_fixture_init(&fixture, 1000000, 4);
        fixture.job.zero.stage = stage;
        ZpStepSummary after = job_fixture_run(&fixture, step);
        fixture.job.zero.overlap_gather = TRUE;
        ZpStepSummary beside = job_fixture_run(&fixture, step);
        ZpCost gather = zp_cost_collective(&fixture.job.network, ZP_KIND_ALL_GATHER, 2000000, 8, 1);
        ZpTime one = gather.fixed_ps + gather.solo_ps;
        g_assert_cmpint(after.exposed_ps - beside.exposed_ps, ==, 3 * one);
        g_assert_cmpint(after.step_ps - beside.step_ps, ==, 3 * one);
        g_assert_cmpint(after.peak_bytes, ==, beside.peak_bytes);
        fixture.job.simulation.steps = 3;
        g_assert_cmpint(job_fixture_run(&fixture, step).step_ps, ==, beside.step_ps);
        job_fixture_clear(&fixture);
    }
}

static gint64
wire_bytes(const ZpStepSummary *summary)
{
    gint64 sum = 0;
    for (int i = 0; i < summary->n_traffic; i++)
        sum += summary->traffic[i].wire_bytes;
    return sum;
}

/* ZeRO paper section 7: 3 x the parameters' bytes at stage 3 with re-gather, 2 x below, times
 * (N-1)/N, in every wrapping. */
static void
test_volume(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    g_autoptr(ZpStep) step = zp_step_new();
    const gint64 once = 4 * 1750000;
    const ZpWrap wraps[] = {ZP_WRAP_SUBLAYER, ZP_WRAP_BLOCK, ZP_WRAP_SIZE, ZP_WRAP_MODEL};
    for (gsize w = 0; w < G_N_ELEMENTS(wraps); w++) {
        fixture.job.zero.wrap = wraps[w];
        fixture.job.zero.wrap_elements = 1500000;
        for (int stage = 0; stage <= 3; stage++) {
            fixture.job.zero.stage = stage;
            ZpStepSummary summary = job_fixture_run(&fixture, step);
            g_assert_cmpint(wire_bytes(&summary), ==, (stage == 3 ? 3 : 2) * once);
        }
    }
    fixture.job.zero.reshard_after_forward = FALSE;
    ZpStepSummary kept = job_fixture_run(&fixture, step);
    g_assert_cmpint(wire_bytes(&kept), ==, 2 * once);
    job_fixture_clear(&fixture);
}

/* Sharded gradients are reduced every micro-batch, full ones once. */
static void
test_accumulation_volume(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.training.accumulation = 3;
    g_autoptr(ZpStep) step = zp_step_new();
    const gint64 once = 4 * 1750000;
    const gint64 expected[] = {2 * once, 2 * once, (3 + 1) * once, 9 * once};
    for (int stage = 0; stage <= 3; stage++) {
        fixture.job.zero.stage = stage;
        ZpStepSummary summary = job_fixture_run(&fixture, step);
        g_assert_cmpint(wire_bytes(&summary), ==, expected[stage]);
    }
    job_fixture_clear(&fixture);
}

/* Shard groups of 4 in a world of 8: shards double, replicas all-reduce their shards. */
static void
test_hybrid(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.world.shard_group = 4;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary = job_fixture_run(&fixture, step);
    g_assert_cmpint(summary.persistent_bytes, ==, 16000000);
    gint64 reduced = 0;
    for (int i = 0; i < summary.n_traffic; i++) {
        if (summary.traffic[i].kind == ZP_KIND_ALL_REDUCE)
            reduced += summary.traffic[i].bytes;
    }
    g_assert_cmpint(reduced, ==, 4 * 250000 * 2);
    job_fixture_clear(&fixture);
}

/* A 400e6-parameter bf16 unit on 8 ranks lacks 700 MB; a prefetched second one doubles that; a
 * model of 60 equal layers gathers a sixtieth at a time. */
static void
test_worked_gathers(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 400000000, 3);
    g_autoptr(ZpStep) step = zp_step_new();
    job_fixture_run(&fixture, step);
    const ZpMemory *memory = &zp_step_result(step)->ranks[0].memory[ZP_TAPE_SPACE_DEVICE];
    g_assert_cmpint(memory->class_peak_bytes[ZP_CLASS_GATHERED], ==, 700000000);
    fixture.job.zero.prefetch_forward = 1;
    job_fixture_run(&fixture, step);
    memory = &zp_step_result(step)->ranks[0].memory[ZP_TAPE_SPACE_DEVICE];
    g_assert_cmpint(memory->class_peak_bytes[ZP_CLASS_GATHERED], ==, 1400000000);
    job_fixture_clear(&fixture);

    job_fixture_init(&fixture, 80000000, 60);
    g_autoptr(ZpStep) deep = zp_step_new();
    job_fixture_run(&fixture, deep);
    memory = &zp_step_result(deep)->ranks[0].memory[ZP_TAPE_SPACE_DEVICE];
    g_assert_cmpint(memory->class_peak_bytes[ZP_CLASS_GATHERED] * 60, ==,
                    G_GINT64_CONSTANT(60) * 80000000 * 2 * 7 / 8);
    job_fixture_clear(&fixture);
}

/* Alike ranks give what the representative gives; a slow rank delays all. */
static void
test_ranks(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000000, 4);
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 1;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary one = job_fixture_run(&fixture, step);
    fixture.job.simulation.simulated_ranks = 8;
    ZpStepSummary all = job_fixture_run(&fixture, step);
    g_assert_cmpint(all.step_ps, ==, one.step_ps);
    g_assert_cmpint(all.peak_bytes, ==, one.peak_bytes);
    fixture.job.simulation.slow_rank = 3;
    fixture.job.simulation.slow_ppm = 1500000;
    g_assert_cmpint(job_fixture_run(&fixture, step).step_ps, >, one.step_ps + 5 * ZP_TIME_PER_MS);
    job_fixture_clear(&fixture);
}

/* A step is reused over models that come and go: a new one often has a freed one's address. */
static void
test_step_outlives_models(void)
{
    g_autoptr(ZpStep) step = zp_step_new();
    for (gint32 layers = 1; layers <= 20; layers++) {
        JobFixture fixture;
        job_fixture_init(&fixture, 1000000, layers);
        ZpStepSummary summary = job_fixture_run(&fixture, step);
        g_assert_cmpint(summary.persistent_bytes, ==, (gint64)layers * 2000000);
        g_assert_cmpint(zp_step_units(step)->n_units, ==, layers);
        job_fixture_clear(&fixture);
    }
}

static gint32
range(GRand *rand, gint32 low, gint32 high)
{
    return g_rand_int_range(rand, low, high + 1);
}

/* Random jobs: zp_step_simulate() itself checks conservation, the named rules and the ledger at the
 * step's boundary; here also stage order, repeatability and the ledger as an upper bound. */
static void
test_random_jobs(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20240229);
    for (int trial = 0; trial < 300; trial++) {
        JobFixture fixture;
        gint32 layers = range(rand, 1, 12);
        job_fixture_init(&fixture, range(rand, 1, 3000000), layers);
        ZpJob *job = &fixture.job;
        const gint32 groups[] = {1, 2, 4, 8};
        job->world.shard_group = groups[range(rand, 0, 3)];
        job->zero.wrap = (ZpWrap)range(rand, 0, 3);
        job->zero.wrap_blocks = range(rand, 1, 4);
        job->zero.wrap_elements = range(rand, 1, 5000000);
        job->zero.prefetch_forward = range(rand, 0, 3);
        job->zero.prefetch_backward = range(rand, 0, 3);
        job->zero.bucket_elements = range(rand, 1, 4000000);
        job->zero.overlap = range(rand, 0, 1);
        job->zero.overlap_gather = range(rand, 0, 1);
        job->zero.reshard_after_forward = range(rand, 0, 1);
        job->training.accumulation = range(rand, 1, 3);
        job->training.checkpointing = (ZpCheckpointing)range(rand, 0, 2);
        job->simulation.steps = range(rand, 1, 2);
        job->precision.gathered = range(rand, 0, 1) ? ZP_DTYPE_BF16 : ZP_DTYPE_FP32;
        gint64 before = G_MAXINT64;
        for (int stage = 0; stage <= 3; stage++) {
            job->zero.stage = stage;
            g_autoptr(ZpStep) step = zp_step_new();
            ZpStepSummary summary = job_fixture_run(&fixture, step);
            g_assert_cmpint(summary.persistent_bytes, <=, before);
            before = summary.persistent_bytes;
            g_assert_cmpint(summary.peak_bytes, <=, zp_step_ledger(step)->total_bytes);
            ZpStepSummary again = job_fixture_run(&fixture, step);
            g_assert_true(memcmp(&summary, &again, sizeof summary) == 0);
        }
        job_fixture_clear(&fixture);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ideal/peak/stage-3", test_peak_stage_3);
    g_test_add_func("/ideal/peak/overlap", test_peak_overlap);
    g_test_add_func("/ideal/peak/without-reshard", test_peak_without_reshard);
    g_test_add_func("/ideal/peak/other-stages", test_peak_other_stages);
    g_test_add_func("/ideal/peak/bucket-of-two-units", test_bucket_of_two_units);
    g_test_add_func("/ideal/checkpointing", test_checkpointing);
    g_test_add_func("/ideal/step-time", test_step_time);
    g_test_add_func("/ideal/overlap-gather", test_overlap_gather);
    g_test_add_func("/ideal/volume", test_volume);
    g_test_add_func("/ideal/volume/accumulation", test_accumulation_volume);
    g_test_add_func("/ideal/hybrid", test_hybrid);
    g_test_add_func("/ideal/worked-gathers", test_worked_gathers);
    g_test_add_func("/ideal/ranks", test_ranks);
    g_test_add_func("/ideal/step-outlives-models", test_step_outlives_models);
    g_test_add_func("/ideal/random-jobs", test_random_jobs);
    return g_test_run();
}
