/* Quantities: what is read, what is refused and why, and that printing is the inverse. */
#include "scenarios/language/quantity.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef gboolean (*Parse)(const char *text, gint64 *value, GError **error);

static gboolean
parse_elements(const char *text, gint64 *value, GError **error)
{
    return zp_quantity_parse_count(text, "elements", value, error);
}

/* Reals as their bits' nearest integer, so that one table serves all kinds. */
static gboolean
parse_bandwidth(const char *text, gint64 *value, GError **error)
{
    double real = 0;
    gboolean ok = zp_quantity_parse_bandwidth(text, &real, error);
    *value = (gint64)real;
    return ok;
}

static gboolean
parse_flops(const char *text, gint64 *value, GError **error)
{
    double real = 0;
    gboolean ok = zp_quantity_parse_flops(text, &real, error);
    *value = (gint64)real;
    return ok;
}

static gboolean
parse_ratio_ppm(const char *text, gint64 *value, GError **error)
{
    double real = 0;
    gboolean ok = zp_quantity_parse_ratio(text, &real, error);
    *value = (gint64)(real * 1e6 + 0.5);
    return ok;
}

static const struct {
    Parse parse;
    const char *text;
    gint64 value;
} good[] = {
    {parse_elements, "8", 8},
    {parse_elements, "0", 0},
    {parse_elements, "7e9", 7000000000},
    {parse_elements, "7.5e9", 7500000000},
    {parse_elements, "1.5e3", 1500},
    {parse_elements, "1E3", 1000},
    {parse_elements, "150e-1", 15},
    {parse_elements, "1_000_000", 1000000},
    {parse_elements, "5e8 elements", 500000000},
    {parse_elements, "5e8elements", 500000000},
    {parse_elements, "  12  ", 12},
    {parse_elements, "3.000", 3},
    {parse_elements, "9223372036854775807", G_MAXINT64},
    {parse_elements, "8030261248", 8030261248},
    {zp_quantity_parse_bytes, "80 GiB", 85899345920},
    {zp_quantity_parse_bytes, "80GiB", 85899345920},
    {zp_quantity_parse_bytes, "80 GB", 80000000000},
    {zp_quantity_parse_bytes, "512 MiB", 536870912},
    {zp_quantity_parse_bytes, "0.5 KiB", 512},
    {zp_quantity_parse_bytes, "79.15 GiB", 84986665370},
    {zp_quantity_parse_bytes, "12 B", 12},
    {zp_quantity_parse_bytes, "1 kB", 1000},
    {zp_quantity_parse_bytes, "2 TB", 2000000000000},
    {parse_bandwidth, "400 Gbit/s", 50000000000},
    {parse_bandwidth, "300 GB/s", 300000000000},
    {parse_bandwidth, "25 GiB/s", 26843545600},
    {parse_bandwidth, "1.6 Tbit/s", 200000000000},
    {parse_flops, "312 TFLOP/s", 312000000000000},
    {parse_flops, "989.5 TFLOP/s", 989500000000000},
    {parse_flops, "1 PFLOP/s", 1000000000000000},
    {zp_quantity_parse_time, "5 us", 5000000},
    {zp_quantity_parse_time, "12.5 ms", 12500000000},
    {zp_quantity_parse_time, "3 ns", 3000},
    {zp_quantity_parse_time, "2 s", 2000000000000},
    {zp_quantity_parse_time, "0.001 ns", 1},
    {parse_ratio_ppm, "0.7", 700000},
    {parse_ratio_ppm, "70 %", 700000},
    {parse_ratio_ppm, "70%", 700000},
    {parse_ratio_ppm, "1", 1000000},
};

static const struct {
    Parse parse;
    const char *text;
    ZpQuantityError code;
    const char *advice; /* part of the message */
} bad[] = {
    {parse_elements, "", ZP_QUANTITY_ERROR_SYNTAX, "not a number"},
    {parse_elements, "many", ZP_QUANTITY_ERROR_SYNTAX, "not a number"},
    {parse_elements, "1.5", ZP_QUANTITY_ERROR_WHOLE, "whole number"},
    {parse_elements, "15e-1", ZP_QUANTITY_ERROR_WHOLE, "whole number"},
    {parse_elements, "1e-300", ZP_QUANTITY_ERROR_WHOLE, "whole number"},
    {parse_elements, "-1", ZP_QUANTITY_ERROR_SYNTAX, "sign"},
    {parse_elements, "+1", ZP_QUANTITY_ERROR_SYNTAX, "sign"},
    {parse_elements, "nan", ZP_QUANTITY_ERROR_SYNTAX, "not a number"},
    {parse_elements, "inf", ZP_QUANTITY_ERROR_SYNTAX, "not a number"},
    {parse_elements, "0x10", ZP_QUANTITY_ERROR_SYNTAX, "decimal"},
    {parse_elements, "007", ZP_QUANTITY_ERROR_SYNTAX, "leading zeros"},
    {parse_elements, ".5", ZP_QUANTITY_ERROR_SYNTAX, "not a number"},
    {parse_elements, "5.", ZP_QUANTITY_ERROR_SYNTAX, "digits must follow"},
    {parse_elements, "1__0", ZP_QUANTITY_ERROR_UNIT, "elements"},
    {parse_elements, "1_", ZP_QUANTITY_ERROR_UNIT, "elements"},
    {parse_elements, "1 000", ZP_QUANTITY_ERROR_UNIT, "elements"},
    {parse_elements, "7B", ZP_QUANTITY_ERROR_UNIT, "7e9"},
    {parse_elements, "7e", ZP_QUANTITY_ERROR_UNIT, "elements"},
    {parse_elements, "5 tokens", ZP_QUANTITY_ERROR_UNIT, "elements"},
    {parse_elements, "1e19", ZP_QUANTITY_ERROR_RANGE, "too large"},
    {parse_elements, "9223372036854775808", ZP_QUANTITY_ERROR_RANGE, "too large"},
    {parse_elements, "99999999999999999999", ZP_QUANTITY_ERROR_RANGE, "digits"},
    {parse_elements, "1e400000000000000000000", ZP_QUANTITY_ERROR_RANGE, "exponent"},
    {zp_quantity_parse_bytes, "80", ZP_QUANTITY_ERROR_UNIT, "needs its unit"},
    {zp_quantity_parse_bytes, "80G", ZP_QUANTITY_ERROR_UNIT, "'80 GB'"},
    {zp_quantity_parse_bytes, "80G", ZP_QUANTITY_ERROR_UNIT, "'80 GiB'"},
    {zp_quantity_parse_bytes, "80 gb", ZP_QUANTITY_ERROR_UNIT, "'80 GiB'"},
    {zp_quantity_parse_bytes, "80 Gb", ZP_QUANTITY_ERROR_UNIT, "'80 GB'"},
    {zp_quantity_parse_bytes, "64 KB", ZP_QUANTITY_ERROR_UNIT, "'64 kB'"},
    {zp_quantity_parse_bytes, "64 KB", ZP_QUANTITY_ERROR_UNIT, "'64 KiB'"},
    {zp_quantity_parse_bytes, "5 apples", ZP_QUANTITY_ERROR_UNIT, "legal units"},
    {zp_quantity_parse_bytes, "1.5 B", ZP_QUANTITY_ERROR_WHOLE, "whole number of bytes"},
    {zp_quantity_parse_bytes, "1e10 GiB", ZP_QUANTITY_ERROR_RANGE, "too large"},
    {parse_bandwidth, "400 Gb/s", ZP_QUANTITY_ERROR_UNIT, "'400 Gbit/s'"},
    {parse_bandwidth, "400 Gbps", ZP_QUANTITY_ERROR_UNIT, "'400 GB/s'"},
    {parse_bandwidth, "400", ZP_QUANTITY_ERROR_UNIT, "needs its unit"},
    {parse_bandwidth, "1e390 GB/s", ZP_QUANTITY_ERROR_RANGE, "too large"},
    {parse_flops, "312 TFLOPS", ZP_QUANTITY_ERROR_UNIT, "'312 TFLOP/s'"},
    {parse_flops, "312 tflop/s", ZP_QUANTITY_ERROR_UNIT, "'312 TFLOP/s'"},
    {zp_quantity_parse_time, "5", ZP_QUANTITY_ERROR_UNIT, "needs its unit"},
    {zp_quantity_parse_time, "5 sec", ZP_QUANTITY_ERROR_UNIT, "ps, ns, us, ms, s"},
    {zp_quantity_parse_time, "0.5 ps", ZP_QUANTITY_ERROR_WHOLE, "picoseconds"},
    {zp_quantity_parse_time, "107 000 s", ZP_QUANTITY_ERROR_UNIT, "unit"},
    {zp_quantity_parse_time, "1e8 s", ZP_QUANTITY_ERROR_RANGE, "too large"},
    {parse_ratio_ppm, "70 percent", ZP_QUANTITY_ERROR_UNIT, "70 %"},
};

static void
test_good(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(GError) error = NULL;
        gint64 value = -1;
        gboolean ok = good[i].parse(good[i].text, &value, &error);
        g_assert_no_error(error);
        g_assert_true(ok);
        if (value != good[i].value)
            g_test_message("%s", good[i].text);
        g_assert_cmpint(value, ==, good[i].value);
    }
}

static void
test_bad(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        gint64 value = -1;
        if (bad[i].parse(bad[i].text, &value, &error))
            g_error("'%s' was read as %" G_GINT64_FORMAT, bad[i].text, value);
        if (error->code != (int)bad[i].code || strstr(error->message, bad[i].advice) == NULL)
            g_error("'%s' gives %d: %s", bad[i].text, error->code, error->message);
        g_assert_cmpint(error->domain, ==, ZP_QUANTITY_ERROR);
    }
}

/* Values with few and with many digits, near powers of two and ten, and at the limits. */
static gint64
some_integer(GRand *random)
{
    gint64 bits = (gint64)((guint64)g_rand_int(random) << 32 | g_rand_int(random));
    gint64 value = (bits & G_MAXINT64) >> g_rand_int_range(random, 0, 63);
    for (int zeros = g_rand_int_range(random, 0, 13); zeros > 0 && value < G_MAXINT64 / 10; zeros--)
        value *= 10;
    return value;
}

static void
test_integers_round_trip(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    for (int i = 0; i < 20000; i++) {
        gint64 value = i == 0 ? G_MAXINT64 : i == 1 ? 0 : some_integer(random);
        gint64 back = -1;
        g_autofree char *count = zp_quantity_print_count(value, "tokens");
        g_assert_true(zp_quantity_parse_count(count, "tokens", &back, NULL));
        g_assert_cmpint(back, ==, value);
        g_autofree char *bytes = zp_quantity_print_bytes(value);
        g_assert_true(zp_quantity_parse_bytes(bytes, &back, NULL));
        g_assert_cmpint(back, ==, value);
        g_autofree char *time = zp_quantity_print_time(value);
        g_assert_true(zp_quantity_parse_time(time, &back, NULL));
        g_assert_cmpint(back, ==, value);
    }
}

static void
check_real(double value)
{
    double back = -1;
    g_autofree char *bandwidth = zp_quantity_print_bandwidth(value);
    g_assert_true(zp_quantity_parse_bandwidth(bandwidth, &back, NULL));
    g_assert_true(memcmp(&back, &value, sizeof value) == 0);
    g_autofree char *flops = zp_quantity_print_flops(value);
    g_assert_true(zp_quantity_parse_flops(flops, &back, NULL));
    g_assert_true(memcmp(&back, &value, sizeof value) == 0);
    g_autofree char *ratio = zp_quantity_print_ratio(value);
    g_assert_true(zp_quantity_parse_ratio(ratio, &back, NULL));
    g_assert_true(memcmp(&back, &value, sizeof value) == 0);
}

static void
test_reals_round_trip(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(2);
    static const double corners[] = {0.0, 1.0, 0.1, 1.0 / 3, 5e-324, DBL_MIN, DBL_MAX, 1e22, 1e23};
    for (gsize i = 0; i < G_N_ELEMENTS(corners); i++)
        check_real(corners[i]);
    for (int i = 0; i < 5000; i++) {
        check_real(ldexp(g_rand_double(random), g_rand_int_range(random, -40, 80)));
        check_real((double)some_integer(random));
    }
}

static void
test_print(void)
{
    g_autofree char *a = zp_quantity_print_bytes((gint64)80 << 30);
    g_autofree char *b = zp_quantity_print_bytes(80000000000);
    g_autofree char *c = zp_quantity_print_bandwidth(300e9);
    g_autofree char *d = zp_quantity_print_flops(989.5e12);
    g_autofree char *e = zp_quantity_print_time(12500000000);
    g_autofree char *f = zp_quantity_print_count(500000000, "elements");
    g_autofree char *g = zp_quantity_print_ratio(0.7);
    g_autofree char *h = zp_quantity_print_count(8192, NULL);
    g_assert_cmpstr(a, ==, "80 GiB");
    g_assert_cmpstr(b, ==, "80 GB");
    g_assert_cmpstr(c, ==, "300 GB/s");
    g_assert_cmpstr(d, ==, "989.5 TFLOP/s");
    g_assert_cmpstr(e, ==, "12.5 ms");
    g_assert_cmpstr(f, ==, "5e8 elements");
    g_assert_cmpstr(g, ==, "0.7");
    g_assert_cmpstr(h, ==, "8192");
}

static void
test_bool(void)
{
    static const char *const refused[] = {"True", "TRUE", "yess", "ture", "1", "0", "", "y", "of"};
    gboolean value = FALSE;
    g_assert_true(zp_quantity_parse_bool("true", &value, NULL) && value);
    g_assert_true(zp_quantity_parse_bool("off", &value, NULL) && !value);
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(zp_quantity_parse_bool(refused[i], &value, &error));
        g_assert_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_SYNTAX);
    }
}

static void
test_list(void)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) items = zp_quantity_split_list(" a, b c ,d", 3, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_strv_length(items), ==, 3);
    g_assert_cmpstr(items[1], ==, "b c");
    g_assert_null(zp_quantity_split_list("a,,b", 9, &error));
    g_assert_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_SYNTAX);
    g_clear_error(&error);
    g_assert_null(zp_quantity_split_list("a,b,c", 2, &error));
    g_assert_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_RANGE);
    g_clear_error(&error);
    g_assert_null(zp_quantity_split_list("", 2, &error));
    g_assert_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_SYNTAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quantity/good", test_good);
    g_test_add_func("/quantity/bad", test_bad);
    g_test_add_func("/quantity/integers-round-trip", test_integers_round_trip);
    g_test_add_func("/quantity/reals-round-trip", test_reals_round_trip);
    g_test_add_func("/quantity/print", test_print);
    g_test_add_func("/quantity/bool", test_bool);
    g_test_add_func("/quantity/list", test_list);
    return g_test_run();
}
