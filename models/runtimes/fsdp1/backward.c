/* _pre_backward_hook, the gradients that autograd makes, and the final callback
 * (torch/distributed/fsdp/_runtime_utils.py).
 *
 * The views of a flat parameter share one autograd node, which concatenates their gradients.  The
 * engine runs, of the nodes that are ready, the one made last; so a unit whose views were made
 * early (forward prefetch) is concatenated late. */
#include "models/runtimes/fsdp1/fsdp1_internal.h"

static void
pre_backward(Fsdp1 *fsdp, gint32 unit)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    if (state->ran_pre_backward)
        return;
    state->training = FSDP1_BACKWARD_PRE;
    if (state->needs_pre_backward_unshard) {
        if (!state->prefetched)
            fsdp1_unshard(fsdp, unit);
        zp_fsdp_emit_tag(&fsdp->emit, unit);
        zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_DEFAULT, FSDP1_UNSHARD);
    }
    state->needs_pre_backward_unshard = FALSE;
    fsdp1_prefetch(fsdp, unit);
    state->saved = fsdp->sharded && state->gradient != ZP_TAPE_NONE;
    state->ran_pre_backward = TRUE;
}

static gint32
make_temporary(Fsdp1 *fsdp, gint32 p)
{
    const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(fsdp->plan, p);
    zp_fsdp_emit_tag(&fsdp->emit, parameter->unit);
    return zp_fsdp_emit_make(
        &fsdp->emit, FSDP1_DEFAULT, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_TEMPORARY,
        zp_fsdp_parameter_elements(parameter) * zp_fsdp_plan_compute_bytes(fsdp->plan),
        parameter->parameter);
}

/* The gradient of one use; a tied parameter's are added out of place. */
static void
gradient_of_use(Fsdp1 *fsdp, gint32 p)
{
    Fsdp1Param *param = &fsdp->params[p];
    if (!fsdp1_gets_gradient(fsdp, p))
        return;
    gint32 own = make_temporary(fsdp, p);
    if (param->temporary != ZP_TAPE_NONE) {
        gint32 sum = make_temporary(fsdp, p);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &param->temporary);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &own);
        own = sum;
    }
    param->temporary = own;
    fsdp->units[zp_fsdp_plan_parameter(fsdp->plan, p)->unit].uses_left--;
}

static void
recompute(Fsdp1 *fsdp, gint32 region)
{
    if (fsdp->emit.region_done[region])
        return;
    fsdp->emit.region_done[region] = TRUE;
    const ZpFsdpRegion *range = &g_array_index(fsdp->plan->regions, ZpFsdpRegion, (guint)region);
    for (gint32 s = range->first_step; s <= range->last_step; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, s);
        if (step->kind == ZP_FSDP_ENTER)
            fsdp1_enter(fsdp, step->unit);
        else if (step->kind == ZP_FSDP_LEAVE)
            fsdp1_leave(fsdp, step->unit, fsdp->flows[s]);
        else {
            zp_fsdp_emit_tag(&fsdp->emit, step->unit);
            zp_fsdp_emit_recompute(&fsdp->emit, step);
        }
    }
}

/* _post_backward_reshard_only_hook: a frozen unit has no gradient to wait for, but that of its
 * input. */
static void
reshard_frozen(Fsdp1 *fsdp, gint32 unit)
{
    if (fsdp->units[unit].trainable)
        return;
    fsdp->units[unit].training = FSDP1_BACKWARD_POST;
    fsdp1_reshard(fsdp, unit, fsdp1_frees_in_backward(fsdp));
    fsdp1_prefetch(fsdp, unit);
}

/* Hooks on the tensor that a step returned, in the order in which modules put them there: those
 * that return it, then those that take it as input. */
static void
run_hooks(Fsdp1 *fsdp, gint32 call)
{
    gint32 n = (gint32)fsdp->plan->steps->len;
    gboolean reset = FALSE; /* the root's hook resets, and is the last of all */
    for (gint32 s = call + 1; s < n && fsdp->flows[call]; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, s);
        if (step->kind == ZP_FSDP_CALL)
            return;
        if (step->kind == ZP_FSDP_LEAVE) {
            reset |= fsdp1_unit(fsdp, step->unit)->root;
            if (fsdp1_unit(fsdp, step->unit)->root)
                fsdp1_reset_gradients(fsdp);
            pre_backward(fsdp, step->unit);
        } else {
            reshard_frozen(fsdp, step->unit);
        }
    }
    if (!reset && fsdp->flows[call]) /* a root without parameters of its own */
        fsdp1_reset_gradients(fsdp);
}

/* The same on the model's own input, if that wants a gradient. */
static void
run_input_hooks(Fsdp1 *fsdp)
{
    for (guint s = 0; s < fsdp->plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, (gint32)s);
        if (step->kind != ZP_FSDP_ENTER || !fsdp->flows[s])
            return;
        reshard_frozen(fsdp, step->unit);
    }
}

static void
call_backward(Fsdp1 *fsdp, gint32 call)
{
    const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, call);
    run_hooks(fsdp, call);
    if (!fsdp->flows[call]) {
        zp_fsdp_emit_release(&fsdp->emit, step);
        return;
    }
    if (step->region != ZP_FSDP_NONE)
        recompute(fsdp, step->region);
    zp_fsdp_emit_tag(&fsdp->emit, step->unit);
    zp_fsdp_emit_backward(&fsdp->emit, step);
    for (gint32 i = 0; i < step->n_uses; i++)
        gradient_of_use(fsdp, zp_fsdp_plan_use(fsdp->plan, step->first_use + i));
    zp_fsdp_emit_tag(&fsdp->emit, step->unit);
    zp_fsdp_emit_release(&fsdp->emit, step);
}

/* The youngest node of views that has all its gradients and is younger than `limit`. */
static gint32
ready_views(const Fsdp1 *fsdp, gint64 limit)
{
    gint32 best = ZP_FSDP_NONE;
    for (gint32 u = 0; u < (gint32)fsdp->plan->units->len; u++) {
        const Fsdp1Unit *state = &fsdp->units[u];
        if (state->uses_left != 0 || state->view_order <= limit)
            continue;
        if (best == ZP_FSDP_NONE || state->view_order > fsdp->units[best].view_order)
            best = u;
    }
    return best;
}

static void
run_ready_views(Fsdp1 *fsdp, gint64 limit)
{
    gint32 unit;
    while ((unit = ready_views(fsdp, limit)) != ZP_FSDP_NONE) {
        fsdp->units[unit].uses_left = ZP_FSDP_NONE; /* done */
        fsdp1_finish_gradient(fsdp, unit);
    }
}

static void
count_uses(Fsdp1 *fsdp)
{
    for (guint u = 0; u < fsdp->plan->units->len; u++)
        fsdp->units[u].uses_left = 0;
    for (guint i = 0; i < fsdp->plan->uses->len; i++) {
        const ZpFsdpParameter *parameter =
            zp_fsdp_plan_parameter(fsdp->plan, zp_fsdp_plan_use(fsdp->plan, (gint32)i));
        fsdp->units[parameter->unit].uses_left += fsdp->units[parameter->unit].trainable != FALSE;
    }
    for (guint u = 0; u < fsdp->plan->units->len; u++) {
        if (fsdp->units[u].uses_left == 0)
            fsdp->units[u].uses_left = ZP_FSDP_NONE; /* nothing to come */
    }
}

/* _catch_all_reshard: units whose gradients, or whose input's, never came. */
static void
reshard_the_rest(Fsdp1 *fsdp)
{
    for (guint i = 0; i < fsdp->plan->state_order->len; i++) {
        gint32 unit = g_array_index(fsdp->plan->state_order, gint32, i);
        if (fsdp->units[unit].in_use || fsdp->units[unit].views_kept)
            fsdp1_reshard(fsdp, unit, fsdp1_frees_in_backward(fsdp));
    }
}

/* prepare_gradient_for_optim with CPU offload: the optimizer gets _cpu_grad, so that the device's
 * dies. */
static void
hand_over_offloaded(Fsdp1 *fsdp)
{
    if (!fsdp->plan->settings.cpu_offload)
        return;
    zp_tape_sync(fsdp->tape, zp_tape_record(fsdp->tape, FSDP1_DEFAULT));
    for (guint i = 0; i < fsdp->plan->state_order->len; i++) {
        gint32 unit = g_array_index(fsdp->plan->state_order, gint32, i);
        Fsdp1Unit *state = &fsdp->units[unit];
        zp_fsdp_emit_tag(&fsdp->emit, unit);
        if (state->grad == state->gradient)
            state->grad = ZP_TAPE_NONE;
        zp_fsdp_emit_drop(&fsdp->emit, fsdp->hybrid ? FSDP1_ALL_REDUCE : FSDP1_POST_BACKWARD,
                          &state->gradient);
    }
}

/* _post_backward_final_callback. */
static void
final_callback(Fsdp1 *fsdp)
{
    zp_fsdp_emit_tag(&fsdp->emit, ZP_FSDP_NONE);
    if (fsdp->micro_batch->sync) {
        zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_DEFAULT, FSDP1_POST_BACKWARD);
        if (fsdp->hybrid)
            zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_DEFAULT, FSDP1_ALL_REDUCE);
    }
    reshard_the_rest(fsdp);
    if (fsdp->micro_batch->sync)
        hand_over_offloaded(fsdp);
    g_array_set_size(fsdp->post_forward_order, 0);
    fsdp->first_iteration = FALSE;
    for (guint u = 0; u < fsdp->plan->units->len; u++) {
        Fsdp1Unit *state = &fsdp->units[u];
        state->saved &= !fsdp->micro_batch->sync;
        state->ran_pre_backward = state->needs_pre_backward_unshard = state->prefetched = FALSE;
        state->post_forward_index = ZP_FSDP_NONE;
        state->training = FSDP1_IDLE;
    }
}

void
fsdp1_backward(Fsdp1 *fsdp)
{
    fsdp->emit.phase = ZP_PHASE_BACKWARD;
    zp_fsdp_emit_begin_backward(&fsdp->emit);
    count_uses(fsdp);
    for (gint32 s = (gint32)fsdp->plan->steps->len - 1; s >= 0; s--) {
        if (zp_fsdp_plan_step(fsdp->plan, s)->kind != ZP_FSDP_CALL)
            continue;
        run_ready_views(fsdp, fsdp->call_order[s]);
        call_backward(fsdp, s);
    }
    /* A leaf's gradient goes before all else; that of a cast of the input, which is older than all
     * views, after. */
    gboolean casts = fsdp->plan->param_bytes != 0;
    if (!casts)
        run_input_hooks(fsdp);
    run_ready_views(fsdp, -1);
    if (casts)
        run_input_hooks(fsdp);
    final_callback(fsdp);
}
