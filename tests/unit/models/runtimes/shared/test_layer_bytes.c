/* Forms of what layers hold, weighed by hand. */
#include "models/runtimes/shared/layer_bytes.h"

static void
test_forms(void)
{
    const ZpModelBytes form = {.constant_bytes = 1,
                               .bytes_per_token = 10,
                               .bytes_per_pair = 100,
                               .bytes_per_position = 1000,
                               .bytes_per_position_pair = 10000,
                               .bytes_per_sequence = 100000};
    /* Two sequences of three tokens: 6 tokens, 18 pairs, 3 positions, 9 pairs of them. */
    g_assert_cmpint(zp_layer_bytes_weigh(&form, 2, 3), ==, 1 + 60 + 1800 + 3000 + 90000 + 200000);
    g_assert_cmpint(zp_layer_bytes_weigh(&form, 0, 0), ==, 1);
    const ZpModelBytes less = {.constant_bytes = -5, .bytes_per_token = 2};
    g_assert_cmpint(zp_layer_bytes_weigh(&less, 1, 3), ==, 1);
    g_assert_cmpint(zp_layer_bytes_weigh(&less, 1, 2), ==, 0);
}

static void
test_overflow(void)
{
    const ZpModelBytes token = {.bytes_per_token = 3};
    const gint64 large = G_GINT64_CONSTANT(1) << 40;
    g_assert_cmpint(zp_layer_bytes_weigh(&token, 1 << 20, large), ==, 3 * (large << 20));
    g_assert_cmpint(zp_layer_bytes_weigh(&token, 1 << 22, large), ==, G_MAXINT64);
    g_assert_cmpint(zp_layer_bytes_weigh(&token, G_MAXINT64, G_MAXINT64), ==, G_MAXINT64);
    const ZpModelBytes all = {G_MAXINT64, G_MAXINT64, G_MAXINT64,
                              G_MAXINT64, G_MAXINT64, G_MAXINT64};
    g_assert_cmpint(zp_layer_bytes_weigh(&all, G_MAXINT64, G_MAXINT64), ==, G_MAXINT64);
    const ZpModelBytes off = {.bytes_per_pair = G_MININT64};
    g_assert_cmpint(zp_layer_bytes_weigh(&off, G_MAXINT64, G_MAXINT64), ==, 0);
    /* Pairs do not fit, but nothing is kept of them. */
    g_assert_cmpint(zp_layer_bytes_weigh(&token, 1, large), ==, 3 * large);
}

/* A block of two layers that share an entry, a layer with it outside, and one with nothing. */
static void
test_table(void)
{
    g_autoptr(ZpModel) model = zp_model_new("table");
    ZpModelActivation entry = {0};
    for (int p = 0; p < ZP_MODEL_POLICIES; p++)
        entry.policies[p] = (ZpModelPolicyBytes){
            .kept = {.bytes_per_token = 100 - p},
            .recomputed = {.bytes_per_token = p},
            .forward = {.n_forms = 3,
                        .forms = {{.bytes_per_token = 1},
                                  {.constant_bytes = 7 + p},
                                  {.bytes_per_sequence = 1}}},
            .backward = {.n_forms = 2,
                         .forms = {{.bytes_per_pair = 1}, {.bytes_per_token = 40 + p}}},
        };
    zp_model_add_layer(model, "layer", 1, 4, -1, 0, 0);
    for (guint l = 0; l < 4; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        layer->block = l < 2 ? 0 : ZP_MODEL_NONE;
        layer->activation = l < 3 ? zp_model_add_activation(model, &entry) : ZP_MODEL_NONE;
    }
    g_assert_cmpuint(model->activations->len, ==, 1);
    ZpJob job = {
        .model = model,
        .training = {.micro_batch = 2, .sequence = 3, .checkpointing = ZP_CHECKPOINTING_FULL}};
    g_auto(ZpLayerBytesTable) table = {0};
    zp_layer_bytes_init(&table, &job);
    for (gint32 l = 0; l < 2; l++) {
        const ZpLayerBytes *bytes = zp_layer_bytes_get(&table, l);
        g_assert_cmpint(bytes->kept_bytes, ==, 6 * 98);
        g_assert_cmpint(bytes->recomputed_bytes, ==, 6 * 2);
        g_assert_cmpint(bytes->forward_bytes, ==, 9);
        g_assert_cmpint(bytes->recompute_bytes, ==, 0);
        g_assert_cmpint(bytes->backward_bytes, ==, 6 * 42);
    }
    g_assert_cmpint(zp_layer_bytes_get(&table, 2)->kept_bytes, ==, 6 * 100);
    g_assert_cmpint(zp_layer_bytes_get(&table, 2)->recomputed_bytes, ==, 0);
    g_assert_cmpint(zp_layer_bytes_get(&table, 2)->backward_bytes, ==, 6 * 40);
    g_assert_cmpint(zp_layer_bytes_get(&table, 3)->kept_bytes, ==, 0);
}

/* One sequence may have forms of its own. */
static void
test_alone(void)
{
    g_autoptr(ZpModel) model = zp_model_new("alone");
    zp_model_add_layer(model, "layer", 1, 1, -1, 100, 10);
    ZpModelActivation *entry = &g_array_index(model->activations, ZpModelActivation, 0);
    entry->differs_alone = TRUE;
    for (int p = 0; p < ZP_MODEL_POLICIES; p++)
        entry->alone[p].kept.bytes_per_token = 7 + p;
    g_assert_cmpint(zp_model_add_activation(model, entry), ==, 0);
    ZpModelActivation other = *entry;
    other.alone[2].kept.bytes_per_token = 8;
    g_assert_cmpint(zp_model_add_activation(model, &other), ==, 1);
    ZpJob job = {.model = model, .training = {.micro_batch = 1, .sequence = 3}};
    for (gint64 b = 1; b <= 2; b++) {
        for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
            job.training.micro_batch = b;
            job.training.checkpointing = (ZpCheckpointing)p;
            g_auto(ZpLayerBytesTable) table = {0};
            zp_layer_bytes_init(&table, &job);
            g_assert_cmpint(zp_layer_bytes_get(&table, 0)->kept_bytes, ==,
                            b == 1 ? 3 * (7 + p) : 6 * (p == ZP_CHECKPOINTING_FULL ? 10 : 100));
        }
    }
}

static void
test_entries(void)
{
    g_autoptr(ZpModel) model = zp_model_new("entries");
    const ZpModelActivation nothing = {0};
    g_assert_cmpint(zp_model_add_activation(model, &nothing), ==, ZP_MODEL_NONE);
    ZpModelActivation entry = {0};
    entry.policies[1].backward.n_forms = 1;
    g_assert_cmpint(zp_model_add_activation(model, &entry), ==, 0);
    entry.policies[1].backward.forms[1].bytes_per_pair = 9; /* past the count: says nothing */
    g_assert_cmpint(zp_model_add_activation(model, &entry), ==, 0);
    entry.policies[1].backward.n_forms = 2;
    g_assert_cmpint(zp_model_add_activation(model, &entry), ==, 1);
    zp_model_add_layer(model, "layer", 1, 2, -1, 34, 2);
    zp_model_add_layer(model, "alike", 5, 1, -1, 34, 2);
    g_assert_cmpuint(model->activations->len, ==, 3);
    const ZpModelActivation *spelt = zp_model_activation(model, 2);
    g_assert_cmpint(zp_model_layer(model, 2)->activation, ==, 2);
    g_assert_cmpint(spelt->policies[ZP_CHECKPOINTING_NONE].kept.bytes_per_token, ==, 34);
    g_assert_cmpint(spelt->policies[ZP_CHECKPOINTING_SELECTIVE].kept.bytes_per_token, ==, 34);
    g_assert_cmpint(spelt->policies[ZP_CHECKPOINTING_SELECTIVE].recomputed.bytes_per_token, ==, 0);
    g_assert_cmpint(spelt->policies[ZP_CHECKPOINTING_FULL].kept.bytes_per_token, ==, 2);
    g_assert_cmpint(spelt->policies[ZP_CHECKPOINTING_FULL].recomputed.bytes_per_token, ==, 32);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/layer-bytes/forms", test_forms);
    g_test_add_func("/layer-bytes/overflow", test_overflow);
    g_test_add_func("/layer-bytes/table", test_table);
    g_test_add_func("/layer-bytes/alone", test_alone);
    g_test_add_func("/layer-bytes/entries", test_entries);
    return g_test_run();
}
