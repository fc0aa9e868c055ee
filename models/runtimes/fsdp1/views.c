/* With use_orig_params the parameters that the optimizer sees are slices of the local shard, and
 * their .grad views of the flat gradient (torch/distributed/fsdp/_flat_param.py
 * _use_unsharded_grad_views, _use_sharded_grad_views, _reset_flat_param_grad_info_if_needed). */
#include "models/runtimes/fsdp1/fsdp1_internal.h"

/* A view cannot be assigned to the .grad of a tensor of another shape or type.  Where there is no
 * .grad yet, an empty one is made for the view to be put into, and dies at once. */
static void
make_placeholder(Fsdp1 *fsdp, gint32 p)
{
    const Fsdp1Param *param = &fsdp->params[p];
    const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(fsdp->plan, p);
    gboolean same_type = fsdp->units[parameter->unit].grad_width == fsdp->plan->stored_bytes;
    gboolean same_shape =
        !fsdp->sharded || (parameter->row_elements == 1 &&
                           param->owned_elements == zp_fsdp_parameter_elements(parameter));
    if (param->has_grad || (same_type && same_shape) || fsdp->plan->settings.cpu_offload)
        return; /* an offloaded parameter's is on the host */
    gint32 placeholder =
        zp_fsdp_emit_make(&fsdp->emit, FSDP1_DEFAULT, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_TEMPORARY,
                          param->owned_elements * fsdp->plan->stored_bytes, parameter->parameter);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &placeholder);
}

void
fsdp1_use_unsharded_grad_views(Fsdp1 *fsdp, gint32 unit)
{
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    if (!fsdp->plan->settings.use_orig_params)
        return;
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        make_placeholder(fsdp, p);
        fsdp->params[p].has_grad = TRUE;
    }
}

static gboolean
has_flat_grad(const Fsdp1Unit *state)
{
    return state->grad != ZP_TAPE_NONE || (state->gradient != ZP_TAPE_NONE && !state->saved);
}

/* _writeback_orig_params, before a unit is gathered: a .grad that was set to None is taken for
 * zeros, and remembered. */
void
fsdp1_write_back(Fsdp1 *fsdp, gint32 unit)
{
    const Fsdp1Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    if (!fsdp->plan->settings.use_orig_params || state->views_kept || !has_flat_grad(state) ||
        (fsdp->sharded && state->in_use))
        return;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++)
        fsdp->params[p].grad_none |=
            fsdp->params[p].owned_elements > 0 && !fsdp->params[p].has_grad;
}

void
fsdp1_use_sharded_grad_views(Fsdp1 *fsdp, gint32 unit)
{
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++)
        fsdp->params[p].has_grad = zp_fsdp_plan_parameter(fsdp->plan, p)->trainable &&
                                   fsdp->params[p].owned_elements > 0 && !fsdp->params[p].grad_none;
}

/* _reset_is_grad_none, after a reduction. */
void
fsdp1_reset_grad_none(Fsdp1 *fsdp, gint32 unit)
{
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++)
        fsdp->params[p].grad_none &= !zp_fsdp_plan_parameter(fsdp->plan, p)->trainable;
}

/* In forward, after resharding. */
void
fsdp1_refresh_grad_views(Fsdp1 *fsdp, gint32 unit)
{
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    if (fsdp->sharded && fsdp->units[unit].grad != ZP_TAPE_NONE)
        fsdp1_use_unsharded_grad_views(fsdp, unit);
    else if (has_flat_grad(&fsdp->units[unit]))
        fsdp1_use_sharded_grad_views(fsdp, unit);
    else
        for (gint32 p = 0; p < desc->n_parameters; p++)
            fsdp->params[desc->first_parameter + p].has_grad = FALSE;
}

/* zero_grad(set_to_none=True) reaches the parameters that the optimizer has. */
void
fsdp1_forget_grads(Fsdp1 *fsdp)
{
    for (guint p = 0; p < fsdp->plan->parameters->len; p++)
        fsdp->params[p].has_grad &= !zp_fsdp_plan_parameter(fsdp->plan, (gint32)p)->trainable;
}

static gboolean
has_any_grad(const Fsdp1 *fsdp, gint32 unit)
{
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, unit);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        if (fsdp->params[p].has_grad)
            return TRUE;
    }
    return FALSE;
}

/* The flat gradient dies when the root finds that no parameter of the unit has a gradient: after
 * zero_grad(), and on a rank that owns no part of a trainable parameter.  A backward that has begun
 * holds it under another name. */
void
fsdp1_reset_gradients(Fsdp1 *fsdp)
{
    if (!fsdp->plan->settings.use_orig_params)
        return;
    for (guint i = 0; i < fsdp->plan->state_order->len; i++) {
        gint32 unit = g_array_index(fsdp->plan->state_order, gint32, i);
        if (fsdp->units[unit].saved || has_any_grad(fsdp, unit))
            continue;
        Fsdp1Unit *state = &fsdp->units[unit];
        zp_fsdp_emit_tag(&fsdp->emit, unit);
        if (state->grad == state->gradient) /* without sharding, after a reduction */
            state->grad = ZP_TAPE_NONE;
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_DEFAULT, &state->grad);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP1_POST_BACKWARD, &state->gradient);
    }
}
