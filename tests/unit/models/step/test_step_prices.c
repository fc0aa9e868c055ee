/* Every runtime says which rule priced each of its works, and the table of prices sums to the
 * traffic that the summary counts by phase. */
#include "models/prices/calibration.h"
#include "models/prices/cost.h"
#include "models/step/prices.h"
#include "models/step/step.h"
#include "tests/unit/fixtures/job_fixture.h"

static const char *const runtimes[] = {"ideal", "ddp", "fsdp1", "fsdp2", "deepspeed"};

static ZpStepSummary
run(JobFixture *fixture, ZpStep *step, const char *runtime)
{
    fixture->job.runtime = runtime;
    fixture->job.zero.stage = strcmp(runtime, "ddp") == 0 ? 0 : 3;
    return job_fixture_run(fixture, step);
}

static void
assert_rules(const ZpJob *job, const ZpTape *tape, const char *of_layers)
{
    gboolean collects = FALSE, computes = FALSE;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        if (tape->instrs[i].op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &tape->works[tape->instrs[i].a];
        const char *rule = zp_tape_rule(tape, work);
        g_assert_nonnull(rule);
        if (work->kind == ZP_KIND_FORWARD || work->kind == ZP_KIND_BACKWARD) {
            g_assert_cmpstr(rule, ==, of_layers);
            computes = TRUE;
        }
        if (work->group == ZP_TAPE_NONE)
            continue;
        const ZpTapeGroup *group = &tape->groups[work->group];
        ZpCost cost = zp_cost_collective(&job->network, (ZpKind)work->kind, work->bytes,
                                         group->size, group->stride);
        g_assert_cmpstr(rule, ==, cost.rule);
        collects = TRUE;
    }
    g_assert_true(collects && computes);
}

static void
test_rules(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        for (int measured = 0; measured < 2; measured++) {
            JobFixture fixture;
            g_autoptr(ZpStep) step = zp_step_new();
            job_fixture_init(&fixture, 3000017, 6);
            const ZpCalibration *constants = zp_calibration_find("A100-SXM-80");
            fixture.job.device.calibration = measured ? constants : NULL;
            run(&fixture, step, runtimes[r]);
            assert_rules(&fixture.job, zp_step_tape(step),
                         measured ? "constants of A100-SXM-80 (built in)" : ZP_COST_ROOFLINE);
            job_fixture_clear(&fixture);
        }
    }
}

static void
test_sums(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        JobFixture fixture;
        g_autoptr(ZpStep) step = zp_step_new();
        job_fixture_init(&fixture, 3000017, 6);
        ZpStepSummary s = run(&fixture, step, runtimes[r]);
        g_autoptr(GArray) prices = zp_step_prices(zp_step_tape(step));
        gint64 count = 0, bytes = 0, wire_bytes = 0, busy_ps = 0;
        for (int i = 0; i < s.n_traffic; i++) {
            count += s.traffic[i].count;
            bytes += s.traffic[i].bytes;
            wire_bytes += s.traffic[i].wire_bytes;
            busy_ps += s.traffic[i].busy_ps;
        }
        g_assert_cmpint(wire_bytes, >, 0);
        for (guint i = 0; i < prices->len; i++) {
            const ZpStepPrice *price = &g_array_index(prices, ZpStepPrice, i);
            g_assert_cmpint(price->count, >, 0);
            if (price->category != ZP_TAPE_COMMUNICATION && price->category != ZP_TAPE_COPY)
                continue;
            count -= price->count;
            bytes -= price->bytes;
            wire_bytes -= price->wire_bytes;
            busy_ps -= price->busy_ps;
        }
        g_assert_cmpint(count, ==, 0);
        g_assert_cmpint(bytes, ==, 0);
        g_assert_cmpint(wire_bytes, ==, 0);
        g_assert_cmpint(busy_ps, ==, 0);
        job_fixture_clear(&fixture);
    }
}

static void
test_bus_bandwidth(void)
{
    ZpStepPrice price = {.wire_bytes = 7000, .busy_ps = 2 * ZP_TIME_PER_US};
    g_assert_cmpfloat_with_epsilon(zp_step_price_bus_bytes_per_s(&price), 3.5e9, 1.0);
    price.busy_ps = 0;
    g_assert_cmpfloat(zp_step_price_bus_bytes_per_s(&price), ==, 0.0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/step-prices/rules", test_rules);
    g_test_add_func("/step-prices/sums", test_sums);
    g_test_add_func("/step-prices/bus-bandwidth", test_bus_bandwidth);
    return g_test_run();
}
