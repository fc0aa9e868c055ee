/* Frozen parts and low-rank adapters of models from config.json. */
#include "models/families/adapters.h"
#include "tests/unit/fixtures/hf_fixture.h"

static void
test_freeze(void)
{
    g_autoptr(ZpModel) model =
        hf_fixture_parse("{" LLAMA_WITHOUT_HEAD ", \"tie_word_embeddings\": true}");
    gint64 table = 32000L * 1024;
    g_assert_cmpint(zp_model_freeze(model, "model.embed_tokens.*"), ==, table);
    g_assert_cmpint(model->n_trainable_elements, ==, model->n_elements - table);
    g_assert_false(hf_fixture_find(model, "lm_head.weight")->trainable);
    g_assert_cmpint(zp_model_freeze(model, "nothing*"), ==, 0);
}

static void
test_lora(void)
{
    g_autoptr(ZpModel) model =
        hf_fixture_parse("{" LLAMA_WITHOUT_HEAD ", \"num_key_value_heads\": 4}");
    g_autoptr(ZpModel) plain =
        hf_fixture_parse("{" LLAMA_WITHOUT_HEAD ", \"num_key_value_heads\": 4}");
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_model_add_lora(model, 8, "q_proj, v_proj", FALSE, &error));
    g_assert_no_error(error);
    const gint64 each = 8L * (1024 + 1024) + 8L * (1024 + 256);
    g_assert_cmpint(model->n_trainable_elements, ==, 3L * each);
    g_assert_cmpint(model->n_elements, ==, plain->n_elements + 3L * each);
    const ZpModelParameter *b =
        hf_fixture_find(model, "model.layers.2.self_attn.v_proj.lora_B.default.weight");
    g_assert_nonnull(b);
    g_assert_cmpint(b->shape[0], ==, 256);
    g_assert_cmpint(b->shape[1], ==, 8);
    g_assert_false(hf_fixture_find(model, "model.layers.2.self_attn.v_proj.weight")->trainable);
    gint64 by_layer = 0;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++)
        by_layer += zp_model_layer(model, l)->elements;
    g_assert_cmpint(by_layer, ==, model->n_elements);
    g_assert_cmpint(zp_model_layer(model, 1)->flops_per_token -
                        zp_model_layer(plain, 1)->flops_per_token,
                    ==, 2L * each);
    /* Two adapters of rank 8 in 16 bits; the MLPs have none and share what they had. */
    g_assert_cmpint(hf_fixture_kept(model, 1, 1).bytes_per_token -
                        hf_fixture_kept(plain, 1, 1).bytes_per_token,
                    ==, 2L * 8 * 2);
    g_assert_cmpint(zp_model_layer(model, 1)->activation, ==, zp_model_layer(model, 5)->activation);
    g_assert_cmpint(zp_model_layer(model, 2)->activation, ==, zp_model_layer(plain, 2)->activation);
    for (gint32 m = 0; m < (gint32)model->modules->len; m++) {
        const ZpModelModule *module = zp_model_module(model, m);
        g_assert_cmpint(module->parent, <, m);
        for (gint32 c = 0; c < module->n_calls; c++)
            g_assert_cmpint(zp_model_module(model, module->calls[c])->parent, ==, m);
        for (gint32 p = 0; p < module->n_parameters; p++)
            g_assert_cmpint(zp_model_parameter(model, module->first_parameter + p)->module, ==, m);
    }
}

static void
test_lora_refusals(void)
{
    g_autoptr(ZpModel) model = hf_fixture_parse("{" LLAMA_WITHOUT_HEAD "}");
    g_autoptr(GError) error = NULL;
    gint64 before = model->n_elements;
    g_assert_false(zp_model_add_lora(model, 8, "query_key_value", FALSE, &error));
    g_assert_error(error, ZP_ADAPTERS_ERROR, ZP_ADAPTERS_ERROR_NO_TARGET);
    g_assert_nonnull(strstr(error->message, "q_proj"));
    g_clear_error(&error);
    g_assert_false(zp_model_add_lora(model, 0, "q_proj", FALSE, &error));
    g_assert_error(error, ZP_ADAPTERS_ERROR, ZP_ADAPTERS_ERROR_RANGE);
    g_assert_cmpint(model->n_elements, ==, before);
    g_assert_cmpint(model->n_trainable_elements, ==, before);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hf/freeze", test_freeze);
    g_test_add_func("/hf/lora", test_lora);
    g_test_add_func("/hf/lora-refusals", test_lora_refusals);
    return g_test_run();
}
