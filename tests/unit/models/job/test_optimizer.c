#include "models/job/optimizer.h"

/* State bytes per parameter beside parameter and gradient, elements shared by blocks of 1024. */
static double
state_bytes(const ZpOptimizer *optimizer, ZpDtype parameter)
{
    ZpDtype moments = zp_optimizer_moments(optimizer, parameter);
    double moment = zp_dtype_bits(moments) / 8.0;
    if (optimizer->block_elements > 0)
        moment += 4.0 / optimizer->block_elements;
    double bytes = moment * (optimizer->momentum + (optimizer->variance && !optimizer->factored));
    if (zp_optimizer_keeps_master(optimizer, parameter, ZP_DTYPE_FP32))
        bytes += 4.0;
    return bytes;
}

static void
test_state(void)
{
    const struct {
        const char *name;
        ZpDtype parameter;
        double bytes;
    } cases[] = {
        {"adamw", ZP_DTYPE_BF16, 12.0}, /* K of the ZeRO paper */
        {"adam", ZP_DTYPE_FP16, 12.0},
        {"adamw", ZP_DTYPE_FP32, 8.0}, /* the parameters are the master weights */
        {"adamw_foreach", ZP_DTYPE_BF16, 12.0},
        {"adamw_forloop", ZP_DTYPE_FP32, 8.0},
        {"adamw_bf16", ZP_DTYPE_BF16, 4.0}, /* torchtune PR 389: 8 bytes with weight and gradient */
        {"adamw_bf16", ZP_DTYPE_FP32, 8.0},
        {"adamw_bf16_foreach", ZP_DTYPE_BF16, 4.0},
        {"adam8bit", ZP_DTYPE_BF16, 2.0 + 2 * 4.0 / 256},
        {"sgd", ZP_DTYPE_BF16, 4.0},
        {"sgd", ZP_DTYPE_FP32, 0.0},
        {"sgd_momentum", ZP_DTYPE_BF16, 8.0},
        {"lion", ZP_DTYPE_BF16, 8.0},
        {"adafactor", ZP_DTYPE_BF16, 4.0}, /* its variance vanishes per element */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ZpOptimizer *optimizer = zp_optimizer_find(cases[i].name);
        g_assert_nonnull(optimizer);
        g_assert_cmpfloat(state_bytes(optimizer, cases[i].parameter), ==, cases[i].bytes);
    }
}

static void
test_master(void)
{
    const ZpOptimizer *adamw = zp_optimizer_find("AdamW");
    g_assert_true(zp_optimizer_keeps_master(adamw, ZP_DTYPE_BF16, ZP_DTYPE_FP32));
    g_assert_true(zp_optimizer_keeps_master(adamw, ZP_DTYPE_FP8, ZP_DTYPE_FP32));
    g_assert_true(zp_optimizer_keeps_master(adamw, ZP_DTYPE_FP32, ZP_DTYPE_FP64));
    g_assert_false(zp_optimizer_keeps_master(adamw, ZP_DTYPE_FP32, ZP_DTYPE_FP32));
    g_assert_false(zp_optimizer_keeps_master(adamw, ZP_DTYPE_BF16, ZP_DTYPE_NONE));
    const ZpOptimizer *direct = zp_optimizer_find("adamw_bf16");
    g_assert_false(zp_optimizer_keeps_master(direct, ZP_DTYPE_BF16, ZP_DTYPE_FP32));
}

static void
test_factored(void)
{
    const ZpOptimizer *adafactor = zp_optimizer_find("adafactor");
    const ZpOptimizer *adamw = zp_optimizer_find("adamw");
    ZpModelParameter matrix = {.elements = 4096 * 11008, .shape = {4096, 11008}, .n_dims = 2};
    ZpModelParameter vector = {.elements = 4096, .shape = {4096}, .n_dims = 1};
    ZpModelParameter experts = {.elements = 8 * 300 * 200, .shape = {8, 300, 200}, .n_dims = 3};
    ZpModelParameter empty = {.shape = {0, 7}, .n_dims = 2};
    g_assert_cmpint(zp_optimizer_variance_elements(adafactor, &matrix), ==, 4096 + 11008);
    g_assert_cmpint(zp_optimizer_variance_elements(adafactor, &vector), ==, 4096);
    g_assert_cmpint(zp_optimizer_variance_elements(adafactor, &experts), ==, 8 * (300 + 200));
    g_assert_cmpint(zp_optimizer_variance_elements(adafactor, &empty), ==, 0);
    g_assert_cmpint(zp_optimizer_variance_elements(adamw, &matrix), ==, 4096 * 11008);
    g_assert_cmpint(zp_optimizer_variance_elements(zp_optimizer_find("lion"), &matrix), ==, 0);
}

/* Measured on torch with four fp32 tensors of 4 MiB: foreach as much again, for-loop three times
 * the largest, fused nothing. */
static void
test_temporaries(void)
{
    const gint64 all = 4 << 20, largest = 1 << 20;
    const struct {
        const char *name;
        gint64 bytes;
    } cases[] = {
        {"adamw", 0},
        {"adamw_foreach", 16 << 20},
        {"adamw_forloop", 12 << 20},
        {"adamw_bf16_foreach", 8 << 20},
        {"sgd_momentum", 0},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(
            zp_optimizer_temporary_bytes(zp_optimizer_find(cases[i].name), all, largest), ==,
            cases[i].bytes);
}

static void
test_table(void)
{
    gsize n = 0;
    const ZpOptimizer *table = zp_optimizer_table(&n);
    g_assert_cmpuint(n, >, 0);
    for (gsize i = 0; i < n; i++) {
        g_assert_true(zp_optimizer_find(table[i].name) == &table[i]); /* names are unique */
        g_assert_cmpstr(table[i].summary, !=, NULL);
        g_assert_cmpstr(table[i].source, !=, NULL);
        g_assert_cmpint(table[i].traffic_bits, >, 0);
        g_assert_cmpint(zp_dtype_bits(table[i].moments), >, 0);
    }
    g_assert_null(zp_optimizer_find("adamx"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/optimizer/state", test_state);
    g_test_add_func("/optimizer/master", test_master);
    g_test_add_func("/optimizer/factored", test_factored);
    g_test_add_func("/optimizer/temporaries", test_temporaries);
    g_test_add_func("/optimizer/table", test_table);
    return g_test_run();
}
