#include "models/step/step.h"
#include "models/runtimes/registry.h"

#include <string.h>

#include "models/ledger/checks.h"
#include "models/ledger/mutants.h"
#include "models/prices/layer.h"
#include "models/step/allocator_internal.h"
#include "models/step/summary_internal.h"
#include "sim/players/player.h"

G_DEFINE_QUARK(zp - step - error - quark, zp_step_error)

/* A tape longer than this is refused: it would take minutes and gigabytes to play. */
#define MAX_TAPE_INSTRUCTIONS G_GINT64_CONSTANT(40000000)
/* The most instructions that a layer takes in one pass of one micro-batch. */
#define INSTRUCTIONS_PER_LAYER 28

struct _ZpStep {
    ZpTape *tape;
    ZpUnits *units;
    ZpLedger ledger;
    ZpPlayResult result;
    ZpPlayScratch *scratch;
    GArray *speed_ppm;
    gboolean is_broken; /* by a mutant */
    /* what `units` was made for */
    gint model_serial;
    ZpWrap wrap;
    ZpOuter outer;
    gint32 wrap_blocks;
    gint64 wrap_elements;
};

ZpStep *
zp_step_new(void)
{
    ZpStep *step = g_new0(ZpStep, 1);
    step->tape = zp_tape_new(zp_vocabulary_get());
    step->scratch = zp_play_scratch_new();
    step->speed_ppm = g_array_new(FALSE, FALSE, sizeof(gint32));
    return step;
}

void
zp_step_free(ZpStep *step)
{
    if (step == NULL)
        return;
    zp_tape_free(step->tape);
    zp_wrapping_free(step->units);
    zp_play_result_clear(&step->result);
    zp_play_scratch_free(step->scratch);
    g_array_unref(step->speed_ppm);
    g_free(step);
}

static void
wrap_units(ZpStep *step, const ZpJob *job)
{
    const ZpZero *zero = &job->zero;
    if (step->units && step->model_serial == job->model->serial && step->wrap == zero->wrap &&
        step->outer == zero->outer && step->wrap_blocks == zero->wrap_blocks &&
        step->wrap_elements == zero->wrap_elements)
        return;
    zp_wrapping_free(step->units);
    step->units = zp_wrapping_apply(job->model, zero);
    step->model_serial = job->model->serial;
    step->wrap = zero->wrap;
    step->outer = zero->outer;
    step->wrap_blocks = zero->wrap_blocks;
    step->wrap_elements = zero->wrap_elements;
}

static gboolean
check_size(const ZpJob *job, GError **error)
{
    gint64 layers = job->model->layers->len;
    gint64 limit =
        MAX_TAPE_INSTRUCTIONS / (layers * INSTRUCTIONS_PER_LAYER) / MAX(1, job->simulation.steps);
    if (job->training.accumulation <= limit)
        return TRUE;
    g_set_error(error, ZP_STEP_ERROR, ZP_STEP_ERROR_RANGE,
                "%" G_GINT64_FORMAT " layers x %" G_GINT64_FORMAT
                " micro-batches x %d steps make a "
                "tape of more than %" G_GINT64_FORMAT " instructions; simulate fewer micro-batches "
                "or steps",
                layers, job->training.accumulation, job->simulation.steps, MAX_TAPE_INSTRUCTIONS);
    return FALSE;
}

/* Everything but one slow rank runs at nominal speed. */
static const gint32 *
rank_speeds(ZpStep *step, const ZpSimulation *simulation)
{
    if (simulation->slow_rank == ZP_MODEL_NONE || simulation->simulated_ranks == 1)
        return NULL;
    gint32 n = simulation->simulated_ranks;
    g_array_set_size(step->speed_ppm, (guint)n);
    for (gint32 r = 0; r < n; r++)
        g_array_index(step->speed_ppm, gint32, r) =
            r == simulation->slow_rank ? simulation->slow_ppm : 1000000;
    return &g_array_index(step->speed_ppm, gint32, 0);
}

static ZpPlayConfig
play_config(ZpStep *step, const ZpJob *job)
{
    ZpPlayConfig config = {
        .n_ranks = job->simulation.simulated_ranks,
        .speed_ppm = rank_speeds(step, &job->simulation),
        .jitter_ppm = job->simulation.jitter_ppm,
        .seed = job->simulation.seed,
        .launch_overhead_ps = job->host.launch_overhead_ps,
        .instr_overhead_ps = job->host.instr_overhead_ps,
        .run_ahead = job->host.run_ahead,
        .capacity_bytes = {[ZP_TAPE_SPACE_DEVICE] = job->device.capacity_bytes},
    };
    zp_cost_interference(job, step->tape, config.interference_ppm);
    return config;
}

static gboolean
fail_check(GError **error, const char *name, const char *what)
{
    g_set_error(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CHECK, "%s: %s", name, what);
    return FALSE;
}

/* At the end of the step what lives is what the ledger says, class by class, on every rank. */
static gboolean
agrees_with_ledger(const ZpStep *step, GError **error)
{
    gint64 expected[ZP_N_CLASSES] = {0};
    for (int r = 0; r < step->ledger.n_rows; r++)
        expected[step->ledger.rows[r].class_id] += step->ledger.rows[r].persistent_bytes;
    expected[ZP_CLASS_RUNTIME] = step->ledger.overhead_bytes;
    for (gint32 r = 0; r < step->result.n_ranks; r++) {
        const ZpMemory *memory = &step->result.ranks[r].memory[ZP_TAPE_SPACE_DEVICE];
        for (int c = 0; c < ZP_N_CLASSES; c++) {
            if (memory->bytes[c] == expected[c])
                continue;
            g_autofree char *what = g_strdup_printf(
                "%s of rank %d: %" G_GINT64_FORMAT " bytes simulated, %" G_GINT64_FORMAT
                " in the ledger",
                zp_vocabulary_class_name((ZpClass)c), r, memory->bytes[c], expected[c]);
            return fail_check(error, "step-boundary-equals-ledger", what);
        }
    }
    return TRUE;
}

static gboolean
check_accounting(const ZpStep *step, const ZpJob *job, double mfu, GError **error)
{
    ZpChecksStep checked = {.job = job,
                            .units = step->units,
                            .ledger = &step->ledger,
                            .tape = step->tape,
                            .play = &step->result,
                            .mfu = mfu};
    if (!zp_checks_run(&checked, error))
        return FALSE;
    /* The ledger states the ideal rules; frameworks have others. */
    return strcmp(job->runtime, "ideal") != 0 || agrees_with_ledger(step, error);
}

gboolean
zp_step_simulate(ZpStep *step, const ZpJob *job, const ZpObserver *observer,
                 const volatile gint *cancelled, ZpStepSummary *summary, GError **error)
{
    const ZpRuntime *runtime = zp_registry_find(job->runtime);
    g_assert(runtime != NULL);
    if (!check_size(job, error))
        return FALSE;
    wrap_units(step, job);
    zp_ledger_compute(job, step->units, &step->ledger);
    if (step->ledger.total_bytes == G_MAXINT64) {
        g_set_error_literal(error, ZP_STEP_ERROR, ZP_STEP_ERROR_RANGE,
                            "the bytes of a rank do not fit 64-bit integers");
        return FALSE;
    }
    step->is_broken =
        job->ledger_mutant != 0 &&
        zp_mutants_break_ledger((ZpMutant)job->ledger_mutant, job, step->units, &step->ledger);
    zp_tape_clear(step->tape);
    if (!runtime->compile(job, step->units, step->tape, error))
        return FALSE;
    /* Frameworks keep gathered parameters and gradients across steps; the ideal runtime never. */
    gboolean ideal = strcmp(job->runtime, "ideal") == 0;
    if (!zp_tape_check(step->tape, ideal, ZP_CLASSES_PERSISTENT, error))
        return FALSE;
    if (job->mutant != 0 &&
        zp_mutants_break_tape((ZpMutant)job->mutant, job, step->units, step->tape))
        step->is_broken = TRUE;
    ZpPlayConfig config = play_config(step, job);
    g_autoptr(ZpStepAllocator) allocator = zp_step_allocator_new(job, step->tape, observer);
    config.observer = allocator != NULL ? zp_step_allocator_observer(allocator) : observer;
    config.cancelled = cancelled;
    config.scratch = step->scratch;
    if (!zp_player_play(step->tape, &config, &step->result, error))
        return FALSE;
    if (step->result.cancelled) {
        g_set_error_literal(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CANCELLED, "interrupted");
        return FALSE;
    }
    zp_step_summary_fill(job, step->tape, &step->result,
                         allocator != NULL ? zp_step_allocator_result(allocator) : NULL, summary);
    if (job->mutant != 0 &&
        zp_mutants_break_play((ZpMutant)job->mutant, job, step->tape, &step->result, &summary->mfu))
        step->is_broken = TRUE;
    return check_accounting(step, job, summary->mfu, error);
}

gboolean
zp_step_is_broken(const ZpStep *step)
{
    return step->is_broken;
}

const ZpTape *
zp_step_tape(const ZpStep *step)
{
    return step->tape;
}

const ZpUnits *
zp_step_units(const ZpStep *step)
{
    return step->units;
}

const ZpLedger *
zp_step_ledger(const ZpStep *step)
{
    return &step->ledger;
}

const ZpPlayResult *
zp_step_result(const ZpStep *step)
{
    return &step->result;
}

GArray *
zp_step_live_set(const ZpStep *step, const ZpJob *job)
{
    ZpPlayConfig config = play_config((ZpStep *)step, job);
    return zp_play_live_set(step->tape, &config, ZP_TAPE_SPACE_DEVICE);
}

void
zp_step_replay(const ZpStep *step, const ZpJob *job, ZpPlayResult *result)
{
    ZpPlayConfig config = play_config((ZpStep *)step, job);
    config.keep_times = TRUE;
    gboolean played = zp_player_play(step->tape, &config, result, NULL);
    g_assert(played); /* it did before */
}
