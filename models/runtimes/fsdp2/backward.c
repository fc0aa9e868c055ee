/* FSDPState._pre_backward, the gradients that autograd makes, and the root's final callback
 * (torch/distributed/fsdp/_fully_shard/_fsdp_state.py). */
#include "models/runtimes/fsdp2/fsdp2_internal.h"

/* FSDPParamGroup._backward_prefetch: the group that ran before this one in forward. */
static void
prefetch_predecessor(Fsdp2 *fsdp, gint32 unit)
{
    GArray *indices = fsdp->units[unit].post_forward_indices;
    if (indices->len == 0)
        return;
    gint32 index = g_array_index(indices, gint32, indices->len - 1);
    g_array_set_size(indices, indices->len - 1);
    if (index > 0)
        fsdp2_prefetch(fsdp, g_array_index(fsdp->post_forward_order, gint32, (guint)(index - 1)),
                       FSDP2_PRE_BACKWARD);
}

static void
pre_backward(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    state->state = FSDP2_PRE_BACKWARD;
    if (state->training != FSDP2_PRE_BACKWARD) {
        state->training = FSDP2_PRE_BACKWARD;
        fsdp2_unshard(fsdp, unit);
        fsdp2_wait_for_unshard(fsdp, unit);
        if (desc->n_backward_prefetch == 0)
            prefetch_predecessor(fsdp, unit);
    }
    for (gint32 i = 0; i < desc->n_backward_prefetch; i++) {
        gint32 target =
            g_array_index(fsdp->plan->prefetch, gint32, (guint)(desc->first_backward_prefetch + i));
        fsdp2_prefetch(fsdp, target, FSDP2_PRE_BACKWARD);
    }
}

static gint32
make_gradient(Fsdp2 *fsdp, gint32 p, ZpRole role)
{
    const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(fsdp->plan, p);
    zp_fsdp_emit_tag(&fsdp->emit, parameter->unit);
    return zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GRADIENT, role,
                             zp_fsdp_parameter_elements(parameter) *
                                 zp_fsdp_plan_compute_bytes(fsdp->plan),
                             parameter->parameter);
}

/* The gradient of one use.  Of a parameter used more than once (tied weights) autograd adds the
 * gradients out of place: both summands and the sum are alive for a moment.  Returns the complete
 * gradient, or ZP_TAPE_NONE while uses are missing. */
static gint32
gradient_of_use(Fsdp2 *fsdp, gint32 p)
{
    Fsdp2Param *param = &fsdp->params[p];
    gboolean added = param->grad != ZP_TAPE_NONE;
    ZpRole role = added ? ZP_ROLE_GRADIENT_TEMPORARY : ZP_ROLE_GRADIENT;
    if (fsdp->plan->n_uses[p] == 1)
        return make_gradient(fsdp, p, role);
    param->uses_left--;
    gint32 own = make_gradient(fsdp, p, ZP_ROLE_GRADIENT_TEMPORARY);
    if (param->summand != ZP_TAPE_NONE) {
        gint32 sum = make_gradient(fsdp, p, param->uses_left ? ZP_ROLE_GRADIENT_TEMPORARY : role);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &param->summand);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &own);
        own = sum;
    }
    if (param->uses_left > 0) {
        param->summand = own;
        return ZP_TAPE_NONE;
    }
    param->summand = ZP_TAPE_NONE;
    return own;
}

/* All gradients of one operation appear together; those that are added into an existing .grad die
 * after that (AccumulateGrad adds in place). */
static void
gradients(Fsdp2 *fsdp, const ZpFsdpStep *step)
{
    for (gint32 i = 0; i < step->n_uses; i++) {
        gint32 p = zp_fsdp_plan_use(fsdp->plan, step->first_use + i);
        fsdp->pending[p] = ZP_TAPE_NONE;
        if (!zp_fsdp_plan_parameter(fsdp->plan, p)->trainable)
            continue;
        gint32 gradient = gradient_of_use(fsdp, p);
        if (fsdp->params[p].grad == ZP_TAPE_NONE)
            fsdp->params[p].grad = gradient;
        else
            fsdp->pending[p] = gradient;
    }
    for (gint32 i = 0; i < step->n_uses; i++) {
        gint32 p = zp_fsdp_plan_use(fsdp->plan, step->first_use + i);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &fsdp->pending[p]);
    }
}

static void
recompute(Fsdp2 *fsdp, gint32 region)
{
    if (fsdp->emit.region_done[region])
        return;
    fsdp->emit.region_done[region] = TRUE;
    const ZpFsdpRegion *range = &g_array_index(fsdp->plan->regions, ZpFsdpRegion, (guint)region);
    for (gint32 s = range->first_step; s <= range->last_step; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, s);
        if (step->kind == ZP_FSDP_ENTER)
            fsdp2_enter(fsdp, step->unit);
        else if (step->kind == ZP_FSDP_LEAVE)
            fsdp2_leave(fsdp, step->unit);
        else {
            zp_fsdp_emit_tag(&fsdp->emit, step->unit);
            zp_fsdp_emit_recompute(&fsdp->emit, step);
        }
    }
}

static void
call_backward(Fsdp2 *fsdp, const ZpFsdpStep *step)
{
    if (step->region != ZP_FSDP_NONE)
        recompute(fsdp, step->region);
    zp_fsdp_emit_tag(&fsdp->emit, step->unit);
    zp_fsdp_emit_backward(&fsdp->emit, step);
    gradients(fsdp, step);
    zp_fsdp_emit_tag(&fsdp->emit, step->unit);
    zp_fsdp_emit_release(&fsdp->emit, step);
}

/* Modules that return the same tensor have their hooks on that tensor, in the order in which they
 * returned.  Steps first..last are the leaves of such a run. */
static gint32
leave_backward(Fsdp2 *fsdp, gint32 last)
{
    gint32 first = last;
    while (first > 0 && zp_fsdp_plan_step(fsdp->plan, first - 1)->kind == ZP_FSDP_LEAVE)
        first--;
    for (gint32 s = first; s <= last; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, s);
        if (!step->requires_grad)
            continue;
        /* The hook is on what the unit returned: logits, but of a root with the loss inside. */
        if (last == (gint32)fsdp->plan->steps->len - 1 &&
            (!fsdp2_unit(fsdp, step->unit)->root || fsdp2_loss_is_outside(fsdp)))
            zp_fsdp_emit_loss_backward(&fsdp->emit);
        pre_backward(fsdp, step->unit);
    }
    return first;
}

static void
finalize_unit(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    for (int i = 0; i < 2; i++) {
        zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT, fsdp->last_post_reduce[i]);
        fsdp->last_post_reduce[i] = ZP_TAPE_NONE;
    }
    state->post_reduce_event = ZP_TAPE_NONE;
    fsdp2_drop_all_reduce_state(fsdp, unit);
    if (state->offload_event != ZP_TAPE_NONE)
        zp_tape_sync(fsdp->tape, state->offload_event);
    state->offload_event = ZP_TAPE_NONE;
    if (state->gather_pending) { /* gathered for a backward that never came */
        zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT, state->gather_event);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_COPY_IN, &state->gather_output);
        state->gather_pending = FALSE;
    }
    g_array_set_size(state->post_forward_indices, 0);
}

/* list.clear() drops from the end, but the loop variable still holds the last one. */
static void
drop_reduce_inputs(Fsdp2 *fsdp)
{
    GArray *inputs = fsdp->reduce_inputs;
    for (guint i = 0; i < inputs->len; i++)
        zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT,
                          g_array_index(inputs, Fsdp2Retained, i).event);
    for (guint i = inputs->len; i > 1; i--)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT,
                          &g_array_index(inputs, Fsdp2Retained, i - 2).buffer);
    if (inputs->len > 0)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT,
                          &g_array_index(inputs, Fsdp2Retained, inputs->len - 1).buffer);
    g_array_set_size(inputs, 0);
}

/* _root_post_backward_final_callback. */
static void
final_callback(Fsdp2 *fsdp)
{
    fsdp->forward_root = ZP_FSDP_NONE;
    for (guint i = 0; i < fsdp->plan->state_order->len; i++) {
        gint32 unit = g_array_index(fsdp->plan->state_order, gint32, i);
        Fsdp2Unit *state = &fsdp->units[unit];
        if (state->training != FSDP2_POST_BACKWARD)
            fsdp2_post_backward(fsdp, unit);
        state->training = FSDP2_IDLE;
        state->state = FSDP2_IDLE;
        if (fsdp->micro_batch->last_backward)
            finalize_unit(fsdp, unit);
    }
    if (!fsdp->micro_batch->last_backward)
        return;
    g_array_set_size(fsdp->post_forward_order, 0);
    drop_reduce_inputs(fsdp);
}

void
fsdp2_backward(Fsdp2 *fsdp)
{
    fsdp->emit.phase = ZP_PHASE_BACKWARD;
    fsdp->in_backward = TRUE;
    zp_fsdp_emit_begin_backward(&fsdp->emit);
    for (guint p = 0; p < fsdp->plan->parameters->len; p++)
        fsdp->params[p].uses_left = fsdp->plan->n_uses[p];
    for (gint32 s = (gint32)fsdp->plan->steps->len - 1; s >= 0; s--) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, s);
        switch ((ZpFsdpStepKind)step->kind) {
        case ZP_FSDP_LEAVE:
            s = leave_backward(fsdp, s);
            break;
        case ZP_FSDP_CALL:
            if (step->requires_grad)
                call_backward(fsdp, step);
            else
                zp_fsdp_emit_release(&fsdp->emit, step);
            break;
        case ZP_FSDP_ENTER:
            if (fsdp2_unit(fsdp, step->unit)->input_requires_grad)
                fsdp2_post_backward(fsdp, step->unit);
            break;
        }
    }
    final_callback(fsdp);
    fsdp->in_backward = FALSE;
}
