#include "tests/check_cases/outcome.h"

#include "models/runtimes/deepspeed/lifecycle.h"

#include <string.h>

static char **
settings(const char *sets)
{
    char **list = g_strsplit(sets, ",", -1);
    for (char **one = list; *one != NULL; one++)
        g_strstrip(*one);
    return list;
}

/* Frees on the device clock come late: then the sum is an upper bound. */
static void
find_over(Outcome *o)
{
    const ZpTape *tape = zp_step_tape(o->step);
    gint32 over = o->summary.first_over_instr;
    if (over == ZP_TAPE_NONE)
        return;
    for (gint32 i = 0; i < over; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        if (buffer->space == ZP_TAPE_SPACE_DEVICE && buffer->class_id != ZP_CLASS_RUNTIME)
            o->over_live_bytes += instr->op == ZP_TAPE_ALLOC ? buffer->bytes : -buffer->bytes;
    }
    o->over_bytes = tape->buffers[tape->instrs[over].a].bytes;
}

Outcome *
outcome_new(const char *path, const char *sets)
{
    Outcome *o = g_new0(Outcome, 1);
    g_auto(GStrv) list = settings(sets);
    g_autoptr(GError) error = NULL;
    o->scenario = zp_scenario_load(path, (const char *const *)list, &error);
    o->step = zp_step_new();
    if (o->scenario == NULL ||
        !zp_step_simulate(o->step, &o->scenario->job, NULL, NULL, &o->summary, &error))
        o->refusal = g_strdup(error->message);
    else
        find_over(o);
    return o;
}

void
outcome_free(gpointer outcome)
{
    Outcome *o = outcome;
    g_free(o->refusal);
    g_clear_pointer(&o->step, zp_step_free);
    g_clear_pointer(&o->scenario, zp_scenario_free);
    g_free(o);
}

static gboolean
is_called(const char *word, const char *name)
{
    g_autofree char *spelt = g_strdup(word);
    return g_str_equal(g_strdelimit(spelt, " -", '_'), name);
}

int
outcome_class(const char *name)
{
    for (int i = 0; i < ZP_N_CLASSES; i++)
        if (is_called(zp_vocabulary_class_name((ZpClass)i), name))
            return i;
    return -1;
}

int
outcome_role(const char *name)
{
    for (int i = 0; i < ZP_N_ROLES; i++)
        if (is_called(zp_vocabulary_role_name((ZpRole)i), name))
            return i;
    return -1;
}

const char *
outcome_phase(const Outcome *outcome, gint32 instr)
{
    if (instr == ZP_TAPE_NONE)
        return "none";
    return zp_vocabulary_phase_name((ZpPhase)zp_step_tape(outcome->step)->instrs[instr].phase);
}

double
outcome_largest(const Outcome *outcome, int class_id)
{
    const ZpTape *tape = zp_step_tape(outcome->step);
    gint64 most = 0;
    for (gint32 i = 0; i < tape->n_buffers; i++)
        if (tape->buffers[i].class_id == class_id && tape->buffers[i].space == ZP_TAPE_SPACE_DEVICE)
            most = MAX(most, tape->buffers[i].bytes);
    return (double)most;
}

double
outcome_made(const Outcome *outcome, int role)
{
    const ZpTape *tape = zp_step_tape(outcome->step);
    gint64 sum = 0;
    for (gint32 i = tape->step_begin[tape->n_steps - 1]; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_ALLOC && tape->buffers[instr->a].role == role &&
            tape->buffers[instr->a].space == ZP_TAPE_SPACE_DEVICE)
            sum += tape->buffers[instr->a].bytes;
    }
    return (double)sum;
}

static gboolean
is_reduction(ZpKind kind)
{
    return kind == ZP_KIND_REDUCE_SCATTER || kind == ZP_KIND_ALL_REDUCE || kind == ZP_KIND_REDUCE ||
           kind == ZP_KIND_ALL_TO_ALL;
}

gboolean
outcome_traffic(const Outcome *outcome, const char *what, const char *kind, double *value)
{
    gboolean reductions = g_str_equal(kind, "reduction");
    gboolean known = reductions;
    for (int k = 0; k < ZP_N_KINDS; k++)
        known = known || is_called(zp_vocabulary_kind_name((ZpKind)k), kind);
    *value = 0;
    for (int i = 0; i < outcome->summary.n_traffic; i++) {
        const ZpStepTraffic *traffic = &outcome->summary.traffic[i];
        if (reductions ? !is_reduction(traffic->kind)
                       : !is_called(zp_vocabulary_kind_name(traffic->kind), kind))
            continue;
        if (what[0] == 'c')
            *value += (double)traffic->count;
        else
            *value += (double)(what[0] == 'b' ? traffic->bytes : traffic->wire_bytes);
    }
    return known;
}

gboolean
outcome_life(const Outcome *outcome, const char *life, const char *what, double *value)
{
    const ZpJob *job = &outcome->scenario->job;
    for (int l = 0; g_str_equal(job->runtime, "deepspeed") && l < ZP_DS_N_LIVES; l++) {
        if (!is_called(zp_ds_life_name((ZpDsLife)l), life))
            continue;
        g_autoptr(ZpTape) scratch = zp_tape_new(zp_vocabulary_get());
        ZpDsLifePeaks peaks;
        if (!zp_ds_lifecycle_peaks(job, (ZpDsLife)l, scratch, &peaks, NULL))
            return FALSE;
        const struct {
            const char *name;
            gint64 bytes;
        } figures[] = {
            {"device", peaks.device_peak_bytes},
            {"host", peaks.host_peak_bytes},
            {"device_after", peaks.device_after_bytes},
            {"host_after", peaks.host_after_bytes},
        };
        for (gsize f = 0; f < G_N_ELEMENTS(figures); f++)
            if (g_str_equal(figures[f].name, what)) {
                *value = (double)figures[f].bytes;
                return TRUE;
            }
    }
    return FALSE;
}
