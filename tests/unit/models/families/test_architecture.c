/* Models built from dimensions: counts, names and order of parameters, layers and their costs. */
#include "models/families/architecture.h"
#include "models/families/catalog.h"

#include <string.h>

static const ZpArchitectureOptions flash = {
    .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};
static const ZpArchitectureOptions eager = {
    .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_EAGER, .causal = FALSE};

static const ZpArchitecture llama = {.family = "llama",
                                     .layers = 32,
                                     .hidden = 4096,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .ffn = 14336,
                                     .vocabulary = 128256,
                                     .gated = TRUE,
                                     .final_norm = TRUE,
                                     .norms_per_block = 2};

static const ZpArchitecture gpt = {.family = "gpt2",
                                   .layers = 12,
                                   .hidden = 768,
                                   .heads = 12,
                                   .ffn = 3072,
                                   .vocabulary = 50257,
                                   .positions = 1024,
                                   .tied = TRUE,
                                   .attention_bias = TRUE,
                                   .mlp_bias = TRUE,
                                   .norm_bias = TRUE,
                                   .final_norm = TRUE,
                                   .norms_per_block = 2};

static ZpModel *
build(const ZpArchitecture *architecture, const ZpArchitectureOptions *options)
{
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_architecture_build(architecture, options, "test", &error);
    g_assert_no_error(error);
    return model;
}

static void
assert_consistent(const ZpModel *model)
{
    gint64 by_layer = 0, by_parameter = 0;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++)
        by_layer += zp_model_layer(model, l)->elements;
    for (gint32 p = 0; p < (gint32)model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, p);
        const ZpModelModule *module = zp_model_module(model, parameter->module);
        gint64 product = 1;
        for (gint32 d = 0; d < parameter->n_dims; d++)
            product *= parameter->shape[d];
        g_assert_cmpint(product, ==, parameter->elements);
        g_assert_cmpint(parameter->layer, !=, ZP_MODEL_NONE);
        g_assert_cmpint(p, >=, module->first_parameter);
        g_assert_cmpint(p, <, module->first_parameter + module->n_parameters);
        if (parameter->tied_to == ZP_MODEL_NONE)
            by_parameter += parameter->elements;
    }
    g_assert_cmpint(by_layer, ==, model->n_elements);
    g_assert_cmpint(by_parameter, ==, model->n_elements);
}

static void
test_llama(void)
{
    g_autoptr(ZpModel) model = build(&llama, &flash);
    assert_consistent(model);
    g_assert_cmpint(model->n_elements, ==, 8030261248);
    g_assert_cmpint(model->n_embedding_elements, ==, 128256L * 4096);
    g_assert_cmpuint(model->parameters->len, ==, 291);
    g_assert_cmpuint(model->layers->len, ==, 1 + 2L * 32 + 2);
    g_assert_false(model->tied);
    static const char *const names[] = {
        "model.embed_tokens.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.v_proj.weight",
        "model.layers.0.self_attn.o_proj.weight",
        "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.mlp.down_proj.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.post_attention_layernorm.weight",
        "model.layers.1.self_attn.q_proj.weight",
    };
    for (gint32 i = 0; i < (gint32)G_N_ELEMENTS(names); i++)
        g_assert_cmpstr(zp_model_parameter(model, i)->name, ==, names[i]);
    const ZpModelParameter *k = zp_model_parameter(model, 2);
    g_assert_cmpint(k->shape[0], ==, 1024);
    g_assert_cmpint(k->shape[1], ==, 4096);
    g_assert_cmpstr(zp_model_layer(model, 0)->name, ==, "embedding");
    g_assert_cmpstr(zp_model_layer(model, 1)->name, ==, "block.0.attention");
    g_assert_cmpstr(zp_model_layer(model, 2)->name, ==, "block.0.mlp");
    g_assert_cmpstr(zp_model_layer(model, 65)->name, ==, "norm");
    g_assert_cmpstr(zp_model_layer(model, 66)->name, ==, "head");
    g_assert_cmpint(zp_model_layer(model, 1)->elements, ==,
                    2 * 4096 * 4096 + 2 * 1024 * 4096 + 4096);
    g_assert_cmpint(zp_model_layer(model, 2)->elements, ==, 3L * 4096L * 14336 + 4096);
}

/* Hooks need the call order: input norm, attention, second norm, MLP; inside it gate, act, up. */
static void
test_call_order(void)
{
    g_autoptr(ZpModel) model = build(&llama, &flash);
    for (gint32 m = 0; m < (gint32)model->modules->len; m++) {
        const ZpModelModule *module = zp_model_module(model, m);
        if (module->is_block && module->block == 3) {
            static const char *const order[] = {
                "model.layers.3.input_layernorm", "model.layers.3.self_attn",
                "model.layers.3.post_attention_layernorm", "model.layers.3.mlp"};
            g_assert_cmpstr(module->class_name, ==, "LlamaDecoderLayer");
            g_assert_cmpint(module->n_calls, ==, 4);
            for (gint32 c = 0; c < 4; c++)
                g_assert_cmpstr(zp_model_module(model, module->calls[c])->name, ==, order[c]);
        }
        if (strcmp(module->name, "model.layers") == 0)
            g_assert_true(module->container);
        if (module->parent != ZP_MODEL_NONE)
            g_assert_cmpint(module->parent, <, m);
    }
}

static void
test_llama_costs(void)
{
    g_autoptr(ZpModel) model = build(&llama, &flash);
    const ZpModelLayer *attention = zp_model_layer(model, 1), *mlp = zp_model_layer(model, 2);
    const gint64 h = 4096, q = 4096, kv = 1024, f = 14336;
    g_assert_cmpint(attention->flops_per_token, ==, 2L * (2L * q * h + 2L * kv * h));
    g_assert_cmpint(attention->flops_per_pair, ==, 4L * q / 2);
    g_assert_cmpint(mlp->flops_per_token, ==, 6L * h * f);
    g_assert_cmpint(zp_model_layer(model, 66)->flops_per_token, ==, 2L * h * 128256);
    g_assert_cmpint(zp_model_layer(model, 0)->flops_per_token, ==, 0);
}

static void
test_gpt(void)
{
    g_autoptr(ZpModel) model = build(&gpt, &eager);
    assert_consistent(model);
    g_assert_cmpint(model->n_elements, ==, 124439808);
    g_assert_true(model->tied);
    g_assert_cmpint(zp_model_layer(model, 1)->flops_per_pair, ==, 4L * 768);
    const ZpModelLayer *head = zp_model_layer(model, (gint32)model->layers->len - 1);
    g_assert_cmpint(head->elements, ==, 0);
    g_assert_cmpint(head->tied_elements, ==, 50257L * 768);
}

static void
test_refusals(void)
{
    g_autoptr(GError) error = NULL;
    ZpArchitecture wrong = {.layers = 2, .heads = 4};
    g_assert_false(zp_architecture_check(&wrong, &error));
    g_assert_error(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_MISSING);
    g_assert_cmpstr(error->message, ==, "missing: hidden, ffn, vocabulary");
    g_clear_error(&error);

    wrong = llama;
    wrong.heads = 30;
    g_assert_false(zp_architecture_check(&wrong, &error));
    g_assert_nonnull(strstr(error->message, "not a multiple of heads"));
    g_assert_nonnull(strstr(error->message, "not a multiple of kv_heads"));
    g_clear_error(&error);

    wrong = llama;
    wrong.hidden = wrong.ffn = G_GINT64_CONSTANT(1) << 40;
    wrong.heads = wrong.kv_heads = 1;
    g_assert_null(zp_architecture_build(&wrong, &flash, "huge", &error));
    g_assert_error(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_RANGE);
}

/* What a flag adds is exactly what it names. */
static void
test_flags(void)
{
    g_autoptr(ZpModel) plain = build(&llama, &flash);
    ZpArchitecture changed = llama;
    changed.qkv_bias = TRUE;
    g_autoptr(ZpModel) biased = build(&changed, &flash);
    g_assert_cmpint(biased->n_elements - plain->n_elements, ==, 32L * (4096 + 2L * 1024));
    changed = llama;
    changed.attention_bias = TRUE;
    g_autoptr(ZpModel) more = build(&changed, &flash);
    g_assert_cmpint(more->n_elements - biased->n_elements, ==, 32L * 4096);
    changed = llama;
    changed.tied = TRUE;
    g_autoptr(ZpModel) tied = build(&changed, &flash);
    g_assert_cmpint(plain->n_elements - tied->n_elements, ==, 128256L * 4096);
    changed = llama;
    changed.gated = FALSE;
    changed.family = "";
    g_autoptr(ZpModel) ungated = build(&changed, &flash);
    g_assert_cmpint(plain->n_elements - ungated->n_elements, ==,
                    G_GINT64_CONSTANT(32) * 4096 * 14336);
    changed = llama;
    changed.norms_per_block = 4;
    g_autoptr(ZpModel) norms = build(&changed, &flash);
    g_assert_cmpint(norms->n_elements - plain->n_elements, ==, 32L * 2L * 4096);
}

/* A sweep builds models by the thousand; bench_step tells how fast. */
static void
test_largest(void)
{
    g_autoptr(ZpModel) once = zp_catalog_build("Llama-3.1-405B", &flash, NULL);
    g_autoptr(ZpModel) again = zp_catalog_build("Llama-3.1-405B", &flash, NULL);
    g_assert_cmpint(once->n_elements, ==, 405853388800);
    g_assert_cmpint(again->n_elements, ==, once->n_elements);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/architecture/llama", test_llama);
    g_test_add_func("/architecture/call-order", test_call_order);
    g_test_add_func("/architecture/llama-costs", test_llama_costs);
    g_test_add_func("/architecture/gpt", test_gpt);
    g_test_add_func("/architecture/refusals", test_refusals);
    g_test_add_func("/architecture/flags", test_flags);
    g_test_add_func("/architecture/largest", test_largest);
    return g_test_run();
}
