/* Section [parallel] of scenario files. */
#include <string.h>

#include "models/step/step.h"
#include "scenarios/load/scenario.h"

static const char base[] = "[model]\ncatalog = Llama-3-8B\n[training]\nsequence = 4096\n"
                           "accumulation = 4\n[world]\nranks = 32\n[zero]\nstage = 1\n"
                           "[device]\ngpu = H100-SXM-80\n";

static void
test_scenario(void)
{
    static const char *const sets[] = {"parallel.tensor=4", "parallel.sequence_parallel=true",
                                       "parallel.context=2", "parallel.pipeline=2", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_parse(base, -1, "base", sets, &error);
    g_assert_no_error(error);
    g_assert_cmpint(scenario->job.world.ranks, ==, 4);
    g_assert_cmpint(scenario->job.world.shard_group, ==, 4);
    g_assert_cmpint(scenario->job.training.sequence, ==, 2048);
    g_assert_cmpint(scenario->job.model->n_blocks, ==, 16);
    g_assert_nonnull(scenario->job.last_stage);
    static const char *const other[] = {"parallel.tensor=2", NULL};
    g_autoptr(ZpScenario) with = zp_scenario_with(scenario, other, &error);
    g_assert_no_error(error);
    g_assert_cmpint(with->job.world.ranks, ==, 8);
    g_assert_cmpint(with->job.model->heads, ==, 16);
    g_assert_cmpint(with->job.training.sequence, ==, 2048);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    g_assert_true(zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error));
    g_assert_cmpint(summary.tokens_per_step, ==, 2 * 4 * 4096); /* 2 replicas, 4 micro-batches */
}

/* An image model has no vocabulary to pad; its blocks are cut as others. */
static void
test_image_model(void)
{
    g_autofree char *set = g_strconcat(
        "model.config=" ZP_SOURCE_DIR "/tests/reference/hf/vit-base-patch16-224.json", NULL);
    const char *sets[] = {set, NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) whole = zp_scenario_parse("", -1, "image", sets, &error);
    g_assert_no_error(error);
    g_autoptr(ZpScenario) cut =
        zp_scenario_parse("[parallel]\ntensor = 2\n", -1, "image", sets, &error);
    g_assert_no_error(error);
    gint64 h = 768, f = 3072; /* of a block: q, k, v and their biases, o, both of the MLP */
    gint64 halved = 12 * (4 * h * h + 3 * h + 2 * h * f + f) / 2;
    g_assert_cmpint(whole->model->n_elements - cut->model->n_elements, ==, halved);
    gint64 in_layers = 0;
    for (guint l = 0; l < cut->model->layers->len; l++)
        in_layers += zp_model_layer(cut->model, (gint32)l)->elements;
    g_assert_cmpint(in_layers, ==, cut->model->n_elements);
}

static void
test_scenario_refusals(void)
{
    static const struct {
        const char *sets[4];
        const char *words;
    } cases[] = {
        {{"parallel.tensor=5"},
         "[parallel] tensor: 5 tensor parallel ranks do not divide 32 ranks"},
        {{"parallel.context=64"},
         "[parallel] context: 64 context parallel ranks do not divide 32 ranks"},
        {{"parallel.tensor=8", "parallel.context=8"},
         "[parallel] context: 8 tensor x 8 context parallel ranks do not divide 32 ranks"},
        {{"parallel.pipeline=3"}, "[parallel] pipeline: 3 stages do not divide 32 ranks"},
        {{"parallel.tensor=4", "parallel.pipeline=3"},
         "[parallel] pipeline: 4 tensor parallel ranks x 3 stages do not divide 32 ranks"},
        {{"parallel.tensor=32", "training.sequence=4100", "parallel.sequence_parallel=true"},
         "[parallel] sequence_parallel: the 4100 tokens"},
        {{"parallel.context=4", "training.sequence=4100"}, "not divisible by 2 x 4"},
        {{"parallel.context=2", "model.attention=eager"}, "model.attention = flash"},
        {{"parallel.pipeline=2", "zero.stage=2"}, "zero.stage 0 or 1"},
        {{"parallel.pipeline=2", "zero.runtime=fsdp2", "zero.stage=3"}, "the runtime fsdp2"},
        {{"parallel.tensor=4", "world.shard_group=16"}, "data parallel ranks of [parallel], 8"},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) scenario = zp_scenario_parse(base, -1, "base", cases[c].sets, &error);
        g_assert_null(scenario);
        if (strstr(error->message, cases[c].words) == NULL)
            g_error("%s", error->message);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parallel/scenario", test_scenario);
    g_test_add_func("/parallel/scenario/image", test_image_model);
    g_test_add_func("/parallel/scenario/refusals", test_scenario_refusals);
    return g_test_run();
}
