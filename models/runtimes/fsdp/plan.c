#include "models/runtimes/fsdp/plan.h"

ZpFsdpPlan *
zp_fsdp_plan_new(void)
{
    ZpFsdpPlan *plan = g_new0(ZpFsdpPlan, 1);
    plan->parameters = g_array_new(FALSE, TRUE, sizeof(ZpFsdpParameter));
    plan->units = g_array_new(FALSE, TRUE, sizeof(ZpFsdpUnit));
    plan->steps = g_array_new(FALSE, TRUE, sizeof(ZpFsdpStep));
    plan->uses = g_array_new(FALSE, TRUE, sizeof(gint32));
    plan->regions = g_array_new(FALSE, TRUE, sizeof(ZpFsdpRegion));
    plan->prefetch = g_array_new(FALSE, TRUE, sizeof(gint32));
    plan->optimizer_order = g_array_new(FALSE, TRUE, sizeof(gint32));
    plan->state_order = g_array_new(FALSE, TRUE, sizeof(gint32));
    plan->micro_batches = g_array_new(FALSE, TRUE, sizeof(ZpFsdpMicroBatch));
    plan->shard = plan->replicate = 1;
    plan->settings = *zp_fsdp_defaults();
    return plan;
}

void
zp_fsdp_plan_free(ZpFsdpPlan *plan)
{
    if (plan == NULL)
        return;
    g_array_unref(plan->parameters);
    g_array_unref(plan->units);
    g_array_unref(plan->steps);
    g_array_unref(plan->uses);
    g_array_unref(plan->regions);
    g_array_unref(plan->prefetch);
    g_array_unref(plan->optimizer_order);
    g_array_unref(plan->state_order);
    g_array_unref(plan->micro_batches);
    g_free(plan->n_uses);
    g_free(plan);
}

static gboolean
has_trainable_use(const ZpFsdpPlan *plan, const ZpFsdpStep *step)
{
    for (gint32 i = 0; i < step->n_uses; i++) {
        if (zp_fsdp_plan_parameter(plan, zp_fsdp_plan_use(plan, step->first_use + i))->trainable)
            return TRUE;
    }
    return FALSE;
}

/* Does a module of the layer whose kernels this step stands for have something to train? */
static gboolean
trains_its_layer(const ZpFsdpPlan *plan, guint s)
{
    const ZpFsdpStep *layer = zp_fsdp_plan_step(plan, (gint32)s);
    for (s++; layer->n_layers > 0 && s < plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(plan, (gint32)s);
        if (step->kind != ZP_FSDP_CALL)
            continue;
        if (step->n_layers > 0 || step->first_layer != layer->first_layer)
            break;
        if (has_trainable_use(plan, step))
            return TRUE;
    }
    return FALSE;
}

/* A tensor requires a gradient once a trainable parameter has touched it; in front of that
 * autograd records nothing, so no hook of a frozen prefix ever fires. */
static void
mark_gradient_flow(ZpFsdpPlan *plan)
{
    gboolean flows = FALSE;
    gboolean first = TRUE;
    for (guint s = 0; s < plan->steps->len; s++) {
        ZpFsdpStep *step = &g_array_index(plan->steps, ZpFsdpStep, s);
        if (step->kind == ZP_FSDP_ENTER && first) {
            flows = zp_fsdp_plan_unit(plan, step->unit)->input_requires_grad;
            first = FALSE;
        }
        if (step->kind == ZP_FSDP_CALL && !flows)
            flows = has_trainable_use(plan, step);
        step->requires_grad = flows || (step->kind == ZP_FSDP_CALL && trains_its_layer(plan, s));
    }
}

void
zp_fsdp_plan_finish(ZpFsdpPlan *plan)
{
    plan->n_uses = g_new0(gint32, MAX(1, plan->parameters->len));
    for (guint i = 0; i < plan->uses->len; i++)
        plan->n_uses[zp_fsdp_plan_use(plan, (gint32)i)]++;
    mark_gradient_flow(plan);
    if (plan->reduce_bytes == plan->param_bytes)
        plan->reduce_bytes = 0;
    if (plan->param_bytes == plan->stored_bytes)
        plan->param_bytes = 0;
}

void
zp_fsdp_plan_add_prefetch(ZpFsdpPlan *plan, gint32 n_units, gint32 n, gboolean forward)
{
    if (n <= 0)
        return;
    for (gint32 u = 0; u < n_units; u++) {
        ZpFsdpUnit *unit = &g_array_index(plan->units, ZpFsdpUnit, (guint)u);
        gint32 first = (gint32)plan->prefetch->len;
        for (gint32 k = 1; k <= n && !unit->root; k++) {
            gint32 target = forward ? u + k : u - k;
            if (target >= 0 && target < n_units && !zp_fsdp_plan_unit(plan, target)->root)
                g_array_append_val(plan->prefetch, target);
        }
        gint32 found = (gint32)plan->prefetch->len - first;
        if (forward) {
            unit->first_forward_prefetch = first;
            unit->n_forward_prefetch = found;
        } else {
            unit->first_backward_prefetch = first;
            unit->n_backward_prefetch = found;
        }
    }
}
