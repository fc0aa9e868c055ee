/* Checks the reader of Hugging Face configurations against published parameter counts.
 *
 *   check_inputs_hf DIR...        DIR has config files and params.csv with columns file,
 *                                 exact_params and, where known, tied and parameters_sha256 (of
 *                                 what `list` prints); files named neg-* must be refused.  A row
 *                                 "(no file)" is a remark; every other has its file, and every
 *                                 config file a row.  Exit code 1 when one fails.
 *   check_inputs_hf list FILE...  prints every parameter: name, shape, what it is tied to
 *   check_inputs_hf modules FILE...  prints every module: name, class */
#include "check_inputs_hf/csv.h"
#include "scenarios/imports/huggingface/config.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int passed, failed;
} Score;

static const ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16,
                                              .attention = ZP_ATTENTION_FLASH,
                                              .causal = TRUE,
                                              .transformers = ZP_TRANSFORMERS_4};

static void
report(Score *score, const char *id, const char *problem)
{
    if (problem == NULL) {
        score->passed++;
        printf("pass %s\n", id);
    } else {
        score->failed++;
        printf("FAIL %s: %s\n", id, problem);
    }
}

/* One line a parameter, in registration order. */
static char *
list_parameters(const ZpModel *model)
{
    GString *text = g_string_new(NULL);
    for (gint32 i = 0; i < (gint32)model->parameters->len; i++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, i);
        g_string_append_printf(text, "%s ", parameter->name);
        for (gint32 d = 0; d < parameter->n_dims; d++)
            g_string_append_printf(text, "%s%" G_GINT64_FORMAT, d ? "x" : "", parameter->shape[d]);
        if (parameter->tied_to != ZP_MODEL_NONE)
            g_string_append_printf(text, " tied %s",
                                   zp_model_parameter(model, parameter->tied_to)->name);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

static char *
compare(const ZpModel *model, const GPtrArray *header, const GPtrArray *record)
{
    gint64 expected = g_ascii_strtoll(csv_field(header, record, "exact_params"), NULL, 10);
    const char *tied = csv_field(header, record, "tied");
    gint64 sum = 0;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++)
        sum += zp_model_layer(model, l)->elements;
    if (model->n_elements != expected)
        return g_strdup_printf("%" G_GINT64_FORMAT " parameters, published %" G_GINT64_FORMAT
                               ", difference %" G_GINT64_FORMAT,
                               model->n_elements, expected, model->n_elements - expected);
    if (sum != model->n_elements)
        return g_strdup_printf("the layers hold %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT, sum,
                               model->n_elements);
    if (*tied != '\0' && (strchr("yYtT1", *tied) != NULL) != model->tied)
        return g_strdup_printf("tied: %s, expected %s", model->tied ? "yes" : "no", tied);
    const char *published = csv_field(header, record, "parameters_sha256");
    g_autofree char *text = list_parameters(model);
    g_autofree char *ours = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    if (*published != '\0' && strcmp(ours, published) != 0)
        return g_strdup("names, shapes or order of parameters differ");
    return NULL;
}

static void
check_row(const char *dir, const GPtrArray *header, const GPtrArray *record, GHashTable *rows,
          Score *score)
{
    const char *file = csv_field(header, record, "file");
    if (strcmp(file, "(no file)") == 0 || record->len < 2)
        return;
    g_hash_table_add(rows, g_strdup(file));
    if (*csv_field(header, record, "exact_params") == '\0') {
        report(score, file, "its row states no exact_params");
        return;
    }
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_hf_load(path, &options, NULL, &error);
    g_autofree char *problem = model ? compare(model, header, record) : g_strdup(error->message);
    report(score, file, problem);
}

static void
check_negative(const char *dir, const char *file, Score *score)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_hf_load(path, &options, NULL, &error);
    report(score, file, model ? "accepted, must be refused" : NULL);
    if (model == NULL)
        printf("     %s\n", error->message);
}

static gint
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static gboolean
is_wanted(const char *name, gboolean negative)
{
    return g_str_has_suffix(name, ".json") && g_str_has_prefix(name, "neg-") == negative;
}

/* Names of the folder's config files that must be read, or refused. */
static GPtrArray *
config_files(const char *dir, gboolean negative)
{
    g_autoptr(GDir) folder = g_dir_open(dir, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    while (folder && (name = g_dir_read_name(folder)) != NULL)
        if (is_wanted(name, negative))
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    return g_steal_pointer(&names);
}

static void
check_files(const char *dir, GHashTable *rows, Score *score)
{
    g_autoptr(GPtrArray) refused = config_files(dir, TRUE), read = config_files(dir, FALSE);
    for (guint i = 0; i < refused->len; i++)
        check_negative(dir, g_ptr_array_index(refused, i), score);
    for (guint i = 0; i < read->len; i++)
        if (!g_hash_table_contains(rows, g_ptr_array_index(read, i)))
            report(score, g_ptr_array_index(read, i), "has no row in params.csv");
}

static void
check_directory(const char *dir, Score *score)
{
    g_autofree char *path = g_build_filename(dir, "params.csv", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        report(score, path, error->message);
        return;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) header = csv_split(lines[0] ? lines[0] : "");
    g_autoptr(GHashTable) rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (gsize i = 1; lines[0] && lines[i]; i++) {
        g_autoptr(GPtrArray) record = csv_split(lines[i]);
        check_row(dir, header, record, rows, score);
    }
    check_files(dir, rows, score);
}

static void
print_modules(const ZpModel *model)
{
    for (gint32 i = 0; i < (gint32)model->modules->len; i++)
        printf("%s %s\n", zp_model_module(model, i)->name, zp_model_module(model, i)->class_name);
}

static int
list(const char *path, gboolean modules)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ZpModel) model = zp_hf_load(path, &options, warnings, &error);
    if (model == NULL) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    for (guint i = 0; i < warnings->len; i++)
        fprintf(stderr, "warning: %s\n", (char *)g_ptr_array_index(warnings, i));
    if (modules) {
        print_modules(model);
        return 0;
    }
    g_autofree char *text = list_parameters(model);
    fputs(text, stdout);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: check_inputs_hf DIR... | list FILE... | modules FILE...\n");
        return 2;
    }
    gboolean modules = strcmp(argv[1], "modules") == 0;
    if (modules || strcmp(argv[1], "list") == 0) {
        int failed = 0;
        for (int i = 2; i < argc; i++)
            failed |= list(argv[i], modules);
        return failed;
    }
    Score score = {0};
    for (int i = 1; i < argc; i++)
        check_directory(argv[i], &score);
    printf("%d passed, %d failed\n", score.passed, score.failed);
    return score.failed > 0 || score.passed == 0;
}
