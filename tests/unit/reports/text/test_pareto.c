#include "reports/text/pareto.h"

#define POINT(peak, step)                                                    \
    {                                                                        \
        .peak_bytes = (peak), .time_ps = (step), .valid = TRUE, .fits = TRUE \
    }

static void
assert_front(const ZpPareto *pareto, const gint32 *expected, gsize n)
{
    g_assert_cmpuint(pareto->n_front, ==, n);
    for (gsize i = 0; i < n; i++)
        g_assert_cmpint(pareto->front[i], ==, expected[i]);
}

static void
test_front_and_knee(void)
{
    /* (0,10) and (10,0) are the ends; (2,3) lies deepest under the line, (5,2) less deep. */
    const ZpParetoPoint points[] = {POINT(10, 0), POINT(5, 2), POINT(0, 10), POINT(6, 6),
                                    POINT(2, 3),  POINT(3, 3), POINT(2, 4)};
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(points, G_N_ELEMENTS(points), &pareto);
    const gint32 front[] = {2, 4, 1, 0};
    assert_front(&pareto, front, 4);
    g_assert_cmpint(pareto.knee, ==, 4);
    g_assert_cmpint(pareto.best_time, ==, 0);
    g_assert_cmpint(pareto.best_memory, ==, 2);
}

/* Without scaling, the axis of large numbers would decide alone: bytes against picoseconds. */
static void
test_knee_is_scale_free(void)
{
    const gint64 peaks[] = {0, 2, 5, 10}, steps[] = {10, 3, 2, 0};
    const gint64 scales[] = {1, 1000, G_GINT64_CONSTANT(1000000000000)};
    for (gsize s = 0; s < G_N_ELEMENTS(scales); s++) {
        ZpParetoPoint points[4];
        for (int i = 0; i < 4; i++)
            points[i] = (ZpParetoPoint){peaks[i] * scales[s], steps[i], TRUE, TRUE};
        g_auto(ZpPareto) pareto = {0};
        zp_pareto_find(points, 4, &pareto);
        g_assert_cmpint(pareto.knee, ==, 1);
    }
}

static void
test_ties(void)
{
    /* Equal points: the first stays.  Two equally deep: the one of the lower peak. */
    const ZpParetoPoint points[] = {POINT(0, 10), POINT(0, 10), POINT(6, 2),
                                    POINT(2, 6),  POINT(10, 0), POINT(10, 0)};
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(points, G_N_ELEMENTS(points), &pareto);
    const gint32 front[] = {0, 3, 2, 4};
    assert_front(&pareto, front, 4);
    g_assert_cmpint(pareto.knee, ==, 3);
    g_assert_cmpint(pareto.best_time, ==, 4);
    g_assert_cmpint(pareto.best_memory, ==, 0);
}

static void
test_no_knee(void)
{
    /* On the line and above it there is nothing to gain. */
    const ZpParetoPoint straight[] = {POINT(0, 10), POINT(5, 5), POINT(10, 0)};
    const ZpParetoPoint bulging[] = {POINT(0, 10), POINT(8, 8), POINT(10, 0)};
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(straight, 3, &pareto);
    g_assert_cmpuint(pareto.n_front, ==, 3);
    g_assert_cmpint(pareto.knee, ==, ZP_PARETO_NONE);
    zp_pareto_clear(&pareto);
    zp_pareto_find(bulging, 3, &pareto);
    g_assert_cmpint(pareto.knee, ==, ZP_PARETO_NONE);
    zp_pareto_clear(&pareto);
    zp_pareto_find(straight, 2, &pareto);
    g_assert_cmpint(pareto.knee, ==, ZP_PARETO_NONE);
}

static void
test_refused_and_unfitting(void)
{
    ZpParetoPoint points[] = {POINT(1, 1), POINT(9, 2), POINT(5, 5), POINT(4, 5)};
    points[0].valid = FALSE;
    points[1].fits = FALSE;
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(points, 4, &pareto);
    const gint32 fitting[] = {3};
    assert_front(&pareto, fitting, 1);
    g_assert_cmpint(pareto.best_time, ==, 3);
    g_assert_cmpint(pareto.best_memory, ==, 3);
    g_assert_true(pareto.some_fit);
    zp_pareto_clear(&pareto);
    for (int i = 0; i < 4; i++)
        points[i].fits = FALSE; /* then all are ranked */
    zp_pareto_find(points, 4, &pareto);
    const gint32 front[] = {3, 1};
    assert_front(&pareto, front, 2);
    g_assert_cmpint(pareto.best_time, ==, 1);
    g_assert_false(pareto.some_fit);
    zp_pareto_clear(&pareto);
    points[1].valid = points[2].valid = points[3].valid = FALSE;
    zp_pareto_find(points, 4, &pareto);
    g_assert_cmpuint(pareto.n_front, ==, 0);
    g_assert_cmpint(pareto.best_memory, ==, ZP_PARETO_NONE);
    zp_pareto_clear(&pareto);
    zp_pareto_find(NULL, 0, &pareto);
    g_assert_cmpuint(pareto.n_front, ==, 0);
}

/* Against the definition, on many points that collide often. */
static void
test_definition(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int round = 0; round < 200; round++) {
        ZpParetoPoint points[40];
        for (int i = 0; i < 40; i++)
            points[i] =
                (ZpParetoPoint){g_rand_int_range(rand, 0, 12), g_rand_int_range(rand, 0, 12),
                                g_rand_int_range(rand, 0, 8) > 0, TRUE};
        g_auto(ZpPareto) pareto = {0};
        zp_pareto_find(points, 40, &pareto);
        gboolean in_front[40] = {FALSE};
        for (gsize i = 0; i < pareto.n_front; i++)
            in_front[pareto.front[i]] = TRUE;
        for (int i = 0; i < 40; i++) {
            gboolean beaten = !points[i].valid;
            for (int j = 0; j < 40; j++) {
                const ZpParetoPoint *a = &points[j], *b = &points[i];
                if (!a->valid || a->peak_bytes > b->peak_bytes || a->time_ps > b->time_ps)
                    continue;
                gboolean equal = a->peak_bytes == b->peak_bytes && a->time_ps == b->time_ps;
                beaten = beaten || !equal || j < i;
            }
            g_assert_cmpint(in_front[i], ==, !beaten);
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pareto/front-and-knee", test_front_and_knee);
    g_test_add_func("/pareto/scale-free", test_knee_is_scale_free);
    g_test_add_func("/pareto/ties", test_ties);
    g_test_add_func("/pareto/no-knee", test_no_knee);
    g_test_add_func("/pareto/refused", test_refused_and_unfitting);
    g_test_add_func("/pareto/definition", test_definition);
    return g_test_run();
}
