/* The order of a step's micro-batches: one after the other, or as the first stage of a pipeline
 * runs them (one forward, one backward: arXiv 2104.04473, figure 4).
 *
 * The other stages are not simulated: the time at which they hand over a gradient follows from how
 * long they take.  All stages between first and last are alike. */
#include "models/parallel/parallel.h"
#include "models/runtimes/ideal/ideal_internal.h"
#include "models/runtimes/shared/cuts.h"

typedef struct {
    ZpTime forward_ps, backward_ps;
} Stage;

static void
choose(Ideal *ideal, gint64 micro_batch)
{
    gint32 n_layers = ideal->units->n_layers;
    ideal->kept = ideal->slots + n_layers * (micro_batch % ideal->n_slots);
    ideal->micro_batch = (gint16)MIN(micro_batch, G_MAXINT16);
    ideal->last_micro_batch = micro_batch == ideal->job->training.accumulation - 1;
}

static void
forward(Ideal *ideal, gint64 micro_batch)
{
    choose(ideal, micro_batch);
    ideal_forward(ideal);
}

static void
backward(Ideal *ideal, gint64 micro_batch)
{
    choose(ideal, micro_batch);
    ideal_backward(ideal);
}

static Stage
time_stage(const Ideal *ideal, const ZpModel *model, gboolean blocks_alone)
{
    ZpJob job = *ideal->job;
    job.model = model; /* a layer is priced as one of its model */
    Stage stage = {0, 0};
    for (guint l = 0; l < model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, (gint32)l);
        ZpTime forward_ps = 0, backward_ps = 0;
        if (blocks_alone && layer->block == ZP_MODEL_NONE)
            continue;
        ideal_layer_durations(ideal, &job, layer, &forward_ps, &backward_ps);
        stage.forward_ps += forward_ps;
        stage.backward_ps += backward_ps;
    }
    return stage;
}

/* What the first stage waits for gradients: before its first backward, then while forwards go on,
 * then when there are none left. */
typedef struct {
    ZpTime first_ps, steady_ps, last_ps;
} Waits;

static Waits
find_waits(const Ideal *ideal, gint64 warmup)
{
    const ZpJob *job = ideal->job;
    gint64 pipeline = zp_parallel_pipeline(&job->world.parallel);
    Stage own = time_stage(ideal, job->model, FALSE);
    Stage middle = time_stage(ideal, job->model, TRUE);
    Stage last = time_stage(ideal, job->last_stage, FALSE);
    ZpTime hop = zp_cuts_send_duration(job);
    ZpTime others = last.forward_ps + last.backward_ps +
                    (pipeline - 2) * (middle.forward_ps + middle.backward_ps) +
                    2 * (pipeline - 1) * hop;
    ZpTime period = MAX(own.forward_ps + own.backward_ps, last.forward_ps + last.backward_ps);
    /* Forwards behind the first one fill a part of the time; the sends around it are on the tape.
     */
    gint64 more = MIN(warmup, job->training.accumulation - 1);
    ZpTime first = others - 2 * hop - more * (own.forward_ps + hop);
    return (Waits){
        .first_ps = MAX(0, first),
        .steady_ps = period - own.forward_ps - own.backward_ps,
        .last_ps = MAX(0, period + hop - own.backward_ps),
    };
}

static void
send(Ideal *ideal, ZpPhase phase, ZpTime waiting_ps)
{
    zp_tape_tag(ideal->tape, (guint8)phase, ideal->micro_batch, ZP_TAPE_NONE);
    zp_cuts_wait(ideal->tape, IDEAL_COMPUTE, waiting_ps);
    zp_cuts_send(ideal->job, ideal->tape, IDEAL_COMPUTE);
}

static void
run_pipeline(Ideal *ideal, gint32 pipeline)
{
    gint64 n = ideal->job->training.accumulation, warmup = MIN(pipeline - 1, n);
    Waits waits = find_waits(ideal, warmup);
    for (gint64 f = 0, b = 0; b < n;) {
        if (f < n) {
            forward(ideal, f++);
            send(ideal, ZP_PHASE_FORWARD, 0);
        }
        if (f <= warmup && f < n)
            continue;
        choose(ideal, b);
        send(ideal, ZP_PHASE_BACKWARD,
             b == 0               ? waits.first_ps
             : b > n - warmup - 1 ? waits.last_ps
                                  : waits.steady_ps);
        backward(ideal, b++);
    }
}

void
ideal_micro_batches(Ideal *ideal)
{
    gint32 pipeline = zp_parallel_pipeline(&ideal->job->world.parallel);
    if (pipeline > 1) {
        run_pipeline(ideal, pipeline);
        return;
    }
    for (gint64 m = 0; m < ideal->job->training.accumulation; m++) {
        forward(ideal, m);
        backward(ideal, m);
    }
}
