/* FlatParamHandle.pre_unshard, unshard, post_unshard and reshard, the rate limiter and prefetching
 * (torch/distributed/fsdp/_runtime_utils.py _unshard, _reshard, _get_handle_to_prefetch). */
#include "models/runtimes/fsdp1/fsdp1_internal.h"

static gboolean
uses_mixed_precision(const Fsdp1 *fsdp)
{
    return fsdp->plan->param_bytes != 0;
}

static gboolean
needs_unshard(const Fsdp1 *fsdp, const Fsdp1Unit *state)
{
    return fsdp->sharded && state->unsharded == ZP_TAPE_NONE;
}

static void
fill_low_precision(Fsdp1 *fsdp, Fsdp1Unit *state, gint64 elements)
{
    ZpFsdpEmit *emit = &fsdp->emit;
    gint32 copy = ZP_TAPE_NONE;
    if (fsdp->plan->settings.cpu_offload) {
        if (uses_mixed_precision(fsdp))
            copy = zp_fsdp_emit_make(emit, FSDP1_PRE_UNSHARD, ZP_CLASS_GATHERED, ZP_ROLE_CAST,
                                     elements * fsdp->plan->stored_bytes, ZP_FSDP_NONE);
        zp_fsdp_emit_launch(emit, FSDP1_PRE_UNSHARD, state->works.to_device);
    }
    if (uses_mixed_precision(fsdp))
        zp_fsdp_emit_launch(emit, FSDP1_PRE_UNSHARD, state->works.cast);
    zp_fsdp_emit_drop(emit, FSDP1_PRE_UNSHARD, &copy);
}

/* FlatParamHandle.pre_unshard: the shard in low precision (_use_low_precision_shard), or with CPU
 * offload on the device (flat_param_to), or both, for which it comes over in full.  Without
 * sharding this is what computes.  An offloaded shard is brought even if the unit is gathered. */
static gboolean
pre_unshard(Fsdp1 *fsdp, Fsdp1Unit *state)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    gboolean offload = plan->settings.cpu_offload;
    if (!uses_mixed_precision(fsdp) && !offload)
        return FALSE;
    if (fsdp->sharded && !offload && !needs_unshard(fsdp, state))
        return FALSE;
    gint64 elements = fsdp->sharded ? state->shard_elements : state->flat_elements;
    if (state->low_precision == ZP_TAPE_NONE)
        state->low_precision =
            zp_fsdp_emit_make(&fsdp->emit, FSDP1_PRE_UNSHARD, ZP_CLASS_GATHERED,
                              fsdp->sharded ? ZP_ROLE_CAST : ZP_ROLE_UNSHARDED,
                              elements * zp_fsdp_plan_compute_bytes(plan), ZP_FSDP_NONE);
    fill_low_precision(fsdp, state, elements);
    return TRUE;
}

/* _FreeEventQueue.dequeue_if_needed: the CPU waits until a freed unit's work is done, so that no
 * more than two all-gathers are in flight. */
static void
limit_rate(Fsdp1 *fsdp)
{
    GArray *events = fsdp->free_events;
    if (!fsdp->plan->settings.limit_all_gathers || events->len < FSDP1_MAX_INFLIGHT)
        return;
    zp_tape_sync(fsdp->tape, g_array_index(events, gint32, 0));
    g_array_remove_index(events, 0);
}

static void
free_low_precision(Fsdp1 *fsdp, Fsdp1Unit *state, int using_stream)
{
    if (state->low_precision == ZP_TAPE_NONE)
        return;
    zp_tape_use(fsdp->tape, (guint8)using_stream, state->low_precision);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_PRE_UNSHARD, &state->low_precision);
}

void
fsdp1_unshard(Fsdp1 *fsdp, gint32 unit)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    fsdp1_write_back(fsdp, unit);
    if (pre_unshard(fsdp, state))
        zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_UNSHARD, FSDP1_PRE_UNSHARD);
    limit_rate(fsdp);
    if (needs_unshard(fsdp, state)) {
        gint64 bytes =
            state->shard_elements * fsdp->plan->shard * zp_fsdp_plan_compute_bytes(fsdp->plan);
        state->unsharded = zp_fsdp_emit_make(&fsdp->emit, FSDP1_UNSHARD, ZP_CLASS_GATHERED,
                                             ZP_ROLE_UNSHARDED, bytes, ZP_FSDP_NONE);
        zp_fsdp_emit_launch(&fsdp->emit, FSDP1_UNSHARD, state->works.gather);
    }
    if (fsdp->sharded)
        free_low_precision(fsdp, state, FSDP1_UNSHARD);
    state->in_use = fsdp->sharded || uses_mixed_precision(fsdp) || fsdp->plan->settings.cpu_offload;
    /* The views of the parameters are made here: autograd runs their node after all younger ones.
     * Those of a recomputation are not part of the graph that backward walks. */
    if (state->training == FSDP1_FORWARD && fsdp->emit.phase == ZP_PHASE_FORWARD)
        state->view_order = fsdp->order++;
}

void
fsdp1_reshard(Fsdp1 *fsdp, gint32 unit, gboolean free_unsharded)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    if (free_unsharded) {
        if (state->unsharded != ZP_TAPE_NONE)
            zp_tape_use(fsdp->tape, FSDP1_DEFAULT, state->unsharded);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_UNSHARD, &state->unsharded);
        if (fsdp->plan->settings.limit_all_gathers) {
            gint32 event = zp_tape_record(fsdp->tape, FSDP1_DEFAULT);
            g_array_append_val(fsdp->free_events, event);
        }
    }
    if (!fsdp->sharded)
        free_low_precision(fsdp, state, FSDP1_DEFAULT);
    state->in_use = FALSE;
    state->views_kept = state->training == FSDP1_FORWARD && fsdp->sharded &&
                        fsdp->plan->settings.use_orig_params &&
                        fsdp->plan->strategy == ZP_FSDP_STRATEGY_SHARD_GRAD_OP;
    if (state->training == FSDP1_FORWARD && !state->views_kept)
        fsdp1_refresh_grad_views(fsdp, unit);
    state->prefetched = FALSE;
}

/* _get_handle_to_prefetch, by what the current unit is doing. */
static gint32
unit_to_prefetch(const Fsdp1 *fsdp, gint32 unit)
{
    const Fsdp1Unit *state = &fsdp->units[unit];
    const ZpFsdp *settings = &fsdp->plan->settings;
    gboolean forward = state->training == FSDP1_FORWARD;
    if (forward
            ? !settings->next_forward_prefetch
            : settings->prefetch != (state->training == FSDP1_BACKWARD_PRE ? ZP_FSDP_PREFETCH_PRE
                                                                           : ZP_FSDP_PREFETCH_POST))
        return ZP_FSDP_NONE;
    GArray *order = forward ? fsdp->pre_forward_order : fsdp->post_forward_order;
    gint32 own = forward ? state->pre_forward_index : state->post_forward_index;
    gint32 index = forward ? own + 1 : own - 1;
    if (own == ZP_FSDP_NONE || index < 0 || index >= (gint32)order->len)
        return ZP_FSDP_NONE;
    gint32 target = g_array_index(order, gint32, (guint)index);
    const Fsdp1Unit *candidate = &fsdp->units[target];
    gboolean needs =
        forward ? candidate->needs_pre_forward_unshard : candidate->needs_pre_backward_unshard;
    return needs && !candidate->prefetched ? target : ZP_FSDP_NONE;
}

void
fsdp1_prefetch(Fsdp1 *fsdp, gint32 unit)
{
    gint32 target = unit_to_prefetch(fsdp, unit);
    if (target == ZP_FSDP_NONE)
        return;
    Fsdp1Unit *state = &fsdp->units[target];
    Fsdp1Training own = state->training;
    state->training =
        fsdp->units[unit].training == FSDP1_FORWARD ? FSDP1_FORWARD : FSDP1_BACKWARD_PRE;
    fsdp1_unshard(fsdp, target);
    state->training = own;
    state->prefetched = TRUE;
}
