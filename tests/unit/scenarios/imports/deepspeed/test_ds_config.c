#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/imports/import.h"

#include <stdlib.h>
#include <string.h>

static ZpDsConfig *
parse(const char *text, const ZpDsContext *context)
{
    return zp_ds_config_parse("ds.json", text, strlen(text), context);
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

static const char *
row_value(const GPtrArray *rows, const char *key)
{
    for (guint i = 0; i < rows->len; i++) {
        const ZpImportRow *row = rows->pdata[i];
        if (strcmp(row->key, key) == 0)
            return row->value;
    }
    return NULL;
}

/* ---- the table itself ---- */

static void
test_schema(void)
{
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        g_assert_cmpint(zp_ds_schema_find(entry->path), ==, key);
        g_autofree char *block = zp_ds_schema_block((ZpDsKey)key);
        if (*block) {
            ZpDsKey parent = zp_ds_schema_find(block);
            g_assert_cmpint(parent, !=, ZP_DS_NONE);
            g_assert_true(zp_ds_schema_is_block(zp_ds_schema_get(parent)->kind));
        }
        g_assert_cmpint(entry->kind == ZP_DS_CHOICE, ==, entry->choices != NULL);
        if (entry->state != ZP_DS_LIVE)
            g_assert_nonnull(entry->remark);
    }
    g_assert_cmpint(zp_ds_schema_find("zero_optimization.prefetch_bucket_size"), ==,
                    ZP_DS_PREFETCH_BUCKET_SIZE);
    g_assert_cmpint(zp_ds_schema_nearest("zero_optimization", "overlap_com"), ==,
                    ZP_DS_OVERLAP_COMM);
}

/* The documentation has a line for every key, with the default the reader uses. */
static void
test_markdown(void)
{
    g_autofree char *text = zp_ds_config_markdown();
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, ZP_N_DS_KEYS + 3);
    for (int key = 0; key < ZP_N_DS_KEYS; key++)
        g_assert_nonnull(strstr(lines[key + 2], zp_ds_schema_get((ZpDsKey)key)->path));
    g_assert_nonnull(strstr(text, "| `zero_optimization.reduce_bucket_size` | 500000000 | elements "
                                  "| memory, time | 1, 2, 3 |"));
}

/* ---- files ---- */

static void
check_line(char **cells)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "tests/reference/ds_inputs", cells[0], NULL);
    g_autofree char *text = NULL;
    gsize length;
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    ZpDsContext context = {.version = *cells[1] ? cells[1] : NULL,
                           .world = strtoll(cells[2], NULL, 10),
                           .hidden = strtoll(cells[3], NULL, 10)};
    g_autoptr(ZpDsConfig) config = zp_ds_config_parse(cells[0], text, length, &context);
    g_test_message("%s: %s", cells[0], cells[7]);
    g_assert_cmpstr(zp_import_message_verdict_name(zp_import_message_verdict(config->messages)), ==,
                    cells[4]);
    if (*cells[7] == '=') {
        g_autoptr(GPtrArray) rows = zp_ds_config_rows(config);
        const char *value = row_value(rows, cells[6]);
        g_assert_cmpstr(value ? value : "none", ==, cells[7] + 1);
        return;
    }
    const ZpImportMessage *message = find_message(config->messages, cells[6], cells[7]);
    g_assert_nonnull(message);
    g_assert_cmpint(message->line, ==, atoi(cells[5]));
    if (message->severity == ZP_IMPORT_ERROR)
        g_assert_nonnull(message->mend);
}

static void
test_files(void)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "tests/reference/ds_inputs/expected.txt", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    int n = 0;
    for (int i = 0; lines[i]; i++) {
        if (!*lines[i] || *lines[i] == '#')
            continue;
        g_auto(GStrv) cells = g_strsplit(lines[i], "|", 8);
        g_assert_cmpuint(g_strv_length(cells), ==, 8);
        for (int c = 0; cells[c]; c++)
            g_strstrip(cells[c]);
        check_line(cells);
        n++;
    }
    g_assert_cmpint(n, >=, 60);
}

/* ---- rules ---- */

typedef struct {
    const char *text;
    ZpImportVerdict verdict;
    const char *key, *words;
} Rule;

#define BATCH "\"train_micro_batch_size_per_gpu\": 1"
#define OK ZP_IMPORT_OK
#define WARNING ZP_IMPORT_SUSPICIOUS
#define ERROR ZP_IMPORT_REFUSED

static const Rule rules[] = {
    /* unknown, misspelt, misplaced */
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"overlap_com\": true}}", ERROR,
     "zero_optimization.overlap_com", "forbidden"},
    {"{" BATCH ", \"fp16\": {\"enabled\": true, \"opt_level\": \"O2\"}}", ERROR, "fp16.opt_level",
     "belongs inside amp"},
    {"{" BATCH ", \"bf16\": {\"enable\": true}}", ERROR, "bf16.enable", "unknown key"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "
     "{\"device\": \"cpu\", \"pin_memry\": true}}}",
     ERROR, "zero_optimization.offload_optimizer.pin_memry", "unknown key"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2, \"gradient_clipping\": 1.0}}", ERROR,
     "zero_optimization.gradient_clipping", "at the top level"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2, \"pin_memory\": true}}", ERROR,
     "zero_optimization.pin_memory", "belongs inside"},
    {"{" BATCH ", \"gradient_clipin\": 1.0}", WARNING, "gradient_clipin", "silently ignores"},
    {"{" BATCH ", \"my_own_key\": 1}", WARNING, "my_own_key", "silently ignores"},
    {"{" BATCH ", \"_comment\": \"x\"}", OK, "_comment", "silently ignores"},
    {"{" BATCH ", \"stage\": 3}", WARNING, "stage", "misplaced"},
    {"{" BATCH ", \"overlap_comm\": true}", WARNING, "overlap_comm", "misplaced"},
    {"{" BATCH ", \"aio\": {\"blok_size\": 1}}", WARNING, "aio.blok_size", "silently ignores"},
    {"{" BATCH ", \"zero_optimization.stage\": 3}", WARNING, "zero_optimization.stage",
     "no such name"},
    /* deprecated beside its successor, aliases */
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2, \"cpu_offload\": true, "
     "\"offload_optimizer\": {\"device\": \"cpu\"}}}",
     ERROR, "zero_optimization.cpu_offload", "refuses both"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"stage3_prefetch_bucket_size\": 5, "
     "\"prefetch_bucket_size\": 6}}",
     ERROR, "zero_optimization.prefetch_bucket_size", "other name"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 1, \"legacy_stage1\": true}}", ERROR,
     "zero_optimization.legacy_stage1", "no more"},
    {"{" BATCH ", \"bf16\": {\"enabled\": true}, \"bfloat16\": {\"enabled\": false}}", WARNING,
     "bfloat16", "ignored"},
    /* kinds */
    {"{" BATCH ", \"zero_optimization\": {\"stage\": \"auto\"}}", ERROR, "zero_optimization.stage",
     "auto"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": \"three\"}}", ERROR, "zero_optimization.stage",
     "text"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2.5}}", ERROR, "zero_optimization.stage",
     "fraction"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": -1}}", ERROR, "zero_optimization.stage",
     "out of range"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": true}}", WARNING, "zero_optimization.stage",
     "reads it as 1"},
    {"{" BATCH ", \"communication_data_type\": \"bfloat16\"}", ERROR, "communication_data_type",
     "none of"},
    {"{" BATCH ", \"communication_data_type\": \"BF16\"}", OK, NULL, NULL},
    {"{" BATCH ", \"zero_optimization\": [1]}", ERROR, "zero_optimization", "not a block"},
    {"{" BATCH ", \"fp16\": true}", ERROR, "fp16", "not a block"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"overlap_comm\": \"auto\"}}", OK,
     "zero_optimization.overlap_comm", "default applies"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"overlap_comm\": \"true\"}}", WARNING,
     "zero_optimization.overlap_comm", "not a boolean"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"overlap_comm\": 5e8}}", ERROR,
     "zero_optimization.overlap_comm", "number"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"sub_group_size\": 1e30}}", ERROR,
     "zero_optimization.sub_group_size", "counter"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"sub_group_size\": \"2GiB\"}}", ERROR,
     "zero_optimization.sub_group_size", "carries a unit"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"reduce_bucket_size\": \"Auto\"}}", ERROR,
     "zero_optimization.reduce_bucket_size", "not the word auto"},
    {"{" BATCH ", \"communication_data_type\": \"fp8\"}", ERROR, "communication_data_type",
     "none of"},
    {"{" BATCH ", \"data_types\": {\"grad_accum_dtype\": \"bfloat16\"}}", OK, NULL, NULL},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"leaf_module\": {\"classes\": \"X\"}}}",
     ERROR, "zero_optimization.leaf_module.classes", "text"},
    /* offload */
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "
     "{\"device\": \"gpu\"}}}",
     ERROR, "zero_optimization.offload_optimizer.device", "none of"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": "
     "{\"device\": \"nvme\"}}}",
     ERROR, "zero_optimization.offload_optimizer.device", "needs nvme_path"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "
     "{\"device\": \"nvme\", \"nvme_path\": \"/x\"}}}",
     WARNING, "zero_optimization.offload_optimizer.device", "stage 3 only"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 0, \"offload_optimizer\": "
     "{\"device\": \"cpu\"}}}",
     WARNING, "zero_optimization.offload_optimizer", "no effect at stage 0"},
    {"{" BATCH
     ", \"zero_optimization\": {\"stage\": 2, \"offload_param\": {\"device\": \"none\"}}}",
     OK, NULL, NULL},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"offload_param\": null}}", OK, NULL, NULL},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": "
     "{\"device\": \"cpu\", \"ratio\": 1.5}}}",
     ERROR, "zero_optimization.offload_optimizer.ratio", "out of range"},
    /* precision */
    {"{" BATCH ", \"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}", ERROR,
     "fp16.enabled", "both enabled"},
    {"{" BATCH ", \"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}}",
     ERROR, "data_types.grad_accum_dtype", "stage 0"},
    {"{" BATCH ", \"fp16\": {\"enabled\": true, \"fp16_master_weights_and_grads\": true}, "
     "\"zero_optimization\": {\"stage\": 2}}",
     ERROR, "fp16.fp16_master_weights_and_grads", "on the CPU"},
    {"{" BATCH ", \"bf16\": {\"enabled\": true, \"bf16_optimizer_states\": true}, "
     "\"zero_optimization\": {\"stage\": 2}}",
     ERROR, "bf16.bf16_optimizer_states", "needs bf16_master"},
    {"{" BATCH ", \"amp\": {\"enabled\": true}}", ERROR, "amp", "refused by newer"},
    {"{" BATCH ", \"optimizer\": {\"type\": \"SGD\"}, \"zero_optimization\": {\"stage\": 2}}",
     ERROR, "optimizer.type", "not tested"},
    {"{" BATCH ", \"optimizer\": {\"type\": \"Lamb\"}, \"zero_allow_untested_optimizer\": true, "
     "\"zero_optimization\": {\"stage\": 2}}",
     OK, NULL, NULL},
    /* sizes */
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 1, \"allgather_bucket_size\": 500001}}", ERROR,
     "zero_optimization.allgather_bucket_size", "even"},
    {"{" BATCH ", \"prescale_gradients\": true, \"zero_optimization\": {\"stage\": 2}}", ERROR,
     "prescale_gradients", "reduce_scatter"},
    {"{" BATCH ", \"zero_optimization\": {\"stage\": 3, "
     "\"stage3_param_persistence_threshold\": 1e10}}",
     WARNING, "zero_optimization.stage3_param_persistence_threshold", "every rank"},
    /* batch */
    {"{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 3}", ERROR, "train_batch_size",
     "64 != 3"},
    {"{\"gradient_accumulation_steps\": 4}", ERROR, "train_micro_batch_size_per_gpu",
     "at least one"},
    {"{\"train_batch_size\": 0}", ERROR, "train_batch_size", "out of range"},
    {"{\"train_batch_size\": null, " BATCH "}", OK, NULL, NULL},
    {"[1]", ERROR, "", "not a block"},
    {"{\"train_batch_size\": 9223372036854775807, \"train_micro_batch_size_per_gpu\": "
     "4611686018427387904"
     ", \"gradient_accumulation_steps\": 4}",
     ERROR, "train_batch_size", "!="},
};

static void
test_rules(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        g_autoptr(ZpDsConfig) config = parse(rules[i].text, NULL);
        g_test_message("%s", rules[i].text);
        g_assert_cmpint(zp_import_message_verdict(config->messages), ==, rules[i].verdict);
        if (rules[i].key)
            g_assert_nonnull(find_message(config->messages, rules[i].key, rules[i].words));
    }
}

/* ---- what only a context tells ---- */

static void
test_auto(void)
{
    static const char text[] =
        "{\"bf16\": {\"enabled\": \"auto\"}, \"fp16\": {\"enabled\": \"auto\"},"
        " \"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\","
        " \"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\","
        " \"zero_optimization\": {\"stage\": 2, \"reduce_bucket_size\": \"auto\","
        " \"stage3_prefetch_bucket_size\": \"auto\"}}";
    ZpDsContext context = {.hidden = 5120,
                           .world = 16,
                           .micro_batch = 2,
                           .accumulation = 4,
                           .has_max_grad_norm = TRUE,
                           .max_grad_norm = 0.5,
                           .precision = ZP_DTYPE_BF16};
    g_autoptr(ZpDsConfig) config = parse(text, &context);
    g_assert_cmpint(zp_ds_config_integer(config, ZP_DS_REDUCE_BUCKET_SIZE), ==, 26214400);
    g_assert_cmpint(zp_ds_config_integer(config, ZP_DS_TRAIN_BATCH_SIZE), ==, 128);
    g_assert_cmpfloat(zp_ds_config_real(config, ZP_DS_GRADIENT_CLIPPING), ==, 0.5);
    g_assert_cmpint(zp_ds_config_precision(config), ==, ZP_DTYPE_BF16);
    /* filled at stage 3 only: here DeepSpeed's own default is left */
    g_assert_cmpint(zp_ds_config_integer(config, ZP_DS_PREFETCH_BUCKET_SIZE), ==, 50000000);
    const ZpDsValue *bucket = zp_ds_config_value(config, ZP_DS_REDUCE_BUCKET_SIZE);
    g_assert_cmpint(bucket->origin, ==, ZP_DS_FROM_AUTO);
    g_assert_nonnull(strstr(bucket->detail, "h = 5120"));
    g_assert_cmpint(zp_import_message_verdict(config->messages), ==, ZP_IMPORT_OK);
    /* Without flags nothing is guessed. */
    g_autoptr(ZpDsConfig) open = parse(text, NULL);
    g_assert_cmpint(zp_ds_config_precision(open), ==, ZP_DTYPE_NONE);
    g_assert_false(zp_ds_config_value(open, ZP_DS_TRAIN_BATCH_SIZE)->known);
    g_assert_cmpint(zp_ds_config_value(open, ZP_DS_REDUCE_BUCKET_SIZE)->origin, ==,
                    ZP_DS_FROM_NOWHERE);
}

static void
test_context(void)
{
    static const char text[] = "{" BATCH ", \"bf16\": {\"enabled\": true}, "
                               "\"zero_optimization\": {\"stage\": 2}, \"offload_optimizer\": "
                               "{\"device\": \"cpu\"}}";
    ZpDsContext context = {.parameters = 8000, .world = 8};
    g_autoptr(ZpDsConfig) config = parse(text, &context);
    /* 2 x 8000 + 12 x 1000 as it stands; 2 x 8000 on the GPU and 12 x 1000 in the host inside. */
    const ZpImportMessage *message =
        find_message(config->messages, "offload_optimizer", "28000 bytes");
    g_assert_nonnull(message);
    g_assert_nonnull(strstr(message->text, "16000 bytes, and 12000 bytes in host memory"));
    g_assert_cmpstr(zp_ds_config_text(config, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), ==, "none");
    context.as_if_placed = TRUE;
    g_autoptr(ZpDsConfig) meant = parse(text, &context);
    g_assert_cmpstr(zp_ds_config_text(meant, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), ==, "cpu");
    g_assert_cmpint(zp_import_message_verdict(meant->messages), ==, ZP_IMPORT_SUSPICIOUS);
    context = (ZpDsContext){.strict = TRUE};
    g_autoptr(ZpDsConfig) strict = parse("// x\n{" BATCH "}", &context);
    g_assert_cmpint(zp_import_message_verdict(strict->messages), ==, ZP_IMPORT_REFUSED);
    g_autofree char *error = zp_import_message_first_error(strict->messages);
    g_assert_true(g_str_has_prefix(error, "ds.json:1: comments"));
}

static void
test_bf16_optimizer(void)
{
    static const char format[] = "{" BATCH ", \"bf16\": {\"enabled\": true}, \"data_types\": "
                                 "{\"grad_accum_dtype\": \"%s\"}, \"zero_optimization\": "
                                 "{\"stage\": %d, \"offload_optimizer\": {\"device\": \"%s\"}}}";
    static const struct {
        const char *accumulation, *device;
        int stage;
        gboolean used;
    } cases[] = {{"fp32", "none", 1, TRUE},
                 {"bf16", "none", 1, FALSE},
                 {"fp32", "none", 2, FALSE},
                 {"fp32", "cpu", 1, FALSE}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf(format, cases[i].accumulation, cases[i].stage, cases[i].device);
        g_autoptr(ZpDsConfig) config = parse(text, NULL);
        g_assert_cmpint(zp_ds_config_uses_bf16_optimizer(config), ==, cases[i].used);
    }
}

static void
test_inline(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpImportReport) report =
        zp_import_check("{" BATCH ", \"zero_optimization\": {\"stage\": 2}}", &error);
    g_assert_no_error(error);
    g_assert_cmpint(report->kind, ==, ZP_IMPORT_DEEPSPEED);
    g_autofree char *coded = g_base64_encode((const guchar *)"{" BATCH ", \"stage\": 1}",
                                             strlen("{" BATCH ", \"stage\": 1}"));
    g_autoptr(ZpImportReport) decoded = zp_import_check(coded, &error);
    g_assert_no_error(error);
    g_assert_cmpint(decoded->verdict, ==, ZP_IMPORT_SUSPICIOUS);
    g_autofree char *json = zp_import_report_json(decoded);
    g_assert_nonnull(strstr(json, "\"verdict\" : \"warning\""));
    g_assert_null(zp_import_check("/nonexistent/file.json", &error));
    g_assert_error(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ds/schema", test_schema);
    g_test_add_func("/ds/markdown", test_markdown);
    g_test_add_func("/ds/files", test_files);
    g_test_add_func("/ds/rules", test_rules);
    g_test_add_func("/ds/auto", test_auto);
    g_test_add_func("/ds/context", test_context);
    g_test_add_func("/ds/bf16-optimizer", test_bf16_optimizer);
    g_test_add_func("/ds/inline", test_inline);
    return g_test_run();
}
