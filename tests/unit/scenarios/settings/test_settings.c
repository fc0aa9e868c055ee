/* What a scenario says, before anything follows from it. */
#include "scenarios/settings/settings.h"

static const char text[] = "[zero]\n"
                           "stage = 2\n"
                           "prefetch = auto\n"
                           "[layer a]\n"
                           "parameters = 100\n"
                           "[sweep]\n"
                           "world.ranks = 1, 2\n";

static ZpSettings *
parse(const char *const *sets)
{
    g_auto(ZpProblems) problems;
    zp_problems_init(&problems, "s.ini");
    ZpSettings *settings = zp_settings_parse(text, sizeof text - 1, "s.ini", sets, &problems);
    g_assert_false(zp_problems_any(&problems));
    return settings;
}

static void
test_origin(void)
{
    const char *sets[] = {"layer.a.repeat=3", "training.micro_batch=4", NULL};
    g_autoptr(ZpSettings) settings = parse(sets);
    const ZpSetting *stage = &settings->keys[ZP_KEY_STAGE];
    const ZpSetting *batch = &settings->keys[ZP_KEY_MICRO_BATCH];
    g_assert_true(stage->given && !stage->by_hand);
    g_assert_cmpint(stage->value.integer, ==, 2);
    g_assert_cmpstr(stage->origin, ==, "s.ini:2");
    g_assert_true(batch->given && batch->by_hand);
    g_assert_cmpstr(batch->origin, ==, "--set");
    /* "auto" is the same as not writing the key. */
    g_assert_false(zp_settings_given(settings, ZP_KEY_PREFETCH));
    g_assert_cmpuint(settings->layers->len, ==, 1);
    const ZpSettingsLayer *layer = g_ptr_array_index(settings->layers, 0);
    g_assert_cmpstr(zp_settings_layer_name(layer), ==, "a");
    g_assert_cmpint(layer->keys[ZP_KEY_LAYER_REPEAT - ZP_KEY_LAYER_PARAMETERS].value.integer, ==,
                    3);
    g_assert_cmpuint(settings->axes->len, ==, 1);
    g_assert_cmpstr(g_array_index(settings->axes, ZpSettingsAxis, 0).key, ==, "world.ranks");
}

/* Layers are shared by copies until one of them changes. */
static void
test_copies_are_apart(void)
{
    const char *sets[] = {"layer.a.parameters=7", "zero.stage=3", NULL};
    g_auto(ZpProblems) problems;
    zp_problems_init(&problems, "s.ini");
    g_autoptr(ZpSettings) base = parse(NULL);
    g_autoptr(ZpSettings) point = zp_settings_with(base, sets, &problems);
    g_assert_false(zp_problems_any(&problems));
    const ZpSettingsLayer *before = g_ptr_array_index(base->layers, 0);
    const ZpSettingsLayer *after = g_ptr_array_index(point->layers, 0);
    g_assert_cmpint(before->keys[0].value.integer, ==, 100);
    g_assert_cmpint(after->keys[0].value.integer, ==, 7);
    g_assert_cmpint(base->keys[ZP_KEY_STAGE].value.integer, ==, 2);
    g_assert_cmpstr(point->keys[ZP_KEY_STAGE].origin, ==, "sweep");
    g_assert_cmpuint(point->axes->len, ==, 0);
}

static void
test_join(void)
{
    g_auto(ZpProblems) problems;
    zp_problems_init(&problems, "s.ini");
    g_autoptr(ZpSettings) own = parse(NULL);
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(ZpSettingsEntry));
    ZpSettingsEntry list[] = {
        {zp_schema_key(ZP_KEY_STAGE), (char *)"3", (char *)"ds.json:4"},
        {zp_schema_key(ZP_KEY_MICRO_BATCH), (char *)"8", (char *)"ds.json:5"},
    };
    g_array_append_vals(entries, list, G_N_ELEMENTS(list));
    g_autoptr(ZpSettings) joined = zp_settings_join(own, entries, &problems);
    g_assert_false(zp_problems_any(&problems));
    g_assert_cmpint(joined->keys[ZP_KEY_STAGE].value.integer, ==, 2);
    g_assert_false(joined->keys[ZP_KEY_STAGE].imported);
    g_assert_true(joined->keys[ZP_KEY_MICRO_BATCH].imported);
    g_assert_cmpstr(joined->keys[ZP_KEY_MICRO_BATCH].origin, ==, "ds.json:5");
    g_assert_false(zp_settings_given(own, ZP_KEY_MICRO_BATCH));
    g_assert_cmpuint(joined->axes->len, ==, 1);

    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    zp_settings_warn_overruled(joined, entries, warnings);
    g_assert_cmpuint(warnings->len, ==, 1);
    g_assert_cmpstr(g_ptr_array_index(warnings, 0), ==,
                    "s.ini:2: [zero] stage: 2 wins over 3 of ds.json:4");

    /* A copy imports anew. */
    g_autoptr(ZpSettings) point = zp_settings_with(joined, NULL, &problems);
    g_assert_false(zp_settings_given(point, ZP_KEY_MICRO_BATCH));
    g_assert_true(zp_settings_given(point, ZP_KEY_STAGE));
}

/* Whoever says it, a complaint of a key names its place and the key. */
static void
test_complaints(void)
{
    static const char wrong[] = "[zero]\nstage = 7\n";
    const char *sets[] = {"training.micro_batch=none", NULL};
    g_auto(ZpProblems) problems;
    g_autoptr(GError) error = NULL;
    zp_problems_init(&problems, "s.ini");
    g_autoptr(ZpSettings) settings =
        zp_settings_parse(wrong, sizeof wrong - 1, "s.ini", sets, &problems);
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(ZpSettingsEntry));
    ZpSettingsEntry entry = {zp_schema_key(ZP_KEY_RANKS), (char *)"0", (char *)"ds.json:4"};
    g_array_append_val(entries, entry);
    g_autoptr(ZpSettings) joined G_GNUC_UNUSED = zp_settings_join(settings, entries, &problems);
    g_assert_false(zp_problems_raise(&problems, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_RANGE);
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 3);
    g_assert_true(g_str_has_prefix(lines[0], "s.ini:2: [zero] stage: '7'"));
    g_assert_true(g_str_has_prefix(lines[1], "--set: training.micro_batch: 'none'"));
    g_assert_true(g_str_has_prefix(lines[2], "ds.json:4: [world] ranks: '0'"));
}

/* Each key has one plain default, or a rule, or neither. */
static void
test_defaults(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        ZpSchemaValue value = {0};
        gboolean plain = table[i].fallback != NULL && table[i].rule == NULL;
        g_assert_cmpint(zp_schema_default(&table[i], &value), ==, plain);
        if (!plain)
            continue;
        g_autofree char *back = zp_schema_print(&table[i], &value);
        ZpSchemaValue again = {0};
        g_assert_true(zp_schema_parse(&table[i], back, &again, NULL));
        g_assert_true(zp_schema_value_equal(&table[i], &value, &again));
        zp_schema_value_clear(&again);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/settings/origin", test_origin);
    g_test_add_func("/settings/copies-are-apart", test_copies_are_apart);
    g_test_add_func("/settings/join", test_join);
    g_test_add_func("/settings/complaints", test_complaints);
    g_test_add_func("/settings/defaults", test_defaults);
    return g_test_run();
}
