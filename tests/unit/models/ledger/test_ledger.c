#include <math.h>
#include <string.h>

#include "tests/unit/fixtures/ledger_fixture.h"

/* 7e9 parameters on 8 ranks, MB. */
static void
test_seven_billion(void)
{
    const gint64 expected[4][5] = {
        /* parameters, gradients, master, momentum, variance */
        {14000, 14000, 28000, 28000, 28000},
        {14000, 14000, 3500, 3500, 3500},
        {14000, 1750, 3500, 3500, 3500},
        {1750, 1750, 3500, 3500, 3500},
    };
    const ZpClass classes[] = {ZP_CLASS_PARAMETER, ZP_CLASS_GRADIENT, ZP_CLASS_MASTER,
                               ZP_CLASS_MOMENTUM, ZP_CLASS_VARIANCE};
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 7000000000, 10, 8);
    for (int stage = 0; stage <= 3; stage++) {
        fixture.job.zero.stage = stage;
        ZpLedger ledger = ledger_fixture_compute(&fixture);
        gint64 sum = 0;
        for (int c = 0; c < 5; c++) {
            const ZpLedgerRow *row = ledger_fixture_row(&ledger, classes[c]);
            g_assert_cmpint(row->persistent_bytes, ==, expected[stage][c] * 1000000);
            g_assert_cmpint(row->owners, ==, expected[stage][c] == expected[0][c] ? 1 : 8);
            g_assert_cmpint(row->elements, ==, 7000000000 / row->owners);
            g_assert_cmpint(row->padding_bytes, ==, 0);
            sum += row->persistent_bytes;
        }
        g_assert_cmpint(ledger.persistent_bytes, ==, sum);
    }
    ledger_fixture_clear(&fixture);
}

static void
test_optimizers(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 8000, 4, 8); /* 1000 elements a rank, 250 a unit */
    ZpJob *job = &fixture.job;
    job->optimizer = zp_optimizer_find("adam8bit");
    job->precision.moments = ZP_DTYPE_INT8;
    ZpLedger ledger = ledger_fixture_compute(&fixture);
    g_assert_null(ledger_fixture_row(&ledger, ZP_CLASS_MASTER));
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_MOMENTUM), ==,
                    1000 + 4 * 4); /* 4 blocks of 256 */
    g_assert_cmpint(ledger_fixture_row(&ledger, ZP_CLASS_VARIANCE)->padding_bytes, ==, 4 * 4);
    g_assert_cmpfloat(ledger_fixture_row(&ledger, ZP_CLASS_VARIANCE)->bytes_per_element, ==,
                      1.015625);
    job->precision.moments = ZP_DTYPE_FP32;
    job->optimizer = zp_optimizer_find("adamw_foreach");
    g_assert_cmpint(ledger_fixture_compute(&fixture).optimizer_temporary_bytes, ==, 4000);
    job->zero.stage = 0;
    g_assert_cmpint(ledger_fixture_compute(&fixture).optimizer_temporary_bytes, ==, 32000);
    job->optimizer = zp_optimizer_find("adamw_forloop");
    g_assert_cmpint(ledger_fixture_compute(&fixture).optimizer_temporary_bytes, ==, 3 * 4 * 2000);
    job->optimizer = zp_optimizer_find("lion");
    ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_MASTER) +
                        ledger_fixture_bytes(&ledger, ZP_CLASS_MOMENTUM),
                    ==, 64000);
    g_assert_null(ledger_fixture_row(&ledger, ZP_CLASS_VARIANCE));
    job->precision.parameter = ZP_DTYPE_FP32; /* the parameters are the master weights */
    ledger = ledger_fixture_compute(&fixture);
    g_assert_null(ledger_fixture_row(&ledger, ZP_CLASS_MASTER));
    ledger_fixture_clear(&fixture);
}

/* A 40 x 25 matrix and a vector of 7 in each of two units, one matrix frozen; 3 ranks. */
static void
test_factored_and_frozen(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 1, 1, 3);
    ZpModel *model = zp_model_new("matrices");
    for (gint32 l = 0; l < 2; l++) {
        zp_model_add_layer(model, "matrix", 1000, 1, -1, 0, 0);
        ZpModelParameter *matrix =
            &g_array_index(model->parameters, ZpModelParameter, model->parameters->len - 1);
        matrix->layer = l;
        matrix->n_dims = 2;
        matrix->shape[0] = 40;
        matrix->shape[1] = 25;
        matrix->trainable = l == 0;
        ZpModelParameter vector = {.elements = 7,
                                   .shape = {7},
                                   .n_dims = 1,
                                   .layer = l,
                                   .module = ZP_MODEL_NONE,
                                   .tied_to = ZP_MODEL_NONE,
                                   .trainable = TRUE};
        g_array_append_val(model->parameters, vector);
        g_array_index(model->layers, ZpModelLayer, l).block = l;
    }
    zp_model_finish(model);
    ledger_fixture_set_model(&fixture, model);
    fixture.job.optimizer = zp_optimizer_find("adafactor");
    ZpLedger ledger = ledger_fixture_compute(&fixture);
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_VARIANCE), ==,
                    4 * (24 + 3)); /* 72 / 3, 7 / 3 */
    g_assert_null(ledger_fixture_row(&ledger, ZP_CLASS_MOMENTUM));
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_PARAMETER), ==, 2 * 2 * 336);
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_GRADIENT), ==, 2 * (336 + 3));
    g_assert_cmpint(ledger_fixture_bytes(&ledger, ZP_CLASS_MASTER), ==, 4 * (336 + 3));
    ledger_fixture_clear(&fixture);
}

static void
test_verdict(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 8000, 4, 8);
    ZpJob *job = &fixture.job;
    job->device.overhead_bytes = 1001;
    job->device.contingency = 0.1;
    ZpLedger ledger = ledger_fixture_compute(&fixture);
    gint64 sum = ledger.persistent_bytes + ledger.gathered_bytes + ledger.prefetched_bytes +
                 ledger.bucket_bytes + ledger.activation_bytes + ledger.logits_bytes +
                 ledger.optimizer_temporary_bytes + 1001;
    g_assert_cmpint(ledger.contingency_bytes, ==, sum / 10 + (sum % 10 != 0));
    g_assert_cmpint(ledger.total_bytes, ==, sum + ledger.contingency_bytes);
    g_assert_true(ledger.fits);
    g_assert_cmpint(ledger.headroom_bytes, ==, 0);
    job->device.capacity_bytes = ledger.total_bytes;
    ledger = ledger_fixture_compute(&fixture);
    g_assert_true(ledger.fits);
    g_assert_cmpint(ledger.headroom_bytes, ==, 0);
    job->device.capacity_bytes--;
    ledger = ledger_fixture_compute(&fixture);
    g_assert_false(ledger.fits);
    g_assert_cmpint(ledger.headroom_bytes, ==, -1);
    ledger_fixture_clear(&fixture);
}

static void
assert_refused(const LedgerFixture *fixture, ZpLedgerError code, const char *word)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_ledger_check(&fixture->job, fixture->units, &error));
    g_assert_error(error, ZP_LEDGER_ERROR, (int)code);
    g_assert_nonnull(strstr(error->message, word));
}

static void
test_refusals(void)
{
    LedgerFixture fixture;
    ledger_fixture_init(&fixture, 8000, 4, 8);
    const ZpJob good = fixture.job;
    ZpJob *job = &fixture.job;
    job->world.ranks = 0;
    assert_refused(&fixture, ZP_LEDGER_ERROR_INVALID, "world size");
    *job = good;
    job->world.shard_group = 3;
    assert_refused(&fixture, ZP_LEDGER_ERROR_INVALID, "shard group");
    *job = good;
    job->zero.stage = 4;
    assert_refused(&fixture, ZP_LEDGER_ERROR_INVALID, "stage");
    *job = good;
    job->device.contingency = NAN;
    assert_refused(&fixture, ZP_LEDGER_ERROR_INVALID, "contingency");
    *job = good;
    const ZpModelBytes two = {.bytes_per_token = 2};
    ZpModelActivation activation = zp_model_activation_of(&two, &two, &two);
    g_array_index(fixture.model->layers, ZpModelLayer, 0).activation =
        zp_model_add_activation(fixture.model, &activation);
    job->training.micro_batch = job->training.sequence = G_GINT64_CONSTANT(1) << 31;
    assert_refused(&fixture, ZP_LEDGER_ERROR_OVERFLOW, "activations");
    *job = good;
    job->device.overhead_bytes = G_MAXINT64;
    assert_refused(&fixture, ZP_LEDGER_ERROR_OVERFLOW, "total");
    *job = good;
    job->device.contingency = 1e18;
    assert_refused(&fixture, ZP_LEDGER_ERROR_OVERFLOW, "contingency");
    *job = good;
    fixture.units->units[1].elements = fixture.units->units[1].trainable_elements = G_MAXINT64;
    job->zero.stage = 0;
    assert_refused(&fixture, ZP_LEDGER_ERROR_OVERFLOW, "parameters");
    ZpLedger ledger; /* and it saturates where nobody asked */
    zp_ledger_compute(job, fixture.units, &ledger);
    g_assert_cmpint(ledger.total_bytes, ==, G_MAXINT64);
    ledger_fixture_clear(&fixture);
}

static gint32
range(GRand *rand, gint32 low, gint32 high)
{
    return g_rand_int_range(rand, low, high + 1);
}

static void
random_job(GRand *rand, LedgerFixture *fixture)
{
    gint32 owners = range(rand, 1, 70);
    ledger_fixture_init(fixture, range(rand, 1, 2000000000), range(rand, 1, 40), owners);
    ZpJob *job = &fixture->job;
    job->world.ranks *= range(rand, 1, 4);
    job->zero.wrap = (ZpWrap)range(rand, 0, 3);
    job->zero.wrap_blocks = range(rand, 1, 5);
    job->zero.wrap_elements = range(rand, 1, 100000000);
    gsize n = 0;
    const ZpOptimizer *table = zp_optimizer_table(&n);
    job->optimizer = &table[range(rand, 0, (gint32)n - 1)];
    job->precision.moments = zp_optimizer_moments(job->optimizer, job->precision.parameter);
    zp_wrapping_free(fixture->units);
    fixture->units = zp_wrapping_apply(fixture->model, &job->zero);
}

/* A higher stage never stores more. */
static void
test_stage_order(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(3);
    for (int trial = 0; trial < 2000; trial++) {
        LedgerFixture fixture;
        random_job(rand, &fixture);
        gint64 before = G_MAXINT64;
        for (int stage = 0; stage <= 3; stage++) {
            fixture.job.zero.stage = stage;
            gint64 bytes = ledger_fixture_compute(&fixture).persistent_bytes;
            g_assert_cmpint(bytes, <=, before);
            before = bytes;
        }
        ledger_fixture_clear(&fixture);
    }
}

/* All owners together store every element, and less than one more each and unit. */
static void
test_padding(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(4);
    for (int trial = 0; trial < 2000; trial++) {
        LedgerFixture fixture;
        random_job(rand, &fixture);
        const gint32 owners = fixture.job.world.shard_group;
        for (gint32 u = 0; u < fixture.units->n_units; u++) {
            gint64 elements = fixture.units->units[u].elements;
            gint64 shards = zp_wrapping_shard_elements(elements, owners) * owners;
            g_assert_cmpint(shards, >=, elements);
            g_assert_cmpint(shards, <, elements + owners);
        }
        ZpLedger ledger = ledger_fixture_compute(&fixture);
        const ZpLedgerRow *row = ledger_fixture_row(&ledger, ZP_CLASS_PARAMETER);
        gint64 whole = fixture.model->n_elements;
        gint64 stored = row->persistent_bytes / 2 * owners;
        g_assert_cmpint(stored, >=, whole);
        g_assert_cmpint(stored, <, whole + (gint64)owners * fixture.units->n_units);
        g_assert_cmpint(row->persistent_bytes - row->padding_bytes, ==, whole / owners * 2);
        ledger_fixture_clear(&fixture);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ledger/seven-billion", test_seven_billion);
    g_test_add_func("/ledger/optimizers", test_optimizers);
    g_test_add_func("/ledger/factored-and-frozen", test_factored_and_frozen);
    g_test_add_func("/ledger/verdict", test_verdict);
    g_test_add_func("/ledger/refusals", test_refusals);
    g_test_add_func("/ledger/stage-order", test_stage_order);
    g_test_add_func("/ledger/padding", test_padding);
    return g_test_run();
}
