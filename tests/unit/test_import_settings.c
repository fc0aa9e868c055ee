/* Settings files of other programs inside a scenario. */
#include <string.h>

#include "scenarios/scenario.h"

#define MODEL                                                                     \
    "[model]\nlayers = 2\nhidden = 64\nheads = 4\nffn = 256\nvocabulary = 1000\n" \
    "[world]\nranks = 16\n[training]\nsequence = 128\n"
#define INPUTS ZP_SOURCE_DIR "/tests/reference/"

static ZpScenario *
load(const char *config, const char *more, const char *const *sets, GError **error)
{
    g_autofree char *text =
        g_strdup_printf(MODEL "[zero]\nconfig = " INPUTS "%s\n%s", config, more);
    return zp_scenario_parse(text, -1, "test.ini", sets, error);
}

static void
test_deepspeed(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = load("ds_inputs/16-zeropp.json", "", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(scenario->job.runtime, ==, "deepspeed");
    g_assert_cmpint(scenario->job.zero.stage, ==, 3);
    g_assert_cmpint(scenario->job.deepspeed->hpz_partition_ranks, ==, 8);
    g_assert_true(scenario->job.deepspeed->quantized_weights);
    g_assert_cmpint(scenario->job.training.micro_batch, ==, 2);
    g_assert_cmpint(scenario->job.training.accumulation, ==, 4);
}

/* "auto" is filled as the HF Trainer fills it: hidden x hidden, 0.9 of that, 10 x hidden. */
static void
test_auto(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = load("ds_inputs/01-auto-zero3.json", "", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(scenario->job.deepspeed->reduce_bucket_elements, ==, 64 * 64);
    g_assert_cmpint(scenario->job.deepspeed->prefetch_bucket_elements, ==, 64 * 64 * 9 / 10);
    g_assert_cmpint(scenario->job.deepspeed->param_persistence_elements, ==, 10 * 64);
}

/* The scenario's own words win over the file, --set over both; the dump loads to the same. */
static void
test_priority_and_dump(void)
{
    const char *const sets[] = {"training.micro_batch=5", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario =
        load("ds_inputs/16-zeropp.json", "[deepspeed]\nhpz_partition = 4\n", sets, &error);
    g_assert_no_error(error);
    g_assert_cmpint(scenario->job.deepspeed->hpz_partition_ranks, ==, 4);
    g_assert_cmpint(scenario->job.training.micro_batch, ==, 5);
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_autoptr(ZpScenario) again = zp_scenario_parse(dump->str, -1, "dump.ini", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(again->job.deepspeed->hpz_partition_ranks, ==, 4);
    g_assert_cmpint(again->job.training.accumulation, ==, 4);
    g_assert_true(again->job.deepspeed->quantized_weights);
}

static void
test_fsdp(void)
{
    static const struct {
        const char *file, *runtime;
    } cases[] = {
        {"fsdp_inputs/accelerate-fsdp2.yaml", "fsdp2"},
        {"fsdp_inputs/torchtitan.toml", "fsdp2"},
        {"fsdp_inputs/accelerate-deepspeed.yaml", "deepspeed"},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) scenario = load(cases[c].file, "", NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(scenario->job.runtime, ==, cases[c].runtime);
    }
}

static void
assert_refused(const char *config, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = load(config, "", NULL, &error);
    g_assert_null(scenario);
    g_assert_nonnull(error);
    if (strstr(error->message, message) == NULL)
        g_error("'%s' lacks '%s'", error->message, message);
}

static void
test_refusals(void)
{
    assert_refused("ds_inputs/34-stage-4.json", "out of range (0 to 3)");
    assert_refused("ds_inputs/missing.json", "missing.json");
    assert_refused("paper_tables.csv", "no settings file");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import-settings/deepspeed", test_deepspeed);
    g_test_add_func("/import-settings/auto", test_auto);
    g_test_add_func("/import-settings/priority-and-dump", test_priority_and_dump);
    g_test_add_func("/import-settings/fsdp", test_fsdp);
    g_test_add_func("/import-settings/refusals", test_refusals);
    return g_test_run();
}
