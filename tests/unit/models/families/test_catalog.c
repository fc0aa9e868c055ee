/* Every built-in model has exactly its published number of parameters. */
#include "models/families/catalog.h"

#include <string.h>

static const ZpArchitectureOptions options = {
    .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};

/* The count column is read from the data file itself, so the test and the file cannot drift. */
static void
test_counts(void)
{
    g_autofree char *path = g_build_filename(ZP_SOURCE_DIR, "models/catalog/models.csv", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    gsize n = 0;
    for (gsize i = 0; lines[i]; i++) {
        if (lines[i][0] == '#' || lines[i][0] == '\0')
            continue;
        g_auto(GStrv) row = g_strsplit(lines[i], ";", 5);
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpModel) model = zp_catalog_build(row[0], &options, &error);
        g_assert_no_error(error);
        if (model->n_elements != g_ascii_strtoll(row[3], NULL, 10))
            g_test_fail_printf("%s: %" G_GINT64_FORMAT " instead of %s", row[0], model->n_elements,
                               row[3]);
        n++;
    }
    gsize n_entries;
    zp_catalog_entries(&n_entries);
    g_assert_cmpuint(n, ==, n_entries);
    g_assert_cmpuint(n, >=, 15);
}

/* Counts people quote, written here a second time so that a wrong column is noticed. */
static void
test_quoted(void)
{
    static const struct {
        const char *name;
        gint64 elements;
    } quoted[] = {
        {"llama-2-7b", 6738415616}, {"LLAMA-3-8B", 8030261248}, {"Llama-3.1-405B", 405853388800},
        {"gpt-2", 124439808},       {"GPT-2-XL", 1557611200},   {"qwen2.5-7b", 7615616512},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(quoted); i++) {
        g_autoptr(ZpModel) model = zp_catalog_build(quoted[i].name, &options, NULL);
        g_assert_nonnull(model);
        g_assert_cmpint(model->n_elements, ==, quoted[i].elements);
    }
}

static void
test_unknown(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_catalog_build("llama-3-9b", &options, &error));
    g_assert_error(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_UNSUPPORTED);
    g_assert_nonnull(strstr(error->message, "Llama-3-8B"));
}

static void
test_entries(void)
{
    gsize n;
    const ZpCatalogEntry *entries = zp_catalog_entries(&n);
    g_assert_null(entries[n].name);
    for (gsize i = 0; i < n; i++) {
        g_assert_nonnull(strstr(entries[i].summary, " layers, hidden "));
        g_assert_cmpuint(strlen(entries[i].source), >, 5);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/catalog/counts", test_counts);
    g_test_add_func("/catalog/quoted", test_quoted);
    g_test_add_func("/catalog/unknown", test_unknown);
    g_test_add_func("/catalog/entries", test_entries);
    return g_test_run();
}
