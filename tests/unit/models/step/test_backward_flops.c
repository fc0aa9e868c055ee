/* Backward makes the gradients that are asked for, under every runtime: none of frozen weights, and
 * those of the first layer that trains. */
#include "models/families/adapters.h"
#include "models/families/catalog.h"
#include "models/job/fsdp.h"
#include "tests/unit/fixtures/job_fixture.h"

static const char *const runtimes[] = {"ideal", "deepspeed", "fsdp1", "fsdp2", "ddp"};

/* FLOPs of the backward pass over those of forward; takes the model. */
static double
backward_of(ZpModel *model, const char *runtime)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000, 4);
    zp_model_free(fixture.model);
    ZpFsdp settings = *zp_fsdp_defaults();
    settings.wrap_trainable = model->n_trainable_elements < model->n_elements;
    fixture.model = model;
    fixture.job.model = model;
    fixture.job.fsdp = &settings;
    fixture.job.runtime = runtime;
    fixture.job.training.sequence = 256;
    if (g_str_equal(runtime, "ddp"))
        fixture.job.zero.stage = 0;
    g_autoptr(ZpStep) step = zp_step_new();
    job_fixture_run(&fixture, step);
    const ZpTape *tape = zp_step_tape(step);
    double flops[ZP_N_KINDS] = {0};
    for (gint32 i = 0; i < tape->n_instrs; i++)
        if (tape->instrs[i].op == ZP_TAPE_LAUNCH)
            flops[tape->works[tape->instrs[i].a].kind] += tape->works[tape->instrs[i].a].flops;
    job_fixture_clear(&fixture);
    return flops[ZP_KIND_BACKWARD] / flops[ZP_KIND_FORWARD];
}

static ZpModel *
gpt2(void)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_catalog_build("GPT-2", &options, &error);
    g_assert_no_error(error);
    return model;
}

/* The base takes gradients of its inputs alone, attention those of its three inputs: at 256 tokens
 * that is little, and the adapters are little. */
static void
test_adapters(void)
{
    for (guint r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        g_assert_cmpfloat_with_epsilon(backward_of(gpt2(), runtimes[r]), 2.0, 1e-9);
        ZpModel *model = gpt2();
        g_autoptr(GError) error = NULL;
        g_assert_true(zp_model_add_lora(model, 8, "c_attn", FALSE, &error));
        double backward = backward_of(model, runtimes[r]);
        g_assert_cmpfloat(backward, >, 1.0);
        g_assert_cmpfloat(backward, <, 1.1);
    }
}

/* A frozen layer behind one that trains costs its forward once more, not twice. */
static void
test_frozen_layer(void)
{
    for (guint r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        ZpModel *model = zp_model_new("four");
        zp_model_add_layer(model, "layer", 1000, 4, 1000000, 0, 0);
        g_array_index(model->parameters, ZpModelParameter, 2).trainable = FALSE;
        zp_model_finish(model);
        g_assert_cmpfloat_with_epsilon(backward_of(model, runtimes[r]), 7.0 / 4.0, 1e-9);
    }
}

/* A model of few pieces, and one of a single one: the first trains like the others. */
static void
test_first_layer(void)
{
    for (guint r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        g_assert_cmpfloat_with_epsilon(backward_of(zp_model_new_total(7000000, 4), runtimes[r]),
                                       2.0, 1e-9);
        g_assert_cmpfloat_with_epsilon(backward_of(zp_model_new_total(7000000, 1), runtimes[r]),
                                       2.0, 1e-9);
    }
}

/* Behind a frozen embedding all blocks train. */
static void
test_frozen_embedding(void)
{
    for (guint r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        if (g_str_equal(runtimes[r], "fsdp1"))
            continue; /* refuses a unit of both kinds */
        ZpModel *model = gpt2();
        g_assert_cmpint(zp_model_freeze(model, "*wpe*"), >, 0);
        g_assert_cmpfloat_with_epsilon(backward_of(model, runtimes[r]), 2.0, 1e-9);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/backward-flops/adapters", test_adapters);
    g_test_add_func("/backward-flops/frozen-layer", test_frozen_layer);
    g_test_add_func("/backward-flops/first-layer", test_first_layer);
    g_test_add_func("/backward-flops/frozen-embedding", test_frozen_embedding);
    return g_test_run();
}
