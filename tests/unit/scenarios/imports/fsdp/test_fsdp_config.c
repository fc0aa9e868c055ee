#include "scenarios/imports/fsdp/config.h"
#include "scenarios/imports/import.h"
#include "scenarios/readers/readers.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static ZpFsdpConfig *
parse(ZpFsdpSource source, const char *text, const ZpFsdpContext *context)
{
    return zp_fsdp_config_parse(source, "f", text, strlen(text), context);
}

static ZpFsdpConfig *
load(ZpFsdpSource source, const char *file, const ZpFsdpContext *context)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "tests/reference/fsdp_inputs", file, NULL);
    g_autofree char *text = NULL;
    gsize length;
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    return zp_fsdp_config_parse(source, file, text, length, context);
}

static const ZpImportMessage *
find_message(const ZpImportMessages *messages, const char *key, const char *words)
{
    for (guint i = 0; i < messages->list->len; i++) {
        const ZpImportMessage *message = messages->list->pdata[i];
        if (strcmp(message->key, key) == 0 && strstr(message->text, words))
            return message;
    }
    return NULL;
}

static ZpImportVerdict
verdict(const ZpFsdpConfig *config)
{
    return zp_import_message_verdict(config->messages);
}

static void
test_accelerate(void)
{
    g_autoptr(ZpFsdpConfig) one =
        load(ZP_FSDP_ACCELERATE, "accelerate-fsdp1-int-strategy.yaml", NULL);
    g_assert_true(one->uses_fsdp);
    g_assert_cmpint(one->version, ==, 1);
    g_assert_cmpint(one->strategy, ==, ZP_FSDP_FULL_SHARD);
    g_assert_cmpint(one->backward_prefetch, ==, ZP_FSDP_PREFETCH_PRE);
    g_assert_cmpstr(one->wrap_classes[0], ==, "GPTJBlock");
    g_assert_cmpint(one->world, ==, 8);
    g_assert_cmpint(one->gathered, ==, ZP_DTYPE_BF16);
    g_assert_cmpint(verdict(one), ==, ZP_IMPORT_SUSPICIOUS); /* an old key name */

    g_autoptr(ZpFsdpConfig) two = load(ZP_FSDP_ACCELERATE, "accelerate-fsdp2.yaml", NULL);
    g_assert_cmpint(two->version, ==, 2);
    g_assert_true(two->reshard_after_forward);
    g_assert_cmpint(two->wrap, ==, ZP_FSDP_WRAP_CLASSES);
    g_assert_null(two->wrap_classes);
    g_assert_cmpint(verdict(two), ==, ZP_IMPORT_OK);

    g_autoptr(ZpFsdpConfig) none = load(ZP_FSDP_ACCELERATE, "accelerate-no-wrap.yaml", NULL);
    g_assert_cmpint(none->wrap, ==, ZP_FSDP_WRAP_NONE);
    const ZpImportMessage *message =
        find_message(none->messages, "fsdp_config.fsdp_auto_wrap_policy", "whole model");
    g_assert_nonnull(message);
    g_assert_cmpint(message->line, ==, 5);
    g_assert_cmpint(verdict(none), ==, ZP_IMPORT_SUSPICIOUS);
}

/* A class that the model lacks is refused, and the real one named; without a model nobody can
 * know. */
static void
test_wrap_class(void)
{
    static const char *const classes[] = {"Model", "Block", "Linear", NULL};
    ZpFsdpContext context = {.model_classes = classes, .block_class = "Block"};
    g_autoptr(ZpFsdpConfig) refused =
        load(ZP_FSDP_ACCELERATE, "accelerate-no-wrap-class.yaml", &context);
    const ZpImportMessage *message = find_message(
        refused->messages, "fsdp_config.fsdp_transformer_layer_cls_to_wrap", "no class GPT2Block");
    g_assert_nonnull(message);
    g_assert_cmpint(message->severity, ==, ZP_IMPORT_ERROR);
    g_assert_cmpint(message->line, ==, 7);
    g_assert_true(g_str_has_prefix(message->mend, "Block is"));
    g_autoptr(ZpFsdpConfig) open = load(ZP_FSDP_ACCELERATE, "accelerate-no-wrap-class.yaml", NULL);
    g_assert_cmpint(verdict(open), ==, ZP_IMPORT_OK);
    g_assert_cmpint(open->gathered, ==, ZP_DTYPE_NONE); /* 'no' in quotes is text */
}

static void
test_accelerate_deepspeed(void)
{
    g_autoptr(ZpFsdpConfig) config = load(ZP_FSDP_ACCELERATE, "accelerate-deepspeed.yaml", NULL);
    g_assert_false(config->uses_fsdp);
    g_assert_nonnull(config->deepspeed);
    g_assert_cmpint(zp_ds_config_stage(config->deepspeed), ==, 2);
    g_assert_cmpint(zp_ds_config_precision(config->deepspeed), ==, ZP_DTYPE_BF16);
    g_assert_cmpint(zp_ds_config_integer(config->deepspeed, ZP_DS_ACCUMULATION_STEPS), ==, 8);
    g_assert_cmpstr(zp_ds_config_text(config->deepspeed, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), ==,
                    "cpu");
    const ZpImportMessage *message = find_message(
        config->messages, "deepspeed_config.offload_param_device", "no effect at stage 2");
    g_assert_nonnull(message);
    g_assert_cmpint(message->line, ==, 9);
    g_assert_cmpint(verdict(config), ==, ZP_IMPORT_SUSPICIOUS);
}

static void
test_trainer(void)
{
    g_autoptr(ZpFsdpConfig) config = load(ZP_FSDP_TRAINER, "hf-trainer-fsdp.json", NULL);
    g_assert_true(config->uses_fsdp);
    g_assert_true(config->offload_parameters);
    g_assert_true(config->limit_all_gathers);
    g_assert_cmpint(config->strategy, ==, ZP_FSDP_FULL_SHARD);
    g_assert_cmpint(config->wrap, ==, ZP_FSDP_WRAP_CLASSES);
    g_assert_cmpstr(config->wrap_classes[0], ==, "LlamaDecoderLayer");
    g_assert_cmpint(config->checkpoint, ==, ZP_FSDP_CHECKPOINT_FULL);
    g_assert_cmpint(config->micro_batch, ==, 1);
    g_assert_nonnull(find_message(config->messages, "gradient_checkpointing", "twice"));
    g_assert_cmpint(verdict(config), ==, ZP_IMPORT_SUSPICIOUS);
    g_autoptr(ZpFsdpConfig) nested =
        parse(ZP_FSDP_TRAINER,
              "{\"per_device_train_batch_size\": 3, \"bf16\": true, \"deepspeed\": "
              "{\"train_micro_batch_size_per_gpu\": \"auto\", \"bf16\": {\"enabled\": \"auto\"}, "
              "\"zero_optimization\": {\"stage\": 7}}}",
              NULL);
    g_assert_false(nested->uses_fsdp);
    g_assert_cmpint(zp_ds_config_integer(nested->deepspeed, ZP_DS_MICRO_BATCH_SIZE), ==, 3);
    g_assert_cmpint(zp_ds_config_precision(nested->deepspeed), ==, ZP_DTYPE_BF16);
    g_assert_nonnull(
        find_message(nested->messages, "deepspeed.zero_optimization.stage", "out of range"));
}

static void
test_torchtitan(void)
{
    g_autoptr(ZpFsdpConfig) config = load(ZP_FSDP_TORCHTITAN, "torchtitan.toml", NULL);
    g_assert_cmpint(config->version, ==, 2);
    g_assert_cmpint(config->shard_degree, ==, -1);
    g_assert_cmpint(config->replicate_degree, ==, 1);
    g_assert_true(config->reshard_after_forward);
    g_assert_cmpint(config->checkpoint, ==, ZP_FSDP_CHECKPOINT_OP);
    g_assert_cmpint(config->stored, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(config->gathered, ==, ZP_DTYPE_BF16);
    g_assert_cmpint(config->reduced, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(config->sequence, ==, 8192);
    g_assert_cmpint(verdict(config), ==, ZP_IMPORT_OK);
    g_autoptr(ZpFsdpConfig) hybrid =
        parse(ZP_FSDP_TORCHTITAN,
              "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
              "fsdp_reshard_after_forward = \"never\"\n[activation_checkpoint]\n"
              "selective_ac_option = '2'\n",
              NULL);
    g_assert_cmpint(hybrid->strategy, ==, ZP_FSDP_HYBRID_SHARD_ZERO2);
    g_assert_cmpint(hybrid->checkpoint, ==, ZP_FSDP_CHECKPOINT_LAYERS);
    g_assert_cmpint(hybrid->checkpoint_every, ==, 2);
    g_autoptr(ZpFsdpConfig) pipeline =
        parse(ZP_FSDP_TORCHTITAN, "[parallelism]\npipeline_parallel_degree = 2\n", NULL);
    g_assert_false(pipeline->reshard_after_forward);
    g_assert_cmpint(verdict(pipeline), ==, ZP_IMPORT_SUSPICIOUS);
}

typedef struct {
    ZpFsdpSource source;
    const char *text;
    ZpImportVerdict verdict;
    const char *key, *words;
} Rule;

#define FSDP "distributed_type: FSDP\nfsdp_config:\n"

static const Rule rules[] = {
    {ZP_FSDP_ACCELERATE, FSDP "  fsdp_sharding_strategy: 6\n", ZP_IMPORT_REFUSED,
     "fsdp_config.fsdp_sharding_strategy", "none of"},
    {ZP_FSDP_ACCELERATE, FSDP "  fsdp_sharding_strategy: FULL_SHRAD\n", ZP_IMPORT_REFUSED,
     "fsdp_config.fsdp_sharding_strategy", "none of"},
    {ZP_FSDP_ACCELERATE, FSDP "  fsdp_ofload_params: true\n", ZP_IMPORT_SUSPICIOUS,
     "fsdp_config.fsdp_ofload_params", "unknown key"},
    {ZP_FSDP_ACCELERATE, "num_proceses: 8\n" FSDP "  fsdp_version: 2\n", ZP_IMPORT_REFUSED,
     "num_proceses", "unknown key"},
    {ZP_FSDP_ACCELERATE, "mixed_precision: no\n" FSDP "  fsdp_version: 2\n", ZP_IMPORT_SUSPICIOUS,
     "mixed_precision", "false in YAML 1.1"},
    {ZP_FSDP_ACCELERATE, FSDP "  fsdp_version: 3\n", ZP_IMPORT_REFUSED, "fsdp_config.fsdp_version",
     "versions 1 and 2"},
    {ZP_FSDP_ACCELERATE, "distributed_type: MULTI_GPU\nfsdp_config:\n  fsdp_version: 2\n",
     ZP_IMPORT_SUSPICIOUS, "fsdp_config", "ignored"},
    {ZP_FSDP_ACCELERATE,
     FSDP "  fsdp_version: 2\n  fsdp_sharding_strategy: FULL_SHARD\n"
          "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n",
     ZP_IMPORT_SUSPICIOUS, "fsdp_config.fsdp_sharding_strategy", "no effect"},
    {ZP_FSDP_ACCELERATE,
     FSDP "  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n  fsdp_min_num_params: 1e8\n",
     ZP_IMPORT_SUSPICIOUS, "fsdp_config.fsdp_min_num_params", "text"},
    {ZP_FSDP_ACCELERATE, FSDP "  a: 1\n  a: 2\n", ZP_IMPORT_REFUSED, "a", "line 3 already"},
    {ZP_FSDP_ACCELERATE, "a: &x 1\nb: *x\n", ZP_IMPORT_REFUSED, "", "anchors"},
    {ZP_FSDP_ACCELERATE, "a: [1\n", ZP_IMPORT_REFUSED, "", ""},
    {ZP_FSDP_ACCELERATE, "- 1\n", ZP_IMPORT_REFUSED, "", "not a block"},
    {ZP_FSDP_ACCELERATE,
     "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: x.json\n"
     "  zero_stage: 2\n",
     ZP_IMPORT_REFUSED, "deepspeed_config.deepspeed_config_file", "refuses other"},
    {ZP_FSDP_ACCELERATE,
     "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
     "  offload_param_device: none\n",
     ZP_IMPORT_OK, NULL, NULL},
    {ZP_FSDP_TRAINER, "{\"fsdp\": \"offload\", \"fsdp_config\": {}}", ZP_IMPORT_REFUSED, "fsdp",
     "alone"},
    {ZP_FSDP_TRAINER, "{\"fsdp\": \"full_shard shard_grad_op\"}", ZP_IMPORT_REFUSED, "fsdp",
     "more than one"},
    {ZP_FSDP_TRAINER, "{\"fsdp\": \"ful_shard\"}", ZP_IMPORT_REFUSED, "fsdp", "none of"},
    {ZP_FSDP_TRAINER, "{\"fsdp\": \"full_shard\"}", ZP_IMPORT_SUSPICIOUS, "fsdp", "whole model"},
    {ZP_FSDP_TRAINER,
     "{\"fsdp\": \"full_shard auto_wrap\", \"fsdp_config\": {\"min_num_params\": 100, "
     "\"transformer_layer_cls_to_wrap\": [\"A\"]}}",
     ZP_IMPORT_REFUSED, "fsdp_config.min_num_params", "exclude"},
    {ZP_FSDP_TRAINER, "{\"fsdp\": \"full_shard auto_wrap\", \"bf16\": true, \"fp16\": true}",
     ZP_IMPORT_REFUSED, "fp16", "exclude"},
    {ZP_FSDP_TRAINER,
     "{\"fsdp\": [\"full_shard\", \"auto_wrap\"], \"fsdp_config\": {\"forward_prefech\": true}}",
     ZP_IMPORT_SUSPICIOUS, "fsdp_config.forward_prefech", "unknown key"},
    {ZP_FSDP_TORCHTITAN, "[parallelism]\ndata_parallel_shard_degree = 0\n", ZP_IMPORT_REFUSED,
     "parallelism.data_parallel_shard_degree", "out of range"},
    {ZP_FSDP_TORCHTITAN, "[parallelism]\nfsdp_reshard_after_forward = true\n", ZP_IMPORT_REFUSED,
     "parallelism.fsdp_reshard_after_forward", "none of"},
    {ZP_FSDP_TORCHTITAN, "[parallelism]\ndata_paralel_shard_degree = 8\n", ZP_IMPORT_SUSPICIOUS,
     "parallelism.data_paralel_shard_degree", "unknown key"},
    {ZP_FSDP_TORCHTITAN, "[activation_checkpoint]\nmode = \"selectiv\"\n", ZP_IMPORT_REFUSED,
     "activation_checkpoint.mode", "none of"},
    {ZP_FSDP_TORCHTITAN, "[training]\nbatch_size = 4\n", ZP_IMPORT_SUSPICIOUS,
     "training.batch_size", "old name"},
};

static void
test_rules(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        g_autoptr(ZpFsdpConfig) config = parse(rules[i].source, rules[i].text, NULL);
        g_test_message("%s", rules[i].text);
        g_assert_cmpint(verdict(config), ==, rules[i].verdict);
        if (rules[i].key)
            g_assert_nonnull(find_message(config->messages, rules[i].key, rules[i].words));
    }
}

static void
test_toml(void)
{
    static const char text[] =
        "a.b = 1_000 # c\n'q' = \"x\\u00e9\\n\"\n[t.\"u\"]\n"
        "list = [1,\n  2.5, # two\n  'x',\n]\ninline = {a = true, b.c = -3}\n";
    g_autoptr(ZpImportMessages) messages = zp_import_message_list_new("t");
    g_autoptr(ZpTree) root = zp_toml_parse(text, strlen(text), messages);
    g_assert_cmpuint(messages->list->len, ==, 0);
    g_assert_cmpint(zp_tree_path(root, "a.b")->integer, ==, 1000);
    g_assert_cmpstr(zp_tree_find(root, "q")->text, ==, "x\xc3\xa9\n");
    g_assert_cmpuint(zp_tree_path(root, "t.u.list")->members->len, ==, 3);
    g_assert_cmpint(zp_tree_path(root, "t.u.inline.b.c")->integer, ==, -3);
    g_assert_cmpint(zp_tree_path(root, "t.u.inline")->key_line, ==, 8);
    static const struct {
        const char *text;
        int line;
    } bad[] = {
        {"a = 1\na = 2", 2},
        {"[a]\n[a]", 2},
        {"a = 1\na.b = 2", 2},
        {"a 1", 1},
        {"a = ", 1},
        {"\na = 1 2", 2},
        {"a = [1 2]", 1},
        {"a = \"x", 1},
        {"a = 1979-05-27", 1},
        {"a = 0x10", 1},
        {"a = 01", 1},
        {"a = 1__0", 1},
        {"a = \"\"\"x\"\"\"", 1},
        {"[[a]]\n", 1},
        {"[a\n", 1},
        {"a = nan", 1},
        {"= 1", 1},
        {"a = {b = 1", 1},
        {"a = {b = 1,\n}", 1},
        {"a = 1\xff", 1},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(ZpImportMessages) said = zp_import_message_list_new("t");
        zp_tree_free(zp_toml_parse(bad[i].text, strlen(bad[i].text), said));
        g_test_message("%s", bad[i].text);
        g_assert_cmpint(zp_import_message_verdict(said), ==, ZP_IMPORT_REFUSED);
        g_assert_cmpint(((ZpImportMessage *)said->list->pdata[0])->line, ==, bad[i].line);
    }
}

static void
test_yaml(void)
{
    static const char text[] = "a: yes\nb: 'yes'\nc: 5\nd: 1e8\ne: 1.0e+8\nf: ~\ng:\nh: 010\n"
                               "i: [x, \"2\"]\n";
    static const ZpTreeKind kinds[] = {ZP_TREE_BOOLEAN, ZP_TREE_STRING, ZP_TREE_INTEGER,
                                       ZP_TREE_STRING,  ZP_TREE_REAL,   ZP_TREE_NULL,
                                       ZP_TREE_NULL,    ZP_TREE_STRING, ZP_TREE_ARRAY};
    g_autoptr(ZpImportMessages) messages = zp_import_message_list_new("y");
    g_autoptr(ZpTree) root = zp_yaml_parse(text, strlen(text), messages);
    g_assert_cmpuint(messages->list->len, ==, 0);
    g_assert_cmpuint(root->members->len, ==, G_N_ELEMENTS(kinds));
    for (guint i = 0; i < root->members->len; i++) {
        const ZpTree *member = root->members->pdata[i];
        g_assert_cmpint(member->kind, ==, kinds[i]);
        g_assert_cmpint(member->key_line, ==, (int)i + 1);
    }
}

static void
test_detection(void)
{
    static const struct {
        const char *name, *text;
        ZpImportKind kind;
    } cases[] = {
        {"x", "{\"zero_optimization\": {}}", ZP_IMPORT_DEEPSPEED},
        {"x", "// c\n{\"train_batch_size\": 1}", ZP_IMPORT_DEEPSPEED},
        {"x.json", "{broken", ZP_IMPORT_DEEPSPEED},
        {"x.json", "{\"fsdp\": \"full_shard\"}", ZP_IMPORT_TRAINER},
        {"x.json", "{\"fsdp_version\": 2}", ZP_IMPORT_TRAINER},
        {"x.json", "{\"model_type\": \"llama\", \"hidden_size\": 8}", ZP_IMPORT_MODEL},
        {"x", "# c\ndistributed_type: FSDP\n", ZP_IMPORT_ACCELERATE},
        {"x.yml", "", ZP_IMPORT_ACCELERATE},
        {"x", "[job]\n[training]\n", ZP_IMPORT_TORCHTITAN},
        {"x.toml", "[training]\n", ZP_IMPORT_TORCHTITAN},
        {"x", "[model]\nname = llama-3-8b\n", ZP_IMPORT_SCENARIO},
        {"x", "nothing at all", ZP_IMPORT_UNKNOWN},
        {"x", "", ZP_IMPORT_UNKNOWN},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].text);
        g_assert_cmpint(zp_import_detect(cases[i].name, cases[i].text, strlen(cases[i].text)), ==,
                        cases[i].kind);
    }
}

/* Refused by size alone, and deep or wide files in no time. */
static void
test_bounds(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("zp-large-XXXXXX", &path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(ftruncate(fd, 100 * 1024 * 1024), ==, 0);
    close(fd);
    g_autoptr(ZpImportReport) report = zp_import_check(path, &error);
    g_unlink(path);
    g_assert_no_error(error);
    g_assert_cmpint(report->verdict, ==, ZP_IMPORT_REFUSED);
    g_autoptr(GString) text = g_string_new("a: ");
    for (int i = 0; i < 100000; i++)
        g_string_append_c(text, '[');
    g_autoptr(ZpFsdpConfig) yaml = parse(ZP_FSDP_ACCELERATE, text->str, NULL);
    g_assert_cmpint(verdict(yaml), ==, ZP_IMPORT_REFUSED);
    g_string_overwrite(text, 0, "a =");
    g_autoptr(ZpFsdpConfig) toml = parse(ZP_FSDP_TORCHTITAN, text->str, NULL);
    g_assert_cmpint(verdict(toml), ==, ZP_IMPORT_REFUSED);
    g_string_truncate(text, 0);
    for (int i = 0; i < 100000; i++)
        g_string_append_printf(text, "k%d: 1\n", i);
    g_autoptr(ZpFsdpConfig) wide = parse(ZP_FSDP_ACCELERATE, text->str, NULL);
    g_assert_cmpint(verdict(wide), ==, ZP_IMPORT_REFUSED);
    g_strdelimit(text->str, ":", '=');
    g_autoptr(ZpFsdpConfig) flat = parse(ZP_FSDP_TORCHTITAN, text->str, NULL);
    g_assert_cmpint(verdict(flat), ==, ZP_IMPORT_REFUSED);
    g_string_truncate(text, 0);
    for (int i = 0; i < 1000000; i++)
        g_string_append_printf(text, "[t%d]\n", i);
    g_autoptr(ZpFsdpConfig) tables = parse(ZP_FSDP_TORCHTITAN, text->str, NULL);
    g_assert_cmpint(verdict(tables), ==, ZP_IMPORT_REFUSED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fsdp/accelerate", test_accelerate);
    g_test_add_func("/fsdp/wrap-class", test_wrap_class);
    g_test_add_func("/fsdp/accelerate-deepspeed", test_accelerate_deepspeed);
    g_test_add_func("/fsdp/trainer", test_trainer);
    g_test_add_func("/fsdp/torchtitan", test_torchtitan);
    g_test_add_func("/fsdp/rules", test_rules);
    g_test_add_func("/fsdp/toml", test_toml);
    g_test_add_func("/fsdp/yaml", test_yaml);
    g_test_add_func("/fsdp/detection", test_detection);
    g_test_add_func("/fsdp/bounds", test_bounds);
    return g_test_run();
}
