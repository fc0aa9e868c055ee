/* A scenario's dump loads back to the same scenario, and so do other settings on the same base. */
#include "tests/unit/fixtures/scenario_fixture.h"

static const char *
place_of(const ZpSchemaKey *key, const ZpJob *job)
{
    const void *base = key->place == ZP_SCHEMA_IN_DEEPSPEED ? (const void *)job->deepspeed
                       : key->place == ZP_SCHEMA_IN_FSDP    ? (const void *)job->fsdp
                                                            : (const void *)job;
    return (const char *)base + key->offset;
}

static gboolean
plays_a_part(const ZpSchemaKey *key, const char *runtime)
{
    if (key->place == ZP_SCHEMA_IN_DEEPSPEED)
        return strcmp(runtime, "deepspeed") == 0;
    return strcmp(runtime, "deepspeed") != 0 && strcmp(runtime, "ideal") != 0;
}

static void
check_same_job(const ZpJob *a, const ZpJob *b)
{
    g_assert_cmpstr(a->runtime, ==, b->runtime);
    g_assert_true(a->optimizer == b->optimizer);
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        /* Settings of a framework that does not run are not dumped. */
        if (table[i].place != ZP_SCHEMA_IN_JOB && !plays_a_part(&table[i], a->runtime))
            continue;
        const char *x = place_of(&table[i], a), *y = place_of(&table[i], b);
        if (memcmp(x, y, table[i].size) != 0)
            g_error("%s.%s differs", table[i].section, table[i].key);
    }
    g_assert_cmpint(a->model->n_elements, ==, b->model->n_elements);
    g_assert_cmpuint(a->model->layers->len, ==, b->model->layers->len);
}

static void
check_same_values(const ZpScenario *a, const ZpScenario *b)
{
    g_assert_cmpuint(a->values->len, ==, b->values->len);
    for (guint i = 0; i < a->values->len; i++) {
        const ZpScenarioValue *x = &g_array_index(a->values, ZpScenarioValue, i);
        const ZpScenarioValue *y = &g_array_index(b->values, ZpScenarioValue, i);
        g_assert_cmpstr(x->section, ==, y->section);
        g_assert_cmpstr(x->key, ==, y->key);
        g_assert_cmpstr(x->text, ==, y->text);
    }
}

static void
check_dump(const ZpScenario *scenario)
{
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) back = zp_scenario_parse(dump->str, -1, "dump.ini", NULL, &error);
    if (back == NULL)
        g_error("%s\n%s", error->message, dump->str);
    g_assert_cmpstr(back->name, ==, scenario->name);
    check_same_job(&scenario->job, &back->job);
    check_same_values(scenario, back);
    g_assert_cmpuint(scenario->axes->len, ==, back->axes->len);
}

/* A legal value of a key, chosen at random; NULL where none can be made without a catalogue. */
static char *
some_value(const ZpSchemaKey *key, GRand *random)
{
    ZpSchemaValue value = {0};
    switch (key->kind) {
    case ZP_SCHEMA_COUNT:
    case ZP_SCHEMA_BYTES:
    case ZP_SCHEMA_TIME: {
        gint64 span = MIN(key->max - key->min, (gint64)1 << g_rand_int_range(random, 0, 24));
        value.integer = key->min + (gint64)(g_rand_double(random) * (double)span);
        break;
    }
    case ZP_SCHEMA_BANDWIDTH:
    case ZP_SCHEMA_FLOPS:
    case ZP_SCHEMA_RATIO:
        value.real = key->low + g_rand_double(random) * (MIN(key->high, 1e15) - key->low);
        break;
    case ZP_SCHEMA_ENUM: {
        int n = 0;
        while (key->choices[n].name != NULL)
            n++;
        value.integer = key->choices[g_rand_int_range(random, 0, n)].value;
        break;
    }
    case ZP_SCHEMA_BOOL:
        value.integer = g_rand_boolean(random);
        break;
    case ZP_SCHEMA_DTYPE:
        do
            value.integer = g_rand_int_range(random, 0, ZP_N_DTYPES);
        while ((key->dtypes & 1u << value.integer) == 0);
        break;
    case ZP_SCHEMA_TEXT:
    case ZP_N_SCHEMA_KINDS:
        return NULL;
    }
    return zp_schema_print(key, &value);
}

/* Scenarios with random settings: those that are legal dump and load back to themselves. */
static void
test_dump_round_trip(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    gsize n = 0;
    int legal = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (int round = 0; round < 400; round++) {
        g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
        for (int i = g_rand_int_range(random, 0, 9); i > 0; i--) {
            const ZpSchemaKey *key = &table[g_rand_int_range(random, ZP_KEY_MICRO_BATCH, (int)n)];
            g_autofree char *value = some_value(key, random);
            g_autofree char *set = g_strdup_printf("%s.%s=%s", key->section, key->key, value);
            if (value != NULL)
                g_strv_builder_add(builder, set);
        }
        if (g_rand_int_range(random, 0, 4) == 0)
            g_strv_builder_add(builder, "sweep.zero.stage=0..3");
        g_auto(GStrv) sets = g_strv_builder_end(builder);
        g_autoptr(ZpScenario) scenario =
            zp_scenario_parse(round % 2 ? MODEL : "[layer a]\nparameters = 123\nrepeat = 9\n", -1,
                              "t.ini", (const char *const *)sets, NULL);
        if (scenario == NULL)
            continue;
        legal++;
        check_dump(scenario);
    }
    g_assert_cmpint(legal, >, 100);
}

/* A dump of a sweep keeps what is derived derived: its points are the same. */
static void
test_dump_of_a_sweep(void)
{
    g_autoptr(ZpScenario) scenario =
        scenario_fixture_parse(MODEL "[sweep]\nworld.ranks = 8, 16\n", NULL);
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_assert_nonnull(strstr(dump->str, "shard_group = auto  # 8 ranks; auto: all ranks\n"));
    g_autoptr(ZpScenario) back = scenario_fixture_parse(dump->str, NULL);
    const char *sets[] = {"world.ranks=16", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) a = zp_scenario_with(scenario, sets, &error);
    g_assert_no_error(error);
    g_autoptr(ZpScenario) b = zp_scenario_with(back, sets, &error);
    g_assert_no_error(error);
    g_assert_cmpint(a->job.world.shard_group, ==, 16);
    check_same_job(&a->job, &b->job);
}

static void
test_with(void)
{
    g_autoptr(ZpScenario) base =
        scenario_fixture_parse(MODEL "[world]\nranks = 8\n[sweep]\nzero.stage = 1\n", NULL);
    const char *sets[] = {"world.ranks=32", "zero.stage=1", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) point = zp_scenario_with(base, sets, &error);
    g_assert_no_error(error);
    g_assert_true(point->model == base->model);
    g_assert_cmpuint(point->axes->len, ==, 0);
    scenario_fixture_check(point, "world", "ranks", "32 ranks", "sweep");
    scenario_fixture_check(point, "world", "shard_group", "32 ranks", "auto: all ranks");
    scenario_fixture_check(point, "model", "pieces", "32", "t.ini:3");
    g_assert_cmpint(base->job.world.ranks, ==, 8);

    const char *bigger[] = {"model.total_parameters=8e9", NULL};
    g_autoptr(ZpScenario) other = zp_scenario_with(point, bigger, &error);
    g_assert_no_error(error);
    g_assert_true(other->model != base->model);
    g_assert_cmpint(other->model->n_elements, ==, 8000000000);
    g_assert_cmpint(other->job.world.ranks, ==, 32);

    const char *wrong[] = {"world.shard_group=5", NULL};
    g_assert_null(zp_scenario_with(base, wrong, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_RANGE);
    g_assert_nonnull(strstr(error->message, "sweep: [world] shard_group:"));
}

/* A point made from a base equals the same file read with the same settings. */
static void
test_with_equals_load(void)
{
    const char *text = "[layer a]\nparameters = 1000\nrepeat = 6\n[layer b]\nparameters = 5\n";
    g_autoptr(ZpScenario) base = scenario_fixture_parse(text, NULL);
    const char *const sets[][4] = {
        {"zero.stage=0", "precision.parameter=fp32", NULL},
        {"layer.a.repeat=2", "zero.prefetch=1", NULL},
        {"optimizer.name=sgd", "zero.wrap=model", NULL},
        {"device.gpu=H100-SXM-80", "training.sequence=77", "node.gpus=4", NULL},
        {"precision.compute=fp16", "zero.outer=root", NULL},
        {NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) point = zp_scenario_with(base, sets[i], &error);
        g_assert_no_error(error);
        g_autoptr(ZpScenario) fresh = scenario_fixture_parse(text, sets[i]);
        check_same_job(&point->job, &fresh->job);
        check_same_values(point, fresh);
        g_assert_cmpuint(point->warnings->len, ==, fresh->warnings->len);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scenario/dump-round-trip", test_dump_round_trip);
    g_test_add_func("/scenario/dump-of-a-sweep", test_dump_of_a_sweep);
    g_test_add_func("/scenario/with", test_with);
    g_test_add_func("/scenario/with-equals-load", test_with_equals_load);
    return g_test_run();
}
