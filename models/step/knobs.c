#include "models/step/knobs.h"

#include "models/parallel/parallel.h"

/* Alters the job and says how, or returns NULL where the knob has nothing to change. */
typedef struct {
    const char *knob;
    char *(*vary)(ZpJob *job);
} Knob;

/* Of a job whose sequence and ranks are those of one rank. */
static gboolean
stage_is_legal(const ZpJob *job)
{
    const ZpParallel *parallel = &job->world.parallel;
    ZpJob whole = *job;
    whole.training.sequence *= zp_parallel_context(parallel);
    return zp_parallel_check(&whole,
                             (gint64)job->world.ranks * zp_parallel_tensor(parallel) *
                                 zp_parallel_pipeline(parallel),
                             NULL);
}

static char *
next_stage(ZpJob *job)
{
    if (job->zero.stage >= 3)
        return NULL;
    job->zero.stage++;
    if (!stage_is_legal(job))
        return NULL;
    return g_strdup_printf("%d (now %d)", job->zero.stage, job->zero.stage - 1);
}

static char *
prefetch(ZpJob *job)
{
    ZpZero *zero = &job->zero;
    if (zero->stage < 3)
        return NULL;
    gint32 now = MAX(zero->prefetch_forward, zero->prefetch_backward);
    zero->prefetch_forward = zero->prefetch_backward = now > 0 ? 0 : 1;
    return g_strdup_printf("%d (now %d)", zero->prefetch_forward, now);
}

static char *
smaller_units(ZpJob *job)
{
    ZpZero *zero = &job->zero;
    if (zero->stage < 3 || zero->wrap == ZP_WRAP_SUBLAYER)
        return NULL;
    if (zero->wrap == ZP_WRAP_BLOCK && zero->wrap_blocks > 1) {
        gint32 now = zero->wrap_blocks;
        zero->wrap_blocks /= 2;
        return g_strdup_printf("%d blocks a unit (now %d)", zero->wrap_blocks, now);
    }
    if (zero->wrap == ZP_WRAP_BLOCK) {
        zero->wrap = ZP_WRAP_SUBLAYER;
        return g_strdup("sublayer");
    }
    zero->wrap = ZP_WRAP_BLOCK;
    zero->wrap_blocks = 1;
    return g_strdup("block");
}

static char *
larger_units(ZpJob *job)
{
    ZpZero *zero = &job->zero;
    if (zero->stage < 3 || zero->wrap != ZP_WRAP_BLOCK || zero->wrap_blocks > job->model->n_blocks)
        return NULL;
    zero->wrap_blocks *= 2;
    return g_strdup_printf("%d blocks a unit (now %d)", zero->wrap_blocks, zero->wrap_blocks / 2);
}

static char *
own_outer(ZpJob *job)
{
    if (job->zero.outer == ZP_OUTER_OWN || job->zero.stage < 3)
        return NULL;
    job->zero.outer = ZP_OUTER_OWN;
    return g_strdup("own (now root)");
}

static char *
bucket(ZpJob *job)
{
    if (job->world.ranks == 1 || job->zero.bucket_elements < 2)
        return NULL;
    job->zero.bucket_elements /= 2;
    return g_strdup("half");
}

static char *
overlap(ZpJob *job)
{
    if (job->world.ranks == 1)
        return NULL;
    job->zero.overlap = !job->zero.overlap;
    return g_strdup(job->zero.overlap ? "on (now off)" : "off (now on)");
}

static char *
reshard(ZpJob *job)
{
    if (job->zero.stage < 3)
        return NULL;
    job->zero.reshard_after_forward = !job->zero.reshard_after_forward;
    return g_strdup(job->zero.reshard_after_forward ? "on (now off)" : "off (now on)");
}

static char *
checkpointing(ZpJob *job)
{
    gboolean none = job->training.checkpointing == ZP_CHECKPOINTING_NONE;
    job->training.checkpointing = none ? ZP_CHECKPOINTING_FULL : ZP_CHECKPOINTING_NONE;
    return g_strdup(none ? "full (now none)" : "none");
}

static char *
micro_batch(ZpJob *job)
{
    if (job->training.micro_batch < 2 || job->training.accumulation > G_MAXINT64 / 2)
        return NULL;
    job->training.micro_batch /= 2;
    job->training.accumulation *= 2;
    return g_strdup("half, accumulation double");
}

static const Knob knobs[] = {
    {"zero.stage", next_stage},
    {"zero.prefetch", prefetch},
    {"zero.wrap", smaller_units},
    {"zero.wrap_blocks", larger_units},
    {"zero.outer", own_outer},
    {"zero.bucket", bucket},
    {"zero.overlap", overlap},
    {"zero.reshard_after_forward", reshard},
    {"training.checkpointing", checkpointing},
    {"training.micro_batch", micro_batch},
};

static void
clear_row(gpointer data)
{
    ZpKnobsRow *row = data;
    g_free((char *)row->change);
}

GArray *
zp_knobs_compare(const ZpJob *job, const ZpStepSummary *base, const volatile gint *cancelled)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(ZpKnobsRow));
    g_array_set_clear_func(rows, clear_row);
    g_autoptr(ZpStep) step = zp_step_new();
    for (gsize k = 0; k < G_N_ELEMENTS(knobs); k++) {
        ZpJob varied = *job;
        g_autofree char *change = knobs[k].vary(&varied);
        ZpStepSummary summary;
        if (change == NULL || !zp_step_simulate(step, &varied, NULL, cancelled, &summary, NULL))
            continue;
        ZpKnobsRow row = {
            .knob = knobs[k].knob,
            .change = g_steal_pointer(&change),
            .peak_delta_bytes = summary.peak_bytes - base->peak_bytes,
            .step_delta_ps = summary.step_ps - base->step_ps,
            .verdict = summary.verdict,
        };
        g_array_append_val(rows, row);
    }
    return rows;
}
