/* Settings files of other programs inside a scenario. */
#include <string.h>

#include <glib/gstdio.h>

#include "scenarios/load/scenario.h"

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

/* Formats that equal the scenario's defaults still have to be written: here parameters are fp32,
 * from which "auto" would derive the others. */
static void
test_formats(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = load("fsdp_inputs/accelerate-fsdp2.yaml", "",
                                          (const char *[]){"world.ranks=8", NULL}, &error);
    g_assert_no_error(error);
    g_assert_cmpint(scenario->job.precision.parameter, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(scenario->job.precision.gathered, ==, ZP_DTYPE_BF16);
    g_assert_cmpint(scenario->job.precision.reduce, ==, ZP_DTYPE_BF16);
    g_assert_cmpint(scenario->job.precision.master, ==, ZP_DTYPE_NONE);
    /* The file's 4 processes do not become shard groups of the 8 ranks asked for. */
    g_assert_cmpint(scenario->job.world.shard_group, ==, 8);
}

static ZpScenario *
parse_inline(const char *json, const char *more, const char *const *sets, GError **error)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "zeropeak-import-XXXXXX", NULL);
    int descriptor = g_mkstemp(path);
    g_assert_cmpint(descriptor, >=, 0);
    g_close(descriptor, NULL);
    g_assert_true(g_file_set_contents(path, json, -1, NULL));
    g_autofree char *text = g_strdup_printf(MODEL "[zero]\nconfig = %s\n%s", path, more);
    ZpScenario *scenario = zp_scenario_parse(text, -1, "test.ini", sets, error);
    g_unlink(path);
    return scenario;
}

/* What the file says holds where "auto" would say something else, with the line it stands in. */
static void
test_stated(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario =
        parse_inline("{\"train_micro_batch_size_per_gpu\": 1, \"bf16\": {\"enabled\": true},\n"
                     " \"zero_optimization\": {\"stage\": 2,\n \"overlap_comm\": true}}",
                     "", NULL, &error);
    g_assert_no_error(error);
    g_assert_true(scenario->job.deepspeed->overlap_comm);
    g_assert_cmpuint(scenario->warnings->len, ==, 1); /* the closing NULL */
    for (guint v = 0; v < scenario->values->len; v++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, v);
        if (strcmp(value->key, "overlap_comm") == 0)
            g_assert_true(g_str_has_suffix(value->origin, ":3"));
    }
}

/* Stage-3 keys of a stage-2 file hold when the stage is overruled; a scenario's own key that
 * overrules the file is said. */
static void
test_overruled(void)
{
    static const char json[] =
        "{\"train_micro_batch_size_per_gpu\": 1, \"bf16\": {\"enabled\": true},\n"
        " \"zero_optimization\": {\"stage\": 2, \"stage3_max_live_parameters\": 12345}}";
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = parse_inline(json, "stage = 3\n", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(scenario->job.zero.stage, ==, 3);
    g_assert_cmpint(scenario->job.deepspeed->max_live_elements, ==, 12345);
    gboolean said = FALSE;
    for (guint w = 0; w + 1 < scenario->warnings->len; w++)
        said |= strstr(g_ptr_array_index(scenario->warnings, w), "wins over 2 of") != NULL;
    g_assert_true(said);
}

/* Cuts of the model that are not taken over are said; a size of one is none. */
static void
test_cuts(void)
{
    static const struct {
        const char *keys, *words;
    } cases[] = {
        {"\"tensor_parallel\": {\"autotp_size\": 2}", ":2: tensor_parallel.autotp_size: left out"},
        {"\"tensor_parallel\": {\"autotp_size\": 1}", NULL},
        {"\"sequence_parallel_size\": 4", ":2: sequence_parallel_size: left out"},
        {"\"sequence_parallel_size\": 1", NULL},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autofree char *json = g_strdup_printf(
            "{\"train_micro_batch_size_per_gpu\": 1, \"bf16\": {\"enabled\": true},\n"
            "%s, \"zero_optimization\": {\"stage\": 2}}",
            cases[c].keys);
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) scenario = parse_inline(json, "", NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(scenario->warnings->len, ==, cases[c].words != NULL ? 2 : 1);
        if (cases[c].words != NULL)
            g_assert_nonnull(strstr(g_ptr_array_index(scenario->warnings, 0), cases[c].words));
    }
}

/* A sweep may go over files. */
static void
test_axis(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) base = load("ds_inputs/16-zeropp.json", "", NULL, &error);
    g_assert_no_error(error);
    const char *sets[] = {"zero.config=" INPUTS "fsdp_inputs/torchtitan.toml", NULL};
    g_autoptr(ZpScenario) other = zp_scenario_with(base, sets, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(other->job.runtime, ==, "fsdp2");
    g_assert_cmpint(other->job.training.sequence, ==, 128); /* the scenario's own */
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
    g_test_add_func("/import-settings/formats", test_formats);
    g_test_add_func("/import-settings/stated", test_stated);
    g_test_add_func("/import-settings/overruled", test_overruled);
    g_test_add_func("/import-settings/cuts", test_cuts);
    g_test_add_func("/import-settings/axis", test_axis);
    return g_test_run();
}
