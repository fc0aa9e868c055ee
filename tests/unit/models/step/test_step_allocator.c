/* A step with the caching allocator: three curves in order, nothing else changed, and the verdict.
 */
#include "models/families/catalog.h"
#include "models/step/step.h"
#include "reports/store/recorder.h"
#include "tests/unit/fixtures/job_fixture.h"

static ZpStepSummary
run_with(JobFixture *fixture, const char *runtime, ZpAllocatorMode mode, gint64 capacity)
{
    g_autoptr(ZpStep) step = zp_step_new();
    fixture->job.runtime = runtime;
    fixture->job.device.allocator = mode;
    fixture->job.device.capacity_bytes = capacity;
    return job_fixture_run(fixture, step);
}

static const char *const runtimes[] = {"ideal", "fsdp1", "fsdp2", "deepspeed"};

static void
test_curves_are_in_order(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        for (int mode = ZP_ALLOCATOR_CACHING; mode <= ZP_ALLOCATOR_EXPANDABLE; mode++) {
            JobFixture fixture;
            job_fixture_init(&fixture, 3000017, 6);
            fixture.job.device.overhead_bytes = 12345;
            ZpStepSummary plain = run_with(&fixture, runtimes[r], ZP_ALLOCATOR_NONE, 0);
            ZpStepSummary s = run_with(&fixture, runtimes[r], (ZpAllocatorMode)mode, 0);
            const ZpAllocatorBytes *peak = &s.allocator.peak;
            g_assert_false(plain.has_allocator);
            g_assert_true(s.has_allocator);
            g_assert_cmpint(plain.peak_bytes, ==, s.peak_bytes);
            g_assert_cmpint(plain.step_ps, ==, s.step_ps);
            g_assert_cmpint(peak->requested_bytes, ==, s.peak_bytes - 12345);
            g_assert_cmpint(peak->allocated_bytes, >=, peak->requested_bytes);
            g_assert_cmpint(peak->active_bytes, >=, peak->allocated_bytes);
            g_assert_cmpint(peak->reserved_bytes, >=, peak->active_bytes);
            g_assert_cmpint(s.reserved_bytes, ==, peak->reserved_bytes + 12345);
            job_fixture_clear(&fixture);
        }
    }
}

/* The parts of what is reserved at its peak add up to it. */
static void
test_peak_is_explained(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        JobFixture fixture;
        job_fixture_init(&fixture, 3000017, 6);
        ZpStepSummary s = run_with(&fixture, runtimes[r], ZP_ALLOCATOR_CACHING, 0);
        const ZpAllocatorResult *a = &s.allocator;
        g_assert_cmpint(a->at_peak.allocated_bytes + a->waiting_bytes + a->fragmented_bytes +
                            a->other_streams_bytes + a->other_sizes_bytes,
                        ==, a->peak.reserved_bytes);
        gint64 reserved = 0;
        for (int p = 0; p < a->n_pools; p++)
            reserved += a->pools[p].bytes.reserved_bytes;
        g_assert_cmpint(reserved, ==, a->peak.reserved_bytes);
        job_fixture_clear(&fixture);
    }
}

/* A capacity between allocated and reserved: the allocator decides, and empties its cache first. */
static void
test_verdict(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 3000017, 6);
    fixture.job.device.overhead_bytes = 1 << 20;
    ZpStepSummary free_run = run_with(&fixture, "fsdp1", ZP_ALLOCATOR_CACHING, 0);
    g_assert_cmpint(free_run.reserved_bytes, >, free_run.peak_bytes);
    ZpStepSummary s = run_with(&fixture, "fsdp1", ZP_ALLOCATOR_CACHING, free_run.reserved_bytes);
    g_assert_cmpint(s.verdict, ==, ZP_VERDICT_TIGHT); /* inside the band */
    g_assert_cmpint(s.headroom_bytes, ==, 0);
    g_assert_cmpint(s.allocator.n_flushes, ==, 0);
    g_assert_cmpint(run_with(&fixture, "fsdp1", ZP_ALLOCATOR_CACHING, s.needed_high_bytes).verdict,
                    ==, ZP_VERDICT_FITS);
    gint64 tight = free_run.peak_bytes + (1 << 20);
    g_assert_cmpint(tight, <, free_run.reserved_bytes);
    g_assert_cmpint(run_with(&fixture, "fsdp1", ZP_ALLOCATOR_NONE, tight).verdict, ==,
                    ZP_VERDICT_FITS);
    s = run_with(&fixture, "fsdp1", ZP_ALLOCATOR_CACHING, tight);
    g_assert_cmpint(s.allocator.n_flushes, >, 0);
    gboolean is_out = s.allocator.out_of_memory_instr != ZP_TAPE_NONE;
    g_assert_cmpint(s.verdict, ==, is_out ? ZP_VERDICT_DOES_NOT_FIT : ZP_VERDICT_TIGHT);
    g_assert_cmpint(s.first_over_instr, ==, s.allocator.out_of_memory_instr);
    fixture.job.device.contingency = 4.0;
    s = run_with(&fixture, "fsdp1", ZP_ALLOCATOR_CACHING, free_run.reserved_bytes);
    g_assert_cmpint(s.reserved_bytes + s.contingency_bytes + s.headroom_bytes, ==,
                    free_run.reserved_bytes);
    g_assert_cmpint(s.verdict, ==, ZP_VERDICT_DOES_NOT_FIT);
    job_fixture_clear(&fixture);
}

typedef struct {
    gint64 spans, changes, other_rank;
} Seen;

static void
on_span(const ZpTape *tape, const ZpObserverSpan *span, gpointer data)
{
    (void)tape;
    Seen *seen = data;
    seen->spans++;
    seen->other_rank += span->rank != 1;
}

static void
on_change(const ZpTape *tape, const ZpObserverChange *change, gpointer data)
{
    (void)tape;
    Seen *seen = data;
    seen->changes++;
    seen->other_rank += change->rank != 1;
}

/* Another observer, of another rank, sees what it sees alone. */
static void
test_beside_an_observer(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 3000017, 6);
    fixture.job.optimizer = &fixture.optimizer;
    fixture.job.simulation.simulated_ranks = 8;
    Seen seen[2] = {{0}};
    gint64 reserved = run_with(&fixture, "ideal", ZP_ALLOCATOR_CACHING, 0).reserved_bytes;
    for (int with = 0; with < 2; with++) {
        ZpObserver observer = {
            .span = on_span, .change = on_change, .data = &seen[with], .rank = 1};
        fixture.job.device.allocator = with ? ZP_ALLOCATOR_CACHING : ZP_ALLOCATOR_NONE;
        g_autoptr(ZpStep) step = zp_step_new();
        ZpStepSummary summary;
        g_autoptr(GError) error = NULL;
        g_assert_true(zp_step_simulate(step, &fixture.job, &observer, NULL, &summary, &error));
        if (with)
            g_assert_cmpint(summary.reserved_bytes, ==, reserved);
    }
    g_assert_cmpint(seen[0].spans, >, 0);
    g_assert_cmpint(seen[0].spans, ==, seen[1].spans);
    g_assert_cmpint(seen[0].changes, ==, seen[1].changes);
    g_assert_cmpint(seen[1].other_rank, ==, 0);
    job_fixture_clear(&fixture);
}

/* A recorder is told the three curves, whose maxima are the peaks; without an allocator nothing. */
static void
test_recorded_curves(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        JobFixture fixture;
        job_fixture_init(&fixture, 3000017, 6);
        fixture.job.optimizer = &fixture.optimizer;
        fixture.job.runtime = runtimes[r];
        g_autoptr(ZpRecorder) recorder = zp_recorder_new();
        for (int with = 0; with < 2; with++) {
            fixture.job.device.allocator = with ? ZP_ALLOCATOR_CACHING : ZP_ALLOCATOR_NONE;
            zp_recorder_clear(recorder);
            g_autoptr(ZpStep) step = zp_step_new();
            ZpStepSummary summary;
            g_assert_true(zp_step_simulate(step, &fixture.job, zp_recorder_observer(recorder), NULL,
                                           &summary, NULL));
            gsize n;
            const ZpObserverPools *pools = zp_recorder_pools(recorder, &n);
            g_assert_cmpint(n > 0, ==, with);
            ZpObserverPools highest = {0};
            for (gsize i = 0; i < n; i++) {
                g_assert_cmpint(pools[i].time, >=, highest.time);
                g_assert_cmpint(pools[i].allocated_bytes, <=, pools[i].active_bytes);
                g_assert_cmpint(pools[i].active_bytes, <=, pools[i].reserved_bytes);
                highest.time = pools[i].time;
                highest.allocated_bytes = MAX(highest.allocated_bytes, pools[i].allocated_bytes);
                highest.active_bytes = MAX(highest.active_bytes, pools[i].active_bytes);
                highest.reserved_bytes = MAX(highest.reserved_bytes, pools[i].reserved_bytes);
            }
            const ZpAllocatorBytes *peak = &summary.allocator.peak;
            g_assert_cmpint(highest.allocated_bytes, ==, peak->allocated_bytes);
            g_assert_cmpint(highest.active_bytes, ==, peak->active_bytes);
            g_assert_cmpint(highest.reserved_bytes, ==, peak->reserved_bytes);
        }
        job_fixture_clear(&fixture);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/step-allocator/order", test_curves_are_in_order);
    g_test_add_func("/step-allocator/explained", test_peak_is_explained);
    g_test_add_func("/step-allocator/verdict", test_verdict);
    g_test_add_func("/step-allocator/observer", test_beside_an_observer);
    g_test_add_func("/step-allocator/recorded", test_recorded_curves);
    return g_test_run();
}
