/* Gradients, their copies into buckets and the all-reduces (autograd_hook,
 * mark_variable_ready_dense, finalize_backward in torch/csrc/distributed/c10d/reducer.cpp). */
#include "models/runtimes/ddp/ddp_internal.h"

/* The gradient of a bias needs no transpose and arrives before that of its matrix; vectors alone
 * (a norm) arrive in order. */
gint32
ddp_accumulation_order(const ZpFsdpPlan *plan, const ZpFsdpStep *step, gint32 *order)
{
    gint32 n = 0;
    for (int matrices = 0; matrices < 2; matrices++) {
        for (gint32 i = 0; i < step->n_uses; i++) {
            gint32 p = zp_fsdp_plan_use(plan, step->first_use + i);
            const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
            if (parameter->trainable && (parameter->row_elements > 1) == matrices)
                order[n++] = p;
        }
    }
    return n;
}

static gint32
make_gradient(Ddp *ddp, gint32 p, ZpRole role)
{
    const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(ddp->plan, p);
    zp_fsdp_emit_tag(&ddp->emit, parameter->unit);
    return zp_fsdp_emit_make(&ddp->emit, DDP_DEFAULT, ZP_CLASS_GRADIENT, role,
                             ddp_parameter_bytes(ddp, p), parameter->parameter);
}

/* A new gradient becomes .grad as it is, unless one is there to be added to, or .grad will be a
 * view of the bucket. */
static gboolean
becomes_grad(const Ddp *ddp, const DdpParam *param)
{
    return param->grad == ZP_TAPE_NONE && !param->view &&
           !(ddp->plan->settings.gradient_as_bucket_view && ddp->micro_batch->sync &&
             !ddp->delayed);
}

/* The gradient of one use; complete when no use is left, else ZP_TAPE_NONE. */
static gint32
gradient_of_use(Ddp *ddp, gint32 p)
{
    DdpParam *param = &ddp->params[p];
    ZpRole role = becomes_grad(ddp, param) ? ZP_ROLE_GRADIENT : ZP_ROLE_GRADIENT_TEMPORARY;
    param->uses_left--;
    if (ddp->plan->n_uses[p] == 1)
        return make_gradient(ddp, p, role);
    gint32 own = make_gradient(ddp, p, ZP_ROLE_GRADIENT_TEMPORARY);
    if (param->summand != ZP_TAPE_NONE) {
        gint32 sum = make_gradient(ddp, p, param->uses_left ? ZP_ROLE_GRADIENT_TEMPORARY : role);
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &param->summand);
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &own);
        own = sum;
    }
    param->summand = param->uses_left ? own : ZP_TAPE_NONE;
    return param->uses_left ? ZP_TAPE_NONE : own;
}

static void
launch_bucket(Ddp *ddp, DdpBucket *bucket)
{
    zp_fsdp_emit_tag(&ddp->emit, bucket->unit);
    zp_fsdp_emit_wait_stream(&ddp->emit, DDP_ALL_REDUCE, DDP_DEFAULT);
    zp_fsdp_emit_launch(&ddp->emit, DDP_ALL_REDUCE, bucket->all_reduce);
}

/* mark_bucket_ready: buckets are reduced in order.  Where parameters may go unused, the ranks then
 * tell each other which were used. */
static void
launch_full_buckets(Ddp *ddp)
{
    GArray *buckets = ddp->buckets;
    while (ddp->next_bucket < buckets->len &&
           g_array_index(buckets, DdpBucket, ddp->next_bucket).missing == 0) {
        launch_bucket(ddp, &g_array_index(buckets, DdpBucket, ddp->next_bucket));
        if (++ddp->next_bucket == buckets->len) {
            zp_fsdp_emit_tag(&ddp->emit, ZP_FSDP_NONE);
            if (ddp_finds_unused(ddp))
                zp_fsdp_emit_launch(&ddp->emit, DDP_ALL_REDUCE, ddp->used_map);
        }
    }
}

/* mark_variable_ready_dense: the gradient, or zeros if there is none, goes into the bucket, divided
 * by the ranks. */
static void
mark_ready(Ddp *ddp, gint32 p)
{
    DdpParam *param = &ddp->params[p];
    DdpBucket *bucket = &g_array_index(ddp->buckets, DdpBucket, (guint)param->bucket);
    if (bucket->missing == bucket->n)
        zp_fsdp_emit_launch(&ddp->emit, DDP_DEFAULT, bucket->copy);
    if (ddp->plan->settings.gradient_as_bucket_view && ddp->plan->n_uses[p] > 0) {
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &param->grad);
        param->view = TRUE;
    }
    bucket->missing--;
    launch_full_buckets(ddp);
}

/* autograd_hook: with the first gradient of a backward come all that will have none. */
static void
gradient_arrived(Ddp *ddp, gint32 p)
{
    if (!ddp->micro_batch->sync || ddp->delayed || ddp->plan->settings.unwrapped)
        return;
    for (guint i = 0; i < ddp->unused->len && !ddp->marked_unused; i++)
        mark_ready(ddp, g_array_index(ddp->unused, gint32, i));
    ddp->marked_unused = TRUE;
    mark_ready(ddp, p);
}

/* delay_all_reduce: the ranks tell each other which parameters were used, then all gradients go
 * into their buckets in the order of the parameters. */
static void
reduce_delayed(Ddp *ddp)
{
    const ZpFsdpPlan *plan = ddp->plan;
    zp_fsdp_emit_tag(&ddp->emit, ZP_FSDP_NONE);
    zp_fsdp_emit_launch(&ddp->emit, DDP_ALL_REDUCE, ddp->used_map);
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        zp_fsdp_emit_tag(&ddp->emit, zp_fsdp_plan_parameter(plan, p)->unit);
        if (zp_fsdp_plan_parameter(plan, p)->trainable)
            mark_ready(ddp, p);
    }
}

static void
call_backward(Ddp *ddp, const ZpFsdpStep *step)
{
    for (gint32 i = 0; i < step->n_uses; i++) {
        gint32 p = zp_fsdp_plan_use(ddp->plan, step->first_use + i);
        ddp->pending[p] = ZP_TAPE_NONE;
        if (zp_fsdp_plan_parameter(ddp->plan, p)->trainable)
            ddp->pending[p] = gradient_of_use(ddp, p);
    }
    g_autofree gint32 *order = g_new(gint32, (gsize)step->n_uses + 1);
    gint32 n = ddp_accumulation_order(ddp->plan, step, order);
    for (gint32 i = 0; i < n; i++) {
        gint32 p = order[i];
        DdpParam *param = &ddp->params[p];
        if (ddp->pending[p] == ZP_TAPE_NONE)
            continue;
        if (becomes_grad(ddp, param)) {
            param->grad = ddp->pending[p];
            ddp->pending[p] = ZP_TAPE_NONE;
        }
        zp_fsdp_emit_tag(&ddp->emit, zp_fsdp_plan_parameter(ddp->plan, p)->unit);
        gradient_arrived(ddp, p);
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &ddp->pending[p]);
    }
}

static void
begin(Ddp *ddp)
{
    ddp->emit.phase = ZP_PHASE_BACKWARD;
    zp_fsdp_emit_begin_backward(&ddp->emit);
    ddp->next_bucket = 0;
    ddp->marked_unused = FALSE;
    for (guint p = 0; p < ddp->plan->parameters->len; p++)
        ddp->params[p].uses_left = ddp->plan->n_uses[p];
    for (guint b = 0; b < ddp->buckets->len; b++) {
        DdpBucket *bucket = &g_array_index(ddp->buckets, DdpBucket, b);
        bucket->missing = bucket->n;
    }
}

static void
recompute(Ddp *ddp, gint32 region)
{
    if (ddp->emit.region_done[region])
        return;
    ddp->emit.region_done[region] = TRUE;
    const ZpFsdpRegion *range = &g_array_index(ddp->plan->regions, ZpFsdpRegion, (guint)region);
    for (gint32 s = range->first_step; s <= range->last_step; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(ddp->plan, s);
        if (step->kind != ZP_FSDP_CALL)
            continue;
        zp_fsdp_emit_tag(&ddp->emit, step->unit);
        zp_fsdp_emit_recompute(&ddp->emit, step);
    }
}

void
ddp_backward(Ddp *ddp)
{
    begin(ddp);
    for (gint32 s = (gint32)ddp->plan->steps->len - 1; s >= 0; s--) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(ddp->plan, s);
        if (step->kind != ZP_FSDP_CALL)
            continue;
        zp_fsdp_emit_tag(&ddp->emit, step->unit);
        if (step->requires_grad) {
            if (step->region != ZP_FSDP_NONE)
                recompute(ddp, step->region);
            zp_fsdp_emit_backward(&ddp->emit, step);
            call_backward(ddp, step);
        }
        zp_fsdp_emit_tag(&ddp->emit, step->unit);
        zp_fsdp_emit_release(&ddp->emit, step);
    }
    if (!ddp->micro_batch->sync || ddp->plan->settings.unwrapped)
        return;
    if (ddp->delayed)
        reduce_delayed(ddp);
    /* finalize_backward: all works are waited for at the end. */
    zp_fsdp_emit_tag(&ddp->emit, ZP_FSDP_NONE);
    zp_fsdp_emit_wait_stream(&ddp->emit, DDP_DEFAULT, DDP_ALL_REDUCE);
    for (guint b = 0; b < ddp->buckets->len && !ddp->plan->settings.gradient_as_bucket_view; b++)
        zp_fsdp_emit_launch(&ddp->emit, DDP_DEFAULT,
                            g_array_index(ddp->buckets, DdpBucket, b).copy);
    ddp->reduced = !ddp->delayed;
    ddp->delayed = FALSE;
}
