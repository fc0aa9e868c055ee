/* A key that is given either changes the step or is said to do nothing, never both: all keys, with
 * choices or examples as values, under every runtime and stage. */
#include "models/runtimes/registry.h"
#include "models/step/same.h"
#include "scenarios/sweeps/effect.h"

#include <string.h>

static const char base[] =
    "[model]\nlayers = 2\nhidden = 256\nheads = 4\nffn = 1024\nvocabulary = 1000\n"
    "[training]\nsequence = 128\nmicro_batch = 2\naccumulation = 2\n"
    "[world]\nranks = 16\n";

/* Values beside examples, choices and words that tell more of a number. */
static const struct {
    const char *key, *value;
} more[] = {
    {"zero.wrap_blocks", "2"},    {"zero.prefetch", "0"},
    {"zero.prefetch", "2"},       {"zero.bucket", "1000 elements"},
    {"world.shard_group", "8"},   {"device.kernel_latency", "9 us"},
    {"device.overhead", "3 GiB"}, {"node.network_bandwidth", "10 Gbit/s"},
    {"node.h2d", "5 GB/s"},       {"host.launch_overhead", "50 us"},
    {"host.run_ahead", "2"},      {"simulation.seed", "7"},
    {"simulation.steps", "3"},    {"deepspeed.reduce_bucket", "2000 elements"},
};

static gboolean
mentions(const GPtrArray *warnings, const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, ".", 2);
    g_autofree char *place = g_strdup_printf("[%s] %s", parts[0], parts[1]);
    for (guint w = 0; w < warnings->len; w++) {
        const char *text = g_ptr_array_index(warnings, w);
        if (text != NULL && strstr(text, place) != NULL)
            return TRUE;
    }
    return FALSE;
}

static const char *
text_of(const ZpScenario *scenario, const char *key)
{
    for (guint v = 0; v < scenario->values->len; v++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, v);
        g_autofree char *name = g_strdup_printf("%s.%s", value->section, value->key);
        if (strcmp(name, key) == 0)
            return value->text;
    }
    return NULL;
}

/* What would be in force without the key; or NULL: it cannot be left out. */
static char *
text_without(const ZpScenario *scenario, const char *key)
{
    g_autofree char *set = g_strdup_printf("%s=auto", key);
    const char *sets[] = {set, NULL};
    g_autoptr(ZpScenario) without = zp_scenario_with(scenario, sets, NULL);
    return without != NULL ? g_strdup(text_of(without, key)) : NULL;
}

/* 0: cannot be asked here; 1: the step changes; 2: warned of. */
static int
ask(const ZpScenario *plain, const ZpStepSummary *before, const char *key, const char *value)
{
    g_autofree char *set = g_strdup_printf("%s=%s", key, value);
    const char *sets[] = {set, NULL};
    g_autoptr(ZpStep) step = zp_step_new();
    g_autoptr(ZpScenario) with = zp_scenario_with(plain, sets, NULL);
    ZpStepSummary after;
    if (with == NULL || !zp_step_simulate(step, &with->job, NULL, NULL, &after, NULL))
        return 0;
    g_autoptr(GPtrArray) idle = zp_effect_idle(with, &after, zp_step_tape(step)->n_instrs, NULL);
    gboolean changes = !zp_step_same(before, &after);
    gboolean warned = mentions(idle, key) || mentions(with->warnings, key);
    if (changes == warned) {
        /* A value that is in force already says nothing and does nothing; one that must be given
         * cannot be told to go. */
        g_autofree char *without = text_without(with, key);
        if (!changes && (without == NULL || g_strcmp0(without, text_of(with, key)) == 0))
            return 0;
        g_test_fail_printf("%s = %s under %s, stage %d: the step %s, and it is %s", key, value,
                           plain->job.runtime, plain->job.zero.stage,
                           changes ? "changes" : "is the same",
                           warned ? "said to do nothing" : "not said so");
    }
    return changes ? 1 : 2;
}

/* Names files, or says nothing of the step. */
static gboolean
is_asked(const ZpSchemaKey *key)
{
    static const char *const sections[] = {"scenario", "layer", "sweep"};
    static const ZpSchemaId files[] = {ZP_KEY_CONFIG, ZP_KEY_ZERO_CONFIG, ZP_KEY_CALIBRATION};
    for (gsize s = 0; s < G_N_ELEMENTS(sections); s++)
        if (strcmp(key->section, sections[s]) == 0)
            return FALSE;
    for (gsize f = 0; f < G_N_ELEMENTS(files); f++)
        if (key->id == files[f])
            return FALSE;
    return TRUE;
}

#define MAX_VALUES 3

/* Legal values of a key: choices, formats (some), yes and no, else its example and its word. */
static GPtrArray *
values_of(const ZpSchemaKey *key, const char *name)
{
    GPtrArray *values = g_ptr_array_new_with_free_func(g_free);
    for (const ZpSchemaChoice *c = key->choices;
         c != NULL && c->name != NULL && values->len < MAX_VALUES; c++)
        g_ptr_array_add(values, g_strdup(c->name));
    for (int d = 0; key->kind == ZP_SCHEMA_DTYPE && d < ZP_N_DTYPES && values->len < MAX_VALUES;
         d++)
        if ((key->dtypes & 1u << d) != 0)
            g_ptr_array_add(values, g_strdup(zp_dtype_name((ZpDtype)d)));
    if (key->kind == ZP_SCHEMA_BOOL) {
        g_ptr_array_add(values, g_strdup("yes"));
        g_ptr_array_add(values, g_strdup("no"));
    }
    if (values->len == 0 && key->example != NULL)
        g_ptr_array_add(values, g_strdup(key->example));
    if (key->word != NULL)
        g_ptr_array_add(values, g_strdup(key->word));
    for (gsize m = 0; m < G_N_ELEMENTS(more); m++)
        if (strcmp(more[m].key, name) == 0)
            g_ptr_array_add(values, g_strdup(more[m].value));
    return values;
}

typedef struct {
    int changed[ZP_N_KEYS];
    int warned, asked;
} Count;

static void
ask_all(const ZpScenario *plain, Count *count)
{
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary before;
    if (plain == NULL || !zp_step_simulate(step, &plain->job, NULL, NULL, &before, NULL))
        return;
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize k = 0; k < n; k++) {
        if (!is_asked(&table[k]))
            continue;
        g_autofree char *name = g_strdup_printf("%s.%s", table[k].section, table[k].key);
        g_autoptr(GPtrArray) values = values_of(&table[k], name);
        for (guint v = 0; v < values->len; v++) {
            int said = ask(plain, &before, name, g_ptr_array_index(values, v));
            count->changed[table[k].id] += said == 1;
            count->warned += said == 2;
            count->asked += said != 0;
        }
    }
}

static void
test_keys(void)
{
    gsize n = 0;
    const ZpRuntime *const *runtimes = zp_registry_table(&n);
    Count count = {0};
    for (gsize r = 0; r < n; r++)
        for (int stage = 0; stage <= 3; stage++) {
            if (!runtimes[r]->supports_stage(stage))
                continue;
            g_autofree char *runtime = g_strdup_printf("zero.runtime=%s", runtimes[r]->name);
            g_autofree char *of_stage = g_strdup_printf("zero.stage=%d", stage);
            const char *sets[] = {runtime, of_stage, NULL};
            g_autoptr(ZpScenario) plain = zp_scenario_parse(base, -1, "base.ini", sets, NULL);
            ask_all(plain, &count);
        }
    int acting = 0;
    for (int k = 0; k < ZP_N_KEYS; k++)
        acting += count.changed[k] > 0;
    g_test_message("%d answers, %d of them warnings; %d keys act somewhere", count.asked,
                   count.warned, acting);
    g_assert_cmpint(count.asked, >, 1000);
    g_assert_cmpint(count.warned, >, 300);
    g_assert_cmpint(acting, >=, 80);
}

/* The keys that gave equal rows without a word; a file may be called as a rule is. */
static void
test_known(gconstpointer name)
{
    g_autofree char *text = g_strconcat(base,
                                        "[zero]\nruntime = deepspeed\nwrap = sublayer\n"
                                        "bucket = 1e6 elements\n[precision]\nreduce = fp32\n",
                                        NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_parse(text, -1, name, NULL, &error);
    g_assert_no_error(error);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    g_assert_true(zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error));
    g_autoptr(GPtrArray) idle =
        zp_effect_idle(scenario, &summary, zp_step_tape(step)->n_instrs, NULL);
    g_assert_true(mentions(idle, "zero.wrap"));
    g_assert_true(mentions(idle, "zero.bucket"));
    g_assert_true(mentions(idle, "precision.reduce"));
    g_assert_false(mentions(idle, "training.sequence"));
    g_assert_false(mentions(idle, "world.ranks"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/effect/keys", test_keys);
    g_test_add_data_func("/effect/known", "base.ini", test_known);
    g_test_add_data_func("/effect/known-default", "default.ini", test_known);
    g_test_add_data_func("/effect/known-catalogue", "catalogue.ini", test_known);
    return g_test_run();
}
