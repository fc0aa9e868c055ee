/* Sweeps: counting, order, the settings of a point, refusals, and that a point is cheap. */
#include "scenarios/sweeps/sweep.h"

#include <string.h>

#include "scenarios/language/axis.h"

#define MODEL "[model]\ntotal_parameters = 7e9\npieces = 32\n"

static ZpScenario *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    ZpScenario *scenario = zp_scenario_parse(text, -1, "s.ini", NULL, &error);
    g_assert_no_error(error);
    return scenario;
}

static void
test_axis(void)
{
    static const struct {
        const char *key, *text;
        const char *values; /* joined with blanks */
    } cases[] = {
        {"zero.stage", "0, 1, 2, 3", "0|1|2|3"},
        {"stage", "0..3", "0|1|2|3"},
        {"zero.wrap_blocks", "1..8 +3", "1 blocks|4 blocks|7 blocks"},
        {"micro_batch", "1..64 x2",
         "1 sequences|2 sequences|4 sequences|8 sequences|16 sequences|"
         "32 sequences|64 sequences"},
        {"micro_batch", "3..50 x 4", "3 sequences|12 sequences|48 sequences"},
        {"micro_batch", "1..3, 8, auto", "1 sequences|2 sequences|3 sequences|8|auto"},
        {"zero.bucket", "1e8..8e8 elements x2",
         "1e8 elements|2e8 elements|4e8 elements|8e8 elements"},
        {"device.memory", "16 GiB..80 GiB +32 GiB", "16 GiB|48 GiB|80 GiB"},
        {"device.memory", "40 GB, 80 GiB, unlimited", "40 GB|80 GiB|unlimited"},
        {"node.link_latency", "1 us..100 us x10", "1 us|10 us|100 us"},
        {"zero.wrap", "block, model", "block|model"},
        {"precision.parameter", "bf16, fp32", "bf16|fp32"},
        {"model.catalog", "a..b, c", "a..b|c"},
        {"simulation.seed", "9223372036854775806..9223372036854775807",
         "9223372036854775806|9223372036854775807"},
        {"layer.x.parameters", "5..6", "5 elements|6 elements"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *full = NULL;
        const ZpSchemaKey *key = zp_axis_key(cases[i].key, &full, &error);
        g_assert_no_error(error);
        gint64 n = zp_axis_count(key, cases[i].text, &error);
        g_assert_no_error(error);
        g_auto(GStrv) values = zp_axis_expand(key, cases[i].text);
        g_assert_cmpint(n, ==, g_strv_length(values));
        g_autofree char *joined = g_strjoinv("|", values);
        g_assert_cmpstr(joined, ==, cases[i].values);
    }
}

static void
test_bad_axis(void)
{
    static const struct {
        const char *key, *text, *say;
    } cases[] = {
        {"zero.stage", "", "empty item"},         {"zero.stage", "0..4", "from 0 to 3"},
        {"zero.stage", "3..1", "ends before"},    {"zero.stage", "0..3 x2", "starts at 1"},
        {"zero.stage", "1..3 x1", "2 or more"},   {"zero.stage", "1..3 +0", "1 or more"},
        {"zero.stage", "1..3 x", "number"},       {"zero.stage", "1..3 x1.5", "whole number"},
        {"zero.stage", "1...3", "number"},        {"zero.wrap", "block..model", "have ranges"},
        {"device.memory", "1 GB..8 GB", "step"},  {"device.memory", "1..8 GB x2", "needs its unit"},
        {"device.contingency", "0..1", "ranges"}, {"zero.stage", "0, none", "number"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        const ZpSchemaKey *key = zp_schema_find(cases[i].key, NULL);
        g_assert_cmpint(zp_axis_count(key, cases[i].text, &error), ==, -1);
        if (strstr(error->message, cases[i].say) == NULL)
            g_error("%s gives %s", cases[i].text, error->message);
    }
}

static void
test_points(void)
{
    g_autoptr(ZpScenario) base = parse(
        MODEL "[sweep]\nzero.stage = 0..3\nmicro_batch = 1..4 x2\nzero.wrap = block, model\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpSweep) sweep = zp_sweep_new(base, &error);
    g_assert_no_error(error);
    g_assert_cmpint(zp_sweep_n_points(sweep), ==, 24);
    g_assert_cmpuint(zp_sweep_n_axes(sweep), ==, 3);
    g_assert_cmpstr(zp_sweep_axis(sweep, 1)->key, ==, "training.micro_batch");
    g_auto(GStrv) first = zp_sweep_point_sets(sweep, 0);
    g_auto(GStrv) second = zp_sweep_point_sets(sweep, 1);
    g_auto(GStrv) last = zp_sweep_point_sets(sweep, 23);
    g_assert_cmpstr(first[0], ==, "zero.stage=0");
    g_assert_cmpstr(second[2], ==, "zero.wrap=model");
    g_assert_cmpstr(last[1], ==, "training.micro_batch=4 sequences");
    g_assert_null(last[3]);
    for (gint64 i = 0; i < 24; i++) {
        g_autoptr(ZpScenario) point = zp_sweep_point(sweep, i, &error);
        g_assert_no_error(error);
        g_assert_cmpint(point->job.zero.stage, ==, i / 6);
        g_assert_cmpint(point->job.training.micro_batch, ==, 1 << i / 2 % 3);
        g_assert_cmpint(point->job.zero.wrap, ==, i % 2 ? ZP_WRAP_MODEL : ZP_WRAP_BLOCK);
    }
}

/* What is illegal only together with other keys is the point's error, not the sweep's. */
static void
test_illegal_point(void)
{
    g_autoptr(ZpScenario) base = parse(MODEL "[sweep]\nshard_group = 2, 3, 4\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpSweep) sweep = zp_sweep_new(base, &error);
    g_assert_no_error(error);
    for (int i = 0; i < 3; i++) {
        g_clear_error(&error);
        g_autoptr(ZpScenario) point = zp_sweep_point(sweep, i, &error);
        g_assert_true((point == NULL) == (i == 1));
    }
    g_assert_null(zp_sweep_point(sweep, 1, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_RANGE);
    g_assert_nonnull(strstr(error->message, "[world] shard_group:"));
}

static void
check_refused(const char *text, ZpScenarioError code, const char *say)
{
    g_autoptr(ZpScenario) base = parse(text);
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_sweep_new(base, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, (int)code);
    if (strstr(error->message, say) == NULL)
        g_error("%s", error->message);
}

static void
test_refusals(void)
{
    check_refused(MODEL, ZP_SCENARIO_ERROR_MISSING, "no [sweep] axes");
    check_refused(MODEL "[sweep]\nseed = 1..1000001\n", ZP_SCENARIO_ERROR_RANGE, "1000001 points");
    check_refused(MODEL "[sweep]\nseed = 0..9223372036854775806\nstage = 0..3\n",
                  ZP_SCENARIO_ERROR_RANGE, "9223372036854775807 x 4 points");
    check_refused(MODEL "[sweep]\nseed = 0..9223372036854775806, 0..9223372036854775806\n",
                  ZP_SCENARIO_ERROR_RANGE, "points");
    check_refused(MODEL "[sweep]\nseed = 1..1000\nmicro_batch = 1..1001\n", ZP_SCENARIO_ERROR_RANGE,
                  "1000 x 1001 points are more than the limit of 1000000");
    check_refused(MODEL "[sweep]\nlimit = 3\nstage = 0..3\n", ZP_SCENARIO_ERROR_RANGE,
                  "limit of 3");
}

static void
test_a_million(void)
{
    g_autoptr(ZpScenario) base = parse(MODEL "[sweep]\nseed = 1..1000\nmicro_batch = 1..1000\n");
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpSweep) sweep = zp_sweep_new(base, &error);
    g_assert_no_error(error);
    g_assert_cmpint(zp_sweep_n_points(sweep), ==, 1000000);
    g_auto(GStrv) last = zp_sweep_point_sets(sweep, 999999);
    g_assert_cmpstr(last[0], ==, "simulation.seed=1000");
}

/* Points made on two threads from one base are the points made on one. */
typedef struct {
    const ZpSweep *sweep;
    gint64 first;
    GString *dumps;
} Half;

static gpointer
make_half(gpointer data)
{
    Half *half = data;
    for (gint64 i = half->first; i < zp_sweep_n_points(half->sweep); i += 2) {
        g_autoptr(ZpScenario) point = zp_sweep_point(half->sweep, i, NULL);
        zp_scenario_dump(point, half->dumps);
    }
    return NULL;
}

static void
test_threads(void)
{
    g_autoptr(ZpScenario) base = parse(
        MODEL "[sweep]\nstage = 0..3\npieces = 4..8\nseed = 1..10\nprecision.parameter = bf16, "
              "fp32\n");
    g_autoptr(ZpSweep) sweep = zp_sweep_new(base, NULL);
    Half halves[4];
    for (int h = 0; h < 4; h++)
        halves[h] = (Half){sweep, h % 2, g_string_new(NULL)};
    GThread *threads[2];
    for (int h = 0; h < 2; h++)
        threads[h] = g_thread_new("half", make_half, &halves[h]);
    for (int h = 0; h < 2; h++)
        g_thread_join(threads[h]);
    make_half(&halves[2]);
    make_half(&halves[3]);
    for (int h = 0; h < 2; h++)
        g_assert_cmpstr(halves[h].dumps->str, ==, halves[h + 2].dumps->str);
    for (int h = 0; h < 4; h++)
        g_string_free(halves[h].dumps, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sweep/axis", test_axis);
    g_test_add_func("/sweep/bad-axis", test_bad_axis);
    g_test_add_func("/sweep/points", test_points);
    g_test_add_func("/sweep/illegal-point", test_illegal_point);
    g_test_add_func("/sweep/refusals", test_refusals);
    g_test_add_func("/sweep/a-million", test_a_million);
    g_test_add_func("/sweep/threads", test_threads);
    return g_test_run();
}
