#include "reports/summary/summary.h"
#include "reports/text/format.h"
#include "reports/text/table.h"
#include "tests/unit/fixtures/report_fixture.h"

static void
test_align(void)
{
    g_autoptr(ZpTable) table = zp_table_new("lr", 2);
    zp_table_header(table);
    zp_table_cell(table, "name");
    zp_table_cell(table, "n");
    zp_table_row(table);
    zp_table_cell(table, "caf\303\251");
    zp_table_cell(table, "12");
    zp_table_rule(table);
    zp_table_row(table);
    zp_table_cell(table, "a");
    g_autoptr(GString) out = g_string_new(NULL);
    zp_table_print(table, FALSE, out);
    g_assert_cmpstr(out->str, ==,
                    "  name   n\n"
                    "  ----  --\n"
                    "  caf\303\251  12\n"
                    "  ----  --\n"
                    "  a\n");
}

static void
test_color_and_limit(void)
{
    g_autoptr(ZpTable) table = zp_table_new("lr", 0);
    zp_table_set_limit(table, 20, 0);
    zp_table_header(table);
    zp_table_cell(table, "a very long heading indeed");
    zp_table_cell(table, "1");
    g_autoptr(GString) out = g_string_new(NULL);
    zp_table_print(table, TRUE, out);
    g_assert_cmpstr(out->str, ==,
                    "\033[1ma very long he...  1\033[0m\n"
                    "-----------------  -\n");
}

typedef void (*Format)(GString *, gint64);

static void
assert_format(Format format, gint64 value, const char *expected)
{
    g_autoptr(GString) out = g_string_new(NULL);
    format(out, value);
    g_assert_cmpstr(out->str, ==, expected);
}

static void
test_format(void)
{
    assert_format(zp_format_gb, 0, "0");
    assert_format(zp_format_gb, 2500000000, "2.50");
    assert_format(zp_format_gb, -2500000000, "-2.50");
    assert_format(zp_format_gb, 12345678, "0.012");
    assert_format(zp_format_gib, G_GINT64_CONSTANT(80) << 30, "80.00");
    assert_format(zp_format_bytes, 999, "999 B");
    assert_format(zp_format_bytes, 1000, "1.00 kB");
    assert_format(zp_format_bytes, 436207616, "436.21 MB");
    assert_format(zp_format_bytes, G_MAXINT64, "9223372.04 TB");
    assert_format(zp_format_time, 0, "0 ps");
    assert_format(zp_format_time, 999, "999 ps");
    assert_format(zp_format_time, 5600000, "5.600 us");
    assert_format(zp_format_time, 123456789012, "123.5 ms");
    assert_format(zp_format_time, 12340 * ZP_TIME_PER_MS, "12.34 s");
    assert_format(zp_format_count, 0, "0");
    assert_format(zp_format_count, 123, "123");
    assert_format(zp_format_count, 1234567, "1 234 567");
    assert_format(zp_format_count, -123456, "-123 456");
    g_autoptr(GString) share = g_string_new(NULL);
    zp_format_share(share, 1, 3);
    zp_format_share(share, 1, 0);
    g_assert_cmpstr(share->str, ==, "33.3 %-");
}

static void
assert_fits_columns(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_assert_cmpint(g_utf8_strlen(*line, -1), <=, ZP_SUMMARY_COLUMNS);
        g_assert_false(g_str_has_suffix(*line, " "));
    }
}

static void
test_summaries(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    g_autoptr(GString) out = g_string_new(NULL);
    zp_summary_run(&fx.run, FALSE, out);
    zp_summary_why(&fx.run, out);
    assert_fits_columns(out->str);
    report_fixture_golden("run.txt", out->str);

    g_string_truncate(out, 0);
    fx.run.summary = NULL;
    fx.run.tape = NULL;
    zp_summary_ledger(&fx.run, FALSE, out);
    assert_fits_columns(out->str);
    report_fixture_golden("ledger.txt", out->str);
    report_fixture_clear(&fx);
}

/* Many units that hold the same are told in one line; the rest of the bytes is not lost. */
static void
test_alike_units(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    for (int u = 0; u < 30; u++) {
        g_autofree char *name = g_strdup_printf("extra.%d", u);
        zp_tape_tag(fx.tape, ZP_PHASE_FORWARD, 0, zp_tape_add_unit(fx.tape, g_intern_string(name)));
        gint64 bytes = u < 25 ? FIXTURE_MB : (u - 20) * FIXTURE_MB;
        ZpPlayLive live = {zp_tape_add_buffer(fx.tape, ZP_CLASS_ACTIVATION, 0, bytes),
                           ZP_CLASS_ACTIVATION};
        g_array_append_val(fx.live_set, live);
    }
    g_autoptr(GString) out = g_string_new(NULL);
    zp_summary_why(&fx.run, out);
    g_assert_nonnull(strstr(out->str, "extra.0 and 24 more       25  0.025"));
    g_assert_nonnull(strstr(out->str, "extra.29"));
    assert_fits_columns(out->str);
    fx.run.live_set = NULL;
    g_string_truncate(out, 0);
    zp_summary_why(&fx.run, out);
    g_assert_nonnull(strstr(out->str, "not known"));
    report_fixture_clear(&fx);
}

static void
test_color_only_when_asked(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    g_autoptr(GString) plain = g_string_new(NULL), colored = g_string_new(NULL);
    zp_summary_run(&fx.run, FALSE, plain);
    zp_summary_run(&fx.run, TRUE, colored);
    g_assert_null(strchr(plain->str, '\033'));
    g_autoptr(GRegex) escapes = g_regex_new("\033\\[[0-9]*m", 0, 0, NULL);
    g_autofree char *stripped = g_regex_replace_literal(escapes, colored->str, -1, 0, "", 0, NULL);
    g_assert_cmpstr(stripped, ==, plain->str);
    g_assert_cmpuint(colored->len, >, plain->len);
    report_fixture_clear(&fx);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/table/align", test_align);
    g_test_add_func("/table/color-and-limit", test_color_and_limit);
    g_test_add_func("/table/format", test_format);
    g_test_add_func("/table/summaries", test_summaries);
    g_test_add_func("/table/alike-units", test_alike_units);
    g_test_add_func("/table/color", test_color_only_when_asked);
    return g_test_run();
}
