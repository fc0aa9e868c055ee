/* Counter-based random numbers: fixed values, independence of order, the shape of the normal. */
#include "sim/events/rng.h"

#include <math.h>

/* The finaliser is SplitMix64's: its first output for state 0 is published as
 * 0xe220a8397b1dcdaf, and our chain for (seed, rank, counter) is three such mixes. */
static guint64
splitmix(guint64 state)
{
    guint64 z = state + G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void
test_known(void)
{
    g_assert_cmpuint(splitmix(0), ==, G_GUINT64_CONSTANT(0xe220a8397b1dcdaf));
    /* Rank 0 and counter 0 add one golden step each. */
    for (guint64 seed = 0; seed < 50; seed++)
        g_assert_cmpuint(zp_rng_bits(seed, 0, 0), ==, splitmix(splitmix(splitmix(seed))));
}

static void
test_keys_matter(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_int64_hash, g_int64_equal);
    static guint64 draws[20 * 20 * 20];
    gsize n = 0;
    for (guint64 seed = 0; seed < 20; seed++)
        for (gint32 rank = 0; rank < 20; rank++)
            for (gint64 counter = 0; counter < 20; counter++) {
                draws[n] = zp_rng_bits(seed, rank, counter);
                g_assert_true(g_hash_table_add(seen, &draws[n]));
                n++;
            }
}

static void
test_bits_are_fair(void)
{
    enum { N = 100000 };
    int ones[64] = {0};
    for (gint64 k = 0; k < N; k++) {
        guint64 bits = zp_rng_bits(1, 2, k);
        for (int b = 0; b < 64; b++)
            ones[b] += (int)(bits >> b & 1);
    }
    for (int b = 0; b < 64; b++) /* six standard deviations of a fair coin */
        g_assert_cmpint(ABS(ones[b] - N / 2), <, (int)(6 * sqrt(N) / 2));
}

static void
test_gaussian(void)
{
    enum { N = 400000 };
    double sum = 0, squares = 0, cubes = 0, fourths = 0;
    int within_one = 0;
    for (gint64 k = 0; k < N; k++) {
        gint64 ppm = zp_rng_gaussian_ppm(99, (gint32)(k % 64), k / 64);
        g_assert_cmpint(ABS(ppm), <=, 6000000);
        double x = (double)ppm / 1e6;
        sum += x;
        squares += x * x;
        cubes += x * x * x;
        fourths += x * x * x * x;
        within_one += fabs(x) < 1.0;
    }
    /* Five standard errors each; kurtosis of twelve uniforms is 3 - 1.2 / 12. */
    g_assert_cmpfloat(fabs(sum / N), <, 5 / sqrt(N));
    g_assert_cmpfloat(fabs(squares / N - 1), <, 5 * sqrt(2.0 / N));
    g_assert_cmpfloat(fabs(cubes / N), <, 5 * sqrt(15.0 / N));
    g_assert_cmpfloat(fabs(fourths / N - 2.9), <, 5 * sqrt(96.0 / N));
    g_assert_cmpfloat(fabs((double)within_one / N - 0.6827), <, 0.006);
}

static void
test_order_is_nothing(void)
{
    gint64 forwards[100], backwards[100];
    for (int k = 0; k < 100; k++)
        forwards[k] = zp_rng_gaussian_ppm(7, 3, k);
    for (int k = 99; k >= 0; k--)
        backwards[k] = zp_rng_gaussian_ppm(7, 3, k);
    for (int k = 0; k < 100; k++)
        g_assert_cmpint(forwards[k], ==, backwards[k]);
    g_assert_cmpint(forwards[0], !=, forwards[1]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rng/known-values", test_known);
    g_test_add_func("/rng/every-key-matters", test_keys_matter);
    g_test_add_func("/rng/bits-are-fair", test_bits_are_fair);
    g_test_add_func("/rng/gaussian", test_gaussian);
    g_test_add_func("/rng/order-is-nothing", test_order_is_nothing);
    return g_test_run();
}
