#include "models/words/dtype.h"

static void
test_names(void)
{
    for (int i = 0; i < ZP_N_DTYPES; i++) {
        ZpDtype dtype = ZP_N_DTYPES;
        g_assert_true(zp_dtype_parse(zp_dtype_name((ZpDtype)i), &dtype));
        g_assert_cmpint(dtype, ==, i);
    }
    const struct {
        const char *alias;
        ZpDtype dtype;
    } aliases[] = {
        {"bfloat16", ZP_DTYPE_BF16}, {"torch.bfloat16", ZP_DTYPE_BF16}, {"float16", ZP_DTYPE_FP16},
        {"HALF", ZP_DTYPE_FP16},     {"torch.float32", ZP_DTYPE_FP32},  {"float", ZP_DTYPE_FP32},
        {"nf4", ZP_DTYPE_INT4},      {"double", ZP_DTYPE_FP64},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(aliases); i++) {
        ZpDtype dtype = ZP_DTYPE_NONE;
        g_assert_true(zp_dtype_parse(aliases[i].alias, &dtype));
        g_assert_cmpint(dtype, ==, aliases[i].dtype);
    }
    ZpDtype untouched = ZP_DTYPE_FP8;
    g_assert_false(zp_dtype_parse("bf17", &untouched));
    g_assert_false(zp_dtype_parse("", &untouched));
    g_assert_cmpint(untouched, ==, ZP_DTYPE_FP8);
}

static void
test_bytes(void)
{
    const int bits[ZP_N_DTYPES] = {0, 32, 32, 16, 16, 8, 8, 4, 64};
    for (int i = 0; i < ZP_N_DTYPES; i++)
        g_assert_cmpint(zp_dtype_bits((ZpDtype)i), ==, bits[i]);
    g_assert_cmpint(zp_dtype_bytes(16, 7), ==, 14);
    g_assert_cmpint(zp_dtype_bytes(4, 7), ==, 4); /* half a byte rounds up */
    g_assert_cmpint(zp_dtype_bytes(4, 8), ==, 4);
    g_assert_cmpint(zp_dtype_bytes(0, 8), ==, 0);
    g_assert_cmpint(zp_dtype_bytes(32, G_GINT64_CONSTANT(1000000000000)), ==,
                    G_GINT64_CONSTANT(4000000000000));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/dtype/names", test_names);
    g_test_add_func("/dtype/bytes", test_bytes);
    return g_test_run();
}
