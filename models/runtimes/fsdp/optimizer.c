#include "models/runtimes/fsdp/optimizer.h"

#include "models/parallel/parallel.h"

/* The times a fused Adam is as fast as torch's other ones, on the host. */
#define UNFUSED_SLOWER 5.8

void
zp_fsdp_optimizer_init(ZpFsdpOptimizer *optimizer, guint most_slots)
{
    *optimizer = (ZpFsdpOptimizer){.slots = g_new0(ZpFsdpSlot, (gsize)most_slots + 1)};
}

void
zp_fsdp_optimizer_add(ZpFsdpOptimizer *optimizer, gint64 elements, gint32 unit, gint32 parameter)
{
    optimizer->slots[optimizer->n_slots++] = (ZpFsdpSlot){
        .elements = elements,
        .unit = unit,
        .parameter = parameter,
        .states = {ZP_TAPE_NONE, ZP_TAPE_NONE},
    };
}

void
zp_fsdp_optimizer_clear(ZpFsdpOptimizer *optimizer)
{
    g_free(optimizer->slots);
}

static gint32
make(ZpFsdpEmit *emit, const ZpFsdpOptimizer *optimizer, ZpClass class_id, ZpRole role,
     const ZpFsdpSlot *slot)
{
    gint64 bytes = slot->elements * emit->plan->moment_bytes;
    if (optimizer->on_host)
        return zp_fsdp_emit_make_host(emit, class_id, role, bytes, FALSE);
    return zp_fsdp_emit_make(emit, ZP_FSDP_STREAM_DEFAULT, class_id, role, bytes, slot->parameter);
}

static void
allocate_states(ZpFsdpEmit *emit, ZpFsdpOptimizer *optimizer)
{
    static const ZpClass both[] = {ZP_CLASS_MOMENTUM, ZP_CLASS_VARIANCE};
    /* Adafactor's only state is a variance. */
    const ZpClass *classes = both + (emit->plan->moments == 1 && emit->plan->square_root);
    const int moments = emit->plan->moments;
    g_assert(moments <= (int)G_N_ELEMENTS(both));
    for (gint32 i = 0; i < optimizer->n_slots; i++) {
        ZpFsdpSlot *slot = &optimizer->slots[i];
        zp_fsdp_emit_tag(emit, slot->unit);
        for (int m = 0; m < moments; m++)
            slot->states[m] = make(emit, optimizer, classes[m], ZP_ROLE_OPTIMIZER_STATE, slot);
    }
    optimizer->has_states = TRUE;
}

void
zp_fsdp_optimizer_prepare(ZpFsdpEmit *emit, ZpFsdpOptimizer *optimizer)
{
    if (!emit->plan->settings.first_step)
        allocate_states(emit, optimizer);
}

static gint64
owned_elements(const ZpFsdpOptimizer *optimizer)
{
    gint64 sum = 0;
    for (gint32 i = 0; i < optimizer->n_slots; i++)
        sum += optimizer->slots[i].elements;
    return sum;
}

static double
host_seconds(const ZpFsdpEmit *emit, double owned_elements)
{
    const ZpJob *job = emit->job;
    const ZpFsdp *settings = &emit->plan->settings;
    if (job == NULL)
        return 0.0;
    /* The cores are shared by all GPUs of a node, tensor parallel ones included. */
    gint64 gpus = (gint64)job->world.ranks * zp_parallel_tensor(&job->world.parallel);
    double ranks = (double)MIN(gpus, MAX(1, job->network.gpus_per_node));
    double adam = zp_optimizer_find("adamw")->traffic_bits;
    double passes = settings->optimizer == ZP_FSDP_OPTIMIZER_FUSED ? 1.0 : UNFUSED_SLOWER;
    return owned_elements * job->optimizer->traffic_bits / adam * passes * ranks /
           settings->cpu_adam_elements_per_s;
}

static void
launch_on_host(ZpFsdpEmit *emit, const ZpFsdpOptimizer *optimizer, double owned_elements)
{
    ZpTapeWork work = {
        .solo_ps = zp_time_from_seconds(host_seconds(emit, owned_elements)),
        .kind = ZP_KIND_HOST_OPTIMIZER,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_HOST_COMPUTE,
        .rule = zp_fsdp_emit_rule(emit, "rate of the node's CPU Adam"),
        .label = ZP_TAPE_NONE,
    };
    guint8 stream = (guint8)optimizer->host_stream;
    zp_tape_launch(emit->tape, stream, zp_tape_add_work(emit->tape, &work));
    zp_tape_sync(emit->tape, zp_tape_record(emit->tape, stream));
}

static void
launch(ZpFsdpEmit *emit, const ZpFsdpOptimizer *optimizer)
{
    double owned = (double)owned_elements(optimizer);
    double traffic = emit->job ? owned * emit->job->optimizer->traffic_bits / 8.0 : 0.0;
    if (optimizer->on_host) {
        launch_on_host(emit, optimizer, owned);
        return;
    }
    ZpTapeWork work = {
        .solo_ps = emit->job ? zp_cost_kernel(&emit->job->device, 0.0, traffic) : 0,
        .kind = ZP_KIND_OPTIMIZER,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COMPUTE,
        .rule = zp_fsdp_emit_rule(emit, ZP_COST_ROOFLINE),
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(emit->tape, ZP_FSDP_STREAM_DEFAULT, zp_tape_add_work(emit->tape, &work));
}

/* torch._foreach_sqrt: the list of all roots lives until the parameters are updated. */
static void
step_foreach(ZpFsdpEmit *emit, const ZpFsdpOptimizer *optimizer)
{
    g_autofree gint32 *roots = g_new(gint32, (gsize)optimizer->n_slots + 1);
    for (gint32 i = 0; i < optimizer->n_slots; i++)
        roots[i] =
            make(emit, optimizer, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_NONE, &optimizer->slots[i]);
    launch(emit, optimizer);
    for (gint32 i = 0; i < optimizer->n_slots; i++)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &roots[i]);
}

/* denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps), one parameter after the other. */
static void
step_loop(ZpFsdpEmit *emit, const ZpFsdpOptimizer *optimizer)
{
    gint32 denominator = ZP_TAPE_NONE;
    for (gint32 i = 0; i < optimizer->n_slots; i++) {
        const ZpFsdpSlot *slot = &optimizer->slots[i];
        gint32 root = make(emit, optimizer, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_NONE, slot);
        gint32 next = make(emit, optimizer, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_NONE, slot);
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &root);
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &denominator);
        denominator = next;
    }
    launch(emit, optimizer);
    zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &denominator);
}

void
zp_fsdp_optimizer_step(ZpFsdpEmit *emit, ZpFsdpOptimizer *optimizer)
{
    emit->phase = ZP_PHASE_OPTIMIZER;
    if (!optimizer->has_states)
        allocate_states(emit, optimizer);
    zp_fsdp_emit_tag(emit, ZP_FSDP_NONE);
    if (!emit->plan->square_root || emit->plan->settings.optimizer == ZP_FSDP_OPTIMIZER_FUSED)
        launch(emit, optimizer);
    else if (emit->plan->settings.optimizer == ZP_FSDP_OPTIMIZER_FOREACH)
        step_foreach(emit, optimizer);
    else
        step_loop(emit, optimizer);
}
