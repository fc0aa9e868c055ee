/* Models from config.json: counts, refusals, variants of files, frozen parts and adapters. */
#include "models/adapters.h"
#include "models/families.h"
#include "models/families_template.h"
#include "scenarios/hf_config.h"
#include "scenarios/hf_scan.h"

#include <string.h>

static const ZpArchitectureOptions options = {
    .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};

#define LLAMA_WITHOUT_HEAD                                                             \
    "\"model_type\": \"llama\", \"hidden_size\": 1024, \"intermediate_size\": 2816,\n" \
    "\"num_hidden_layers\": 3, \"num_attention_heads\": 16, \"vocab_size\": 32000"

static ZpModel *
parse(const char *json)
{
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_hf_parse(json, -1, "config.json", &options, NULL, &error);
    g_assert_no_error(error);
    return model;
}

static void
assert_refused(const char *json, int code, const char *const *words)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_hf_parse(json, -1, "config.json", &options, NULL, &error));
    g_assert_error(error, ZP_HF_ERROR, code);
    g_assert_true(g_str_has_prefix(error->message, "config.json: "));
    for (gsize i = 0; words[i]; i++)
        if (strstr(error->message, words[i]) == NULL)
            g_test_fail_printf("'%s' is not in: %s", words[i], error->message);
}

static gint64
elements(const char *json)
{
    g_autoptr(ZpModel) model = parse(json);
    return model->n_elements;
}

static const ZpModelParameter *
find(const ZpModel *model, const char *name)
{
    for (gint32 i = 0; i < (gint32)model->parameters->len; i++)
        if (strcmp(zp_model_parameter(model, i)->name, name) == 0)
            return zp_model_parameter(model, i);
    return NULL;
}

static void
test_flags(void)
{
    gint64 plain = elements("{" LLAMA_WITHOUT_HEAD "}");
    gint64 kv_heads = elements("{" LLAMA_WITHOUT_HEAD ", \"num_key_value_heads\": 4}");
    g_assert_cmpint(plain - kv_heads, ==, 3L * 2L * 1024L * (1024 - 256));
    gint64 null_kv = elements("{" LLAMA_WITHOUT_HEAD ", \"num_key_value_heads\": null}");
    g_assert_cmpint(plain, ==, null_kv);
    gint64 tied = elements("{" LLAMA_WITHOUT_HEAD ", \"tie_word_embeddings\": true}");
    g_assert_cmpint(plain - tied, ==, 32000L * 1024);
    gint64 biased = elements("{" LLAMA_WITHOUT_HEAD ", \"attention_bias\": true}");
    g_assert_cmpint(biased - plain, ==, 3L * 4L * 1024);
    gint64 wide = elements("{" LLAMA_WITHOUT_HEAD ", \"head_dim\": 128}");
    g_assert_cmpint(wide - plain, ==, 3L * 4L * 1024L * 1024);
}

/* The class default where the key is missing, all heads where it is null. */
static void
test_null_is_not_missing(void)
{
    const char *missing = "{\"model_type\": \"mistral\", \"hidden_size\": 1024,"
                          "\"intermediate_size\": 2816, \"num_hidden_layers\": 3,"
                          "\"num_attention_heads\": 16, \"vocab_size\": 32000}";
    const char *null = "{\"model_type\": \"mistral\", \"hidden_size\": 1024,"
                       "\"intermediate_size\": 2816, \"num_hidden_layers\": 3,"
                       "\"num_attention_heads\": 16, \"vocab_size\": 32000,"
                       "\"num_key_value_heads\": null}";
    g_assert_cmpint(elements(missing), ==, 100932608);
    g_assert_cmpint(elements(null), ==, 104078336);
}

static void
test_all_missing_keys_at_once(void)
{
    const char *words[] = {"hidden_size", "num_attention_heads", "vocab_size", NULL};
    assert_refused("{\"model_type\": \"llama\", \"intermediate_size\": 8,"
                   "\"num_hidden_layers\": 2}",
                   ZP_HF_ERROR_MISSING, words);
    const char *nested[] = {"hidden_size (in text_config)", "num_hidden_layers", NULL};
    assert_refused("{\"model_type\": \"gemma3\", \"text_config\": {\"intermediate_size\": 8}}",
                   ZP_HF_ERROR_MISSING, nested);
}

static void
test_refusals(void)
{
    const char *heads[] = {"4096 is not divisible by 30",
                           "30 attention heads are not divisible by 8", NULL};
    assert_refused("{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 1,"
                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 30,"
                   "\"num_key_value_heads\": 8, \"vocab_size\": 10}",
                   ZP_HF_ERROR_RANGE, heads);
    const char *mamba[] = {"line 2", "'mamba'", "total_parameters", NULL};
    assert_refused("{\n\"model_type\": \"mamba\"}", ZP_HF_ERROR_UNSUPPORTED, mamba);
    const char *near[] = {"'lama'", "nearest known is 'llama'", NULL};
    assert_refused("{\"model_type\": \"lama\"}", ZP_HF_ERROR_UNSUPPORTED, near);
    const char *zero[] = {"self_attn.q_proj.weight would be 0 x 8", NULL};
    assert_refused("{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 1,"
                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"head_dim\": 0,"
                   "\"vocab_size\": 10}",
                   ZP_HF_ERROR_RANGE, zero);
    const char *hint[] = {"'llava'", "text_config ('llama')", NULL};
    assert_refused("{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"llama\"}}",
                   ZP_HF_ERROR_UNSUPPORTED, hint);
    const char *wrong[] = {"line 1: hidden_size must be a whole number", "num_hidden_layers = -1",
                           NULL};
    assert_refused(
        "{\"model_type\": \"llama\", \"hidden_size\": \"wide\", \"intermediate_size\": 1,"
        "\"num_hidden_layers\": -1, \"num_attention_heads\": 1, \"vocab_size\": 10}",
        ZP_HF_ERROR_RANGE, wrong);
    const char *big[] = {"vocab_size", NULL};
    assert_refused("{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 1,"
                   "\"num_hidden_layers\": 1, \"num_attention_heads\": 1,"
                   "\"vocab_size\": 99999999999999999999999999}",
                   ZP_HF_ERROR_RANGE, big);
    const char *sizes[] = {"elements", NULL};
    assert_refused("{\"model_type\": \"llama\", \"hidden_size\": 1000000000,"
                   "\"intermediate_size\": 1000000000, \"num_hidden_layers\": 1000000,"
                   "\"num_attention_heads\": 1, \"vocab_size\": 1000000000}",
                   ZP_HF_ERROR_RANGE, sizes);
    const char *blocks[] = {"500000 modules and parameters", NULL};
    assert_refused("{\"model_type\": \"llama\", \"hidden_size\": 2, \"intermediate_size\": 1,"
                   "\"num_hidden_layers\": 1000000, \"num_attention_heads\": 1,"
                   "\"vocab_size\": 10}",
                   ZP_HF_ERROR_RANGE, blocks);
    const char *none[] = {"model_type", NULL};
    assert_refused("{}", ZP_HF_ERROR_MISSING, none);
}

static void
test_syntax(void)
{
    const char *third[] = {"line 3", NULL};
    assert_refused("{\n\"model_type\": \"llama\",\n\"a\": tru}", ZP_HF_ERROR_SYNTAX, third);
    const char *first[] = {"line 1", NULL};
    assert_refused("[1]", ZP_HF_ERROR_SYNTAX, first);
    assert_refused("", ZP_HF_ERROR_SYNTAX, first);
    assert_refused("{\"a\": \"\xff\"}", ZP_HF_ERROR_SYNTAX, first);
    g_autoptr(GString) deep = g_string_new("{\"a\": ");
    for (int i = 0; i < 1000; i++)
        g_string_append_c(deep, '[');
    const char *levels[] = {"deeper than 64", NULL};
    assert_refused(deep->str, ZP_HF_ERROR_SYNTAX, levels);
    g_autofree char *huge = g_malloc(ZP_HF_MAX_BYTES + 2);
    memset(huge, ' ', ZP_HF_MAX_BYTES + 1);
    huge[ZP_HF_MAX_BYTES + 1] = '\0';
    const char *bytes[] = {"bytes are too many", NULL};
    assert_refused(huge, ZP_HF_ERROR_SYNTAX, bytes);
    /* A byte order mark and Windows line ends are no reason to refuse. */
    g_assert_cmpint(elements("\xEF\xBB\xBF{\r\n" LLAMA_WITHOUT_HEAD "\r\n}"), >, 0);
}

static void
test_looks_like(void)
{
    g_assert_true(zp_hf_looks_like("{\"model_type\": 3}", -1));
    g_assert_true(zp_hf_looks_like("{\"architectures\": []}", -1));
    g_assert_false(zp_hf_looks_like("{\"zero_optimization\": {}}", -1));
    g_assert_false(zp_hf_looks_like("model_type", -1));
}

/* Without model_type the class decides. */
static void
test_architecture_names_family(void)
{
    g_autoptr(ZpModel) model =
        parse("{\"architectures\": [\"Qwen2ForCausalLM\"], \"hidden_size\": 64,"
              "\"intermediate_size\": 128, \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"
              "\"num_key_value_heads\": 2, \"vocab_size\": 100}");
    g_assert_cmpstr(model->family, ==, "qwen2");
    g_assert_nonnull(find(model, "model.layers.1.self_attn.v_proj.bias"));
    g_assert_null(find(model, "model.layers.1.self_attn.o_proj.bias"));
}

/* Blocks 1 and 3 of five are mixtures: every second one, but not block 5's successor. */
static void
test_mixture_on_some_blocks(void)
{
    g_autoptr(ZpModel) model =
        parse("{\"model_type\": \"qwen3_moe\", \"hidden_size\": 64, \"intermediate_size\": 128,"
              "\"moe_intermediate_size\": 32, \"num_hidden_layers\": 6, \"num_attention_heads\": 4,"
              "\"num_key_value_heads\": 2, \"head_dim\": 16, \"num_experts\": 8,"
              "\"num_experts_per_tok\": 2, \"decoder_sparse_step\": 2, \"mlp_only_layers\": [5],"
              "\"vocab_size\": 100}");
    g_assert_null(find(model, "model.layers.0.mlp.experts.0.up_proj.weight"));
    g_assert_nonnull(find(model, "model.layers.1.mlp.experts.7.up_proj.weight"));
    g_assert_nonnull(find(model, "model.layers.3.mlp.experts.0.up_proj.weight"));
    g_assert_null(find(model, "model.layers.5.mlp.experts.0.up_proj.weight"));
    g_assert_nonnull(find(model, "model.layers.5.mlp.up_proj.weight"));
    const gint64 expert = 3L * 64L * 32;
    g_assert_cmpint(model->n_elements - model->n_active_elements, ==, 2L * (8 - 2) * expert);
    const ZpModelLayer *mixture = zp_model_layer(model, 4);
    g_assert_cmpstr(mixture->name, ==, "block.1.mlp");
    g_assert_cmpint(mixture->flops_per_token, ==, 2L * (2L * expert + 8L * 64));
}

static void
test_expert_imbalance(void)
{
    const char *json =
        "{\"model_type\": \"mixtral\", \"hidden_size\": 64, \"intermediate_size\": 128,"
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"vocab_size\": 100}";
    ZpArchitectureOptions uneven = options;
    uneven.expert_imbalance = 2;
    g_autoptr(ZpModel) even = parse(json);
    g_autoptr(ZpModel) busy = zp_hf_parse(json, -1, "config.json", &uneven, NULL, NULL);
    const gint64 chosen = 2L * 3L * 64L * 128;
    g_assert_cmpint(busy->n_elements, ==, even->n_elements);
    g_assert_cmpint(zp_model_layer(busy, 2)->flops_per_token -
                        zp_model_layer(even, 2)->flops_per_token,
                    ==, 2L * chosen);
    g_assert_cmpint(zp_model_layer(busy, 2)->kept_bytes_per_token, >,
                    zp_model_layer(even, 2)->kept_bytes_per_token);
    g_assert_cmpint(zp_model_layer(busy, 1)->flops_per_token, ==,
                    zp_model_layer(even, 1)->flops_per_token);
}

/* Every parameter of every family has a layer, and layers and blocks are in forward order. */
static void
test_reference_models_are_whole(void)
{
    g_autofree char *folder = g_build_filename(ZP_SOURCE_DIR, "tests/reference/hf", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    int n = 0;
    while (dir && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(name, ".json") || g_str_has_prefix(name, "neg-"))
            continue;
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpModel) model = zp_hf_load(path, &options, NULL, &error);
        g_assert_no_error(error);
        for (gint32 p = 0; p < (gint32)model->parameters->len; p++)
            if (zp_model_parameter(model, p)->layer == ZP_MODEL_NONE)
                g_test_fail_printf("%s: %s has no layer", name, zp_model_parameter(model, p)->name);
        gint32 block = -1, n_blocks = 0;
        for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
            const ZpModelLayer *layer = zp_model_layer(model, l);
            g_assert_cmpint(layer->module, !=, ZP_MODEL_NONE);
            if (layer->block == ZP_MODEL_NONE)
                continue;
            g_assert_cmpint(layer->block, >=, block);
            n_blocks += layer->block != block;
            g_assert_true((layer->input_bytes_per_token > 0) == (layer->block != block));
            block = layer->block;
        }
        g_assert_cmpint(n_blocks, ==, model->n_blocks);
        n++;
    }
    g_assert_cmpint(n, >=, 40);
}

static void
test_freeze(void)
{
    g_autoptr(ZpModel) model = parse("{" LLAMA_WITHOUT_HEAD ", \"tie_word_embeddings\": true}");
    gint64 table = 32000L * 1024;
    g_assert_cmpint(zp_model_freeze(model, "model.embed_tokens.*"), ==, table);
    g_assert_cmpint(model->n_trainable_elements, ==, model->n_elements - table);
    g_assert_false(find(model, "lm_head.weight")->trainable);
    g_assert_cmpint(zp_model_freeze(model, "nothing*"), ==, 0);
}

static void
test_lora(void)
{
    g_autoptr(ZpModel) model = parse("{" LLAMA_WITHOUT_HEAD ", \"num_key_value_heads\": 4}");
    g_autoptr(ZpModel) plain = parse("{" LLAMA_WITHOUT_HEAD ", \"num_key_value_heads\": 4}");
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_model_add_lora(model, 8, "q_proj, v_proj", &error));
    g_assert_no_error(error);
    const gint64 each = 8L * (1024 + 1024) + 8L * (1024 + 256);
    g_assert_cmpint(model->n_trainable_elements, ==, 3L * each);
    g_assert_cmpint(model->n_elements, ==, plain->n_elements + 3L * each);
    const ZpModelParameter *b =
        find(model, "model.layers.2.self_attn.v_proj.lora_B.default.weight");
    g_assert_nonnull(b);
    g_assert_cmpint(b->shape[0], ==, 256);
    g_assert_cmpint(b->shape[1], ==, 8);
    g_assert_false(find(model, "model.layers.2.self_attn.v_proj.weight")->trainable);
    gint64 by_layer = 0;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++)
        by_layer += zp_model_layer(model, l)->elements;
    g_assert_cmpint(by_layer, ==, model->n_elements);
    g_assert_cmpint(zp_model_layer(model, 1)->flops_per_token -
                        zp_model_layer(plain, 1)->flops_per_token,
                    ==, 2L * each);
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
    g_autoptr(ZpModel) model = parse("{" LLAMA_WITHOUT_HEAD "}");
    g_autoptr(GError) error = NULL;
    gint64 before = model->n_elements;
    g_assert_false(zp_model_add_lora(model, 8, "query_key_value", &error));
    g_assert_error(error, ZP_ADAPTERS_ERROR, ZP_ADAPTERS_ERROR_NO_TARGET);
    g_assert_nonnull(strstr(error->message, "q_proj"));
    g_clear_error(&error);
    g_assert_false(zp_model_add_lora(model, 0, "q_proj", &error));
    g_assert_error(error, ZP_ADAPTERS_ERROR, ZP_ADAPTERS_ERROR_RANGE);
    g_assert_cmpint(model->n_elements, ==, before);
    g_assert_cmpint(model->n_trainable_elements, ==, before);
}

/* What one block keeps, in units of 2h, against the working set measured per layer on six models
 * (stas00/ml-engineering, activation tables): ours lacks 3.5 units of temporaries, and is within 5%
 * with them. */
static void
test_measured_activations(void)
{
    static const struct {
        const char *file;
        double measured;
    } cases[] = {
        {"llama-3-8b", 28}, {"mistral-7b-v0.1", 28}, {"qwen3-8b", 29.8},
        {"qwen3-4b", 38},   {"gemma-2b", 48},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path =
            g_strdup_printf("%s/tests/reference/hf/%s.json", ZP_SOURCE_DIR, cases[i].file);
        g_autoptr(ZpModel) model = zp_hf_load(path, &options, NULL, NULL);
        g_assert_nonnull(model);
        gint64 kept = zp_model_layer(model, 1)->kept_bytes_per_token +
                      zp_model_layer(model, 2)->kept_bytes_per_token;
        double units = (double)kept / (2.0 * (double)model->hidden) + 3.5;
        g_test_message("%s: %.2f units, measured %.1f", cases[i].file, units, cases[i].measured);
        g_assert_cmpfloat_with_epsilon(units, cases[i].measured, 0.05 * cases[i].measured);
    }
}

static void
test_warnings(void)
{
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ZpModel) model = zp_hf_parse(
        "{" LLAMA_WITHOUT_HEAD ", \"quantization_config\": {\"quant_method\": \"fp8\"}}", -1,
        "config.json", &options, warnings, NULL);
    g_assert_nonnull(model);
    g_assert_cmpuint(warnings->len, ==, 1);
    g_assert_nonnull(strstr(g_ptr_array_index(warnings, 0), "quantised"));
}

/* A misspelt symbol would silently be 0: every one used is given a value by some family. */
static void
test_symbols_are_defined(void)
{
    g_autoptr(GPtrArray) all = zp_families_load_all();
    g_autoptr(GHashTable) given = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(ZpSymbols) used = zp_symbols_new();
    g_autoptr(ZpExpressions) expressions = zp_expressions_new(used);
    for (guint f = 0; f < all->len; f++) {
        const ZpFamily *family = g_ptr_array_index(all, f);
        g_autoptr(ZpTemplate) tree =
            zp_template_parse(zp_families_trees(), family->tree, family->uses, expressions);
        g_assert_nonnull(tree);
        for (guint i = 0; i < family->statements->len; i++) {
            const ZpFamilyStatement *s = g_ptr_array_index(family->statements, i);
            if (s->verb != ZP_FAMILY_NEED && s->verb != ZP_FAMILY_DROP)
                g_hash_table_add(given, s->symbol);
            if (s->verb < ZP_FAMILY_MISSING)
                continue;
            ZpExpression expression;
            const char *end;
            g_assert_true(zp_expressions_compile(expressions, s->argument, &end, &expression));
            g_assert_cmpstr(end, ==, "");
        }
    }
    for (guint i = 0; i < used->names->len; i++) {
        const char *name = g_ptr_array_index(used->names, i);
        gboolean built_in = strcmp(name, "i") == 0 || g_str_has_prefix(name, "has_") ||
                            strcmp(name, "positions") == 0;
        if (!built_in && !g_hash_table_contains(given, name))
            g_test_fail_printf("symbol '%s' is used but never given", name);
    }
}

static void
test_markdown(void)
{
    g_autofree char *table = zp_hf_families_markdown();
    g_assert_nonnull(strstr(table, "| `llama` | `LlamaDecoderLayer` | `hidden_size`"));
    g_assert_nonnull(strstr(table, "`falcon`, `RefinedWeb`, `RefinedWebModel`"));
    g_assert_nonnull(strstr(table, "`Gemma3DecoderLayer`"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hf/flags", test_flags);
    g_test_add_func("/hf/null-is-not-missing", test_null_is_not_missing);
    g_test_add_func("/hf/missing", test_all_missing_keys_at_once);
    g_test_add_func("/hf/refusals", test_refusals);
    g_test_add_func("/hf/syntax", test_syntax);
    g_test_add_func("/hf/looks-like", test_looks_like);
    g_test_add_func("/hf/architecture-names-family", test_architecture_names_family);
    g_test_add_func("/hf/mixture-on-some-blocks", test_mixture_on_some_blocks);
    g_test_add_func("/hf/expert-imbalance", test_expert_imbalance);
    g_test_add_func("/hf/whole", test_reference_models_are_whole);
    g_test_add_func("/hf/freeze", test_freeze);
    g_test_add_func("/hf/lora", test_lora);
    g_test_add_func("/hf/lora-refusals", test_lora_refusals);
    g_test_add_func("/hf/measured-activations", test_measured_activations);
    g_test_add_func("/hf/warnings", test_warnings);
    g_test_add_func("/hf/symbols", test_symbols_are_defined);
    g_test_add_func("/hf/markdown", test_markdown);
    return g_test_run();
}
