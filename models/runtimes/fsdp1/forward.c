/* _root_pre_forward, _pre_forward and _post_forward
 * (torch/distributed/fsdp/_runtime_utils.py, _exec_order_utils.py). */
#include "models/runtimes/fsdp1/fsdp1_internal.h"

static void
make_and_free(Fsdp1 *fsdp, ZpRole role, gint64 bytes)
{
    gint32 buffer =
        zp_fsdp_emit_make(&fsdp->emit, FSDP1_DEFAULT, ZP_CLASS_GATHERED, role, bytes, ZP_FSDP_NONE);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &buffer);
}

/* FlatParamHandle.init_flat_param_attributes: storages that come and go later are made once and
 * emptied, among them one that only full-precision gathers would use.  no_sync() does this before
 * the forward. */
static void
lazy_init(Fsdp1 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    fsdp->emit.phase = fsdp->micro_batch->sync ? ZP_PHASE_FORWARD : ZP_PHASE_INIT;
    for (guint i = 0; i < plan->state_order->len; i++) {
        gint32 u = g_array_index(plan->state_order, gint32, i);
        const Fsdp1Unit *unit = &fsdp->units[u];
        gint64 own = fsdp->sharded ? unit->shard_elements : unit->flat_elements;
        gint64 padded = unit->shard_elements * plan->shard;
        zp_fsdp_emit_tag(&fsdp->emit, u);
        make_and_free(fsdp, ZP_ROLE_CAST, own * plan->param_bytes);
        if (!fsdp->sharded)
            continue;
        make_and_free(fsdp, ZP_ROLE_UNSHARDED, padded * zp_fsdp_plan_compute_bytes(plan));
        if (plan->param_bytes)
            make_and_free(fsdp, ZP_ROLE_UNSHARDED, padded * plan->stored_bytes);
    }
    fsdp->emit.phase = ZP_PHASE_FORWARD;
}

static void
root_pre_forward(Fsdp1 *fsdp)
{
    if (fsdp->first_iteration && fsdp->plan->settings.first_step)
        lazy_init(fsdp);
    for (guint u = 0; u < fsdp->plan->units->len && fsdp->plan->settings.next_forward_prefetch;
         u++) {
        fsdp->units[u].needs_pre_forward_unshard = TRUE;
        fsdp->units[u].prefetched = FALSE;
    }
    zp_fsdp_emit_tag(&fsdp->emit, ZP_FSDP_NONE);
    gint32 event = zp_tape_record(fsdp->tape, FSDP1_DEFAULT);
    zp_fsdp_emit_wait(&fsdp->emit, FSDP1_UNSHARD, event);
    zp_fsdp_emit_wait(&fsdp->emit, FSDP1_PRE_UNSHARD, event);
    fsdp1_reset_gradients(fsdp);
}

static void
record_pre_forward(Fsdp1 *fsdp, gint32 unit)
{
    if (!fsdp->first_iteration || fsdp->units[unit].pre_forward_index != ZP_FSDP_NONE)
        return;
    fsdp->units[unit].pre_forward_index = (gint32)fsdp->pre_forward_order->len;
    g_array_append_val(fsdp->pre_forward_order, unit);
}

void
fsdp1_enter(Fsdp1 *fsdp, gint32 unit)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    if (state->training == FSDP1_BACKWARD_PRE) /* recomputation: pre-backward has gathered */
        return;
    record_pre_forward(fsdp, unit);
    state->training = FSDP1_FORWARD;
    if (!state->prefetched)
        fsdp1_unshard(fsdp, unit);
    state->needs_pre_forward_unshard = FALSE;
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    zp_fsdp_emit_wait_stream(&fsdp->emit, FSDP1_DEFAULT, FSDP1_UNSHARD);
    fsdp1_prefetch(fsdp, unit);
}

void
fsdp1_leave(Fsdp1 *fsdp, gint32 unit, gboolean requires_grad)
{
    Fsdp1Unit *state = &fsdp->units[unit];
    if (state->training == FSDP1_BACKWARD_PRE)
        return;
    /* An index of 0 counts as none, as in ExecOrderData.record_post_forward. */
    if (state->post_forward_index <= 0)
        state->post_forward_index = (gint32)fsdp->post_forward_order->len;
    g_array_append_val(fsdp->post_forward_order, unit);
    fsdp1_reshard(fsdp, unit,
                  fsdp->sharded && !fsdp1_unit(fsdp, unit)->root &&
                      fsdp->plan->strategy == ZP_FSDP_STRATEGY_FULL_SHARD);
    state->needs_pre_backward_unshard = requires_grad;
    state->ran_pre_backward = FALSE;
    state->training = FSDP1_IDLE;
}

void
fsdp1_forward(Fsdp1 *fsdp)
{
    fsdp->emit.phase = ZP_PHASE_FORWARD;
    root_pre_forward(fsdp);
    for (guint s = 0; s < fsdp->plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, (gint32)s);
        switch ((ZpFsdpStepKind)step->kind) {
        case ZP_FSDP_ENTER:
            fsdp1_enter(fsdp, step->unit);
            break;
        case ZP_FSDP_LEAVE:
            fsdp1_leave(fsdp, step->unit, fsdp->flows[s]);
            break;
        case ZP_FSDP_CALL:
            fsdp->call_order[s] = fsdp->order++;
            zp_fsdp_emit_tag(&fsdp->emit, step->unit);
            zp_fsdp_emit_forward(&fsdp->emit, step);
            break;
        }
    }
}
