/* FLOPs and time. */
#include "models/ledger/checks_internal.h"

#define ROUNDING 1e-6 /* of sums of doubles, and of times cut to picoseconds */

static gboolean
is_about(double measured, double expected)
{
    return measured >= expected * (1.0 - ROUNDING) && measured <= expected * (1.0 + ROUNDING);
}

static double
forward_flops(const ChecksFacts *facts, const ZpModelLayer *layer)
{
    double tokens =
        (double)facts->job->training.micro_batch * (double)facts->job->training.sequence;
    return tokens * ((double)layer->flops_per_token +
                     (double)layer->flops_per_pair * (double)facts->job->training.sequence);
}

static double
micro_batches(const ChecksFacts *facts)
{
    return (double)MAX(1, facts->job->training.accumulation);
}

static gboolean
forward_is_conserved(const ChecksFacts *facts)
{
    double sum = 0.0;
    for (gint32 l = 0; l < (gint32)facts->job->model->layers->len; l++)
        sum += forward_flops(facts, zp_model_layer(facts->job->model, l));
    return is_about(facts->scan->flops[ZP_KIND_FORWARD], sum * micro_batches(facts));
}

/* The share of each layer's weights that is trained, as far as products have them: no biases and
 * norms.  0 where it has no weight at all, as where all of it is frozen. */
static double *
trained_shares(const ChecksFacts *facts)
{
    const ZpModel *model = facts->job->model;
    double *trained = g_new0(double, model->layers->len + 1);
    g_autofree double *all = g_new0(double, model->layers->len + 1);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        gboolean matrix = parameter->n_dims != 1 || parameter->module == ZP_MODEL_NONE;
        if (!matrix || parameter->layer < 0)
            continue;
        all[parameter->layer] += (double)parameter->elements;
        trained[parameter->layer] += parameter->trainable ? (double)parameter->elements : 0.0;
    }
    for (guint l = 0; l < model->layers->len; l++)
        trained[l] = all[l] > 0.0 ? trained[l] / all[l] : 0.0;
    return trained;
}

/* The least that a backward computes: gradients of weights that are trained, and of the inputs of
 * every layer behind one that is. */
static double
least_backward(const ChecksFacts *facts)
{
    const ZpModel *model = facts->job->model;
    gboolean frozen = facts->trainable < facts->elements, reached = FALSE;
    g_autofree double *trained = trained_shares(facts);
    double sum = 0.0;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        double share = layer->elements + layer->tied_elements > 0 ? 1.0 : 0.0;
        if (frozen)
            share = trained[l];
        sum += forward_flops(facts, layer) * ((reached ? 1.0 : 0.0) + share);
        reached = reached || share > 0.0;
    }
    return sum;
}

static gboolean
backward_is_run(const ChecksFacts *facts)
{
    double least = least_backward(facts) * micro_batches(facts);
    return facts->scan->flops[ZP_KIND_BACKWARD] >= least * (1.0 - ROUNDING);
}

/* Twice a forward, and a forward more where the loss makes its logits again; gradients of frozen
 * matrices are not made, and of the layers in front of the first that is trained none at all. */
static gboolean
backward_is_conserved(const ChecksFacts *facts)
{
    gboolean frozen = facts->trainable < facts->elements;
    g_autofree double *trained = trained_shares(facts);
    const ZpTraining *training = &facts->job->training;
    double tokens = (double)training->micro_batch * (double)training->sequence, sum = 0.0;
    for (gint32 l = 0; l < (gint32)facts->job->model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(facts->job->model, l);
        sum += forward_flops(facts, layer) * (layer->runs_again ? 3.0 : 2.0);
        if (frozen && layer->kind != ZP_LAYER_EMBEDDING &&
            layer->elements + layer->tied_elements > 0)
            sum -= (1.0 - trained[l]) * (double)layer->flops_per_token * tokens;
    }
    sum *= micro_batches(facts);
    double measured = facts->scan->flops[ZP_KIND_BACKWARD];
    return frozen ? measured <= sum * (1.0 + ROUNDING) : is_about(measured, sum);
}

/* Blocks under checkpointing run again before their backward. */
static gboolean
recomputation_is_run(const ChecksFacts *facts)
{
    const ZpTraining *training = &facts->job->training;
    double tokens = (double)training->micro_batch * (double)training->sequence, sum = 0.0;
    for (gint32 l = 0; l < (gint32)facts->job->model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(facts->job->model, l);
        if (layer->block == ZP_MODEL_NONE || training->checkpointing == ZP_CHECKPOINTING_NONE)
            continue;
        sum +=
            training->checkpointing == ZP_CHECKPOINTING_FULL
                ? forward_flops(facts, layer)
                : tokens * ((double)layer->selective_flops_per_token +
                            (double)layer->selective_flops_per_pair * (double)training->sequence);
    }
    double measured = facts->scan->flops[ZP_KIND_RECOMPUTE];
    return facts->trainable < facts->elements || is_about(measured, sum * micro_batches(facts));
}

gboolean
checks_are_nominal(const ZpJob *job)
{
    return job->simulation.jitter_ppm == 0 && job->simulation.slow_rank == ZP_MODEL_NONE;
}

static gboolean
kernels_are_possible(const ChecksFacts *facts)
{
    static const ZpKind kinds[] = {ZP_KIND_FORWARD, ZP_KIND_BACKWARD, ZP_KIND_RECOMPUTE};
    double flops = 0.0, seconds = 0.0;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        flops += facts->scan->flops[kinds[i]];
        seconds += zp_time_to_seconds(facts->scan->busy_ps[kinds[i]]);
    }
    return flops <= facts->job->device.flops_per_s * seconds * (1.0 + ROUNDING);
}

static gboolean
mfu_is_possible(const ChecksFacts *facts)
{
    /* Jitter makes kernels faster than they are priced, by a few deviations at most. */
    double jitter = 8.0 * facts->job->simulation.jitter_ppm / 1e6;
    return facts->step->mfu <= 1.0 + ROUNDING + jitter;
}

/* Moments are read and written at least, at the data sheet's bandwidth at most. */
static gboolean
optimizer_moves_its_state(const ChecksFacts *facts)
{
    /* Of stated formats wider than the optimizer's own the traffic is not known. */
    int usual = checks_bits(facts->job->optimizer->moments);
    double low = 0.0;
    for (int i = CHECKS_MOMENTUM; i <= CHECKS_VARIANCE && usual > 0; i++) {
        int bits = MAX(1, checks_bits(facts->stored[i].dtype));
        low += (double)facts->stored[i].bounds.low * MIN(bits, usual) / bits;
    }
    if (checks_offloads(facts))
        return TRUE;
    double seconds = zp_time_to_seconds(facts->scan->busy_ps[ZP_KIND_OPTIMIZER]);
    return 2.0 * low * (1.0 - ROUNDING) <= facts->job->device.memory_bytes_per_s * seconds + 1.0;
}

/* Seconds that a message needs at least: what an algorithm cannot go below, at nominal rates. */
static double
least_seconds(const ChecksFacts *facts, const ZpTapeWork *work)
{
    const ZpNetwork *network = &facts->job->network;
    const ZpTapeGroup *group = &facts->step->tape->groups[work->group];
    double message = (double)work->bytes, n = group->size;
    gint64 gpus = MAX(1, network->gpus_per_node);
    gint64 stride = (gint64)MAX(1, group->stride) * MAX(1, network->rank_stride);
    gint64 span = (gint64)(group->size - 1) * stride + 1;
    double nodes = (double)MIN((span + gpus - 1) / gpus, (gint64)group->size);
    double passes = work->kind == ZP_KIND_ALL_REDUCE ? 2.0 : 1.0;
    if (nodes <= 1.0) {
        /* A switch that reduces takes a message from each rank, once. */
        double rate = MAX(network->link_bytes_per_s, network->nvls_bytes_per_s);
        if (network->link_bytes_per_s <= 0.0)
            rate = MAX(network->host_to_device_bytes_per_s, network->device_to_host_bytes_per_s);
        return rate > 0.0 ? (n - 1.0) / n * message / rate : 0.0;
    }
    double sharing = (double)MIN(stride, gpus); /* groups beside one another share the NICs */
    double rate = network->network_bytes_per_s;
    return rate > 0.0 ? passes * (nodes - 1.0) / nodes * message * sharing / rate : 0.0;
}

/* Tables tell what a fabric did, whatever the settings say of its links. */
static gboolean
is_measured(const ZpTape *tape, const ZpTapeWork *work)
{
    const char *rule = zp_tape_rule(tape, work);
    return rule != NULL && g_str_has_prefix(rule, "measured");
}

static gboolean
links_are_possible(const ChecksFacts *facts)
{
    const ZpTape *tape = facts->step->tape;
    const ZpNetwork *network = &facts->job->network;
    for (gint32 w = 0; w < tape->n_works; w++) {
        const ZpTapeWork *work = &tape->works[w];
        double least = 0.0;
        if (work->category == ZP_TAPE_COMMUNICATION && work->group != ZP_TAPE_NONE &&
            !is_measured(tape, work) && tape->groups[work->group].size > 1)
            least = least_seconds(facts, work);
        else if (work->kind == ZP_KIND_HOST_TO_DEVICE && network->host_to_device_bytes_per_s > 0.0)
            least = (double)work->wire_bytes / network->host_to_device_bytes_per_s;
        else if (work->kind == ZP_KIND_DEVICE_TO_HOST && network->device_to_host_bytes_per_s > 0.0)
            least = (double)work->wire_bytes / network->device_to_host_bytes_per_s;
        double seconds = zp_time_to_seconds(zp_time_add(work->fixed_ps, work->solo_ps));
        if (seconds < least * (1.0 - ROUNDING) - 1e-11)
            return FALSE;
    }
    return TRUE;
}

ZpTime
checks_longest_stream(const ZpTape *tape, const ChecksScan *scan, gboolean computes)
{
    ZpTime longest = 0;
    for (int s = 0; s < tape->n_streams; s++) {
        ZpTime sum = 0;
        for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
            if (computes || c == ZP_TAPE_COMMUNICATION || c == ZP_TAPE_COPY)
                sum = zp_time_add(sum, scan->stream_ps[s][c]);
        longest = MAX(longest, sum);
    }
    return longest;
}

static gboolean
streams_are_in_order(const ChecksFacts *facts)
{
    return checks_longest_stream(facts->step->tape, facts->scan, checks_are_nominal(facts->job)) <=
           facts->step->play->end;
}

static gboolean
links_are_shared(const ChecksFacts *facts)
{
    for (int l = 0; l < facts->step->tape->n_links; l++)
        if (facts->scan->link_ps[l] > facts->step->play->end)
            return FALSE;
    return TRUE;
}

static gboolean
busy_is_within_the_step(const ChecksFacts *facts)
{
    const ZpPlayResult *play = facts->step->play;
    const ZpPlayRank *rank = &play->ranks[0];
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
        if (rank->busy[c] > rank->end)
            return FALSE;
    for (gint32 k = 1; k < play->n_steps; k++)
        if (play->step_end[k] < play->step_end[k - 1])
            return FALSE;
    return rank->end <= play->end && rank->host_blocked <= rank->end &&
           (play->n_steps == 0 || play->step_end[play->n_steps - 1] <= play->end) &&
           rank->exposed <=
               zp_time_add(rank->busy[ZP_TAPE_COMMUNICATION], rank->busy[ZP_TAPE_COPY]);
}

/* A category is busy as long as its longest stream at least, and no longer than its works one after
 * the other where nothing slows them. */
static gboolean
work_is_conserved(const ChecksFacts *facts)
{
    const ZpPlayRank *rank = &facts->step->play->ranks[0];
    gboolean slowed = facts->job->device.calibration != NULL ||
                      facts->step->play->n_ranks > 1; /* others may arrive late */
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++) {
        gboolean computes = c == ZP_TAPE_COMPUTE || c == ZP_TAPE_HOST_COMPUTE;
        if (computes && !checks_are_nominal(facts->job))
            continue;
        for (int s = 0; s < facts->step->tape->n_streams; s++)
            if (rank->busy[c] < facts->scan->stream_ps[s][c])
                return FALSE;
        /* A picosecond is lost whenever a rate changes. */
        ZpTime most = zp_time_add(facts->scan->category_ps[c], facts->step->tape->n_instrs);
        if (!slowed && rank->busy[c] > most)
            return FALSE;
    }
    return TRUE;
}

const ChecksRule checks_time_rules[] = {
    {{"forward-flops-are-conserved", "every layer runs forward once for each micro-batch",
      "2 FLOPs a weight and token (arXiv 2001.08361, section 2.1)"},
     CHECKS_ALL,
     FALSE,
     forward_is_conserved},
    {{"trainable-layers-run-backward",
      "each trained weight gets its gradient, and each layer behind one hands a gradient on",
      "torch.autograd; twice a forward (arXiv 2001.08361, section 2.1)"},
     CHECKS_ALL,
     FALSE,
     backward_is_run},
    {{"backward-flops-are-conserved", "backward takes twice the FLOPs of forward",
      "arXiv 2001.08361, section 2.1"},
     CHECKS_ALL,
     FALSE,
     backward_is_conserved},
    {{"recomputation-is-run", "what checkpointing dropped is computed again",
      "arXiv 1604.06174, section 4; arXiv 2205.05198, section 5"},
     CHECKS_ALL,
     FALSE,
     recomputation_is_run},
    {{"kernels-are-no-faster-than-the-device",
      "FLOPs of passes <= peak x the time of their kernels",
      "roofline (Williams, Waterman and Patterson 2009)"},
     CHECKS_ALL,
     FALSE,
     kernels_are_possible},
    {{"mfu-is-at-most-one", "a step computes no more than the device can",
      "PaLM (arXiv 2204.02311), appendix B"},
     CHECKS_ALL,
     FALSE,
     mfu_is_possible},
    {{"optimizer-moves-its-state", "moments are read and written at the memory's bandwidth at most",
      "roofline; Adam (arXiv 1412.6980), algorithm 1"},
     CHECKS_ALL,
     FALSE,
     optimizer_moves_its_state},
    {{"links-carry-no-more-than-their-bandwidth", "bytes on a link <= bandwidth x time",
      "lower bounds of Chan et al. 2007, Collective communication, table II"},
     CHECKS_ALL,
     FALSE,
     links_are_possible},
    {{"streams-run-one-work-at-a-time", "works of a stream take their sum at least",
      "CUDA C++ Programming Guide, streams"},
     CHECKS_ALL,
     FALSE,
     streams_are_in_order},
    {{"links-are-shared", "transfers on a link take the sum of their own times at least",
      "conservation of bytes"},
     CHECKS_ALL,
     FALSE,
     links_are_shared},
    {{"busy-is-within-the-step", "no resource works for longer than the step",
      "conservation of time"},
     CHECKS_ALL,
     FALSE,
     busy_is_within_the_step},
    {{"work-is-conserved", "what is launched is done: neither less nor more",
      "conservation of work"},
     CHECKS_ALL,
     FALSE,
     work_is_conserved},
    {{NULL, NULL, NULL}, 0, FALSE, NULL},
};
