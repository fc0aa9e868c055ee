/* Mutants must die: each broken rule is noticed by the check that the table of mutants names, in
 * the simulated step and in the ledger, under every runtime where the rule says anything. */
#include <string.h>

#include "models/families/catalog.h"
#include "models/ledger/checks.h"
#include "models/ledger/mutants.h"
#include "models/runtimes/registry.h"
#include "tests/unit/fixtures/job_fixture.h"

#define RUNTIMES 5
static const char *const runtimes[RUNTIMES] = {"ideal", "deepspeed", "fsdp1", "fsdp2", "ddp"};

/* Jobs as the others of the table, but for what is said. */
typedef struct {
    const char *name;
    const char *model; /* of the catalogue; NULL: layers of 1,000,003 parameters */
    const char *optimizer;
    gint64 accumulation;
    ZpCheckpointing checkpointing;
    gint32 ranks, shard_group;
    ZpDtype stored;
    gboolean no_master;
} Case;

static const Case cases[] = {
    {"padded layers", NULL, "adamw", 1, ZP_CHECKPOINTING_NONE, 8, 8, ZP_DTYPE_BF16, FALSE},
    {"GPT-2", "GPT-2", "adamw_foreach", 1, ZP_CHECKPOINTING_FULL, 8, 8, ZP_DTYPE_BF16, FALSE},
    {"three micro-batches", "SmolLM2-135M", "adamw", 3, ZP_CHECKPOINTING_SELECTIVE, 8, 8,
     ZP_DTYPE_BF16, FALSE},
    {"replicas", "Qwen2.5-0.5B", "adamw", 2, ZP_CHECKPOINTING_NONE, 16, 4, ZP_DTYPE_BF16, FALSE},
    {"8-bit states", "SmolLM2-135M", "adam8bit", 1, ZP_CHECKPOINTING_FULL, 8, 8, ZP_DTYPE_BF16,
     TRUE},
    {"fp32", "GPT-2", "adamw_forloop", 1, ZP_CHECKPOINTING_NONE, 3, 3, ZP_DTYPE_FP32, TRUE},
    {"sixty-four ranks", "BLOOM-560M", "adamw", 1, ZP_CHECKPOINTING_FULL, 64, 64, ZP_DTYPE_FP16,
     FALSE},
};

static ZpModel *
build_model(const Case *made)
{
    g_autoptr(GError) error = NULL;
    ZpArchitectureOptions options = {.compute = made->stored, .causal = TRUE};
    if (made->model == NULL) {
        ZpModel *model = zp_model_new("padded");
        zp_model_add_layer(model, "layer", 1000003, 6, 1000000, 100, 10);
        zp_model_finish(model);
        return model;
    }
    ZpModel *model = zp_catalog_build(made->model, &options, &error);
    g_assert_no_error(error);
    return model;
}

static ZpJob
make_job(const Case *made, const ZpModel *model, const char *runtime, int stage)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1, 1);
    ZpJob job = fixture.job;
    job_fixture_clear(&fixture);
    job.runtime = runtime;
    job.model = model;
    job.optimizer = zp_optimizer_find(made->optimizer);
    job.precision.parameter = job.precision.gradient = job.precision.gathered =
        job.precision.reduce = made->stored;
    job.precision.master = made->no_master ? ZP_DTYPE_NONE : ZP_DTYPE_FP32;
    job.precision.moments = job.optimizer->moments;
    job.training.accumulation = made->accumulation;
    job.training.checkpointing = made->checkpointing;
    job.training.sequence = 2048;
    job.world.ranks = made->ranks;
    job.world.shard_group = strcmp(runtime, "deepspeed") == 0 || strcmp(runtime, "ddp") == 0
                                ? made->ranks
                                : made->shard_group;
    job.zero.stage = stage;
    job.zero.prefetch_forward = job.zero.prefetch_backward = 1;
    job.zero.overlap = TRUE;
    job.device.flops_per_s = made->model != NULL ? 312e12 : 312e15; /* else links decide */
    job.device.flops_efficiency = 0.7;
    job.device.overhead_bytes = 1 << 30;
    return job;
}

/* Simulates the broken job; TRUE where the mutant had something to break. */
static gboolean
is_caught(ZpStep *step, const ZpJob *job, ZpMutant mutant, const char *where)
{
    ZpStepSummary summary;
    g_autoptr(GError) error = NULL;
    const ZpMutantName *label = zp_mutants_name(mutant);
    gboolean passed = zp_step_simulate(step, job, NULL, NULL, &summary, &error);
    if (!zp_step_is_broken(step)) {
        g_assert_no_error(error);
        return FALSE;
    }
    g_autofree char *prefix = g_strconcat(label->check, ":", NULL);
    if (passed || !g_str_has_prefix(error->message, prefix))
        g_error("%s, %s stage %d, %s: expected %s, got %s", where, job->runtime, job->zero.stage,
                label->name, label->check, passed ? "nothing" : error->message);
    g_assert_true(error->domain == ZP_CHECKS_ERROR);
    return TRUE;
}

/* By mutant: bits of the runtimes that were broken, bit 8 for the ledger. */
static guint seen[ZP_N_MUTANTS];
#define OF_LEDGER (1u << 8)

static void
break_everything(ZpStep *step, ZpJob *job, const char *where, int runtime)
{
    ZpStepSummary summary;
    g_autoptr(GError) error = NULL;
    if (!zp_step_simulate(step, job, NULL, NULL, &summary, &error))
        g_error("%s, %s stage %d: %s", where, job->runtime, job->zero.stage, error->message);
    for (int m = ZP_MUTANT_NONE + 1; m < ZP_N_MUTANTS; m++) {
        job->mutant = m;
        if (is_caught(step, job, (ZpMutant)m, where))
            seen[m] |= 1u << runtime;
        job->mutant = 0;
        job->ledger_mutant = m;
        if (is_caught(step, job, (ZpMutant)m, where))
            seen[m] |= OF_LEDGER;
        job->ledger_mutant = 0;
    }
}

static void
test_runtime(gconstpointer data)
{
    int runtime = GPOINTER_TO_INT(data);
    g_autoptr(ZpStep) step = zp_step_new();
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(ZpModel) model = build_model(&cases[c]);
        for (int stage = 0; stage <= 3; stage++) {
            ZpJob job = make_job(&cases[c], model, runtimes[runtime], stage);
            if (zp_registry_find(runtimes[runtime])->supports_stage(stage))
                break_everything(step, &job, cases[c].name, runtime);
        }
    }
}

/* No rule is without a mutant, and no mutant without a job that it breaks; those that hold under
 * several runtimes are broken there. */
static void
test_all_were_seen(void)
{
    for (int m = ZP_MUTANT_NONE + 1; m < ZP_N_MUTANTS; m++) {
        g_test_message("%s: %#x", zp_mutants_name((ZpMutant)m)->name, seen[m]);
        if (seen[m] == 0)
            g_error("no job has anything that %s breaks", zp_mutants_name((ZpMutant)m)->name);
    }
    for (gsize c = 0; c < zp_checks_count(); c++) {
        gboolean broken = FALSE;
        for (int m = ZP_MUTANT_NONE + 1; m < ZP_N_MUTANTS; m++)
            broken |= strcmp(zp_mutants_name((ZpMutant)m)->check, zp_checks_name(c)->name) == 0;
        if (!broken)
            g_error("no mutant breaks %s", zp_checks_name(c)->name);
    }
    g_assert_cmpint(ZP_N_MUTANTS - 1, >=, 27);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int r = 0; r < RUNTIMES; r++) {
        g_autofree char *path = g_strconcat("/checks/", runtimes[r], NULL);
        g_test_add_data_func(path, GINT_TO_POINTER(r), test_runtime);
    }
    g_test_add_func("/checks/seen", test_all_were_seen);
    return g_test_run();
}
