/* Mutants must die: each broken accounting rule is noticed by the check named after it, in the
 * simulation and in the ledger. */
#include <string.h>

#include "models/ledger/checks.h"
#include "tests/unit/fixtures/job_fixture.h"

static const struct {
    ZpMutant mutant;
    int stage;
    const char *check;
} mutants[] = {
    {ZP_MUTANT_OPTIMIZER_REPLICATED_AT_STAGE_1, 1, "optimizer-state-is-divided"},
    {ZP_MUTANT_PARAMETERS_SHARDED_AT_STAGE_2, 2, "parameters-are-whole-below-stage-3"},
    {ZP_MUTANT_MASTER_OMITTED, 3, "master-weights-are-counted"},
    {ZP_MUTANT_MOMENTS_COUNTED_TWICE, 3, "moments-are-counted-once"},
    {ZP_MUTANT_ACTIVATIONS_DIVIDED_BY_DATA_PARALLELISM, 3, "activations-are-per-rank"},
    {ZP_MUTANT_GATHER_PEAK_ERASED, 3, "gathered-unit-is-counted"},
    {ZP_MUTANT_PREFETCHED_UNIT_FORGOTTEN, 3, "prefetched-unit-is-counted"},
    {ZP_MUTANT_PADDING_DROPPED, 3, "padding-is-kept"},
};

/* 1,000,003 parameters a layer: 8 ranks cannot share them without padding. */
static void
assert_caught(gsize index, gboolean in_ledger)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1000003, 4);
    fixture.job.optimizer = &fixture.optimizer;
    fixture.job.zero.stage = mutants[index].stage;
    fixture.job.zero.prefetch_forward = fixture.job.zero.prefetch_backward = 1;
    g_autoptr(ZpStep) step = zp_step_new();
    job_fixture_run(&fixture, step); /* the unbroken rules hold */
    if (in_ledger)
        fixture.job.ledger_mutant = mutants[index].mutant;
    else
        fixture.job.mutant = mutants[index].mutant;
    ZpStepSummary summary;
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_step_simulate(step, &fixture.job, NULL, NULL, &summary, &error));
    g_assert_true(error->domain == ZP_CHECKS_ERROR);
    g_autofree char *prefix = g_strconcat(mutants[index].check, ":", NULL);
    if (!g_str_has_prefix(error->message, prefix))
        g_error("mutant %d: expected %s, got '%s'", (int)mutants[index].mutant,
                mutants[index].check, error->message);
    job_fixture_clear(&fixture);
}

static void
test_in_simulation(gconstpointer index)
{
    assert_caught(GPOINTER_TO_SIZE(index), FALSE);
}

static void
test_in_ledger(gconstpointer index)
{
    assert_caught(GPOINTER_TO_SIZE(index), TRUE);
}

static void
test_every_mutant_has_a_case(void)
{
    g_assert_cmpuint(G_N_ELEMENTS(mutants), ==, ZP_N_MUTANTS - 1);
    g_assert_cmpuint(zp_checks_count(), ==, G_N_ELEMENTS(mutants));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/checks/every-mutant-has-a-case", test_every_mutant_has_a_case);
    for (gsize i = 0; i < G_N_ELEMENTS(mutants); i++) {
        g_autofree char *simulated = g_strdup_printf("/checks/simulation/%s", mutants[i].check);
        g_autofree char *ledger = g_strdup_printf("/checks/ledger/%s", mutants[i].check);
        g_test_add_data_func(simulated, GSIZE_TO_POINTER(i), test_in_simulation);
        g_test_add_data_func(ledger, GSIZE_TO_POINTER(i), test_in_ledger);
    }
    return g_test_run();
}
