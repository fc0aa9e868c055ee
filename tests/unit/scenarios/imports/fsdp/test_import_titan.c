/* Parallel degrees and torch.compile of torchtitan's and accelerate's files inside a scenario. */
#include <string.h>

#include <glib/gstdio.h>

#include "models/step/step.h"
#include "models/words/vocabulary.h"
#include "scenarios/imports/import.h"
#include "scenarios/load/scenario.h"

#define MODEL                                                                  \
    "[model]\nlayers = 4\nhidden = 256\nheads = 8\nkv_heads = 2\nffn = 1024\n" \
    "vocabulary = 4096\n[training]\nsequence = 512\nmicro_batch = 2\n[zero]\nconfig = %s\n%s\n"
#define SIXTEEN "[world]\nranks = 16\n"

static ZpScenario *
load(const char *toml, const char *more, const char *const *sets, GError **error)
{
    g_autofree char *folder = g_dir_make_tmp("zeropeak-titan-XXXXXX", NULL);
    g_assert_nonnull(folder);
    g_autofree char *path = g_build_filename(
        folder, g_str_has_prefix(toml, "distributed_type") ? "accelerate.yaml" : "titan.toml",
        NULL);
    g_assert_true(g_file_set_contents(path, toml, -1, NULL));
    g_autofree char *text = g_strdup_printf(MODEL, path, more);
    ZpScenario *scenario = zp_scenario_parse(text, -1, "test.ini", sets, error);
    g_unlink(path);
    g_rmdir(folder);
    return scenario;
}

static ZpScenario *
load_well(const char *toml, const char *more, const char *const *sets)
{
    g_autoptr(GError) error = NULL;
    ZpScenario *scenario = load(toml, more, sets, &error);
    g_assert_no_error(error);
    return scenario;
}

static const ZpScenarioValue *
value_of(const ZpScenario *scenario, const char *section, const char *key)
{
    for (guint v = 0; v < scenario->values->len; v++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, v);
        if (strcmp(value->section, section) == 0 && strcmp(value->key, key) == 0)
            return value;
    }
    g_assert_not_reached();
}

static gboolean
warns(const ZpScenario *scenario, const char *words)
{
    for (guint w = 0; w + 1 < scenario->warnings->len; w++) {
        if (strstr(g_ptr_array_index(scenario->warnings, w), words) != NULL)
            return TRUE;
    }
    return FALSE;
}

static ZpStepSummary
run(const ZpScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    gboolean ok = zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return summary;
}

/* Without what the communicators of more groups take. */
static gint64
model_peak(const ZpStepSummary *summary)
{
    return summary->peak_bytes - summary->peak_by_class[ZP_CLASS_RUNTIME];
}

/* Each key alone: what it writes, from its line, and that the simulated step is another one. */
static void
test_effects(void)
{
    static const struct {
        const char *toml, *section, *key, *text, *line;
    } cases[] = {
        {"[parallelism]\ntensor_parallel_degree = 2\n", "parallel", "tensor", "2 ranks", ":2"},
        {"[parallelism]\ntensor_parallel_degree = 2\n", "parallel", "sequence_parallel", "true",
         ":2"},
        {"[parallelism]\n\ncontext_parallel_degree = 4\n", "parallel", "context", "4 ranks", ":3"},
        {"[training]\ntensor_parallel_degree = 4\n", "parallel", "tensor", "4 ranks", ":2"},
        {"[experimental]\ncontext_parallel_degree = 2\n[training]\n", "parallel", "context",
         "2 ranks", ":2"},
        {"[compile]\nenable = true\n", "model", "compile", "blocks_and_loss", ":2"},
        {"[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n", "model", "compile",
         "blocks_and_loss", ":3"},
        {"[compile]\nenable = true\ncomponents = [\"model\"]\n", "model", "compile", "blocks",
         ":3"},
        {"[training]\ncompile = true\n", "model", "compile", "blocks_and_loss", ":2"},
        {"[training]\nglobal_batch_size = 64\n", "training", "accumulation", "2", ":2"},
    };
    g_autoptr(ZpScenario) plain = load_well("[training]\n", SIXTEEN, NULL);
    ZpStepSummary before = run(plain);
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_test_message("%s", cases[c].toml);
        g_autoptr(ZpScenario) scenario = load_well(cases[c].toml, SIXTEEN, NULL);
        const ZpScenarioValue *value = value_of(scenario, cases[c].section, cases[c].key);
        g_assert_cmpstr(value->text, ==, cases[c].text);
        g_assert_true(g_str_has_suffix(value->origin, cases[c].line));
        ZpStepSummary after = run(scenario);
        g_assert_cmpint(after.step_ps, !=, before.step_ps);
        if (strcmp(cases[c].section, "training") != 0)
            g_assert_cmpint(model_peak(&after), <, model_peak(&before));
    }
}

/* Blocks alone and blocks with the loss are different steps, and what asks for nothing changes
 * nothing. */
static void
test_components(void)
{
    static const char *const nothing[] = {
        "[compile]\nenable = false\n",
        "[compile]\nenable = false\ncomponents = [\"model\"]\n",
        "[compile]\nenable = true\ncomponents = []\n",
        "[compile]\nenable = true\ncomponents = [\"loss\"]\n",
    };
    for (gsize n = 0; n < G_N_ELEMENTS(nothing); n++) {
        g_autoptr(ZpScenario) scenario = load_well(nothing[n], SIXTEEN, NULL);
        g_assert_cmpstr(value_of(scenario, "model", "compile")->text, ==, "none");
        g_assert_cmpint(warns(scenario, "compiled loss without"), ==, n == 3);
    }
    g_autoptr(ZpScenario) blocks =
        load_well("[compile]\nenable = true\ncomponents = [\"model\"]\n", SIXTEEN, NULL);
    g_autoptr(ZpScenario) both = load_well("[compile]\nenable = true\n", SIXTEEN, NULL);
    g_assert_cmpint(run(both).peak_bytes, <, run(blocks).peak_bytes);
}

/* torchtitan's grouped keys are repeated before attention. */
static void
test_attention(void)
{
    static const char toml[] = "[activation_checkpoint]\nmode = \"none\"\n";
    g_autoptr(ZpScenario) theirs = load_well(toml, SIXTEEN, NULL);
    g_autoptr(ZpScenario) own =
        load_well(toml, SIXTEEN, (const char *[]){"model.attention=flash", NULL});
    g_assert_cmpstr(value_of(theirs, "model", "attention")->text, ==, "flash_repeated");
    g_assert_cmpstr(value_of(own, "model", "attention")->text, ==, "flash");
    g_assert_cmpint(run(theirs).peak_bytes, >, run(own).peak_bytes);
}

static void
assert_world(const char *toml, const char *more, gint32 ranks, gint32 group)
{
    g_test_message("%s", toml);
    g_autoptr(ZpScenario) scenario = load_well(toml, more, NULL);
    g_assert_cmpint(scenario->job.world.ranks, ==, ranks);
    g_assert_cmpint(scenario->job.world.shard_group, ==, group);
}

/* Of the GPUs, tensor parallel ranks leave; context parallel ones join the shard group. */
static void
test_groups(void)
{
#define TENSOR_CONTEXT "tensor_parallel_degree = 2\ncontext_parallel_degree = 2\n"
    assert_world("[parallelism]\n" TENSOR_CONTEXT, SIXTEEN, 8, 8);
    assert_world("[parallelism]\ndata_parallel_replicate_degree = 2\n" TENSOR_CONTEXT, SIXTEEN, 8,
                 4);
    assert_world("[parallelism]\ndata_parallel_replicate_degree = 2\n"
                 "data_parallel_shard_degree = 2\n" TENSOR_CONTEXT,
                 SIXTEEN, 8, 4);
    assert_world("[parallelism]\ndata_parallel_shard_degree = 1\ncontext_parallel_degree = 16\n",
                 SIXTEEN, 16, 16);
    /* Closed degrees tell the world: 3 x 4 x 2 x 2 GPUs. */
    assert_world("[parallelism]\ndata_parallel_replicate_degree = 3\n"
                 "data_parallel_shard_degree = 4\n" TENSOR_CONTEXT,
                 "", 24, 8);
    g_autoptr(ZpScenario) closed = load_well(
        "[parallelism]\ndata_parallel_shard_degree = 3\ntensor_parallel_degree = 2\n", "", NULL);
    g_assert_cmpstr(value_of(closed, "world", "ranks")->text, ==, "6 ranks");
    g_assert_true(g_str_has_suffix(value_of(closed, "world", "ranks")->origin, ":2"));
    /* Samples are of data parallel ranks: 16 / 2 / 2 of them take 2 each. */
    g_autoptr(ZpScenario) batch = load_well(
        "[training]\nglobal_batch_size = 64\n[parallelism]\n" TENSOR_CONTEXT, SIXTEEN, NULL);
    g_assert_cmpint(batch->job.training.accumulation, ==, 8);
    g_assert_cmpint(batch->job.training.sequence, ==, 256);
}

/* The scenario's own words win, and what follows from them follows from them. */
static void
test_own_words(void)
{
    static const char toml[] = "[training]\nlocal_batch_size = 1\nglobal_batch_size = 64\n"
                               "[parallelism]\ntensor_parallel_degree = 4\n[compile]\n"
                               "enable = true\n";
    const char *const sets[] = {"parallel.tensor=2", "model.compile=none", NULL};
    g_autoptr(ZpScenario) scenario = load_well(toml, SIXTEEN, sets);
    g_assert_cmpint(scenario->job.world.parallel.tensor, ==, 2);
    g_assert_true(scenario->job.world.parallel.sequence);
    g_assert_cmpint(scenario->job.world.ranks, ==, 8);
    g_assert_cmpint(scenario->job.world.shard_group, ==, 8);
    g_assert_cmpint(scenario->job.training.accumulation, ==, 4); /* 64 / (8 x the scenario's 2) */
    g_assert_cmpstr(value_of(scenario, "model", "compile")->text, ==, "none");
    g_autoptr(ZpScenario) written =
        load_well(toml, SIXTEEN "[parallel]\ntensor = 1\nsequence_parallel = false\n", NULL);
    g_assert_cmpint(written->job.world.ranks, ==, 16);
    g_assert_true(warns(written, "[parallel] tensor: 1 ranks wins over 4 ranks of"));
    g_assert_false(warns(written, "has no effect without parallel.tensor"));
    g_autoptr(ZpScenario) whole =
        load_well(toml, SIXTEEN, (const char *[]){"parallel.sequence_parallel=false", NULL});
    g_assert_false(whole->job.world.parallel.sequence);
    g_assert_cmpint(whole->job.world.parallel.tensor, ==, 4);
    g_assert_cmpint(run(whole).peak_bytes, >, 0);
}

static void
test_pipeline(void)
{
    static const char toml[] = "[training]\n\n[parallelism]\npipeline_parallel_degree = 2\n";
    g_autoptr(ZpScenario) left = load_well(toml, SIXTEEN, NULL);
    g_assert_cmpint(left->job.world.parallel.pipeline, ==, 1);
    g_assert_true(warns(left, "titan.toml:4: parallelism.pipeline_parallel_degree: left out"));
    g_assert_cmpint(left->job.world.ranks, ==, 16);
    const char *const ideal[] = {"zero.runtime=ideal", "zero.stage=1", NULL};
    g_autoptr(ZpScenario) taken = load_well(toml, SIXTEEN, ideal);
    g_assert_cmpint(taken->job.world.parallel.pipeline, ==, 2);
    g_assert_cmpint(taken->job.world.ranks, ==, 8);
    g_assert_false(warns(taken, "left out"));
    g_assert_true(g_str_has_suffix(value_of(taken, "parallel", "pipeline")->origin, ":4"));
    g_autoptr(ZpScenario) without = load_well("[training]\n", SIXTEEN, ideal);
    ZpStepSummary after = run(taken), before = run(without);
    g_assert_cmpint(model_peak(&after), <, model_peak(&before));
}

#define ACCELERATE                                                       \
    "distributed_type: FSDP\nnum_processes: 16\nmixed_precision: bf16\n" \
    "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
#define PARALLELISM "parallelism_config:\n  parallelism_config_"

/* accelerate's ParallelismConfig: each size changes the step. */
static void
test_accelerate(void)
{
    static const struct {
        const char *size, *key, *text;
        gint32 ranks, group;
    } cases[] = {
        {"tp_size: 2\n", "tensor", "2 ranks", 8, 8},
        {"cp_size: 2\n", "context", "2 ranks", 16, 16},
        {"dp_shard_size: 4\n", "tensor", "1 ranks", 16, 4},
        {"dp_replicate_size: 8\n", "tensor", "1 ranks", 16, 2},
    };
    g_autoptr(ZpScenario) plain = load_well(ACCELERATE, "", NULL);
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autofree char *text = g_strconcat(ACCELERATE PARALLELISM, cases[c].size, NULL);
        g_autoptr(ZpScenario) scenario = load_well(text, "", NULL);
        const ZpScenarioValue *value = value_of(scenario, "parallel", cases[c].key);
        g_assert_cmpstr(value->text, ==, cases[c].text);
        g_assert_cmpint(g_str_has_suffix(value->origin, ":8"), ==, c < 2);
        g_assert_cmpint(scenario->job.world.ranks, ==, cases[c].ranks);
        g_assert_cmpint(scenario->job.world.shard_group, ==, cases[c].group);
        g_assert_false(scenario->job.world.parallel.sequence);
        g_assert_cmpint(run(scenario).step_ps, !=, run(plain).step_ps);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) odd = load(ACCELERATE PARALLELISM "tp_size: 3\n", "", NULL, &error);
    g_assert_null(odd);
    g_assert_nonnull(strstr(error->message, "do not divide the world of 16"));
    g_autoptr(ZpScenario) data = load_well(
        "distributed_type: MULTI_GPU\nnum_processes: 16\n" PARALLELISM "tp_size: 2\n", "", NULL);
    g_assert_true(warns(data, "parallelism_config: left out"));
    g_assert_cmpint(data->job.world.ranks, ==, 16);
}

/* What is written out is the same job without the file. */
static void
test_dump(void)
{
    g_autoptr(ZpScenario) scenario =
        load_well("[parallelism]\n" TENSOR_CONTEXT "[compile]\nenable = true\n", SIXTEEN, NULL);
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_autoptr(GRegex) config = g_regex_new("\\nconfig = [^\\n]*", 0, 0, NULL);
    g_autofree char *text = g_regex_replace(config, dump->str, -1, 0, "", 0, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) again = zp_scenario_parse(text, -1, "dump.ini", NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpint(run(again).step_ps, ==, run(scenario).step_ps);
    g_assert_cmpint(run(again).peak_bytes, ==, run(scenario).peak_bytes);
}

static void
test_refusals(void)
{
    static const struct {
        const char *toml, *words;
    } cases[] = {
        {"[parallelism]\ntensor_parallel_degree = 3\n", "do not divide the world of 16"},
        {"[parallelism]\ncontext_parallel_degree = 0\n", "0 is out of range"},
        {"[parallelism]\ntensor_parallel_degree = 9999999\n", "no world has that many ranks"},
        {"[parallelism]\ndata_parallel_shard_degree = 8\ntensor_parallel_degree = 4\n",
         "do not divide the world of 16"},
        {"[parallelism]\ndata_parallel_shard_degree = 4611686018427387904\n"
         "data_parallel_replicate_degree = 4611686018427387904\n",
         "no world has that many ranks"},
        {"[training]\nglobal_batch_size = 33\n", "do not divide the global batch"},
        {"[training]\nglobal_batch_size = 0\n", "0 is out of range"},
        {"[compile]\nenable = \"maybe\"\n", "compile.enable"},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) scenario = load(cases[c].toml, SIXTEEN, NULL, &error);
        g_assert_null(scenario);
        g_assert_nonnull(error);
        if (strstr(error->message, cases[c].words) == NULL)
            g_error("'%s' lacks '%s'", error->message, cases[c].words);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import-titan/effects", test_effects);
    g_test_add_func("/import-titan/components", test_components);
    g_test_add_func("/import-titan/attention", test_attention);
    g_test_add_func("/import-titan/groups", test_groups);
    g_test_add_func("/import-titan/own-words", test_own_words);
    g_test_add_func("/import-titan/pipeline", test_pipeline);
    g_test_add_func("/import-titan/accelerate", test_accelerate);
    g_test_add_func("/import-titan/dump", test_dump);
    g_test_add_func("/import-titan/refusals", test_refusals);
    return g_test_run();
}
