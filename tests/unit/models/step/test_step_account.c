/* The parts of a step's time sum to the step under every runtime; what computation waits for is
 * what the summary calls exposed; and a device that works undisturbed has no slowed part. */
#include "models/prices/calibration.h"
#include "models/runtimes/registry.h"
#include "models/step/account.h"
#include "tests/unit/fixtures/job_fixture.h"

static const char *const runtimes[] = {"ideal", "ddp", "fsdp1", "fsdp2", "deepspeed"};

static ZpTime
sum_of(const GArray *parts, int what)
{
    ZpTime sum = 0;
    for (guint p = 0; p < parts->len; p++) {
        const ZpStepPart *part = &g_array_index(parts, ZpStepPart, p);
        g_assert_cmpint(part->time_ps, >, 0);
        if (what < 0 || part->part == (ZpStepPartKind)what)
            sum += part->time_ps;
    }
    return sum;
}

static void
assert_parts(const char *runtime, int stage, gint64 accumulation, double network_share)
{
    JobFixture fixture;
    g_autoptr(ZpStep) step = zp_step_new();
    job_fixture_init(&fixture, 30000017, 6);
    fixture.job.runtime = runtime;
    fixture.job.zero.stage = stage;
    fixture.job.training.accumulation = accumulation;
    fixture.job.network.link_bytes_per_s *= network_share;
    ZpStepSummary summary = job_fixture_run(&fixture, step);
    g_autoptr(GArray) parts = zp_step_account(step, &fixture.job);
    g_assert_cmpint(sum_of(parts, -1), ==, summary.step_ps);
    g_assert_cmpint(sum_of(parts, ZP_STEP_PART_WAITING), ==, summary.exposed_ps);
    g_assert_cmpint(sum_of(parts, ZP_STEP_PART_COMPUTE), >, 0);
    job_fixture_clear(&fixture);
}

static void
test_sums(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        const ZpRuntime *runtime = zp_registry_find(runtimes[r]);
        for (int stage = 0; stage <= 3; stage++)
            for (int slow = 0; slow < 2; slow++)
                if (runtime->supports_stage(stage))
                    assert_parts(runtimes[r], stage, 1 + slow, slow ? 0.01 : 1.0);
    }
}

/* Kernels beside communication take longer where constants of the GPU say so. */
static void
test_slowed(void)
{
    for (int contends = 0; contends < 2; contends++) {
        JobFixture fixture;
        g_autoptr(ZpStep) step = zp_step_new();
        job_fixture_init(&fixture, 30000017, 6);
        fixture.job.zero.overlap = TRUE;
        fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 1;
        fixture.job.device.calibration = contends ? zp_calibration_find("A100-SXM-80") : NULL;
        job_fixture_run(&fixture, step);
        g_autoptr(GArray) parts = zp_step_account(step, &fixture.job);
        if (contends)
            g_assert_cmpint(sum_of(parts, ZP_STEP_PART_SLOWED), >, 0);
        else
            g_assert_cmpint(sum_of(parts, ZP_STEP_PART_SLOWED), ==, 0);
        job_fixture_clear(&fixture);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/step-account/sums", test_sums);
    g_test_add_func("/step-account/slowed", test_slowed);
    return g_test_run();
}
