#include "models/runtimes/fsdp2/fsdp2.h"

#include "models/runtimes/fsdp/model.h"
#include "models/runtimes/fsdp2/fsdp2_internal.h"

static void
declare(Fsdp2 *fsdp)
{
    ZpTape *tape = fsdp->tape;
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "copy-in", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "all-gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "reduce-scatter", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "all-reduce", ZP_TAPE_COMMUNICATION);
    if (fsdp->plan->settings.cpu_offload)
        zp_tape_add_stream(tape, "host", ZP_TAPE_HOST_COMPUTE);
}

static void
init_parameters(Fsdp2 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    gint32 rank = plan->rank % plan->shard;
    for (guint i = 0; i < plan->parameters->len; i++) {
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, (gint32)i);
        gint64 chunk = parameter->rows / plan->shard + (parameter->rows % plan->shard != 0);
        gint64 owned = CLAMP(parameter->rows - rank * chunk, 0, chunk);
        gint64 padded_elements = chunk * parameter->row_elements;
        gint64 owned_elements = owned * parameter->row_elements;
        if (parameter->inner)
            padded_elements = owned_elements = zp_fsdp_parameter_elements(parameter) / plan->shard;
        Fsdp2Unit *unit = &fsdp->units[parameter->unit];
        fsdp->params[i] = (Fsdp2Param){
            .unsharded = ZP_TAPE_NONE,
            .post_forward = ZP_TAPE_NONE,
            .grad = ZP_TAPE_NONE,
            .accumulated = ZP_TAPE_NONE,
            .summand = ZP_TAPE_NONE,
            .host_grad = ZP_TAPE_NONE,
            .rearranged = ZP_TAPE_NONE,
            .chunk_elements = padded_elements,
            .owned_elements = owned_elements,
        };
        fsdp->pending[i] = ZP_TAPE_NONE;
        unit->shard_elements += padded_elements;
        if (parameter->trainable && plan->n_uses[i] > 0)
            unit->reduced_elements += padded_elements;
    }
}

static void
init(Fsdp2 *fsdp, const ZpFsdpPlan *plan, const ZpJob *job, ZpTape *tape)
{
    *fsdp = (Fsdp2){
        .plan = plan,
        .tape = tape,
        .params = g_new(Fsdp2Param, plan->parameters->len + 1),
        .pending = g_new(gint32, plan->parameters->len + 1),
        .units = g_new0(Fsdp2Unit, plan->units->len + 1),
        .parked = {.buffer = ZP_TAPE_NONE},
        .reduce_inputs = g_array_new(FALSE, FALSE, sizeof(Fsdp2Retained)),
        .post_forward_order = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .last_post_reduce = {ZP_TAPE_NONE, ZP_TAPE_NONE},
        .forward_root = ZP_FSDP_NONE,
    };
    declare(fsdp);
    zp_fsdp_emit_init(&fsdp->emit, plan, job, tape);
    for (guint u = 0; u < plan->units->len; u++) {
        Fsdp2Unit *unit = &fsdp->units[u];
        unit->gather_output = unit->gather_event = unit->post_reduce_event = ZP_TAPE_NONE;
        unit->all_reduce_buffer = unit->all_reduce_event = unit->partial_output = ZP_TAPE_NONE;
        unit->gradient = unit->offload_event = unit->reshard_event = ZP_TAPE_NONE;
        unit->post_forward_indices = g_array_new(FALSE, FALSE, sizeof(gint32));
    }
    init_parameters(fsdp);
    fsdp2_make_works(fsdp);
}

static void
clear(Fsdp2 *fsdp)
{
    for (guint u = 0; u < fsdp->plan->units->len; u++)
        g_array_unref(fsdp->units[u].post_forward_indices);
    g_array_unref(fsdp->reduce_inputs);
    g_array_unref(fsdp->post_forward_order);
    zp_fsdp_optimizer_clear(&fsdp->optimizer);
    zp_fsdp_emit_clear(&fsdp->emit);
    g_free(fsdp->params);
    g_free(fsdp->pending);
    g_free(fsdp->units);
}

static void
init_optimizer(Fsdp2 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    zp_fsdp_optimizer_init(&fsdp->optimizer, plan->optimizer_order->len);
    fsdp->optimizer.on_host = plan->settings.cpu_offload;
    fsdp->optimizer.host_stream = FSDP2_HOST;
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
        if (!parameter->trainable || plan->n_uses[p] == 0)
            continue;
        zp_fsdp_optimizer_add(&fsdp->optimizer, fsdp->params[p].owned_elements, parameter->unit,
                              parameter->parameter);
    }
}

/* What lives before the first step: shards, padded on every rank. */
static void
write_prologue(Fsdp2 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    ZpFsdpEmit *emit = &fsdp->emit;
    zp_fsdp_emit_begin(emit, FSDP2_DEFAULT);
    for (guint p = 0; p < plan->parameters->len; p++) {
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, (gint32)p);
        gint64 bytes = fsdp->params[p].chunk_elements * plan->stored_bytes;
        zp_fsdp_emit_tag(emit, parameter->unit);
        if (plan->settings.cpu_offload)
            zp_fsdp_emit_make_host(emit, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes,
                                   plan->settings.pin_memory);
        else
            zp_fsdp_emit_make(emit, FSDP2_DEFAULT, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes,
                              parameter->parameter);
    }
    zp_fsdp_optimizer_prepare(emit, &fsdp->optimizer);
}

/* The sharded gradients of a unit are views of one storage: it dies with the last of them. */
static void
zero_grad(Fsdp2 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    fsdp->emit.phase = ZP_PHASE_ZERO_GRAD;
    if (!plan->settings.set_to_none)
        return;
    for (guint u = 0; u < plan->units->len; u++)
        fsdp->units[u].n_gradients = 0;
    for (guint i = 0; i < plan->optimizer_order->len; i++)
        fsdp->units[zp_fsdp_plan_parameter(plan, g_array_index(plan->optimizer_order, gint32, i))
                        ->unit]
            .n_gradients++;
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        gint32 u = zp_fsdp_plan_parameter(plan, p)->unit;
        Fsdp2Unit *unit = &fsdp->units[u];
        zp_fsdp_emit_tag(&fsdp->emit, u);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &fsdp->params[p].host_grad);
        if (--unit->n_gradients > 0 || unit->gradient == unit->all_reduce_buffer)
            continue;
        gboolean from_all_reduce =
            plan->replicate > 1 && zp_fsdp_plan_reduce_bytes(plan) != plan->stored_bytes;
        zp_fsdp_emit_drop(&fsdp->emit, from_all_reduce ? FSDP2_ALL_REDUCE : FSDP2_REDUCE,
                          &unit->gradient);
    }
}

static void
write_step(Fsdp2 *fsdp)
{
    zp_tape_begin_step(fsdp->tape);
    for (guint m = 0; m < fsdp->plan->micro_batches->len; m++) {
        fsdp->emit.micro_batch = (gint16)MIN(m, (guint)G_MAXINT16);
        fsdp->micro_batch = &g_array_index(fsdp->plan->micro_batches, ZpFsdpMicroBatch, m);
        fsdp2_forward(fsdp);
        fsdp2_backward(fsdp);
    }
    zp_fsdp_optimizer_step(&fsdp->emit, &fsdp->optimizer);
    zero_grad(fsdp);
}

void
zp_fsdp2_compile(const ZpFsdpPlan *plan, const ZpJob *job, gint32 steps, ZpTape *tape)
{
    Fsdp2 fsdp;
    init(&fsdp, plan, job, tape);
    init_optimizer(&fsdp);
    write_prologue(&fsdp);
    for (gint32 s = 0; s < steps; s++)
        write_step(&fsdp);
    clear(&fsdp);
}

static gboolean
compile(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error)
{
    g_autoptr(ZpFsdpPlan) plan = zp_fsdp_model_plan(job, units, error);
    if (plan == NULL)
        return FALSE;
    zp_fsdp2_compile(plan, job, job->simulation.steps, tape);
    return TRUE;
}

static gboolean
supports_stage(int stage)
{
    return stage == 2 || stage == 3;
}

const ZpRuntime zp_runtime_fsdp2 = {
    .name = "fsdp2",
    .summary = "PyTorch 2.14 fully_shard: per-parameter sharding, freed in host order",
    .compile = compile,
    .supports_stage = supports_stage,
};
