/* The table of keys is complete, and everything made from it agrees with it. */
#include "scenarios/language/schema.h"

#include <string.h>

#include "models/words/nearest.h"

static void
store_somewhere(const ZpSchemaKey *key, const ZpSchemaValue *value)
{
    ZpJob job = {0};
    ZpDeepspeed deepspeed = {0};
    ZpFsdp fsdp = {0};
    zp_schema_store(key, value, &(ZpSchemaPlaces){&job, &deepspeed, &fsdp});
}

static void
test_rows_are_complete(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    g_assert_cmpuint(n, ==, ZP_N_KEYS);
    for (gsize i = 0; i < n; i++) {
        const ZpSchemaKey *key = &table[i];
        g_assert_nonnull(key->key);
        g_test_message("%s.%s", key->section, key->key);
        g_assert_cmpuint(key->id, ==, i);
        g_assert_cmpuint(strlen(key->help), >, 10);
        g_assert_false(g_str_has_suffix(key->help, "."));
        g_assert_null(strchr(key->help, '\n'));
        g_assert_true(zp_schema_find_in(key->section, key->key) == key);
        g_assert_true((key->rule != NULL) == (g_strcmp0(key->fallback, "auto") == 0));
        g_assert_true((key->choices != NULL) == (key->kind == ZP_SCHEMA_ENUM));
        g_assert_true((key->dtypes != 0) == (key->kind == ZP_SCHEMA_DTYPE));
        if (key->size != 0)
            g_assert_true(key->size == 4 || key->size == 8);
    }
}

/* Example and default parse, and print to something that parses to the same. */
static void
test_values_round_trip(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        const char *texts[] = {table[i].example, table[i].fallback, table[i].word};
        for (gsize t = 0; t < G_N_ELEMENTS(texts); t++) {
            if (texts[t] == NULL || strcmp(texts[t], "auto") == 0)
                continue;
            g_autoptr(GError) error = NULL;
            ZpSchemaValue value, back;
            gboolean ok = zp_schema_parse(&table[i], texts[t], &value, &error);
            g_assert_no_error(error);
            g_assert_true(ok);
            g_autofree char *text = zp_schema_print(&table[i], &value);
            g_assert_true(zp_schema_parse(&table[i], text, &back, &error));
            g_assert_true(zp_schema_value_equal(&table[i], &value, &back));
            store_somewhere(&table[i], &value);
            zp_schema_value_clear(&value);
            zp_schema_value_clear(&back);
        }
    }
}

static void
test_limits_are_legal(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        if (table[i].kind > ZP_SCHEMA_RATIO)
            continue;
        ZpSchemaValue bounds[] = {{.integer = table[i].min, .real = table[i].low},
                                  {.integer = table[i].max, .real = table[i].high}};
        for (int b = 0; b < 2; b++) {
            ZpSchemaValue back;
            g_autofree char *text = zp_schema_print(&table[i], &bounds[b]);
            g_assert_true(zp_schema_parse(&table[i], text, &back, NULL));
            store_somewhere(&table[i], &back);
        }
    }
}

static void
test_no_two_keys_share_a_place(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        for (gsize j = 0; j < i; j++) {
            g_assert_false(table[i].size != 0 && table[j].size != 0 &&
                           table[i].place == table[j].place && table[i].offset == table[j].offset);
            g_assert_false(strcmp(table[i].key, table[j].key) == 0 &&
                           strcmp(table[i].section, table[j].section) == 0);
        }
    }
}

static void
test_find(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(zp_schema_find("zero.stage", NULL)->id, ==, ZP_KEY_STAGE);
    g_assert_cmpint(zp_schema_find("stage", NULL)->id, ==, ZP_KEY_STAGE);
    g_assert_null(zp_schema_find("ranks", &error));
    g_assert_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_AMBIGUOUS);
    g_assert_nonnull(strstr(error->message, "world.ranks, simulation.ranks"));
    g_clear_error(&error);
    g_assert_null(zp_schema_find("zero.stgae", &error));
    g_assert_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_UNKNOWN);
    g_assert_nonnull(strstr(error->message, "'zero.stage'"));
    g_clear_error(&error);
    g_assert_null(zp_schema_find("prefech", &error));
    g_assert_nonnull(strstr(error->message, "'zero.prefetch'"));
    g_clear_error(&error);
    g_assert_null(zp_schema_find("qqqq", &error));
    g_assert_nonnull(strstr(error->message, "explain"));
}

static void
test_explain(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        g_autofree char *text = zp_schema_explain(&table[i]);
        g_assert_nonnull(strstr(text, table[i].help));
        g_assert_nonnull(strstr(text, table[i].example));
        g_assert_nonnull(strstr(text, "Default: "));
        g_assert_true(g_str_has_suffix(text, "\n"));
    }
    g_autofree char *stage = zp_schema_explain(zp_schema_key(ZP_KEY_STAGE));
    g_assert_nonnull(strstr(stage, "count from 0 to 3"));
    g_autofree char *wrap = zp_schema_explain(zp_schema_key(ZP_KEY_WRAP));
    g_assert_nonnull(strstr(wrap, "one of sublayer, block, size, model"));
}

static void
test_refusals(void)
{
    static const struct {
        ZpSchemaId id;
        const char *text;
        ZpSchemaError code;
        const char *advice;
    } cases[] = {
        {ZP_KEY_STAGE, "4", ZP_SCHEMA_ERROR_RANGE, "from 0 to 3"},
        {ZP_KEY_RANKS, "0", ZP_SCHEMA_ERROR_RANGE, "from 1"},
        {ZP_KEY_WRAP, "blok", ZP_SCHEMA_ERROR_CHOICE, "did you mean 'block'?"},
        {ZP_KEY_PARAMETER, "bf15", ZP_SCHEMA_ERROR_CHOICE, "did you mean 'bf16'?"},
        {ZP_KEY_GRADIENT, "int4", ZP_SCHEMA_ERROR_CHOICE, "bf16"},
        {ZP_KEY_FLOPS_EFFICIENCY, "1.1", ZP_SCHEMA_ERROR_RANGE, "to 1"},
        {ZP_KEY_FLOPS_EFFICIENCY, "0", ZP_SCHEMA_ERROR_RANGE, "from 1e-06"},
        {ZP_KEY_LINK_LATENCY, "2000 s", ZP_SCHEMA_ERROR_RANGE, "1000 s"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        ZpSchemaValue value;
        g_assert_false(zp_schema_parse(zp_schema_key(cases[i].id), cases[i].text, &value, &error));
        g_assert_error(error, ZP_SCHEMA_ERROR, (int)cases[i].code);
        if (strstr(error->message, cases[i].advice) == NULL)
            g_error("%s", error->message);
    }
}

static void
test_nearest(void)
{
    static const char *const names[] = {"stage", "prefetch", "prefetch_forward", "A100-SXM-80",
                                        NULL};
    g_assert_cmpstr(zp_nearest_find("stgae", names), ==, "stage");
    g_assert_cmpstr(zp_nearest_find("prefetch_", names), ==, "prefetch");
    g_assert_cmpstr(zp_nearest_find("a100-sxm-80", names), ==, "A100-SXM-80");
    g_assert_cmpstr(zp_nearest_find("A100", names), ==, "A100-SXM-80");
    g_assert_cmpstr(zp_nearest_find("prefetch_fo", names), ==, "prefetch_forward");
    g_assert_null(zp_nearest_find("bandwidth", names));
    g_assert_null(zp_nearest_find("", names));
    g_autofree char *hint = zp_nearest_hint("stgae", names),
                    *none = zp_nearest_hint("bandwidth", names);
    g_assert_cmpstr(hint, ==, "; did you mean 'stage'?");
    g_assert_cmpstr(none, ==, "");
}

/* The section of a key in a file: [layer NAME] for those of layers. */
static gboolean
stands_in(GKeyFile *file, const ZpSchemaKey *key)
{
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    for (char **group = groups; *group != NULL; group++) {
        g_autofree char *section = g_strndup(*group, strcspn(*group, " "));
        if (strcmp(section, key->section) == 0 && g_key_file_has_key(file, *group, key->key, NULL))
            return TRUE;
    }
    return FALSE;
}

/* Fuzzing of scenarios starts from files that together know every key but paths of files. */
static void
test_fuzz_corpus(void)
{
    g_autofree char *folder =
        g_build_filename(ZP_SOURCE_DIR, "tests", "fuzz", "corpus", "scenario", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_assert_nonnull(dir);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func((GDestroyNotify)g_key_file_unref);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir)) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autoptr(GKeyFile) file = g_key_file_new();
        if (g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL)) /* some are damaged */
            g_ptr_array_add(files, g_steal_pointer(&file));
    }
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        gboolean known = strcmp(table[i].key, "config") == 0;
        for (guint f = 0; f < files->len && !known; f++)
            known = stands_in(g_ptr_array_index(files, f), &table[i]);
        if (!known)
            g_test_message("no file of %s has %s.%s", folder, table[i].section, table[i].key);
        g_assert_true(known);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schema/rows-are-complete", test_rows_are_complete);
    g_test_add_func("/schema/values-round-trip", test_values_round_trip);
    g_test_add_func("/schema/limits-are-legal", test_limits_are_legal);
    g_test_add_func("/schema/no-two-keys-share-a-place", test_no_two_keys_share_a_place);
    g_test_add_func("/schema/find", test_find);
    g_test_add_func("/schema/explain", test_explain);
    g_test_add_func("/schema/refusals", test_refusals);
    g_test_add_func("/schema/nearest", test_nearest);
    g_test_add_func("/schema/fuzz-corpus", test_fuzz_corpus);
    return g_test_run();
}
