/* MFU counts the FLOPs of what is trained. */
#include "tests/unit/fixtures/job_fixture.h"

static void
freeze(ZpModel *model, guint first, guint end)
{
    for (guint p = first; p < end; p++) {
        ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, p);
        parameter->trainable = FALSE;
    }
    zp_model_finish(model);
}

/* Four layers of 1e6 FLOPs a token, 1,000 tokens. */
static double
gflops(guint frozen_first, guint frozen_end)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000, 4);
    freeze(fixture.model, frozen_first, frozen_end);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary = job_fixture_run(&fixture, step);
    job_fixture_clear(&fixture);
    return summary.model_flops / 1e9;
}

static void
test_frozen(void)
{
    g_assert_cmpfloat_with_epsilon(gflops(0, 0), 12.0, 1e-9);
    /* A frozen layer behind a trained one hands a gradient on. */
    g_assert_cmpfloat_with_epsilon(gflops(3, 4), 11.0, 1e-9);
    /* In front of it nothing runs backward. */
    g_assert_cmpfloat_with_epsilon(gflops(0, 2), 8.0, 1e-9);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/model-flops/frozen", test_frozen);
    return g_test_run();
}
