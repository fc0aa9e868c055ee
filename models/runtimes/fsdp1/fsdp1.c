#include "models/runtimes/fsdp1/fsdp1.h"

#include "models/runtimes/fsdp/model.h"
#include "models/runtimes/fsdp1/fsdp1_internal.h"

/* With use_orig_params the optimizer sees the parameters' slices, in model order. */
static void
add_original_slots(Fsdp1 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    zp_fsdp_optimizer_init(&fsdp->optimizer, plan->optimizer_order->len);
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
        if (parameter->trainable && fsdp->params[p].owned_elements > 0) /* else its .grad is None */
            zp_fsdp_optimizer_add(&fsdp->optimizer, fsdp->params[p].owned_elements, parameter->unit,
                                  parameter->parameter);
    }
}

static void
add_flat_slots(Fsdp1 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    zp_fsdp_optimizer_init(&fsdp->optimizer, plan->units->len);
    for (guint i = 0; i < plan->state_order->len; i++) {
        gint32 u = g_array_index(plan->state_order, gint32, i);
        if (fsdp->units[u].trainable)
            zp_fsdp_optimizer_add(&fsdp->optimizer,
                                  fsdp->sharded ? fsdp->units[u].shard_elements
                                                : fsdp->units[u].flat_elements,
                                  u, ZP_FSDP_NONE);
    }
}

static void
write_prologue(Fsdp1 *fsdp)
{
    ZpFsdpEmit *emit = &fsdp->emit;
    zp_fsdp_emit_begin(emit, FSDP1_DEFAULT);
    for (guint u = 0; u < fsdp->plan->units->len; u++) {
        const Fsdp1Unit *unit = &fsdp->units[u];
        gint64 elements = fsdp->sharded ? unit->shard_elements : unit->flat_elements;
        gint64 bytes = elements * fsdp->plan->stored_bytes;
        zp_fsdp_emit_tag(emit, (gint32)u);
        if (!fsdp->plan->settings.cpu_offload) {
            zp_fsdp_emit_make(emit, FSDP1_DEFAULT, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes,
                              ZP_FSDP_NONE);
            continue;
        }
        /* _local_shard and _cpu_grad, both pinned, for good */
        zp_fsdp_emit_make_host(emit, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes, TRUE);
        zp_fsdp_emit_make_host(emit, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT, bytes, TRUE);
    }
    zp_fsdp_optimizer_prepare(emit, &fsdp->optimizer);
}

static void
drop_gradients(Fsdp1 *fsdp)
{
    fsdp->emit.phase = ZP_PHASE_ZERO_GRAD;
    for (guint i = 0; i < fsdp->plan->state_order->len; i++) {
        gint32 u = g_array_index(fsdp->plan->state_order, gint32, i);
        zp_fsdp_emit_tag(&fsdp->emit, u);
        zp_fsdp_emit_drop(&fsdp->emit, fsdp->hybrid ? FSDP1_ALL_REDUCE : FSDP1_POST_BACKWARD,
                          &fsdp->units[u].gradient);
        fsdp->units[u].grad = ZP_TAPE_NONE;
    }
}

/* With use_orig_params only views are dropped here. */
static void
zero_grad(Fsdp1 *fsdp)
{
    if (!fsdp->plan->settings.set_to_none)
        return;
    if (fsdp->plan->settings.use_orig_params)
        fsdp1_forget_grads(fsdp);
    else
        drop_gradients(fsdp);
}

static void
write_step(Fsdp1 *fsdp)
{
    zp_tape_begin_step(fsdp->tape);
    for (guint m = 0; m < fsdp->plan->micro_batches->len; m++) {
        fsdp->emit.micro_batch = (gint16)MIN(m, (guint)G_MAXINT16);
        fsdp->micro_batch = &g_array_index(fsdp->plan->micro_batches, ZpFsdpMicroBatch, m);
        fsdp1_forward(fsdp);
        if (m == 0 && fsdp->plan->settings.zero_grad_after_forward)
            zero_grad(fsdp);
        fsdp1_backward(fsdp);
    }
    zp_fsdp_optimizer_step(&fsdp->emit, &fsdp->optimizer);
    if (!fsdp->plan->settings.zero_grad_after_forward)
        zero_grad(fsdp);
}

void
zp_fsdp1_compile(const ZpFsdpPlan *plan, const ZpJob *job, gint32 steps, ZpTape *tape)
{
    Fsdp1 fsdp;
    fsdp1_init(&fsdp, plan, job, tape);
    if (plan->settings.use_orig_params)
        add_original_slots(&fsdp);
    else
        add_flat_slots(&fsdp);
    fsdp.optimizer.on_host = plan->settings.cpu_offload;
    fsdp.optimizer.host_stream = FSDP1_HOST;
    write_prologue(&fsdp);
    for (gint32 s = 0; s < steps; s++)
        write_step(&fsdp);
    fsdp1_clear(&fsdp);
}

/* What PyTorch refuses too (_flat_param.py _validate_tensors_to_flatten). */
static gboolean
check(const ZpFsdpPlan *plan, GError **error)
{
    for (guint u = 0; u < plan->units->len && !plan->settings.use_orig_params; u++) {
        const ZpFsdpUnit *unit = zp_fsdp_plan_unit(plan, (gint32)u);
        const ZpFsdpParameter *first =
            unit->n_parameters ? zp_fsdp_plan_parameter(plan, unit->first_parameter) : NULL;
        for (gint32 p = 1; p < unit->n_parameters; p++) {
            const ZpFsdpParameter *other = zp_fsdp_plan_parameter(plan, unit->first_parameter + p);
            if (!other->trainable == !first->trainable)
                continue;
            g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_RANGE,
                        "fsdp1: unit %s holds trainable and frozen parameters (%s, %s), which "
                        "PyTorch flattens together with use_orig_params only; or set "
                        "wrap_trainable, as peft does",
                        unit->name, first->name, other->name);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
compile(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error)
{
    g_autoptr(ZpFsdpPlan) plan = zp_fsdp_model_plan(job, units, error);
    if (plan == NULL || !check(plan, error))
        return FALSE;
    zp_fsdp1_compile(plan, job, job->simulation.steps, tape);
    return TRUE;
}

static gboolean
supports_stage(int stage)
{
    return stage == 0 || stage == 2 || stage == 3;
}

const ZpRuntime zp_runtime_fsdp1 = {
    .name = "fsdp1",
    .summary =
        "PyTorch 2.14 FullyShardedDataParallel: flat parameters, record_stream, rate limiter",
    .compile = compile,
    .supports_stage = supports_stage,
};
