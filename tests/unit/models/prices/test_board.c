/* One price model for every GPU: boards of one chip in the ratio of their figures, chips in their
 * order, restated figures without effect, and grades. */
#include <string.h>

#include "models/prices/board.h"
#include "models/step/step.h"
#include "scenarios/load/scenario.h"

static double
tokens_per_s(const char *gpu, const char *more)
{
    static const char text[] =
        "[model]\ncatalog = Llama-3-8B\n[training]\nsequence = 8192\n"
        "checkpointing = full\n[world]\nranks = 1\n[device]\nmemory = unlimited\n";
    g_autofree char *board = g_strdup_printf("device.gpu=%s", gpu);
    gboolean half = g_str_has_prefix(gpu, "P100") || g_str_has_prefix(gpu, "V100") ||
                    g_str_has_prefix(gpu, "T4") || g_str_has_prefix(gpu, "TITAN");
    const char *sets[] = {board, half ? "precision.parameter=fp16" : "precision.parameter=bf16",
                          more, NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_parse(text, -1, "test.ini", sets, &error);
    g_assert_no_error(error);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    gboolean ok = zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return (double)summary.tokens_per_step / zp_time_to_seconds(summary.step_ps);
}

/* Ratios of training speed that were measured (medians over families), with the error that the rule
 * has for boards of one chip: 15 % with products of both measured, 30 % else. */
static void
test_ratios(void)
{
    static const struct {
        const char *board, *other;
        double ratio, error;
    } pairs[] = {
        {"A100-PCIe-80", "A100-SXM-80", 0.95, 0.05}, {"A100-PCIe-40", "A100-SXM-80", 0.83, 0.15},
        {"A100-SXM-40", "A100-SXM-80", 0.89, 0.15},  {"A800-SXM-80", "A100-SXM-80", 1.0, 0.03},
        {"A30", "A100-PCIe-80", 0.475, 0.15},        {"H100-PCIe-80", "H100-SXM-80", 0.70, 0.15},
        {"H100-NVL-94", "H100-SXM-80", 0.80, 0.15},  {"H200-SXM-141", "H100-SXM-80", 1.12, 0.15},
        {"H200-NVL-141", "H200-SXM-141", 0.91, 0.1}, {"GH200-96", "H100-SXM-80", 1.03, 0.15},
        {"H800-SXM-80", "H100-SXM-80", 1.0, 0.03},   {"GB200-186", "B200-SXM-180", 1.11, 0.15},
        {"B300-SXM-288", "B200-SXM-180", 1.05, 0.1}, {"A6000-48", "RTX3090-24", 1.20, 0.3},
        {"RTX4090-24", "RTX3090-24", 1.71, 0.3},     {"RTX6000-Ada-48", "RTX4090-24", 0.93, 0.15},
        {"L40S-48", "L40-48", 1.15, 0.15},           {"MI325X-256", "MI300X-192", 1.33, 0.3},
        {"MI350X-288", "MI355X-288", 0.82, 0.15},
    };
    for (gsize p = 0; p < G_N_ELEMENTS(pairs); p++) {
        double ratio = tokens_per_s(pairs[p].board, NULL) / tokens_per_s(pairs[p].other, NULL);
        if (ABS(ratio / pairs[p].ratio - 1.0) > pairs[p].error)
            g_error("%s over %s: %.3f, measured %.3f", pairs[p].board, pairs[p].other, ratio,
                    pairs[p].ratio);
    }
}

static void
test_order(void)
{
    static const char *const slower_first[] = {
        "P100-PCIe-16", "T4-16",        "RTX3090-24",   "V100-SXM2-32", "A30-24",
        "RTX4090-24",   "A100-PCIe-40", "A100-PCIe-80", "A100-SXM-80",  "H100-PCIe-80",
        "H100-NVL-94",  "H100-SXM-80",  "H200-SXM-141", "B200-SXM-180", "GB200-186",
    };
    for (gsize i = 1; i < G_N_ELEMENTS(slower_first); i++)
        g_assert_cmpfloat(tokens_per_s(slower_first[i - 1], NULL), <,
                          tokens_per_s(slower_first[i], NULL));
}

static void
assert_restated(const ZpGpu *gpu, const char *key, const char *unit, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_dtostr(text, sizeof text, value);
    g_autofree char *same = g_strdup_printf("%s=%s %s", key, text, unit);
    double before = tokens_per_s(gpu->name, NULL);
    g_assert_cmpfloat(ABS(tokens_per_s(gpu->name, same) / before - 1.0), <, 1e-9);
    g_ascii_dtostr(text, sizeof text, value * 1.01);
    g_autofree char *more = g_strdup_printf("%s=%s %s", key, text, unit);
    double change = tokens_per_s(gpu->name, more) / before - 1.0;
    g_assert_cmpfloat(change, >, 0.0);
    g_assert_cmpfloat(change, <, 0.011);
}

/* A figure of the catalogue that is stated again changes nothing, and one that is a little better
 * makes the step a little shorter: no figure chooses another model of prices. */
static void
test_restated(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    gsize n = 0;
    const ZpGpu *gpus = zp_hardware_gpus(hardware, &n);
    for (gsize i = 0; i < n; i++) {
        assert_restated(&gpus[i], "device.memory_bandwidth", "B/s", gpus[i].memory_bytes_per_s);
        assert_restated(&gpus[i], "device.flops", "FLOP/s",
                        gpus[i].flops_bf16 > 0.0 ? gpus[i].flops_bf16 : gpus[i].flops_fp16);
    }
}

static void
test_grades(void)
{
    static const struct {
        const char *gpu;
        ZpGrade grade;
    } rows[] = {{"A100-SXM-80", ZP_GRADE_MEASURED}, {"H100-SXM-80", ZP_GRADE_MEASURED},
                {"A800-SXM-80", ZP_GRADE_SCALED},   {"H100-PCIe-80", ZP_GRADE_SCALED},
                {"GB200-186", ZP_GRADE_SCALED},     {"RTX4090-24", ZP_GRADE_ASSUMED},
                {"MI300X-192", ZP_GRADE_ASSUMED}};
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        const ZpGpu *gpu = zp_hardware_gpu(hardware, rows[r].gpu);
        g_assert_cmpint(zp_board_grade(hardware, gpu), ==, rows[r].grade);
        g_autoptr(ZpCalibration) constants = zp_board_constants(hardware, gpu);
        g_assert_cmpint(constants->grade, ==, rows[r].grade);
    }
    gsize n = 0;
    const ZpGpu *gpus = zp_hardware_gpus(hardware, &n);
    for (gsize i = 0; i < n; i++) {
        g_autoptr(ZpCalibration) constants = zp_board_constants(hardware, &gpus[i]);
        g_assert_nonnull(constants);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/board/ratios", test_ratios);
    g_test_add_func("/board/order", test_order);
    g_test_add_func("/board/restated", test_restated);
    g_test_add_func("/board/grades", test_grades);
    return g_test_run();
}
