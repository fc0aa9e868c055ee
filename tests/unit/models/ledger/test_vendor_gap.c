/* The vendor's estimate beside the simulated peak: what is printed, and what cannot be asked. */
#include "models/job/runtime.h"
#include "models/step/step.h"
#include "reports/summary/summary.h"
#include "reports/summary/vendor.h"
#include "scenarios/load/scenario.h"

#include <string.h>

static ZpScenario *
job_with(const char *setting)
{
    const char *sets[] = {"zero.runtime=deepspeed", setting, NULL};
    g_autoptr(GError) error = NULL;
    ZpScenario *scenario =
        zp_scenario_load(ZP_SOURCE_DIR "/scenarios/llama3-8b-zero3.ini", sets, &error);
    g_assert_no_error(error);
    return scenario;
}

static GString *
printed(const ZpScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpVendorQuestion question;
    ZpStepSummary summary;
    g_assert_true(zp_vendor_estimate_ask(&scenario->job, &question, &error));
    g_assert_true(zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error));
    ZpReportRun run = {.name = scenario->name,
                       .source = "a",
                       .job = &scenario->job,
                       .units = zp_step_units(step),
                       .summary = &summary};
    GString *out = g_string_new(NULL);
    zp_summary_vendor(&run, &question, FALSE, out);
    return out;
}

static const char *
line_with(char **lines, const char *text)
{
    const char *found = NULL;
    for (; *lines != NULL; lines++)
        if (strstr(*lines, text) != NULL) {
            g_assert_null(found);
            found = *lines;
        }
    g_assert_nonnull(found);
    return found;
}

/* 18 P / 8 + 4 x 525336576 bytes = 20.17 GB; the marked choice is the job's. */
static void
test_stage3(void)
{
    g_autoptr(ZpScenario) scenario = job_with("deepspeed.zero_init=yes");
    g_autoptr(GString) out = printed(scenario);
    g_auto(GStrv) lines = g_strsplit(out->str, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        g_assert_cmpint(g_utf8_strlen(*line, -1), <=, ZP_SUMMARY_COLUMNS);
    const char *chosen = line_with(lines, "this job");
    g_assert_true(g_str_has_prefix(chosen, "none "));
    g_assert_nonnull(strstr(chosen, " yes "));
    g_assert_nonnull(strstr(chosen, "20.169"));
    g_assert_nonnull(strstr(line_with(lines, "total "), " 20.17 "));
    line_with(lines, "model states");
    line_with(lines, "logits");
}

static void
test_stage2_offload(void)
{
    g_autoptr(ZpScenario) base = job_with("deepspeed.offload_optimizer=cpu");
    const char *sets[] = {"zero.stage=2", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_with(base, sets, &error);
    g_assert_no_error(error);
    g_autoptr(GString) out = printed(scenario);
    g_auto(GStrv) lines = g_strsplit(out->str, "\n", -1);
    g_assert_nonnull(strstr(line_with(lines, "this job"), "16.061")); /* 2 P */
}

static void
check_refused(const char *setting, const char *message)
{
    g_autoptr(ZpScenario) scenario = job_with(setting);
    g_autoptr(GError) error = NULL;
    ZpVendorQuestion question;
    g_assert_false(zp_vendor_estimate_ask(&scenario->job, &question, &error));
    g_assert_nonnull(strstr(error->message, message));
}

static void
test_refused(void)
{
    check_refused("zero.stage=1", "stages 2 and 3, not for stage 1");
    check_refused("world.ranks=12", "nodes of equal size");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vendor-gap/stage-3", test_stage3);
    g_test_add_func("/vendor-gap/stage-2-offload", test_stage2_offload);
    g_test_add_func("/vendor-gap/refused", test_refused);
    return g_test_run();
}
