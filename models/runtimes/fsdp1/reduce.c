/* The flat gradient, _post_backward_hook, _reduce_grad and _reduce_grad_no_shard
 * (torch/distributed/fsdp/_runtime_utils.py). */
#include "models/runtimes/fsdp1/fsdp1_internal.h"

static gint32
make(Fsdp1 *fsdp, int stream, ZpClass class_id, ZpRole role, gint64 bytes)
{
    return zp_fsdp_emit_make(&fsdp->emit, stream, class_id, role, bytes, ZP_FSDP_NONE);
}

/* The backward of split() concatenates the parameters' gradients, and zeros for what has none
 * (alignment, unused parameters).  Returns the flat gradient. */
static gint32
concatenate(Fsdp1 *fsdp, gint32 unit)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    int width = zp_fsdp_plan_compute_bytes(fsdp->plan);
    gint32 padding = make(fsdp, FSDP1_DEFAULT, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_TEMPORARY,
                          state->padding_elements * width);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        if (fsdp->params[p].temporary == ZP_TAPE_NONE)
            fsdp->params[p].temporary =
                make(fsdp, FSDP1_DEFAULT, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_TEMPORARY,
                     zp_fsdp_parameter_elements(zp_fsdp_plan_parameter(fsdp->plan, p)) * width);
    }
    ZpRole role = state->grad == ZP_TAPE_NONE ? ZP_ROLE_GRADIENT : ZP_ROLE_GRADIENT_TEMPORARY;
    gint32 flat = make(fsdp, FSDP1_DEFAULT, ZP_CLASS_GRADIENT, role, state->flat_elements * width);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_DEFAULT, state->works.concatenate);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &fsdp->params[p].temporary);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &padding);
    return flat;
}

/* What a reduction holds until its functions return. */
typedef struct {
    gint32 cast, padded, dying;
    gint32 becomes_gradient;
} Reduce;

/* flat_param.grad.to(reduce_dtype). */
static void
cast_gradient(Fsdp1 *fsdp, Fsdp1Unit *state, Reduce *reduce)
{
    int width = zp_fsdp_plan_reduce_bytes(fsdp->plan);
    if (state->grad_width == width)
        return;
    reduce->cast = make(fsdp, FSDP1_POST_BACKWARD, ZP_CLASS_COMMUNICATION,
                        fsdp->sharded ? ZP_ROLE_REDUCE_INPUT : ZP_ROLE_ALL_REDUCE_INPUT,
                        state->flat_elements * width);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.cast_gradient);
}

static void
accumulate_shard(Fsdp1 *fsdp, Fsdp1Unit *state, int stream, gint32 output, Reduce *reduce)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    gint32 shard = output;
    if (zp_fsdp_plan_reduce_bytes(plan) != plan->stored_bytes) {
        shard = make(fsdp, stream, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT,
                     state->shard_elements * plan->stored_bytes);
        zp_fsdp_emit_launch(&fsdp->emit, stream, state->works.cast_shard);
        zp_tape_use(fsdp->tape, (guint8)stream, output);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_POST_BACKWARD, &output);
    } else if (state->gradient == ZP_TAPE_NONE) {
        reduce->becomes_gradient = shard;
    }
    if (state->gradient == ZP_TAPE_NONE) {
        state->gradient = shard;
        return;
    }
    zp_fsdp_emit_launch(&fsdp->emit, stream, state->works.add_shard);
    reduce->dying = shard;
}

/* _reduce_grad: pads where the ranks do not divide the flat gradient. */
static void
reduce_sharded(Fsdp1 *fsdp, Fsdp1Unit *state, Reduce *reduce)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    int width = zp_fsdp_plan_reduce_bytes(plan);
    gint64 padded = state->shard_elements * plan->shard;
    if (padded != state->flat_elements) {
        reduce->padded = make(fsdp, FSDP1_POST_BACKWARD, ZP_CLASS_COMMUNICATION,
                              ZP_ROLE_REDUCE_INPUT, padded * width);
        zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.pad);
    }
    gint32 output = make(fsdp, FSDP1_POST_BACKWARD, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_OUTPUT,
                         state->shard_elements * width);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.pre_divide);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.reduce_scatter);
    int stream = FSDP1_POST_BACKWARD;
    if (fsdp->hybrid) {
        stream = FSDP1_ALL_REDUCE;
        zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_ALL_REDUCE, FSDP1_POST_BACKWARD);
        zp_tape_use(fsdp->tape, FSDP1_ALL_REDUCE, output);
        zp_fsdp_emit_launch(&fsdp->emit, stream, state->works.all_reduce);
    }
    zp_fsdp_emit_launch(&fsdp->emit, stream, state->works.post_divide);
    accumulate_shard(fsdp, state, stream, output, reduce);
}

/* _reduce_grad_no_shard: the gradient, or its cast, is reduced in place and becomes the gradient
 * that the optimizer sees. */
static void
reduce_whole(Fsdp1 *fsdp, Fsdp1Unit *state, Reduce *reduce)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    gint32 input = reduce->cast != ZP_TAPE_NONE ? reduce->cast : state->grad;
    int width = reduce->cast != ZP_TAPE_NONE ? zp_fsdp_plan_reduce_bytes(plan) : state->grad_width;
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.pre_divide);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.all_reduce);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.post_divide);
    gboolean is_gradient = state->gradient == input;
    state->gradient = input;
    if (width != plan->stored_bytes) {
        state->gradient = make(fsdp, FSDP1_POST_BACKWARD, ZP_CLASS_GRADIENT,
                               ZP_ROLE_SHARDED_GRADIENT, state->flat_elements * plan->stored_bytes);
        zp_fsdp_emit_launch(&fsdp->emit, FSDP1_POST_BACKWARD, state->works.cast_shard);
    } else if (!is_gradient) {
        reduce->becomes_gradient = input;
    }
    if (state->gradient == reduce->cast)
        reduce->cast = ZP_TAPE_NONE;
}

/* _offload_grad: the copy is waited for at the end of backward; without sharding at once. */
static void
offload_gradient(Fsdp1 *fsdp, const Fsdp1Unit *state)
{
    int stream = fsdp->hybrid ? FSDP1_ALL_REDUCE : FSDP1_POST_BACKWARD;
    if (!fsdp->plan->settings.cpu_offload)
        return;
    zp_fsdp_emit_launch(&fsdp->emit, stream, state->works.to_host);
    if (!fsdp->sharded)
        zp_tape_sync(fsdp->tape, zp_tape_record(fsdp->tape, (guint8)stream));
}

static void
become_gradient(Fsdp1 *fsdp, gint32 buffer)
{
    if (buffer != ZP_TAPE_NONE)
        zp_tape_retag(fsdp->tape, ZP_TAPE_CLOCK_HOST, FSDP1_POST_BACKWARD, buffer,
                      ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT);
}

/* `added`: the new flat gradient that was added into an existing one; autograd holds it until the
 * hook has returned.  A gradient that was not added is held in its place. */
static void
reduce_gradient(Fsdp1 *fsdp, gint32 unit, gboolean added)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    Reduce reduce = {ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE};
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_POST_BACKWARD, FSDP1_DEFAULT);
    cast_gradient(fsdp, state, &reduce);
    if (fsdp->sharded)
        reduce_sharded(fsdp, state, &reduce);
    else
        reduce_whole(fsdp, state, &reduce);
    offload_gradient(fsdp, state);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_POST_BACKWARD, &reduce.dying);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_POST_BACKWARD, &reduce.padded);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_POST_BACKWARD, &reduce.cast);
    gboolean replaced = state->gradient != state->grad;
    if (replaced)
        zp_tape_use(fsdp->tape, FSDP1_POST_BACKWARD, state->grad);
    if (!added)
        become_gradient(fsdp, reduce.becomes_gradient);
    if (replaced)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &state->grad);
    if (added)
        become_gradient(fsdp, reduce.becomes_gradient);
    state->grad = fsdp->sharded ? ZP_TAPE_NONE : state->gradient;
    state->saved = fsdp->sharded;
    fsdp1_reset_grad_none(fsdp, unit);
    fsdp1_use_sharded_grad_views(fsdp, unit);
    if (!fsdp->sharded)
        state->grad_width = fsdp->plan->stored_bytes;
}

void
fsdp1_finish_gradient(Fsdp1 *fsdp, gint32 unit)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    const ZpFsdpPlan *plan = fsdp->plan;
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    gint32 flat = concatenate(fsdp, unit);
    gint32 added = ZP_TAPE_NONE;
    if (state->grad == ZP_TAPE_NONE) {
        state->grad = flat;
        state->grad_width = zp_fsdp_plan_compute_bytes(plan);
    } else {
        zp_fsdp_emit_launch(&fsdp->emit, FSDP1_DEFAULT, state->works.add_gradient);
        added = flat;
    }
    state->training = FSDP1_BACKWARD_POST;
    fsdp1_reshard(fsdp, unit, fsdp1_frees_in_backward(fsdp));
    fsdp1_prefetch(fsdp, unit);
    if (fsdp->micro_batch->sync)
        reduce_gradient(fsdp, unit, added != ZP_TAPE_NONE);
    else
        fsdp1_use_unsharded_grad_views(fsdp, unit);
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &added);
}
