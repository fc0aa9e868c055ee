/* Figures that papers print, from formulas that this program states as well. */
#include <math.h>
#include <string.h>

#include "models/prices/cost.h"
#include "tests/unit/fixtures/ledger_fixture.h"

/* A published value is reproduced in the digits it is printed with. */
static void
assert_printed(double value, const char *printed, const char *digits)
{
    const char *point = strchr(printed, '.');
    double unit = pow(10.0, point ? (double)strlen(point + 1) : 0.0);
    double shortened;
    if (strcmp(digits, "truncated") == 0)
        shortened = floor(value * unit);
    else if (strcmp(digits, "rounded") == 0)
        shortened = floor(value * unit + 0.5);
    else
        shortened = value * unit;
    g_assert_cmpfloat(shortened, ==, round(g_ascii_strtod(printed, NULL) * unit));
}

static gint64
persistent_bytes(gint64 elements, gint32 ranks, int stage)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, elements, 1, ranks);
    fixture.job.zero.stage = stage;
    gint64 bytes = ledger_fixture_compute(&fixture).persistent_bytes;
    ledger_fixture_clear(&fixture);
    return bytes;
}

static gint64
largest_model(gint64 capacity_bytes, gint32 ranks, int stage)
{
    gint64 fits = 1, too_large = capacity_bytes * ranks;
    while (too_large - fits > 1) {
        gint64 middle = fits + (too_large - fits) / 2;
        if (persistent_bytes(middle, ranks, stage) <= capacity_bytes)
            fits = middle;
        else
            too_large = middle;
    }
    return fits;
}

/* Elements a rank sends in a step, in units of the model; a ring of n ranks. */
static double
volume(int stage)
{
    const gint64 elements = 1 << 20;
    const gint32 n = 1 << 10;
    gint64 gather = zp_cost_wire_bytes(ZP_KIND_ALL_GATHER, elements, n);
    gint64 scatter = zp_cost_wire_bytes(ZP_KIND_REDUCE_SCATTER, elements, n);
    gint64 wire = stage == 0   ? zp_cost_wire_bytes(ZP_KIND_ALL_REDUCE, elements, n)
                  : stage == 3 ? 2 * gather + scatter
                               : gather + scatter;
    return (double)(wire * n) / (double)(elements * (n - 1));
}

/* Shards of all units and the largest whole one, where nothing is gathered in place. */
static void
assert_peak_parameters(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 1, 1, 16);
    ZpModel *model = zp_model_new("uneven");
    zp_model_add_layer(model, "a", 16000, 3, -1, 0, 0);
    zp_model_add_layer(model, "b", 64000, 1, -1, 0, 0);
    zp_model_add_layer(model, "c", 32000, 2, -1, 0, 0);
    zp_model_finish(model);
    ledger_fixture_set_model(&fixture, model);
    fixture.job.precision.gathered = ZP_DTYPE_FP16;
    ZpLedger ledger = ledger_fixture_compute(&fixture);
    gint64 sum = 3 * 16000 + 64000 + 2 * 32000;
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_PARAMETER) + ledger.gathered_bytes, ==,
                    2 * (sum / 16 + 64000));
    ledger_fixture_clear(&fixture);
}

enum { PAPER, WHERE, KIND, PARAMETERS, RANKS, STAGE, MP, PRINTED, UNIT, DIGITS, N_FIELDS };

static void
check_published(char **fields)
{
    gint64 parameters = g_ascii_strtoll(fields[PARAMETERS], NULL, 10);
    gint32 ranks = (gint32)g_ascii_strtoll(fields[RANKS], NULL, 10);
    int stage = (int)g_ascii_strtoll(fields[STAGE], NULL, 10);
    if (strcmp(fields[KIND], "states") == 0) {
        assert_printed((double)persistent_bytes(parameters, ranks, stage) / 1e9, fields[PRINTED],
                       fields[DIGITS]);
    } else if (strcmp(fields[KIND], "largest model in 32 GB") == 0) {
        double one = (double)largest_model(32000000000, ranks, stage) / 1e9;
        double mp = g_ascii_strtod(fields[MP], NULL);
        assert_printed(mp * floor(one * 10.0 + 0.5) / 10.0, fields[PRINTED], fields[DIGITS]);
    } else if (strcmp(fields[KIND], "gradient buffer") == 0) {
        LedgerFixture fixture;
        ledger_fixture_init(&fixture, parameters, 4, ranks);
        fixture.job.zero.stage = stage;
        fixture.job.zero.bucket_elements = parameters;
        fixture.job.precision.reduce = ZP_DTYPE_FP32;
        assert_printed((double)ledger_fixture_compute(&fixture).bucket_bytes / 1e9, fields[PRINTED],
                       fields[DIGITS]);
        ledger_fixture_clear(&fixture);
    } else if (strcmp(fields[KIND], "volume") == 0) {
        assert_printed(volume(stage), fields[PRINTED], fields[DIGITS]);
    } else {
        g_assert_cmpstr(fields[KIND], ==, "peak parameters");
        assert_peak_parameters();
    }
}

static void
test_published(void)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "tests", "reference", "paper_tables.csv", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    int checked = 0;
    for (char **line = lines; *line != NULL; line++) {
        if (**line == '\0' || **line == '#' || g_str_has_prefix(*line, "paper,"))
            continue;
        g_auto(GStrv) fields = g_strsplit(*line, ",", -1);
        g_assert_cmpuint(g_strv_length(fields), ==, N_FIELDS);
        check_published(fields);
        checked++;
    }
    g_assert_cmpint(checked, ==, 87);
    g_assert_cmpint(persistent_bytes(10000000000, 64, 3), ==, 2500000000);
    g_assert_cmpint(persistent_bytes(7500000000, 64, 3), ==, 1875000000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/published/published", test_published);
    return g_test_run();
}
