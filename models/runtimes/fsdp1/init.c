/* Flat parameters: what a unit concatenates, where it pads, what each rank owns
 * (torch/distributed/fsdp/_flat_param.py _init_flat_param_and_metadata, _get_shard). */
#include "models/runtimes/fsdp1/fsdp1_internal.h"

static void
add_range(Fsdp1 *fsdp, Fsdp1Unit *unit, gint64 elements, gint32 parameter)
{
    Fsdp1Range range = {
        .first_element = unit->flat_elements,
        .n_elements = elements,
        .parameter = parameter,
    };
    g_array_append_val(fsdp->ranges, range);
    unit->n_ranges++;
    unit->flat_elements += elements;
    if (parameter == ZP_FSDP_NONE)
        unit->padding_elements += elements;
}

/* use_orig_params: every parameter starts at a multiple of 16 bytes of the compute dtype, and the
 * whole is a multiple of the ranks. */
static void
lay_out(Fsdp1 *fsdp, gint32 u)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    const ZpFsdpUnit *desc = fsdp1_unit(fsdp, u);
    Fsdp1Unit *unit = &fsdp->units[u];
    gint64 alignment = plan->settings.use_orig_params ? 16 / zp_fsdp_plan_compute_bytes(plan) : 1;
    unit->first_range = (gint32)fsdp->ranges->len;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        gint64 over = unit->flat_elements % alignment;
        if (over != 0)
            add_range(fsdp, unit, alignment - over, ZP_FSDP_NONE);
        add_range(fsdp, unit, zp_fsdp_parameter_elements(zp_fsdp_plan_parameter(plan, p)), p);
    }
    gint32 ranks = fsdp->sharded ? plan->shard : plan->shard * plan->replicate;
    gint64 over = unit->flat_elements % ranks;
    if (plan->settings.use_orig_params && over != 0)
        add_range(fsdp, unit, ranks - over, ZP_FSDP_NONE);
    unit->shard_elements =
        unit->flat_elements / plan->shard + (unit->flat_elements % plan->shard != 0);
}

static void
make_works(Fsdp1 *fsdp, gint32 u)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    ZpFsdpEmit *emit = &fsdp->emit;
    Fsdp1Unit *unit = &fsdp->units[u];
    Fsdp1Works *works = &unit->works;
    int width = zp_fsdp_plan_compute_bytes(plan);
    int reduce = zp_fsdp_plan_reduce_bytes(plan);
    gint64 flat = unit->flat_elements, shard = unit->shard_elements;
    gint64 own = fsdp->sharded ? shard : flat;
    gint8 replicas = plan->replicate > 1 ? ZP_FSDP_GROUP_REPLICATE : ZP_FSDP_GROUP_SHARD;
    works->cast = zp_fsdp_emit_memory_work(emit, own * (plan->stored_bytes + width));
    works->gather = zp_fsdp_emit_collective_work(emit, ZP_KIND_ALL_GATHER,
                                                 shard * plan->shard * width, ZP_FSDP_GROUP_SHARD);
    works->concatenate = zp_fsdp_emit_memory_work(emit, 2 * flat * width);
    works->add_gradient = zp_fsdp_emit_memory_work(emit, 3 * flat * width);
    works->cast_gradient = zp_fsdp_emit_memory_work(emit, flat * (width + reduce));
    works->pad = zp_fsdp_emit_memory_work(emit, 2 * flat * reduce);
    works->pre_divide = zp_fsdp_emit_memory_work(emit, 2 * flat * reduce);
    works->reduce_scatter = zp_fsdp_emit_collective_work(
        emit, ZP_KIND_REDUCE_SCATTER, shard * plan->shard * reduce, ZP_FSDP_GROUP_SHARD);
    works->all_reduce =
        zp_fsdp_emit_collective_work(emit, ZP_KIND_ALL_REDUCE, own * reduce, replicas);
    works->post_divide = zp_fsdp_emit_memory_work(emit, 2 * own * reduce);
    works->cast_shard = zp_fsdp_emit_memory_work(emit, own * (reduce + plan->stored_bytes));
    if (plan->settings.cpu_offload) {
        gint64 bytes = own * plan->stored_bytes;
        works->to_device = zp_fsdp_emit_transfer_work(emit, ZP_KIND_HOST_TO_DEVICE, bytes);
        works->to_host = zp_fsdp_emit_transfer_work(emit, ZP_KIND_DEVICE_TO_HOST, bytes);
    }
    works->add_shard = zp_fsdp_emit_memory_work(emit, 3 * own * plan->stored_bytes);
}

static void
declare(Fsdp1 *fsdp)
{
    zp_tape_add_stream(fsdp->tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(fsdp->tape, "unshard", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(fsdp->tape, "pre-unshard", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(fsdp->tape, "post-backward", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(fsdp->tape, "all-reduce", ZP_TAPE_COMMUNICATION);
    if (fsdp->plan->settings.cpu_offload)
        zp_tape_add_stream(fsdp->tape, "host", ZP_TAPE_HOST_COMPUTE);
}

/* A run's later steps know the order of forward. */
static void
record_order(Fsdp1 *fsdp)
{
    fsdp->first_iteration = FALSE;
    for (guint s = 0; s < fsdp->plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(fsdp->plan, (gint32)s);
        if (step->kind != ZP_FSDP_ENTER || fsdp->units[step->unit].pre_forward_index >= 0)
            continue;
        fsdp->units[step->unit].pre_forward_index = (gint32)fsdp->pre_forward_order->len;
        g_array_append_val(fsdp->pre_forward_order, step->unit);
    }
}

/* What this rank owns of a range of the flat parameter. */
static gint64
owned_elements(const Fsdp1 *fsdp, const Fsdp1Unit *unit, const Fsdp1Range *range)
{
    if (!fsdp->sharded)
        return range->n_elements;
    gint64 begin = (fsdp->plan->rank % fsdp->plan->shard) * unit->shard_elements;
    gint64 end = begin + unit->shard_elements;
    gint64 first = MAX(begin, range->first_element);
    gint64 last = MIN(end, range->first_element + range->n_elements);
    return MAX(0, last - first);
}

static void
find_owned_elements(Fsdp1 *fsdp)
{
    for (guint u = 0; u < fsdp->plan->units->len; u++) {
        const Fsdp1Unit *unit = &fsdp->units[u];
        for (gint32 r = unit->first_range; r < unit->first_range + unit->n_ranges; r++) {
            const Fsdp1Range *range = &g_array_index(fsdp->ranges, Fsdp1Range, (guint)r);
            if (range->parameter != ZP_FSDP_NONE)
                fsdp->params[range->parameter].owned_elements = owned_elements(fsdp, unit, range);
        }
    }
}

static void
mark_trainable(Fsdp1 *fsdp)
{
    for (guint p = 0; p < fsdp->plan->parameters->len; p++) {
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(fsdp->plan, (gint32)p);
        fsdp->units[parameter->unit].trainable |= parameter->trainable;
    }
}

/* As in zp_fsdp_plan_finish(), but a frozen parameter of a trainable unit lets gradients flow. */
static void
mark_flow(Fsdp1 *fsdp)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    for (guint s = 0; s < plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(plan, (gint32)s);
        fsdp->flows[s] = step->requires_grad || (s > 0 && fsdp->flows[s - 1]);
        for (gint32 i = 0; i < step->n_uses && !fsdp->flows[s]; i++)
            fsdp->flows[s] = fsdp1_gets_gradient(fsdp, zp_fsdp_plan_use(plan, step->first_use + i));
    }
}

void
fsdp1_init(Fsdp1 *fsdp, const ZpFsdpPlan *plan, const ZpJob *job, ZpTape *tape)
{
    *fsdp = (Fsdp1){
        .plan = plan,
        .tape = tape,
        .units = g_new0(Fsdp1Unit, plan->units->len + 1),
        .params = g_new0(Fsdp1Param, plan->parameters->len + 1),
        .ranges = g_array_new(FALSE, FALSE, sizeof(Fsdp1Range)),
        .free_events = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .pre_forward_order = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .post_forward_order = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .call_order = g_new0(gint64, plan->steps->len + 1),
        .flows = g_new0(gboolean, plan->steps->len + 1),
        .first_iteration = TRUE,
        .sharded = plan->strategy != ZP_FSDP_STRATEGY_NO_SHARD && plan->shard > 1,
    };
    fsdp->hybrid = fsdp->sharded && plan->replicate > 1;
    declare(fsdp);
    zp_fsdp_emit_init(&fsdp->emit, plan, job, tape);
    for (guint p = 0; p < plan->parameters->len; p++)
        fsdp->params[p].temporary = ZP_TAPE_NONE;
    for (gint32 u = 0; u < (gint32)plan->units->len; u++) {
        Fsdp1Unit *unit = &fsdp->units[u];
        unit->low_precision = unit->unsharded = unit->grad = unit->gradient = ZP_TAPE_NONE;
        unit->pre_forward_index = unit->post_forward_index = ZP_FSDP_NONE;
        lay_out(fsdp, u);
        make_works(fsdp, u);
    }
    find_owned_elements(fsdp);
    mark_trainable(fsdp);
    mark_flow(fsdp);
    if (!plan->settings.first_step)
        record_order(fsdp);
}

void
fsdp1_clear(Fsdp1 *fsdp)
{
    g_array_unref(fsdp->ranges);
    g_array_unref(fsdp->free_events);
    g_array_unref(fsdp->pre_forward_order);
    g_array_unref(fsdp->post_forward_order);
    zp_fsdp_optimizer_clear(&fsdp->optimizer);
    zp_fsdp_emit_clear(&fsdp->emit);
    g_free(fsdp->units);
    g_free(fsdp->params);
    g_free(fsdp->call_order);
    g_free(fsdp->flows);
}
