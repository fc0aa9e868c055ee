/* Models from config.json: counts, refusals, variants of files. */
#include "models/families/trees/families.h"
#include "models/families/trees/template.h"
#include "models/job/job.h"
#include "scenarios/imports/huggingface/scan_internal.h"
#include "tests/unit/fixtures/hf_fixture.h"

static gint64
elements(const char *json)
{
    g_autoptr(ZpModel) model = hf_fixture_parse(json);
    return model->n_elements;
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
    hf_fixture_refused("{\"model_type\": \"llama\", \"intermediate_size\": 8,"
                       "\"num_hidden_layers\": 2}",
                       ZP_HF_ERROR_MISSING, words);
    const char *nested[] = {"hidden_size (in text_config)", "num_hidden_layers", NULL};
    hf_fixture_refused("{\"model_type\": \"gemma3\", \"text_config\": {\"intermediate_size\": 8}}",
                       ZP_HF_ERROR_MISSING, nested);
}

static void
test_refusals(void)
{
    const char *heads[] = {"4096 is not divisible by 30",
                           "30 attention heads are not divisible by 8", NULL};
    hf_fixture_refused(
        "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 1,"
        "\"num_hidden_layers\": 1, \"num_attention_heads\": 30,"
        "\"num_key_value_heads\": 8, \"vocab_size\": 10}",
        ZP_HF_ERROR_RANGE, heads);
    const char *mamba[] = {"line 2", "'mamba'", "total_parameters", NULL};
    hf_fixture_refused("{\n\"model_type\": \"mamba\"}", ZP_HF_ERROR_UNSUPPORTED, mamba);
    const char *near[] = {"'lama'", "nearest known is 'llama'", NULL};
    hf_fixture_refused("{\"model_type\": \"lama\"}", ZP_HF_ERROR_UNSUPPORTED, near);
    const char *zero[] = {"self_attn.q_proj.weight would be 0 x 8", NULL};
    hf_fixture_refused("{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 1,"
                       "\"num_hidden_layers\": 1, \"num_attention_heads\": 1, \"head_dim\": 0,"
                       "\"vocab_size\": 10}",
                       ZP_HF_ERROR_RANGE, zero);
    const char *hint[] = {"'llava'", "text_config ('llama')", NULL};
    hf_fixture_refused("{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"llama\"}}",
                       ZP_HF_ERROR_UNSUPPORTED, hint);
    const char *wrong[] = {"line 1: hidden_size must be a whole number", "num_hidden_layers = -1",
                           NULL};
    hf_fixture_refused(
        "{\"model_type\": \"llama\", \"hidden_size\": \"wide\", \"intermediate_size\": 1,"
        "\"num_hidden_layers\": -1, \"num_attention_heads\": 1, \"vocab_size\": 10}",
        ZP_HF_ERROR_RANGE, wrong);
    const char *big[] = {"vocab_size", NULL};
    hf_fixture_refused("{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 1,"
                       "\"num_hidden_layers\": 1, \"num_attention_heads\": 1,"
                       "\"vocab_size\": 99999999999999999999999999}",
                       ZP_HF_ERROR_RANGE, big);
    const char *sizes[] = {"elements", NULL};
    hf_fixture_refused("{\"model_type\": \"llama\", \"hidden_size\": 1000000000,"
                       "\"intermediate_size\": 1000000000, \"num_hidden_layers\": 1000000,"
                       "\"num_attention_heads\": 1, \"vocab_size\": 1000000000}",
                       ZP_HF_ERROR_RANGE, sizes);
    const char *blocks[] = {"500000 modules and parameters", NULL};
    hf_fixture_refused("{\"model_type\": \"llama\", \"hidden_size\": 2, \"intermediate_size\": 1,"
                       "\"num_hidden_layers\": 1000000, \"num_attention_heads\": 1,"
                       "\"vocab_size\": 10}",
                       ZP_HF_ERROR_RANGE, blocks);
    const char *none[] = {"model_type", NULL};
    hf_fixture_refused("{}", ZP_HF_ERROR_MISSING, none);
}

static void
test_syntax(void)
{
    const char *third[] = {"line 3", NULL};
    hf_fixture_refused("{\n\"model_type\": \"llama\",\n\"a\": tru}", ZP_HF_ERROR_SYNTAX, third);
    const char *first[] = {"line 1", NULL};
    hf_fixture_refused("[1]", ZP_HF_ERROR_SYNTAX, first);
    hf_fixture_refused("", ZP_HF_ERROR_SYNTAX, first);
    hf_fixture_refused("{\"a\": \"\xff\"}", ZP_HF_ERROR_SYNTAX, first);
    g_autoptr(GString) deep = g_string_new("{\"a\": ");
    for (int i = 0; i < 1000; i++)
        g_string_append_c(deep, '[');
    const char *levels[] = {"deeper than 64", NULL};
    hf_fixture_refused(deep->str, ZP_HF_ERROR_SYNTAX, levels);
    g_autofree char *huge = g_malloc(ZP_HF_MAX_BYTES + 2);
    memset(huge, ' ', ZP_HF_MAX_BYTES + 1);
    huge[ZP_HF_MAX_BYTES + 1] = '\0';
    const char *bytes[] = {"bytes are too many", NULL};
    hf_fixture_refused(huge, ZP_HF_ERROR_SYNTAX, bytes);
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
    g_autoptr(ZpModel) model = hf_fixture_parse(
        "{\"architectures\": [\"Qwen2ForCausalLM\"], \"hidden_size\": 64,"
        "\"intermediate_size\": 128, \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"
        "\"num_key_value_heads\": 2, \"vocab_size\": 100}");
    g_assert_cmpstr(model->family, ==, "qwen2");
    g_assert_nonnull(hf_fixture_find(model, "model.layers.1.self_attn.v_proj.bias"));
    g_assert_null(hf_fixture_find(model, "model.layers.1.self_attn.o_proj.bias"));
}

/* Each layer that computes has an activation; a block's input is kept once under full
 * checkpointing. */
static void
assert_activations(const ZpModel *model, const char *name)
{
    gint32 block = ZP_MODEL_NONE, inputs = 1;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        if (layer->activation == ZP_MODEL_NONE) {
            if (layer->elements > 0 || layer->flops_per_token > 0)
                g_test_fail_printf("%s: %s has no activation", name, layer->name);
            continue;
        }
        const ZpModelPolicyBytes *policies =
            zp_model_activation(model, layer->activation)->policies;
        const ZpModelPolicyBytes *full = &policies[ZP_CHECKPOINTING_FULL];
        g_assert_cmpint(zp_model_peak_at(&policies[ZP_CHECKPOINTING_NONE].forward, 2, 64), >=, 0);
        g_assert_cmpint(zp_model_peak_at(&policies[ZP_CHECKPOINTING_NONE].backward, 2, 64), >, 0);
        gint64 kept = zp_model_bytes_at(&full->kept, 2, 64);
        g_assert_cmpint(kept + zp_model_bytes_at(&full->recomputed, 2, 64), >, 0);
        if (layer->block == ZP_MODEL_NONE)
            continue;
        if (layer->block != block)
            g_assert_cmpint(inputs, ==, 1);
        inputs = (layer->block == block ? inputs : 0) + (kept > 0);
        block = layer->block;
    }
    g_assert_cmpint(inputs, ==, 1);
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
            block = layer->block;
        }
        assert_activations(model, name);
        g_assert_cmpint(n_blocks, ==, model->n_blocks);
        n++;
    }
    g_assert_cmpint(n, >=, 40);
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
                            strcmp(name, "positions") == 0 || strcmp(name, "hf5") == 0;
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
    g_test_add_func("/hf/whole", test_reference_models_are_whole);
    g_test_add_func("/hf/warnings", test_warnings);
    g_test_add_func("/hf/symbols", test_symbols_are_defined);
    g_test_add_func("/hf/markdown", test_markdown);
    return g_test_run();
}
