#include "models/step/step.h"
#include "tests/unit/fixtures/ledger_fixture.h"

/* A 400e6-element bf16 unit on 8 ranks lacks 700e6 bytes; a second one ahead doubles that. */
static void
test_gathered(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 1200000000, 3, 8);
    ZpLedger ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger.gathered_bytes, ==, 700000000);
    g_assert_cmpint(ledger.prefetched_bytes, ==, 0);
    fixture.job.zero.prefetch_backward = 1;
    ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger.gathered_bytes, ==, 700000000);
    g_assert_cmpint(ledger.prefetched_bytes, ==, 700000000);
    fixture.job.zero.prefetch_forward = 100; /* no more than there are */
    g_assert_cmpint(ledger_fixture_compute(&fixture).prefetched_bytes, ==, 1400000000);
    fixture.job.zero.reshard_after_forward = FALSE;
    ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger.gathered_bytes, ==, 2100000000);
    g_assert_cmpint(ledger.prefetched_bytes, ==, 0);
    fixture.job.zero.reshard_after_forward = TRUE;
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 0;
    fixture.job.precision.gathered = ZP_DTYPE_FP8; /* another dtype: the own shard as well */
    g_assert_cmpint(ledger_fixture_compute(&fixture).gathered_bytes, ==, 400000000);
    fixture.job.world.shard_group = 1; /* one owner still needs the cast copy ... */
    g_assert_cmpint(ledger_fixture_compute(&fixture).gathered_bytes, ==, 400000000);
    fixture.job.precision.gathered = ZP_DTYPE_BF16; /* ... but no copy of what it has */
    g_assert_cmpint(ledger_fixture_compute(&fixture).gathered_bytes, ==, 0);
    fixture.job.world.shard_group = 8;
    fixture.job.zero.stage = 2;
    g_assert_cmpint(ledger_fixture_compute(&fixture).gathered_bytes, ==, 0);
    ledger_fixture_clear(&fixture);

    ledger_fixture_init(&fixture, G_GINT64_CONSTANT(60) * 80000000, 60, 8);
    gint64 whole = G_GINT64_CONSTANT(60) * 80000000 * 2 * 7 / 8;
    g_assert_cmpint(ledger_fixture_compute(&fixture).gathered_bytes * 60, ==, whole);
    ledger_fixture_clear(&fixture);
}

/* Embedding and head in a root unit of 1000, blocks of 500, 2000, 100 and 1900 elements between. */
static ZpModel *
rooted_model(void)
{
    ZpModel *model = zp_model_new("rooted");
    const gint64 elements[] = {600, 500, 2000, 100, 1900, 400};
    for (gsize l = 0; l < G_N_ELEMENTS(elements); l++) {
        zp_model_add_layer(model, "layer", elements[l], 1, -1, 0, 0);
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        layer->block = (gint32)l - 1;
        g_array_index(model->parameters, ZpModelParameter, l).layer = (gint32)l;
        if (l == 0 || l == G_N_ELEMENTS(elements) - 1) {
            layer->block = ZP_MODEL_NONE;
            layer->kind = l == 0 ? ZP_LAYER_EMBEDDING : ZP_LAYER_HEAD;
        }
    }
    zp_model_finish(model);
    return model;
}

static void
test_enclosing_unit(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 1, 1, 10);
    fixture.job.zero.outer = ZP_OUTER_ROOT;
    ledger_fixture_set_model(&fixture, rooted_model());
    g_assert_cmpint(fixture.units->n_units, ==, 5);
    const gint64 lacked = 2 * 9; /* bytes per ten elements */
    ZpLedger ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger.gathered_bytes, ==, lacked * (1000 + 2000) / 10);
    /* Forward two ahead: the worst place is where 2000 is in use and 100 and 1900 come. */
    fixture.job.zero.prefetch_forward = 2;
    ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger.gathered_bytes, ==, lacked * (1000 + 2000) / 10);
    g_assert_cmpint(ledger.prefetched_bytes, ==, lacked * (100 + 1900) / 10);
    /* Backward three ahead from 1900: all the rest. */
    fixture.job.zero.prefetch_forward = 0;
    fixture.job.zero.prefetch_backward = 3;
    ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger.gathered_bytes, ==, lacked * (1000 + 1900) / 10);
    g_assert_cmpint(ledger.prefetched_bytes, ==, lacked * (100 + 2000 + 500) / 10);
    /* The root's gradient is begun first and finished last, over every bucket; of two neighbours
     * 2000 and 100 or 100 and 1900, and 500 beside 2000, the last pair is largest. */
    fixture.job.zero.overlap = TRUE;
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 2 * (1000 + 2000 + 500));
    fixture.job.zero.overlap = FALSE;
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 2 * (1000 + 2000));
    ledger_fixture_clear(&fixture);
}

static void
test_buckets(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 7003, 7,
                        4); /* layers of 1001, 1001, 1001, 1000 ...: 1004 and 1000 */
    ZpJob *job = &fixture.job;
    job->precision.reduce = ZP_DTYPE_FP32;
    job->zero.bucket_elements = 2000;
    const gint64 a = 4 * 1000, b = 4 * 1004; /* backwards a a | a a | b b | b */
    job->zero.overlap = FALSE;
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 2 * b);
    job->zero.overlap = TRUE;
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 2 * a + 2 * b);
    job->zero.bucket_elements = 2001; /* a a a | a b | b b: whole units alone */
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 4 * a + b);
    job->zero.bucket_elements = 100000; /* one bucket: nothing runs beside it */
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 4 * a + 3 * b);
    job->training.accumulation = 2; /* but the next micro-batch may fill its own */
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 2 * (4 * a + 3 * b));
    job->zero.stage = 1; /* full gradients are reduced once */
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 4 * a + 3 * b);
    job->zero.stage = 0; /* and without shards nothing is padded */
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 4 * 7003);
    job->precision.reduce = ZP_DTYPE_NONE;
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 2 * 7003);
    job->world.ranks = job->world.shard_group = 1;
    g_assert_cmpint(ledger_fixture_compute(&fixture).bucket_bytes, ==, 0);
    ledger_fixture_clear(&fixture);
}

/* Three blocks of two layers, a layer outside and a head; bytes per token, 1000 tokens. */
static void
set_blocks(LedgerFixture *fixture)
{
    ZpModel *model = zp_model_new("blocks");
    zp_model_add_layer(model, "layer", 10, 8, -1, 0, 0);
    for (gint32 l = 0; l < 8; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        layer->block = l >= 6 ? ZP_MODEL_NONE : l / 2;
        layer->kind = l == 7 ? ZP_LAYER_HEAD : ZP_LAYER_OTHER;
        const ZpModelBytes kept = {.bytes_per_token = l == 7 ? 500 : 100 + 10 * l,
                                   .bytes_per_pair = l % 2 == 0};
        const ZpModelBytes selective = {.bytes_per_token = 60};
        const ZpModelBytes input = {.bytes_per_token = l % 2 == 0 ? 8 : 0};
        ZpModelActivation entry = zp_model_activation_of(&kept, &selective, &input);
        layer->activation = zp_model_add_activation(model, &entry);
    }
    zp_model_finish(model);
    ledger_fixture_set_model(fixture, model);
}

static ZpModelActivation *
entry_of(LedgerFixture *fixture, gint32 layer)
{
    return &g_array_index(fixture->model->activations, ZpModelActivation,
                          zp_model_layer(fixture->model, layer)->activation);
}

static gint64
activation_bytes(LedgerFixture *fixture, ZpCheckpointing policy)
{
    fixture->job.training.checkpointing = policy;
    return ledger_fixture_compute(fixture).activation_bytes;
}

static void
test_activations(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 1, 1, 8);
    set_blocks(&fixture);
    const gint64 t = 1000, p = 1000000;
    const gint64 outside = 160 * t + p;
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_NONE), ==,
                    (100 + 110 + 120 + 130 + 140 + 150) * t + 3 * p + outside);
    g_assert_cmpint(ledger_fixture_compute(&fixture).logits_bytes, ==, 500 * t);
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_FULL), ==,
                    3 * 8 * t + outside + (140 + 150 - 8) * t + p);
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_SELECTIVE), ==,
                    6 * 60 * t + outside + (140 + 150 - 120) * t + p);
    fixture.job.training.micro_batch = 3; /* pairs grow with the micro-batch, not its square */
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_SELECTIVE), ==,
                    3 * (6 * 60 * t + outside + (140 + 150 - 120) * t + p));
    ledger_fixture_clear(&fixture);
}

/* Forms of a peak are not added up: the largest counts, and of passes the one that needs most. */
static void
test_transients(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 1, 1, 8);
    set_blocks(&fixture);
    const gint64 t = 1000, p = 1000000, outside = 160 * t + p;
    const gint64 none = 750 * t + 3 * p + outside, full = 24 * t + outside;
    /* Forward of the fourth layer: 70 a token, or 2 a position and sequence and 5. */
    entry_of(&fixture, 3)->policies[ZP_CHECKPOINTING_NONE].forward = (ZpModelPeak){
        .n_forms = 2,
        .forms = {{.bytes_per_token = 70},
                  {.bytes_per_position = 2, .bytes_per_sequence = 3, .constant_bytes = 5}},
    };
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_NONE), ==, none + 70 * t);
    fixture.job.training.micro_batch = 0; /* what is left does not depend on it */
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_NONE), ==, 2 * t + 5);
    fixture.job.training.micro_batch = 1;
    /* In backward of the fifth layer (of the third block) only its own part came back so far. */
    ZpModelPolicyBytes *fifth = &entry_of(&fixture, 4)->policies[ZP_CHECKPOINTING_FULL];
    fifth->backward = (ZpModelPeak){.n_forms = 1, .forms = {{.bytes_per_token = 200}}};
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_FULL), ==,
                    full + (140 - 8) * t + p + 200 * t);
    fifth->backward.forms[0].bytes_per_token = 100; /* less than the sixth brings back */
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_FULL), ==,
                    full + (140 - 8) * t + p + 150 * t);
    /* The sixth's recomputation has both. */
    entry_of(&fixture, 5)->policies[ZP_CHECKPOINTING_FULL].recompute =
        (ZpModelPeak){.n_forms = 1, .forms = {{.bytes_per_position_pair = 3}}};
    g_assert_cmpint(activation_bytes(&fixture, ZP_CHECKPOINTING_FULL), ==,
                    full + (140 + 150 - 8) * t + p + 3 * p);
    /* The head's are logits, under every policy those of nothing recomputed. */
    ZpModelPolicyBytes *head = &entry_of(&fixture, 7)->policies[ZP_CHECKPOINTING_NONE];
    head->forward = (ZpModelPeak){.n_forms = 1, .forms = {{.bytes_per_token = 400}}};
    head->backward = (ZpModelPeak){.n_forms = 1, .forms = {{.bytes_per_token = 900}}};
    g_assert_cmpint(ledger_fixture_compute(&fixture).logits_bytes, ==, (500 + 900) * t);
    ledger_fixture_clear(&fixture);
}

static gint32
range(GRand *rand, gint32 low, gint32 high)
{
    return g_rand_int_range(rand, low, high + 1);
}

static gboolean
coin(GRand *rand)
{
    return range(rand, 0, 1);
}

static ZpModelBytes
random_form(GRand *rand, gint32 most)
{
    ZpModelBytes form = {.bytes_per_token = range(rand, 0, most)};
    if (coin(rand))
        form.bytes_per_pair = range(rand, 0, 1);
    if (coin(rand)) { /* a form may take off what another policy counts */
        form.constant_bytes = range(rand, -5000, 5000);
        form.bytes_per_position = range(rand, -20, 20);
        form.bytes_per_sequence = range(rand, -9, 9);
        form.bytes_per_position_pair = range(rand, 0, 1);
    }
    return form;
}

static ZpModelPeak
random_peak(GRand *rand)
{
    ZpModelPeak peak = {.n_forms = range(rand, 0, ZP_MODEL_PEAK_FORMS)};
    for (gint32 f = 0; f < peak.n_forms; f++)
        peak.forms[f] = random_form(rand, 300);
    return peak;
}

static gint32
add_random_entry(GRand *rand, ZpModel *model)
{
    ZpModelBytes kept = random_form(rand, 900), selective = random_form(rand, 500);
    ZpModelBytes input = {.bytes_per_token = range(rand, 0, 50)};
    ZpModelActivation entry = zp_model_activation_of(&kept, &selective, &input);
    for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
        entry.policies[p].forward = random_peak(rand);
        if (p != ZP_CHECKPOINTING_NONE)
            entry.policies[p].recompute = random_peak(rand);
        entry.policies[p].backward = random_peak(rand);
    }
    entry.differs_alone = coin(rand);
    for (int p = 0; p < ZP_MODEL_POLICIES && entry.differs_alone; p++) {
        entry.alone[p] = entry.policies[p];
        entry.alone[p].kept.bytes_per_token += range(rand, 0, 100);
        entry.alone[p].backward = random_peak(rand);
    }
    return zp_model_add_activation(model, &entry);
}

/* A model with embedding and head, blocks of two kinds of layers, some layers frozen. */
static ZpModel *
random_model(GRand *rand)
{
    ZpModel *model = zp_model_new("random");
    gint32 n = range(rand, 3, 14);
    const gint32 kinds[] = {add_random_entry(rand, model), add_random_entry(rand, model)};
    for (gint32 l = 0; l < n; l++) {
        zp_model_add_layer(model, "layer", range(rand, 1, 3000000), 1, -1, 0, 0);
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, l);
        layer->block = l == 0 || l == n - 1 ? ZP_MODEL_NONE : (l - 1) / 2;
        layer->kind = l == 0 ? ZP_LAYER_EMBEDDING : l == n - 1 ? ZP_LAYER_HEAD : ZP_LAYER_OTHER;
        layer->activation =
            layer->block == ZP_MODEL_NONE ? add_random_entry(rand, model) : kinds[l % 2];
        parameter->layer = l;
        parameter->trainable = range(rand, 0, 4) > 0;
    }
    zp_model_finish(model);
    return model;
}

static void
random_job(GRand *rand, LedgerFixture *fixture)
{
    ledger_fixture_init(fixture, 1, 1, 16);
    ZpJob *job = &fixture->job;
    const gint32 groups[] = {1, 2, 4, 8, 16};
    job->world.shard_group = groups[range(rand, 0, 4)];
    job->zero = (ZpZero){.stage = range(rand, 0, 3),
                         .wrap = (ZpWrap)range(rand, 0, 3),
                         .wrap_blocks = range(rand, 1, 3),
                         .wrap_elements = range(rand, 1, 5000000),
                         .outer = coin(rand) ? ZP_OUTER_ROOT : ZP_OUTER_OWN,
                         .prefetch_forward = range(rand, 0, 3),
                         .prefetch_backward = range(rand, 0, 3),
                         .bucket_elements = range(rand, 1, 6000000),
                         .overlap = coin(rand),
                         .reshard_after_forward = coin(rand)};
    job->training.micro_batch = range(rand, 1, 3);
    job->training.accumulation = range(rand, 1, 3);
    job->training.checkpointing = (ZpCheckpointing)range(rand, 0, 2);
    job->precision.gathered = coin(rand) ? ZP_DTYPE_BF16 : ZP_DTYPE_FP32;
    job->precision.reduce = coin(rand) ? ZP_DTYPE_BF16 : ZP_DTYPE_FP32;
    job->simulation = (ZpSimulation){.simulated_ranks = 1, .steps = 2, .slow_rank = ZP_MODEL_NONE};
    job->device = (ZpDevice){.flops_per_s = 1e14,
                             .flops_efficiency = 1.0,
                             .memory_bytes_per_s = 2e12,
                             .memory_efficiency = 1.0};
    double link_bytes_per_s = coin(rand) ? 1e9 : 1e13; /* reductions pile up, or never do */
    job->network = (ZpNetwork){.link_bytes_per_s = link_bytes_per_s,
                               .link_efficiency = 1.0,
                               .gpus_per_node = 16,
                               .network_bytes_per_s = link_bytes_per_s,
                               .network_efficiency = 1.0};
    ledger_fixture_set_model(fixture, random_model(rand));
}

/* A simulation of the same rules never exceeds a class of the ledger, whatever the speeds; gathered
 * parameters reach it exactly. */
static void
test_bounds_simulation(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    int buckets_reached = 0, activations_reached = 0;
    for (int trial = 0; trial < 600; trial++) {
        LedgerFixture fixture;
        random_job(rand, &fixture);
        ZpLedger ledger = ledger_fixture_compute(&fixture);
        g_autoptr(ZpStep) step = zp_step_new();
        g_autoptr(GError) error = NULL;
        ZpStepSummary summary;
        gboolean ok = zp_step_simulate(step, &fixture.job, NULL, NULL, &summary, &error);
        g_assert_no_error(error);
        g_assert_true(ok);
        const gint64 *peak =
            zp_step_result(step)->ranks[0].memory[ZP_TAPE_SPACE_DEVICE].class_peak_bytes;
        g_assert_cmpint(peak[ZP_CLASS_GATHERED], <=,
                        ledger.gathered_bytes + ledger.prefetched_bytes);
        if (fixture.job.network.link_bytes_per_s > 1e12)
            g_assert_cmpint(peak[ZP_CLASS_GATHERED], ==,
                            ledger.gathered_bytes + ledger.prefetched_bytes);
        g_assert_cmpint(peak[ZP_CLASS_COMMUNICATION], <=, ledger.bucket_bytes);
        buckets_reached += peak[ZP_CLASS_COMMUNICATION] == ledger.bucket_bytes;
        g_assert_cmpint(peak[ZP_CLASS_ACTIVATION], <=, ledger.activation_bytes);
        activations_reached += peak[ZP_CLASS_ACTIVATION] == ledger.activation_bytes;
        g_assert_cmpint(peak[ZP_CLASS_LOGITS], ==, ledger.logits_bytes);
        g_assert_cmpint(summary.peak_bytes, <=, ledger.total_bytes);
        ledger_fixture_clear(&fixture);
    }
    /* A bound that nothing reaches says nothing. */
    g_assert_cmpint(buckets_reached, >, 300);
    g_assert_cmpint(activations_reached, >, 100);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ledger-peak/gathered", test_gathered);
    g_test_add_func("/ledger-peak/enclosing-unit", test_enclosing_unit);
    g_test_add_func("/ledger-peak/buckets", test_buckets);
    g_test_add_func("/ledger-peak/activations", test_activations);
    g_test_add_func("/ledger-peak/transients", test_transients);
    g_test_add_func("/ledger-peak/bounds-simulation", test_bounds_simulation);
    return g_test_run();
}
