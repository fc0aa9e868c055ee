/* Forward and backward passes of the ideal runtime, layer by layer. */
#include "models/prices/layer.h"
#include "models/runtimes/ideal/ideal_internal.h"
#include "models/runtimes/shared/cuts.h"

static double
forward_flops(const Ideal *ideal, const ZpModelLayer *layer)
{
    return (double)layer->flops_per_token * (double)ideal->tokens +
           (double)layer->flops_per_pair * (double)ideal->pairs;
}

/* How long `passes` forward-equivalents of a layer take: 1 forward, 2 backward. */
static ZpTime
layer_duration(const ZpJob *job, gint64 tokens, ZpKind kind, const ZpModelLayer *layer,
               double flops, double passes)
{
    if (job->device.calibration != NULL)
        return zp_cost_layer(job, layer, kind);
    int bits = zp_dtype_bits(job->precision.gathered);
    double weights = (double)zp_dtype_bytes(bits, layer->elements + layer->tied_elements);
    double traffic = (double)layer->traffic_bytes_per_token * (double)tokens + weights;
    if (layer->kind == ZP_LAYER_EMBEDDING)
        traffic -= weights; /* a look-up touches the rows of its tokens alone */
    return zp_cost_kernel(&job->device, passes * flops, passes * traffic);
}

/* The layer's kernels, then what its ranks tell one another. */
static void
launch_layer(Ideal *ideal, ZpKind kind, const ZpModelLayer *layer, double flops, double passes)
{
    ideal_launch_kernel(ideal, kind,
                        layer_duration(ideal->job, ideal->tokens, kind, layer, flops, passes),
                        passes * flops, zp_cost_layer_rule(ideal->job));
    zp_cuts_communicate(ideal->job, ideal->tape, IDEAL_COMPUTE, layer, kind);
}

/* FLOPs that bring back what the policy dropped of one layer; 0: nothing to recompute. */
static double
recompute_flops(const Ideal *ideal, const ZpModelLayer *layer)
{
    if (layer->block == ZP_MODEL_NONE)
        return 0.0;
    switch (ideal->job->training.checkpointing) {
    case ZP_CHECKPOINTING_NONE:
        return 0.0;
    case ZP_CHECKPOINTING_SELECTIVE:
        return (double)layer->selective_flops_per_token * (double)ideal->tokens +
               (double)layer->selective_flops_per_pair * (double)ideal->pairs;
    case ZP_CHECKPOINTING_FULL:
        return forward_flops(ideal, layer);
    }
    g_assert_not_reached();
}

void
ideal_layer_durations(const Ideal *ideal, const ZpJob *job, const ZpModelLayer *layer,
                      ZpTime *forward_ps, ZpTime *backward_ps)
{
    double flops = forward_flops(ideal, layer), again = recompute_flops(ideal, layer);
    *forward_ps = layer_duration(job, ideal->tokens, ZP_KIND_FORWARD, layer, flops, 1.0) +
                  zp_cuts_duration(job, layer, ZP_KIND_FORWARD);
    *backward_ps = layer_duration(job, ideal->tokens, ZP_KIND_BACKWARD, layer, flops,
                                  zp_model_backward_passes(layer, (double)job->training.sequence)) +
                   zp_cuts_duration(job, layer, ZP_KIND_BACKWARD);
    if (again > 0.0)
        *backward_ps += layer_duration(job, ideal->tokens, ZP_KIND_RECOMPUTE, layer, again, 1.0) +
                        zp_cuts_duration(job, layer, ZP_KIND_RECOMPUTE);
}

static gint32
make_of_layer(Ideal *ideal, const ZpModelLayer *layer, ZpRole role, gint64 bytes)
{
    ZpClass class_id = layer->kind == ZP_LAYER_HEAD ? ZP_CLASS_LOGITS : ZP_CLASS_ACTIVATION;
    return zp_tape_make(ideal->tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE, (guint8)class_id,
                        (guint8)role, bytes);
}

static void
drop(Ideal *ideal, gint32 *buffer)
{
    zp_tape_drop(ideal->tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE, *buffer);
    *buffer = ZP_TAPE_NONE;
}

void
ideal_forward(Ideal *ideal)
{
    const ZpModel *model = ideal->job->model;
    const ZpZero *zero = &ideal->job->zero;
    gint32 position = 0;
    for (gint32 u = 0; u < ideal->units->n_units; u++) {
        ideal->state[u].issued = FALSE;
        if (zero->stage == 3)
            ideal->state[u].ready = ZP_TAPE_NONE;
    }
    for (gint32 l = 0; l < ideal->units->n_layers; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        gint32 unit = ideal->units->unit_of_layer[l];
        if (ideal->units->units[unit].first_layer == l)
            ideal_open_unit(ideal, ideal->forward_order, position++, zero->prefetch_forward,
                            ZP_PHASE_FORWARD);
        zp_tape_tag(ideal->tape, ZP_PHASE_FORWARD, ideal->micro_batch, unit);
        ZpLayerBytes bytes = ideal_layer_bytes(ideal, l);
        ideal->kept[l] = make_of_layer(ideal, layer, ZP_ROLE_NONE, bytes.kept_bytes);
        gint32 beside = make_of_layer(ideal, layer, ZP_ROLE_TEMPORARY, bytes.forward_bytes);
        launch_layer(ideal, ZP_KIND_FORWARD, layer, forward_flops(ideal, layer), 1.0);
        drop(ideal, &beside);
        if (ideal->units->units[unit].last_layer == l && zero->reshard_after_forward)
            ideal_close_unit(ideal, unit);
    }
}

/* Recomputes the block whose last layer is `last`, before its backward. */
static void
recompute_block(Ideal *ideal, gint32 last)
{
    const ZpModel *model = ideal->job->model;
    gint32 block = zp_model_layer(model, last)->block;
    gint32 first = last;
    while (first > 0 && zp_model_layer(model, first - 1)->block == block)
        first--;
    for (gint32 l = first; l <= last; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        ZpLayerBytes bytes = ideal_layer_bytes(ideal, l);
        ideal->recomputed[l] = make_of_layer(ideal, layer, ZP_ROLE_NONE, bytes.recomputed_bytes);
        gint32 beside = make_of_layer(ideal, layer, ZP_ROLE_TEMPORARY, bytes.recompute_bytes);
        double flops = recompute_flops(ideal, layer);
        if (flops > 0.0 || bytes.recomputed_bytes > 0)
            launch_layer(ideal, ZP_KIND_RECOMPUTE, layer, flops, 1.0);
        drop(ideal, &beside);
    }
}

static gboolean
ends_block(const Ideal *ideal, gint32 l)
{
    const ZpModel *model = ideal->job->model;
    gint32 block = zp_model_layer(model, l)->block;
    return block != ZP_MODEL_NONE && ideal->job->training.checkpointing != ZP_CHECKPOINTING_NONE &&
           (l + 1 == ideal->units->n_layers || zp_model_layer(model, l + 1)->block != block);
}

static void
backward_layer(Ideal *ideal, gint32 l)
{
    const ZpModelLayer *layer = zp_model_layer(ideal->job->model, l);
    gint64 bytes = ideal_layer_bytes(ideal, l).backward_bytes;
    gint32 beside = make_of_layer(ideal, layer, ZP_ROLE_TEMPORARY, bytes);
    launch_layer(ideal, ZP_KIND_BACKWARD, layer, forward_flops(ideal, layer),
                 zp_model_backward_passes(layer, (double)ideal->job->training.sequence));
    drop(ideal, &beside);
    drop(ideal, &ideal->kept[l]);
    drop(ideal, &ideal->recomputed[l]);
}

void
ideal_backward(Ideal *ideal)
{
    gint32 position = 0;
    for (gint32 u = 0; u < ideal->units->n_units; u++)
        ideal->state[u].issued = FALSE;
    for (gint32 l = 0; l < ideal->units->n_layers; l++)
        ideal->recomputed[l] = ZP_TAPE_NONE;
    for (gint32 l = ideal->units->n_layers - 1; l >= 0; l--) {
        gint32 unit = ideal->units->unit_of_layer[l];
        const ZpUnit *span = &ideal->units->units[unit];
        if (span->last_layer == l)
            ideal_open_unit(ideal, ideal->backward_order, position++,
                            ideal->job->zero.prefetch_backward, ZP_PHASE_BACKWARD);
        zp_tape_tag(ideal->tape, ZP_PHASE_BACKWARD, ideal->micro_batch, unit);
        if (ends_block(ideal, l))
            recompute_block(ideal, l);
        if (span->last_layer == l)
            ideal_begin_gradient(ideal, unit);
        backward_layer(ideal, l);
        if (span->first_layer == l) {
            ideal_close_unit(ideal, unit);
            ideal_finish_gradient(ideal, unit);
        }
    }
    ideal_flush(ideal);
}
