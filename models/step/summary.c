#include "models/step/summary_internal.h"

#include <math.h>
#include <string.h>

#include "models/parallel/parallel.h"
#include "models/prices/bands.h"
#include "models/prices/calibration.h"

/* Instructions of the last step. */
static gint32
last_step_begin(const ZpTape *tape)
{
    return tape->n_steps > 0 ? tape->step_begin[tape->n_steps - 1] : 0;
}

static ZpStepTraffic *
traffic_entry(ZpStepSummary *summary, ZpKind kind, ZpPhase phase)
{
    for (int i = 0; i < summary->n_traffic; i++) {
        if (summary->traffic[i].kind == kind && summary->traffic[i].phase == phase)
            return &summary->traffic[i];
    }
    g_assert(summary->n_traffic < ZP_STEP_MAX_TRAFFIC);
    ZpStepTraffic *entry = &summary->traffic[summary->n_traffic++];
    *entry = (ZpStepTraffic){.kind = kind, .phase = phase};
    return entry;
}

static void
count_traffic(const ZpTape *tape, ZpStepSummary *summary)
{
    for (gint32 i = last_step_begin(tape); i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &tape->works[instr->a];
        if (work->category != ZP_TAPE_COMMUNICATION && work->category != ZP_TAPE_COPY)
            continue;
        ZpStepTraffic *entry = traffic_entry(summary, (ZpKind)work->kind, (ZpPhase)instr->phase);
        entry->count++;
        entry->bytes += work->bytes;
        entry->wire_bytes += work->wire_bytes;
        entry->busy_ps = zp_time_add(entry->busy_ps, zp_time_add(work->fixed_ps, work->solo_ps));
    }
}

/* Trained elements of each layer, tied ones where they are used again too. */
static gint64 *
trained_elements(const ZpModel *model)
{
    gint64 *trained = g_new0(gint64, model->layers->len + 1);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->trainable && parameter->layer != ZP_MODEL_NONE)
            trained[parameter->layer] += parameter->elements;
    }
    return trained;
}

/* Forward, the gradient of what goes in wherever something up to there is trained, and that of the
 * weights that are: three forwards where all are.  Recomputation does not count. */
static double
model_flops(const ZpJob *job)
{
    double tokens = (double)job->training.micro_batch * (double)job->training.sequence;
    double pairs = tokens * (double)job->training.sequence;
    gboolean all = job->model->n_trainable_elements == job->model->n_elements;
    g_autofree gint64 *trained = all ? NULL : trained_elements(job->model);
    gboolean reached = all;
    double sum = 0.0;
    for (gint32 l = 0; l < (gint32)job->model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(job->model, l);
        double of_weights = (double)layer->flops_per_token * tokens;
        double of_pairs = (double)layer->flops_per_pair * pairs;
        gint64 used = layer->elements + layer->tied_elements;
        double share = 1.0;
        if (!all)
            share = used > 0 ? MIN(1.0, (double)trained[l] / (double)used) : 0.0;
        reached = reached || share > 0.0;
        sum +=
            of_weights * (1.0 + (reached ? 1.0 : 0.0) + share) + of_pairs * (reached ? 3.0 : 1.0);
    }
    return sum * (double)job->training.accumulation;
}

static void
fill_memory(const ZpPlayResult *result, ZpStepSummary *summary)
{
    for (gint32 r = 1; r < result->n_ranks; r++) {
        if (result->ranks[r].memory[ZP_TAPE_SPACE_DEVICE].peak_bytes >
            result->ranks[summary->peak_rank].memory[ZP_TAPE_SPACE_DEVICE].peak_bytes)
            summary->peak_rank = r;
    }
    const ZpMemory *memory = &result->ranks[summary->peak_rank].memory[ZP_TAPE_SPACE_DEVICE];
    summary->peak_bytes = memory->peak_bytes;
    summary->peak_time = memory->peak_time;
    summary->peak_instr = memory->peak_instr;
    summary->persistent_bytes = memory->total_bytes;
    summary->first_over_instr = memory->first_over_instr;
    for (int c = 0; c < ZP_N_CLASSES; c++) {
        summary->peak_by_class[c] = memory->peak_bytes_by_class[c];
        summary->persistent_by_class[c] = memory->bytes[c];
    }
    summary->host_peak_bytes =
        result->ranks[summary->peak_rank].memory[ZP_TAPE_SPACE_HOST].peak_bytes;
}

static void
fill_band(const ZpJob *job, ZpStepSummary *summary)
{
    const ZpCalibration *constants = job->device.calibration;
    summary->grade = constants != NULL ? constants->grade : ZP_GRADE_ASSUMED;
    ZpBand band = zp_bands_step(summary->grade, strcmp(job->runtime, "ideal") == 0);
    double step_ps = (double)summary->step_ps;
    summary->step_low_ps = (ZpTime)(step_ps * (1.0 - band.low));
    summary->step_high_ps = (ZpTime)MIN(step_ps * (1.0 + band.high), 9.2e18);
}

/* Tensors are counted; what the allocator's segments hold beside them, and what lives outside, are
 * as far off as such figures were, each on its own. */
static void
fill_needed(const ZpJob *job, gint64 needed_bytes, gboolean reserves, ZpStepSummary *summary)
{
    double outside = job->device.n_overheads > 0 ? (double)job->device.overhead_bytes : 0.0;
    double segments = reserves ? (double)(needed_bytes - job->device.overhead_bytes) : 0.0;
    const ZpBandPart parts[] = {
        {(double)needed_bytes - outside - segments, 0, {0.0, 0.0}},
        {outside, 1, zp_bands_overhead()},
        {segments, 2, zp_bands_reserved()},
    };
    ZpBand band = zp_band_of_sum(parts, G_N_ELEMENTS(parts));
    summary->needed_bytes = needed_bytes;
    summary->needed_low_bytes = (gint64)((double)needed_bytes * (1.0 - band.low));
    summary->needed_high_bytes = (gint64)((double)needed_bytes * (1.0 + band.high));
}

static void
fill_verdict(const ZpJob *job, const ZpAllocatorResult *allocator, ZpStepSummary *summary)
{
    gint64 needed = summary->peak_bytes;
    if (allocator != NULL) {
        summary->has_allocator = TRUE;
        summary->allocator = *allocator;
        summary->reserved_bytes = allocator->peak.reserved_bytes + job->device.overhead_bytes;
        needed = summary->reserved_bytes;
    }
    summary->capacity_bytes = job->device.capacity_bytes;
    summary->contingency_bytes = (gint64)ceil((double)needed * job->device.contingency);
    summary->headroom_bytes = summary->capacity_bytes - needed - summary->contingency_bytes;
    if (summary->capacity_bytes == 0)
        summary->headroom_bytes = 0;
    else if (allocator != NULL)
        summary->first_over_instr = allocator->out_of_memory_instr;
    summary->fits = summary->headroom_bytes >= 0;
    fill_needed(job, needed, allocator != NULL, summary);
    summary->verdict = zp_verdict_of(&(ZpVerdictQuestion){
        .needed_bytes = needed,
        .low_bytes = summary->needed_low_bytes,
        .high_bytes = summary->needed_high_bytes,
        .capacity_bytes = summary->capacity_bytes,
        .contingency = job->device.contingency,
        .flushed = allocator != NULL && allocator->n_flushes > 0,
    });
}

static void
fill_times(const ZpJob *job, const ZpPlayResult *result, ZpStepSummary *summary)
{
    gint32 last = result->n_steps - 1;
    ZpTime before = last > 0 ? result->step_end[last - 1] : 0;
    summary->step_ps = result->step_end[last] - before;
    summary->exposed_ps =
        result->step_exposed[last] - (last > 0 ? result->step_exposed[last - 1] : 0);
    const ZpPlayRank *rank = &result->ranks[0];
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
        summary->busy_ps[c] = rank->busy[c];
    summary->host_blocked_ps = rank->host_blocked;
    summary->fastest_rank_ps = summary->slowest_rank_ps = rank->end;
    for (gint32 r = 1; r < result->n_ranks; r++) {
        summary->fastest_rank_ps = MIN(summary->fastest_rank_ps, result->ranks[r].end);
        summary->slowest_rank_ps = MAX(summary->slowest_rank_ps, result->ranks[r].end);
    }
    summary->tokens_per_step = job->training.micro_batch * job->training.sequence *
                               job->training.accumulation * job->world.ranks;
    const ZpParallel *parallel = &job->world.parallel;
    gint64 gpus =
        (gint64)job->world.ranks * zp_parallel_tensor(parallel) * zp_parallel_pipeline(parallel);
    summary->tokens_per_rank = summary->tokens_per_step / gpus;
    summary->model_flops = model_flops(job);
    double seconds = zp_time_to_seconds(summary->step_ps);
    if (seconds > 0.0 && job->device.flops_per_s > 0.0)
        summary->mfu = summary->model_flops / seconds / job->device.flops_per_s;
}

void
zp_step_summary_fill(const ZpJob *job, const ZpTape *tape, const ZpPlayResult *result,
                     const ZpAllocatorResult *allocator, ZpStepSummary *summary)
{
    *summary = (ZpStepSummary){.peak_instr = ZP_TAPE_NONE, .first_over_instr = ZP_TAPE_NONE};
    fill_times(job, result, summary);
    fill_band(job, summary);
    fill_memory(result, summary);
    fill_verdict(job, allocator, summary);
    count_traffic(tape, summary);
    summary->n_events = result->n_events;
}
