/* FSDPState._pre_forward and _post_forward with FSDPParamGroup.pre_forward and post_forward
 * (torch/distributed/fsdp/_fully_shard/_fsdp_state.py). */
#include "models/runtimes/fsdp2/fsdp2_internal.h"

/* _root_pre_forward: the first module to run forward becomes the root of the iteration. */
static void
root_pre_forward(Fsdp2 *fsdp, gint32 unit)
{
    if (fsdp->forward_root != ZP_FSDP_NONE)
        return;
    fsdp->forward_root = unit;
    gint32 event = zp_tape_record(fsdp->tape, FSDP2_DEFAULT);
    fsdp2_gather_streams_wait(fsdp, event);
}

static void
root_post_forward(Fsdp2 *fsdp, gint32 unit)
{
    if (fsdp->forward_root != unit)
        return;
    fsdp2_free_parked(fsdp);
    fsdp->forward_root = ZP_FSDP_NONE;
}

void
fsdp2_enter(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    if (state->state == FSDP2_PRE_BACKWARD) {
        /* Recomputation: pre-backward has gathered, unless another backward resharded. */
        if (state->sharded != FSDP2_UNSHARDED) {
            fsdp2_unshard(fsdp, unit);
            fsdp2_wait_for_unshard(fsdp, unit);
        }
        return;
    }
    gboolean first_in_pass = state->state != FSDP2_FORWARD;
    state->state = FSDP2_FORWARD;
    if (first_in_pass)
        root_pre_forward(fsdp, unit);
    state->training = FSDP2_FORWARD;
    fsdp2_unshard(fsdp, unit);
    fsdp2_wait_for_unshard(fsdp, unit);
    for (gint32 i = 0; i < desc->n_forward_prefetch && first_in_pass; i++) {
        gint32 target =
            g_array_index(fsdp->plan->prefetch, gint32, (guint)(desc->first_forward_prefetch + i));
        fsdp2_prefetch(fsdp, target, FSDP2_FORWARD);
    }
}

void
fsdp2_leave(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    if (state->state == FSDP2_PRE_BACKWARD)
        return;
    if (!fsdp->in_backward) {
        fsdp2_reshard(fsdp, unit);
        gint32 index = (gint32)fsdp->post_forward_order->len;
        g_array_append_val(fsdp->post_forward_order, unit);
        g_array_append_val(state->post_forward_indices, index);
    }
    state->training = FSDP2_IDLE;
    state->state = FSDP2_IDLE;
    root_post_forward(fsdp, unit);
}

static gboolean
root_is_a_unit(const Fsdp2 *fsdp)
{
    for (guint u = 0; u < fsdp->plan->units->len; u++) {
        if (fsdp2_unit(fsdp, (gint32)u)->root)
            return TRUE;
    }
    return FALSE;
}

void
fsdp2_forward(Fsdp2 *fsdp)
{
    gboolean outside = fsdp2_loss_is_outside(fsdp);
    fsdp->emit.phase = ZP_PHASE_FORWARD;
    /* A root without parameters has hooks, but no group. */
    gint32 bare_root = root_is_a_unit(fsdp) ? ZP_FSDP_NONE : FSDP2_ROOT;
    zp_fsdp_emit_tag(&fsdp->emit, ZP_FSDP_NONE);
    if (bare_root == FSDP2_ROOT)
        root_pre_forward(fsdp, FSDP2_ROOT);
    for (guint s = 0; s < fsdp->plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, (gint32)s);
        switch ((ZpFsdpStepKind)step->kind) {
        case ZP_FSDP_ENTER:
            fsdp2_enter(fsdp, step->unit);
            break;
        case ZP_FSDP_LEAVE:
            if (fsdp2_unit(fsdp, step->unit)->root && !outside)
                zp_fsdp_emit_loss(&fsdp->emit);
            fsdp2_leave(fsdp, step->unit);
            break;
        case ZP_FSDP_CALL:
            zp_fsdp_emit_tag(&fsdp->emit, step->unit);
            zp_fsdp_emit_forward_to_loss(&fsdp->emit, step);
            break;
        }
    }
    if (!outside)
        zp_fsdp_emit_loss(&fsdp->emit);
    if (bare_root == FSDP2_ROOT)
        root_post_forward(fsdp, FSDP2_ROOT);
    zp_fsdp_emit_loss(&fsdp->emit);
}
