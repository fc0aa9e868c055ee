/* FSDPParamGroup.post_backward and foreach_reduce
 * (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py). */
#include "models/runtimes/fsdp2/fsdp2_internal.h"

void
fsdp2_drop_all_reduce_state(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    if (state->all_reduce_buffer != state->gradient) /* else the gradients hold it */
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_REDUCE, &state->all_reduce_buffer);
    state->all_reduce_buffer = state->all_reduce_event = ZP_TAPE_NONE;
}

void
fsdp2_wait_for_post_backward(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT, state->post_reduce_event);
    state->post_reduce_event = ZP_TAPE_NONE;
    zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT, state->all_reduce_event);
    fsdp2_drop_all_reduce_state(fsdp, unit);
}

/* accumulate_unsharded_grad_if_needed, for all parameters. */
static void
add_to_accumulators(Fsdp2 *fsdp, gint32 unit)
{
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    gboolean launched = FALSE;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        Fsdp2Param *param = &fsdp->params[p];
        if (param->accumulated == ZP_TAPE_NONE || param->grad == ZP_TAPE_NONE)
            continue;
        if (!launched)
            zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, fsdp->units[unit].works.accumulate);
        launched = TRUE;
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &param->grad);
    }
}

/* to_accumulated_grad_if_needed: gradients that wait for their reduction do so in the reduce
 * dtype, converted one by one. */
static void
convert_gradients(Fsdp2 *fsdp, gint32 unit)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    if (plan->reduce_bytes == 0 || plan->reduce_bytes == zp_fsdp_plan_compute_bytes(plan))
        return;
    gboolean launched = FALSE;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        Fsdp2Param *param = &fsdp->params[p];
        if (param->grad == ZP_TAPE_NONE)
            continue;
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
        param->accumulated = zp_fsdp_emit_make(
            &fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR,
            zp_fsdp_parameter_elements(parameter) * plan->reduce_bytes, parameter->parameter);
        if (!launched)
            zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, fsdp->units[unit].works.accumulate);
        launched = TRUE;
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &param->grad);
    }
}

static gint32 *
reducible_gradient(Fsdp2Param *param)
{
    if (param->accumulated != ZP_TAPE_NONE)
        return &param->accumulated;
    return param->grad != ZP_TAPE_NONE ? &param->grad : NULL;
}

/* The last parameter with a gradient, or ZP_FSDP_NONE; *elements: of their padded shards. */
static gint32
last_with_gradient(Fsdp2 *fsdp, gint32 unit, gint64 *elements)
{
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    gint32 last = ZP_FSDP_NONE;
    *elements = 0;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        if (reducible_gradient(&fsdp->params[p]) == NULL)
            continue;
        last = p;
        *elements += fsdp->params[p].chunk_elements;
    }
    return last;
}

/* Keeps at most `cap - 1` inputs of earlier reduce-scatters before this one adds its own. */
static void
recycle_inputs(Fsdp2 *fsdp)
{
    guint cap = (guint)fsdp->plan->settings.reduce_scatter_max_input_buffers;
    while (fsdp->reduce_inputs->len >= cap) {
        Fsdp2Retained *oldest = &g_array_index(fsdp->reduce_inputs, Fsdp2Retained, 0);
        zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT, oldest->event);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &oldest->buffer);
        g_array_remove_index(fsdp->reduce_inputs, 0);
    }
}

void
fsdp2_post_backward(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    gint64 elements;
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    state->training = FSDP2_POST_BACKWARD;
    add_to_accumulators(fsdp, unit);
    if (fsdp->micro_batch->reshard_after_backward)
        fsdp2_reshard(fsdp, unit);
    if (!fsdp->micro_batch->sync) {
        convert_gradients(fsdp, unit);
        return;
    }
    recycle_inputs(fsdp);
    if (last_with_gradient(fsdp, unit, &elements) == ZP_FSDP_NONE)
        return;
    fsdp2_wait_for_post_backward(fsdp, unit);
    fsdp2_reduce(fsdp, unit);
}

/* What one call of foreach_reduce holds. */
typedef struct {
    gint32 unit;
    gint64 shard_elements;
    gint32 *pinned;    /* gradient held by a loop variable until the call returns, or NULL */
    gint32 *chunked;   /* the same for the last that was cut into chunks */
    gint32 output;     /* reduce-scatter output */
    gint32 dying;      /* dies when the call returns */
    gint32 partial;    /* earlier partial output, dies after the call */
    int stream;        /* where post-processing runs */
    gboolean retained; /* the output is held by the all-reduce state */
} Reduce;

static gint32
make_rearranged(Fsdp2 *fsdp, gint32 p, gint32 gradient)
{
    return zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GRADIENT,
                             ZP_ROLE_GRADIENT_TEMPORARY, fsdp->tape->buffers[gradient].bytes,
                             zp_fsdp_plan_parameter(fsdp->plan, p)->parameter);
}

/* Gradients of parameters that are cut along another dimension than the first: their chunks are put
 * one below the other.  The list then has the copy, while the chunks hold the gradient until those
 * of the next take their place; and zip(), which uses every other of its tuples again, holds one of
 * an even place until two further. */
static void
rearrange(Fsdp2 *fsdp, Reduce *reduce)
{
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, reduce->unit);
    gint32 *zipped = NULL;
    int place = 0, chunked_place = 0;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        gint32 *gradient = reducible_gradient(&fsdp->params[p]);
        if (gradient == NULL)
            continue;
        if (zipped && place % 2 == 0) {
            zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, zipped);
            zipped = NULL;
        }
        if (zp_fsdp_plan_parameter(fsdp->plan, p)->inner && fsdp->plan->shard > 1) {
            if (reduce->chunked && chunked_place % 2 == 0 && place == chunked_place + 1)
                zipped = reduce->chunked;
            else if (reduce->chunked)
                zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, reduce->chunked);
            fsdp->params[p].rearranged = make_rearranged(fsdp, p, *gradient);
            reduce->chunked = gradient;
            chunked_place = place;
        }
        place++;
    }
    if (zipped)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, zipped);
}

/* A list is cleared from its end.  With one rank the loop that pins the last gradient does not run.
 */
static void
copy_in(Fsdp2 *fsdp, Reduce *reduce)
{
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, reduce->unit);
    gint64 elements;
    gint32 last = last_with_gradient(fsdp, reduce->unit, &elements);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, fsdp->units[reduce->unit].works.copy_to_input);
    for (gint32 p = desc->first_parameter + desc->n_parameters - 1; p >= desc->first_parameter;
         p--) {
        gint32 *gradient = reducible_gradient(&fsdp->params[p]);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &fsdp->params[p].rearranged);
        if (gradient == NULL)
            continue;
        if (p == last && fsdp->plan->shard > 1)
            reduce->pinned = gradient;
        else if (gradient != reduce->chunked)
            zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, gradient);
    }
}

/* HSDP without all-reduce: the partial output waits for a later micro-batch. */
static void
keep_partial(Fsdp2 *fsdp, Reduce *reduce)
{
    Fsdp2Unit *state = &fsdp->units[reduce->unit];
    if (state->partial_output == ZP_TAPE_NONE) {
        state->partial_output = reduce->output;
        return;
    }
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_REDUCE, state->works.add_output);
    reduce->dying = reduce->output;
}

static void
all_reduce(Fsdp2 *fsdp, Reduce *reduce)
{
    Fsdp2Unit *state = &fsdp->units[reduce->unit];
    if (state->partial_output != ZP_TAPE_NONE) {
        zp_fsdp_emit_launch(&fsdp->emit, FSDP2_REDUCE, state->works.add_output);
        reduce->partial = state->partial_output;
        state->partial_output = ZP_TAPE_NONE;
    }
    reduce->stream = FSDP2_ALL_REDUCE;
    zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP2_ALL_REDUCE, FSDP2_REDUCE);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_ALL_REDUCE, state->works.all_reduce);
    state->all_reduce_buffer = reduce->output;
    state->all_reduce_event = zp_tape_record(fsdp->tape, FSDP2_ALL_REDUCE);
    reduce->retained = TRUE;
}

/* CPU offload: the views are copied to the host; the copy of an accumulation is added there by the
 * CPU, so it blocks, and dies. */
static void
offload_gradients(Fsdp2 *fsdp, Reduce *reduce)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, reduce->unit);
    Fsdp2Unit *state = &fsdp->units[reduce->unit];
    gboolean adds = state->n_gradients > 0;
    zp_fsdp_emit_launch(&fsdp->emit, reduce->stream, state->works.to_host);
    gint32 event = zp_tape_record(fsdp->tape, (guint8)reduce->stream);
    if (adds || !plan->settings.pin_memory)
        zp_tape_sync(fsdp->tape, event);
    else
        state->offload_event = event;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        if (!zp_fsdp_plan_parameter(plan, p)->trainable)
            continue;
        gint32 copy =
            zp_fsdp_emit_make_host(&fsdp->emit, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT,
                                   fsdp->params[p].owned_elements * plan->stored_bytes,
                                   !adds && plan->settings.pin_memory);
        if (adds)
            zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &copy);
        else
            fsdp->params[p].host_grad = copy;
    }
    state->n_gradients = desc->n_parameters;
}

/* Casts the output to the stored dtype, and makes or adds to the sharded gradients. */
static gint32
view_out(Fsdp2 *fsdp, Reduce *reduce)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    Fsdp2Unit *state = &fsdp->units[reduce->unit];
    gint32 result = reduce->output;
    if (zp_fsdp_plan_reduce_bytes(plan) != plan->stored_bytes) {
        result = zp_fsdp_emit_make(&fsdp->emit, reduce->stream, ZP_CLASS_GRADIENT,
                                   ZP_ROLE_SHARDED_GRADIENT,
                                   reduce->shard_elements * plan->stored_bytes, ZP_FSDP_NONE);
        zp_fsdp_emit_launch(&fsdp->emit, reduce->stream, state->works.cast_output);
        if (!reduce->retained)
            zp_fsdp_emit_drop(&fsdp->emit, FSDP2_REDUCE, &reduce->output);
    }
    gboolean held = reduce->retained && result == reduce->output;
    if (plan->settings.cpu_offload) {
        offload_gradients(fsdp, reduce);
        reduce->dying = held ? ZP_TAPE_NONE : result;
        return ZP_TAPE_NONE;
    }
    if (state->gradient != ZP_TAPE_NONE) {
        zp_fsdp_emit_launch(&fsdp->emit, reduce->stream, state->works.add_output);
        reduce->dying = held ? ZP_TAPE_NONE : result;
        return ZP_TAPE_NONE;
    }
    state->gradient = result;
    return result == reduce->output ? result : ZP_TAPE_NONE;
}

static void
push_input(Fsdp2 *fsdp, gint32 input, gint32 event)
{
    Fsdp2Retained retained = {.buffer = input, .event = event};
    g_array_append_val(fsdp->reduce_inputs, retained);
}

static void
return_from_reduce(Fsdp2 *fsdp, Reduce *reduce, gint32 becomes_gradient)
{
    Fsdp2Unit *state = &fsdp->units[reduce->unit];
    state->post_reduce_event = zp_tape_record(fsdp->tape, (guint8)reduce->stream);
    fsdp->last_post_reduce[reduce->stream == FSDP2_ALL_REDUCE] = state->post_reduce_event;
    zp_fsdp_emit_drop(&fsdp->emit, reduce->stream, &reduce->dying);
    if (reduce->pinned)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, reduce->pinned);
    if (reduce->chunked)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, reduce->chunked);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP2_REDUCE, &reduce->partial);
    if (becomes_gradient != ZP_TAPE_NONE)
        zp_tape_retag(fsdp->tape, ZP_TAPE_CLOCK_HOST, (guint8)reduce->stream, becomes_gradient,
                      ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT);
}

void
fsdp2_reduce(Fsdp2 *fsdp, gint32 unit)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    Fsdp2Unit *state = &fsdp->units[unit];
    int width = zp_fsdp_plan_reduce_bytes(plan);
    Reduce reduce = {
        .unit = unit,
        .output = ZP_TAPE_NONE,
        .dying = ZP_TAPE_NONE,
        .partial = ZP_TAPE_NONE,
        .stream = FSDP2_REDUCE,
    };
    last_with_gradient(fsdp, unit, &reduce.shard_elements);
    rearrange(fsdp, &reduce);
    gint32 input =
        zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_INPUT,
                          reduce.shard_elements * plan->shard * width, ZP_FSDP_NONE);
    copy_in(fsdp, &reduce);
    zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP2_REDUCE, FSDP2_DEFAULT);
    reduce.output =
        zp_fsdp_emit_make(&fsdp->emit, FSDP2_REDUCE, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_OUTPUT,
                          reduce.shard_elements * width, ZP_FSDP_NONE);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_REDUCE, state->works.reduce_scatter);
    gint32 scattered = zp_tape_record(fsdp->tape, FSDP2_REDUCE);
    gint32 becomes_gradient = ZP_TAPE_NONE;
    if (plan->replicate > 1 && !fsdp->micro_batch->all_reduce) {
        keep_partial(fsdp, &reduce);
    } else {
        if (plan->replicate > 1)
            all_reduce(fsdp, &reduce);
        becomes_gradient = view_out(fsdp, &reduce);
    }
    return_from_reduce(fsdp, &reduce, becomes_gradient);
    push_input(fsdp, input, scattered);
}
