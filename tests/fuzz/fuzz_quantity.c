/* Any text as a quantity of every kind: what is read prints to something that reads the same. */
#include <stdint.h>
#include <string.h>

#include "scenarios/language/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_integers(const char *text)
{
    gint64 value = 0, back = 0;
    if (zp_quantity_parse_count(text, "elements", &value, NULL)) {
        g_autofree char *again = zp_quantity_print_count(value, "elements");
        g_assert_true(zp_quantity_parse_count(again, "elements", &back, NULL) && back == value);
    }
    if (zp_quantity_parse_bytes(text, &value, NULL)) {
        g_autofree char *again = zp_quantity_print_bytes(value);
        g_assert_true(zp_quantity_parse_bytes(again, &back, NULL) && back == value);
    }
    if (zp_quantity_parse_time(text, &value, NULL)) {
        g_autofree char *again = zp_quantity_print_time(value);
        g_assert_true(zp_quantity_parse_time(again, &back, NULL) && back == value);
    }
}

static void
check_reals(const char *text)
{
    double value = 0, back = 0;
    if (zp_quantity_parse_bandwidth(text, &value, NULL)) {
        g_autofree char *again = zp_quantity_print_bandwidth(value);
        g_assert_true(zp_quantity_parse_bandwidth(again, &back, NULL));
        g_assert_true(memcmp(&back, &value, sizeof value) == 0);
    }
    if (zp_quantity_parse_flops(text, &value, NULL)) {
        g_autofree char *again = zp_quantity_print_flops(value);
        g_assert_true(zp_quantity_parse_flops(again, &back, NULL));
        g_assert_true(memcmp(&back, &value, sizeof value) == 0);
    }
    if (zp_quantity_parse_ratio(text, &value, NULL)) {
        g_autofree char *again = zp_quantity_print_ratio(value);
        g_assert_true(zp_quantity_parse_ratio(again, &back, NULL));
        g_assert_true(memcmp(&back, &value, sizeof value) == 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    gboolean truth;
    double real;
    check_integers(text);
    check_reals(text);
    zp_quantity_parse_bool(text, &truth, NULL);
    if (!zp_quantity_parse_bandwidth(text, &real, &error))
        g_assert_true(g_utf8_validate(error->message, -1, NULL));
    g_strfreev(zp_quantity_split_list(text, 100, NULL));
    return 0;
}
