/* Three answers: the capacity above, inside and below the band, at its very edges. */
#include "models/step/verdict.h"

static ZpVerdict
ask(gint64 low, gint64 needed, gint64 high, gint64 capacity, double contingency, gboolean flushed)
{
    return zp_verdict_of(&(ZpVerdictQuestion){needed, low, high, capacity, contingency, flushed});
}

static void
test_edges(void)
{
    g_assert_cmpint(ask(90, 100, 110, 110, 0.0, FALSE), ==, ZP_VERDICT_FITS);
    g_assert_cmpint(ask(90, 100, 110, 109, 0.0, FALSE), ==, ZP_VERDICT_TIGHT);
    g_assert_cmpint(ask(90, 100, 110, 90, 0.0, FALSE), ==, ZP_VERDICT_TIGHT);
    g_assert_cmpint(ask(90, 100, 110, 89, 0.0, FALSE), ==, ZP_VERDICT_DOES_NOT_FIT);
}

static void
test_contingency(void)
{
    g_assert_cmpint(ask(90, 100, 110, 121, 0.1, FALSE), ==, ZP_VERDICT_FITS);
    g_assert_cmpint(ask(90, 100, 110, 120, 0.1, FALSE), ==, ZP_VERDICT_TIGHT);
    g_assert_cmpint(ask(90, 100, 110, 98, 0.1, FALSE), ==, ZP_VERDICT_DOES_NOT_FIT);
}

/* An emptied cache is never a sure fit; no capacity, no verdict. */
static void
test_flushed_and_unlimited(void)
{
    g_assert_cmpint(ask(100, 100, 100, 1000, 0.0, TRUE), ==, ZP_VERDICT_TIGHT);
    g_assert_cmpint(ask(100, 100, 100, 99, 0.0, TRUE), ==, ZP_VERDICT_DOES_NOT_FIT);
    g_assert_cmpint(ask(100, 100, 100, 0, 0.0, TRUE), ==, ZP_VERDICT_NONE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/verdict/edges", test_edges);
    g_test_add_func("/verdict/contingency", test_contingency);
    g_test_add_func("/verdict/flushed-and-unlimited", test_flushed_and_unlimited);
    return g_test_run();
}
