#include "models/runtimes/ddp/ddp.h"

#include "models/runtimes/ddp/ddp_internal.h"
#include "models/runtimes/fsdp/model.h"

static void
init(Ddp *ddp, const ZpFsdpPlan *plan, const ZpJob *job, ZpTape *tape)
{
    *ddp = (Ddp){
        .plan = plan,
        .tape = tape,
        .params = g_new(DdpParam, plan->parameters->len + 1),
        .pending = g_new(gint32, plan->parameters->len + 1),
        .ready_order = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .unused = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .buckets = g_array_new(FALSE, TRUE, sizeof(DdpBucket)),
        .broadcasts = g_array_new(FALSE, FALSE, sizeof(gint32)),
    };
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "all-reduce", ZP_TAPE_COMMUNICATION);
    zp_fsdp_emit_init(&ddp->emit, plan, job, tape);
    gint8 world = zp_tape_add_group(tape, plan->shard * plan->replicate, 1);
    g_assert(world == DDP_GROUP_WORLD);
    for (guint p = 0; p < plan->parameters->len; p++) {
        ddp->params[p] = (DdpParam){.grad = ZP_TAPE_NONE, .summand = ZP_TAPE_NONE};
        ddp->pending[p] = ZP_TAPE_NONE;
    }
    ddp_find_ready_order(ddp);
    ddp->delayed = plan->settings.static_graph && plan->settings.first_step;
    ddp->used_map = ZP_TAPE_NONE;
    if (ddp->delayed || ddp_finds_unused(ddp)) {
        gint64 n = ddp->ready_order->len + ddp->unused->len;
        ddp->used_map = zp_fsdp_emit_collective_work(&ddp->emit, ZP_KIND_ALL_REDUCE,
                                                     n * (gint64)sizeof(gint32), DDP_GROUP_WORLD);
    }
}

static void
clear(Ddp *ddp)
{
    g_array_unref(ddp->ready_order);
    g_array_unref(ddp->unused);
    g_array_unref(ddp->buckets);
    g_array_unref(ddp->broadcasts);
    zp_fsdp_optimizer_clear(&ddp->optimizer);
    zp_fsdp_emit_clear(&ddp->emit);
    g_free(ddp->params);
    g_free(ddp->pending);
}

typedef struct {
    gint32 parameter;
    guint position; /* as the optimizer was given it */
    gint64 elements;
} Sized;

static int
larger_first(gconstpointer a, gconstpointer b)
{
    const Sized *x = a, *y = b;
    if (x->elements != y->elements)
        return x->elements > y->elements ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

static void
add_broadcasts(Ddp *ddp, const GArray *sorted, const gint32 *owners, gint32 ranks)
{
    for (gint32 rank = 0; rank < ranks; rank++) {
        for (guint i = 0; i < sorted->len; i++) {
            gint32 p = g_array_index(sorted, Sized, i).parameter;
            gint32 work =
                owners[i] == rank
                    ? zp_fsdp_emit_collective_work(&ddp->emit, ZP_KIND_BROADCAST,
                                                   ddp_parameter_bytes(ddp, p), DDP_GROUP_WORLD)
                    : ZP_TAPE_NONE;
            if (work != ZP_TAPE_NONE)
                g_array_append_val(ddp->broadcasts, work);
        }
    }
}

/* ZeroRedundancyOptimizer._partition_parameters: whole parameters, largest first, each to the rank
 * that has least.  Afterwards every owner broadcasts its parameters one by one, rank after rank. */
static void
partition_parameters(Ddp *ddp)
{
    const ZpFsdpPlan *plan = ddp->plan;
    gint32 ranks = plan->shard * plan->replicate;
    g_autoptr(GArray) sorted = g_array_new(FALSE, FALSE, sizeof(Sized));
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        Sized sized = {p, i, zp_fsdp_parameter_elements(zp_fsdp_plan_parameter(plan, p))};
        if (zp_fsdp_plan_parameter(plan, p)->trainable)
            g_array_append_val(sorted, sized);
    }
    g_array_sort(sorted, larger_first);
    g_autofree gint64 *load = g_new0(gint64, (gsize)ranks);
    g_autofree gint32 *owners = g_new(gint32, sorted->len + 1);
    zp_fsdp_optimizer_init(&ddp->optimizer, sorted->len);
    for (guint i = 0; i < sorted->len; i++) {
        const Sized *sized = &g_array_index(sorted, Sized, i);
        gint32 owner = 0;
        for (gint32 r = 1; r < ranks; r++)
            owner = load[r] < load[owner] ? r : owner;
        load[owner] += sized->elements;
        owners[i] = owner;
        if (owner != plan->rank || plan->n_uses[sized->parameter] == 0)
            continue;
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, sized->parameter);
        zp_fsdp_optimizer_add(&ddp->optimizer, sized->elements, parameter->unit,
                              parameter->parameter);
    }
    add_broadcasts(ddp, sorted, owners, ranks);
}

static void
add_slots(Ddp *ddp)
{
    const ZpFsdpPlan *plan = ddp->plan;
    zp_fsdp_optimizer_init(&ddp->optimizer, plan->optimizer_order->len);
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
        if (!parameter->trainable || plan->n_uses[p] == 0)
            continue;
        zp_fsdp_optimizer_add(&ddp->optimizer, zp_fsdp_parameter_elements(parameter),
                              parameter->unit, parameter->parameter);
    }
}

static void
write_prologue(Ddp *ddp)
{
    ZpFsdpEmit *emit = &ddp->emit;
    zp_fsdp_emit_begin(emit, DDP_DEFAULT);
    for (guint p = 0; p < ddp->plan->parameters->len; p++) {
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(ddp->plan, (gint32)p);
        zp_fsdp_emit_tag(emit, parameter->unit);
        zp_fsdp_emit_make(emit, DDP_DEFAULT, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
                          ddp_parameter_bytes(ddp, (gint32)p), parameter->parameter);
    }
    if (ddp->plan->settings.unwrapped)
        ddp->rebuilt = TRUE;
    else if (ddp->plan->settings.first_step || ddp_finds_unused(ddp))
        ddp_make_first_buckets(ddp);
    else
        ddp_rebuild_buckets(ddp);
    zp_fsdp_optimizer_prepare(emit, &ddp->optimizer);
}

static void
forward(Ddp *ddp)
{
    ddp->emit.phase = ZP_PHASE_FORWARD;
    zp_fsdp_emit_tag(&ddp->emit, ZP_FSDP_NONE);
    if (ddp->reduced && !ddp->rebuilt)
        ddp_rebuild_buckets(ddp);
    for (guint s = 0; s < ddp->plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(ddp->plan, (gint32)s);
        if (step->kind != ZP_FSDP_CALL)
            continue;
        zp_fsdp_emit_tag(&ddp->emit, step->unit);
        zp_fsdp_emit_forward(&ddp->emit, step);
    }
    zp_tape_record(ddp->tape, DDP_DEFAULT); /* a forward is seen even when it takes no time */
}

static void
zero_grad(Ddp *ddp)
{
    ddp->emit.phase = ZP_PHASE_ZERO_GRAD;
    if (!ddp->plan->settings.set_to_none)
        return;
    for (guint i = 0; i < ddp->plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(ddp->plan->optimizer_order, gint32, i);
        zp_fsdp_emit_tag(&ddp->emit, zp_fsdp_plan_parameter(ddp->plan, p)->unit);
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &ddp->params[p].grad);
        ddp->params[p].view = FALSE;
    }
}

static void
broadcast(Ddp *ddp)
{
    if (ddp->broadcasts->len == 0)
        return;
    ddp->emit.phase = ZP_PHASE_GATHER;
    zp_fsdp_emit_tag(&ddp->emit, ZP_FSDP_NONE);
    zp_fsdp_emit_wait_stream(&ddp->emit, DDP_ALL_REDUCE, DDP_DEFAULT);
    for (guint i = 0; i < ddp->broadcasts->len; i++)
        zp_fsdp_emit_launch(&ddp->emit, DDP_ALL_REDUCE, g_array_index(ddp->broadcasts, gint32, i));
    zp_fsdp_emit_wait_stream(&ddp->emit, DDP_DEFAULT, DDP_ALL_REDUCE);
}

static void
write_step(Ddp *ddp)
{
    zp_tape_begin_step(ddp->tape);
    for (guint m = 0; m < ddp->plan->micro_batches->len; m++) {
        ddp->emit.micro_batch = (gint16)MIN(m, (guint)G_MAXINT16);
        ddp->micro_batch = &g_array_index(ddp->plan->micro_batches, ZpFsdpMicroBatch, m);
        forward(ddp);
        ddp_backward(ddp);
    }
    zp_fsdp_optimizer_step(&ddp->emit, &ddp->optimizer);
    broadcast(ddp);
    zero_grad(ddp);
}

void
zp_ddp_compile(const ZpFsdpPlan *plan, const ZpJob *job, gboolean partition, gint32 steps,
               ZpTape *tape)
{
    Ddp ddp;
    init(&ddp, plan, job, tape);
    if (partition)
        partition_parameters(&ddp);
    else
        add_slots(&ddp);
    write_prologue(&ddp);
    for (gint32 s = 0; s < steps; s++)
        write_step(&ddp);
    clear(&ddp);
}

static gboolean
compile(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error)
{
    g_autoptr(ZpFsdpPlan) plan = zp_fsdp_model_plan(job, units, error);
    if (plan == NULL)
        return FALSE;
    zp_ddp_compile(plan, job, job->zero.stage == 1, job->simulation.steps, tape);
    return TRUE;
}

static gboolean
supports_stage(int stage)
{
    return stage == 0 || stage == 1;
}

const ZpRuntime zp_runtime_ddp = {
    .name = "ddp",
    .summary = "PyTorch 2.14 DistributedDataParallel; stage 1 is ZeroRedundancyOptimizer",
    .compile = compile,
    .supports_stage = supports_stage,
};

/* Without the reducer, each gradient is a tensor that backward makes. */
static gboolean
compile_alone(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error)
{
    if (job->world.ranks > 1) {
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED,
                    "the runtime none is a program of one rank, not of %d: ddp, fsdp2 or deepspeed "
                    "hold several together",
                    job->world.ranks);
        return FALSE;
    }
    g_autoptr(ZpFsdpPlan) plan = zp_fsdp_model_plan(job, units, error);
    if (plan == NULL)
        return FALSE;
    plan->settings.unwrapped = TRUE;
    zp_ddp_compile(plan, job, FALSE, job->simulation.steps, tape);
    return TRUE;
}

static gboolean
supports_none(int stage)
{
    return stage == 0;
}

const ZpRuntime zp_runtime_none = {
    .name = "none",
    .summary = "plain PyTorch 2.14 on one GPU: gradients are born in backward, no wrapper",
    .compile = compile_alone,
    .supports_stage = supports_none,
};
