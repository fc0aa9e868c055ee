/* The "effect" column of the key table against the simulator: a key with an effect changes the
 * tape of a step in at least one of the situations below, a key without changes none. */
#include "models/families/adapters.h"
#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/readers/readers.h"
#include "tests/unit/fixtures/deepspeed_fixture.h"

#include <string.h>

typedef struct {
    const char *name, *text;
    gint32 ranks;
    gboolean frozen;
} Situation;

#define HEAD "{\"train_micro_batch_size_per_gpu\": 1, \"gradient_accumulation_steps\": 2, "
#define CPU "\"offload_optimizer\": {\"device\": \"cpu\"}"
#define SMALL                                                                           \
    "\"reduce_bucket_size\": 600000, \"stage3_prefetch_bucket_size\": 300000, "         \
    "\"stage3_max_live_parameters\": 2000000, \"stage3_max_reuse_distance\": 1000000, " \
    "\"stage3_param_persistence_threshold\": 1000, \"sub_group_size\": 200000"

static const Situation situations[] = {
    {"0, fp16", HEAD "\"fp16\": {\"enabled\": true}}", 4, FALSE},
    {"total alone", "{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 1}", 4, FALSE},
    {"3, no prefetch",
     HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, "
          "\"stage3_prefetch_bucket_size\": 0, \"stage3_param_persistence_threshold\": 0, "
          "\"stage3_max_reuse_distance\": 0}}",
     4, FALSE},
    {"3, cpu optimizer",
     HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, " CPU "}}", 4,
     FALSE},
    {"0", HEAD "\"bf16\": {\"enabled\": true}}", 4, FALSE},
    {"1", HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 1}}", 4, FALSE},
    {"1, BF16 optimizer",
     HEAD "\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}, "
          "\"zero_optimization\": {\"stage\": 1}}",
     4, FALSE},
    {"2",
     HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2, "
          "\"reduce_bucket_size\": 600000, \"overlap_comm\": true}}",
     4, FALSE},
    {"2, fp16, cpu",
     HEAD "\"fp16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2, " CPU "}}", 4,
     FALSE},
    {"2, bf16, cpu, bf16 masters",
     HEAD "\"bf16\": {\"enabled\": true, \"bf16_master_weights_and_grads\": true}, "
          "\"zero_optimization\": {\"stage\": 2, " CPU "}}",
     4, FALSE},
    {"3", HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, " SMALL "}}",
     4, FALSE},
    {"3, frozen", HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3}}", 4,
     TRUE},
    {"3, two nodes",
     HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, " SMALL "}}", 16,
     FALSE},
    {"3, cpu",
     HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, " CPU
          ", \"offload_param\": {\"device\": \"cpu\"}, " SMALL "}}",
     4, FALSE},
    {"3, nvme",
     HEAD "\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, "
          "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/n\"}, "
          "\"offload_param\": {\"device\": \"nvme\", \"nvme_path\": \"/n\", "
          "\"max_in_cpu\": 2000000}, \"sub_group_size\": 2000000, "
          "\"stage3_max_reuse_distance\": 0}}", /* kept parameters would use up the buffers */
     4, FALSE},
};

/* A model small enough to compile hundreds of times; its matrices exceed the 2 MiB a partition
 * needs to reach NVMe. */
static ZpModel *
build_model(gboolean frozen)
{
    static const ZpArchitecture shape = {
        .family = "llama",
        .layers = 2,
        .hidden = 1024,
        .heads = 8,
        .kv_heads = 8,
        .head_size = 128,
        .ffn = 4096,
        .vocabulary = 8192,
        .gated = TRUE,
        .qkv_bias = TRUE,
        .final_norm = TRUE,
        .norms_per_block = 2,
    };
    static const ZpArchitectureOptions options = {
        .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_architecture_build(&shape, &options, "small", &error);
    g_assert_no_error(error);
    if (frozen)
        g_assert_cmpint(zp_model_freeze(model, "*mlp*"), >, 0);
    return model;
}

/* Sets `path` to the JSON value `text`, making blocks on the way. */
static void
set_value(ZpTree *root, const char *path, const char *text)
{
    g_auto(GStrv) names = g_strsplit(path, ".", -1);
    ZpTree *block = root;
    g_autoptr(ZpImportMessages) messages = zp_import_message_list_new("value");
    for (int i = 0; names[i]; i++) {
        ZpTree *next = names[i + 1] ? zp_tree_find(block, names[i]) : NULL;
        if (!next) {
            next = names[i + 1] ? zp_tree_new(ZP_TREE_OBJECT, 1, 1)
                                : zp_json_text_parse(text, strlen(text), ZP_JSON_STRICT, messages);
            g_assert_nonnull(next);
            next->key = g_strdup(names[i]);
            next->key_line = 1;
            zp_tree_add(block, next); /* the last of two equal keys counts */
        }
        block = next;
    }
}

/* The tape of a step as text; NULL where the configuration, or the runtime, refuses it. */
static char *
step_text(const Situation *situation, const ZpModel *model, const char *path, const char *text)
{
    /* An old version still takes what was removed since. */
    ZpDsContext context = {.version = "0.19.6", .world = situation->ranks};
    g_autoptr(ZpImportMessages) said = zp_import_message_list_new("base");
    g_autoptr(ZpTree) root =
        zp_json_text_parse(situation->text, strlen(situation->text), ZP_JSON_STRICT, said);
    if (path)
        set_value(root, path, text);
    g_autoptr(ZpDsConfig) config =
        zp_ds_config_from_tree(root, &context, zp_import_message_list_new("ds.json"));
    DsFixture fixture;
    ds_fixture_init(&fixture, model, situation->ranks, 0);
    fixture.job.optimizer = &fixture.optimizer;
    fixture.job.training.micro_batch = 0;
    fixture.job.training.accumulation = 0;
    GString *out = NULL;
    if (zp_ds_apply_job(config, &fixture.settings, &fixture.job, NULL) &&
        zp_runtime_deepspeed.compile(&fixture.job, NULL, fixture.tape, NULL)) {
        out = g_string_new(NULL);
        zp_tape_dump(fixture.tape, out);
    }
    ds_fixture_clear(&fixture);
    return out ? g_string_free(out, FALSE) : NULL;
}

/* Values worth trying: the sizes of the small model, and everything a boolean or choice can be. */
static char **
alternatives(const ZpDsEntry *entry)
{
    static const char *const counts[] = {"1",      "2",       "4",          "3000",
                                         "300000", "3000000", "1000000000", NULL};
    static const char *const reals[] = {"0", "0.5", NULL};
    static const char *const booleans[] = {"true", "false", NULL};
    static const char *const lists[] = {"[\"LlamaDecoderLayer\"]", "[\"model.layers.0\"]",
                                        "[\"layers.0\"]", NULL};
    static const char *const others[] = {"{}", "\"SGD\"", NULL};
    if (entry->kind == ZP_DS_CHOICE) {
        g_auto(GStrv) names = g_strsplit(entry->choices, "|", -1);
        for (int i = 0; names[i]; i++) {
            char *quoted = g_strdup_printf("\"%s\"", names[i]);
            g_free(names[i]);
            names[i] = quoted;
        }
        return g_steal_pointer(&names);
    }
    return g_strdupv((char **)(entry->kind == ZP_DS_BOOLEAN ? booleans
                               : entry->kind == ZP_DS_COUNT ? counts
                               : entry->kind == ZP_DS_REAL  ? reals
                               : entry->kind == ZP_DS_LIST  ? lists
                                                            : others));
}

static void
test_effect(void)
{
    g_autoptr(ZpModel) whole = build_model(FALSE);
    g_autoptr(ZpModel) frozen = build_model(TRUE);
    char *plain[G_N_ELEMENTS(situations)];
    for (gsize s = 0; s < G_N_ELEMENTS(situations); s++) {
        plain[s] = step_text(&situations[s], situations[s].frozen ? frozen : whole, NULL, NULL);
        g_test_message("situation %s", situations[s].name);
        g_assert_nonnull(plain[s]);
    }
    int wrong = 0;
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        if (zp_ds_schema_is_block(entry->kind))
            continue;
        gboolean changes = FALSE;
        g_auto(GStrv) values = alternatives(entry);
        for (gsize s = 0; s < G_N_ELEMENTS(situations) && !changes; s++)
            for (int v = 0; values[v] && !changes; v++) {
                g_autofree char *text = step_text(
                    &situations[s], situations[s].frozen ? frozen : whole, entry->path, values[v]);
                changes = text && strcmp(text, plain[s]) != 0;
                if (changes && entry->effect == ZP_DS_EFFECT_NONE)
                    g_test_message("%s: %s at stage %s changes the step", entry->path, values[v],
                                   situations[s].name);
            }
        if (changes != (entry->effect != ZP_DS_EFFECT_NONE)) {
            g_test_message("%s: the table says %s, the step says %s", entry->path,
                           zp_ds_schema_effect_name(entry->effect), changes ? "some" : "none");
            wrong++;
        }
    }
    for (gsize s = 0; s < G_N_ELEMENTS(situations); s++)
        g_free(plain[s]);
    g_assert_cmpint(wrong, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ds-effect/table", test_effect);
    return g_test_run();
}
