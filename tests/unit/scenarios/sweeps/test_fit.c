/* The largest value that fits: against trying every value, and what is said where order fails. */
#include <string.h>

#include "scenarios/sweeps/fit.h"

static const char small_model[] = "[model]\n"
                                  "layers = 4\n"
                                  "hidden = 256\n"
                                  "heads = 8\n"
                                  "ffn = 1024\n"
                                  "vocabulary = 1000\n"
                                  "[training]\n"
                                  "micro_batch = 1\n"
                                  "sequence = 512\n"
                                  "[world]\n"
                                  "ranks = 8\n"
                                  "[zero]\n"
                                  "stage = 3\n"
                                  "[device]\n"
                                  "memory = 600 MiB\n"
                                  "overhead = 10 MiB\n";

static ZpScenario *
load(const char *const *sets)
{
    g_autoptr(GError) error = NULL;
    ZpScenario *scenario = zp_scenario_parse(small_model, -1, "small", sets, &error);
    g_assert_no_error(error);
    return scenario;
}

static const ZpFitTrial *
trial(const ZpFit *fit, gint32 index)
{
    g_assert_cmpint(index, >=, 0);
    g_assert_cmpint(index, <, (gint32)fit->trials->len);
    return &g_array_index(fit->trials, ZpFitTrial, (guint)index);
}

static gboolean
fits_alone(const ZpScenario *base, const char *key, gint64 value)
{
    g_autofree char *set = g_strdup_printf("%s=%" G_GINT64_FORMAT, key, value);
    const char *sets[] = {set, NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_with(base, sets, &error);
    if (scenario == NULL)
        return FALSE; /* refused */
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    g_assert_true(zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error));
    return summary.fits;
}

/* For several keys and settings the answer is the one that trying all values up to it gives. */
static void
test_exhaustive(void)
{
    static const struct {
        const char *key, *set;
    } cases[] = {
        {"training.micro_batch", "device.memory=600 MiB"},
        {"training.micro_batch", "device.memory=400 MiB"},
        {"training.micro_batch", "device.allocator=caching"},
        {"training.micro_batch", "device.allocator=expandable"},
        {"training.micro_batch", "training.checkpointing=full"},
        {"model.layers", "device.memory=200 MiB"},
        {"zero.prefetch", "device.memory=120 MiB"},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        const char *sets[] = {cases[c].set, NULL};
        g_autoptr(ZpScenario) base = load(sets);
        g_auto(ZpFit) fit = {0};
        g_autoptr(GError) error = NULL;
        g_assert_true(zp_fit_find(base, cases[c].key, NULL, &fit, &error));
        g_assert_no_error(error);
        g_assert_cmpstr(fit.key, ==, cases[c].key);
        if (!fit.monotone)
            continue; /* what then holds is said in test_not_monotone() */
        gint64 best = trial(&fit, fit.best)->value;
        g_assert_true(fits_alone(base, fit.key, best));
        if (fit.above < 0)
            continue;
        g_assert_cmpint(trial(&fit, fit.above)->value, ==, best + 1);
        for (gint64 v = 1; v <= MIN(best, 40); v++)
            g_assert_true(fits_alone(base, fit.key, v));
        for (gint64 v = best + 1; v <= best + 5; v++)
            g_assert_false(fits_alone(base, fit.key, v));
    }
}

static void
test_batch_is_bounded_by_memory(void)
{
    g_autoptr(ZpScenario) base = load(NULL);
    g_auto(ZpFit) fit = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_fit_find(base, "micro_batch", NULL, &fit, &error));
    g_assert_true(fit.monotone);
    const ZpFitTrial *best = trial(&fit, fit.best), *above = trial(&fit, fit.above);
    g_assert_cmpint(best->headroom_bytes, >=, 0);
    g_assert_cmpint(above->headroom_bytes, <, 0);
    g_assert_cmpint(best->needed_bytes + best->headroom_bytes, ==, (gint64)600 << 20);
    g_assert_cmpint(above->needed_bytes + above->headroom_bytes, ==, (gint64)600 << 20);
}

/* More ranks need less memory: there is no largest number, and that is said. */
static void
test_not_monotone(void)
{
    g_autoptr(ZpScenario) base = load(NULL);
    g_auto(ZpFit) fit = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_fit_find(base, "world.ranks", NULL, &fit, &error));
    g_assert_false(fit.monotone);
    g_assert_cmpint(fit.odd_value, ==, 2);
    g_assert_cmpint(fit.best, >=, 0);
    g_assert_true(trial(&fit, fit.best)->fits);
}

static void
test_nothing_fits(void)
{
    const char *sets[] = {"device.memory=11 MiB", NULL};
    g_autoptr(ZpScenario) base = load(sets);
    g_auto(ZpFit) fit = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_fit_find(base, "training.micro_batch", NULL, &fit, &error));
    g_assert_cmpint(fit.best, ==, -1);
    g_assert_false(trial(&fit, 0)->fits);
    g_autofree char *json = zp_fit_json(&fit);
    g_assert_nonnull(strstr(json, "\"value\" : null"));
}

static void
expect_refusal(const char *key, const char *set, int code)
{
    const char *sets[] = {set, NULL};
    g_autoptr(ZpScenario) base = load(sets);
    g_auto(ZpFit) fit = {0};
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_fit_find(base, key, NULL, &fit, &error));
    g_assert_error(error, ZP_FIT_ERROR, code);
}

static void
test_refusals(void)
{
    expect_refusal("device.gpu", NULL, ZP_FIT_ERROR_KEY);
    expect_refusal("zero.wrap", NULL, ZP_FIT_ERROR_KEY);
    expect_refusal("training.micro_batch", "device.memory=unlimited", ZP_FIT_ERROR_CAPACITY);
    g_autoptr(ZpScenario) base = load(NULL);
    g_auto(ZpFit) fit = {0};
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_fit_find(base, "training.micro_bach", NULL, &fit, &error));
    g_assert_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_UNKNOWN);
}

static void
test_interrupted(void)
{
    static const volatile gint stop = 1;
    g_autoptr(ZpScenario) base = load(NULL);
    g_auto(ZpFit) fit = {0};
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_fit_find(base, "training.micro_batch", &stop, &fit, &error));
    g_assert_error(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CANCELLED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fit/exhaustive", test_exhaustive);
    g_test_add_func("/fit/batch", test_batch_is_bounded_by_memory);
    g_test_add_func("/fit/not-monotone", test_not_monotone);
    g_test_add_func("/fit/nothing", test_nothing_fits);
    g_test_add_func("/fit/refusals", test_refusals);
    g_test_add_func("/fit/interrupted", test_interrupted);
    return g_test_run();
}
