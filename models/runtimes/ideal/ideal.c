#include "models/runtimes/ideal/ideal.h"

#include "models/parallel/parallel.h"
#include "models/runtimes/ideal/ideal_internal.h"

static void
declare(Ideal *ideal)
{
    ZpTape *tape = ideal->tape;
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "reduce", ZP_TAPE_COMMUNICATION);
    zp_tape_add_link(tape, "scale-up");
    zp_tape_add_link(tape, "network");
    zp_tape_add_link(tape, "host");
    gint32 ranks = ideal->job->world.ranks;
    gint32 shard = ideal->job->world.shard_group;
    if (ranks > shard)
        zp_tape_add_stream(tape, "replicate", ZP_TAPE_COMMUNICATION);
    zp_tape_add_group(tape, shard, 1);
    zp_tape_add_group(tape, ranks / shard, shard);
    zp_tape_add_group(tape, ranks, 1);
    for (gint32 u = 0; u < ideal->units->n_units; u++)
        zp_tape_add_unit(tape, ideal->units->units[u].name);
}

/* Units by first use in backward: by last layer, descending. */
static void
order_units(Ideal *ideal)
{
    gint32 n = ideal->units->n_units;
    for (gint32 u = 0; u < n; u++)
        ideal->forward_order[u] = u;
    gint32 position = 0;
    for (gint32 l = ideal->units->n_layers - 1; l >= 0; l--) {
        gint32 unit = ideal->units->unit_of_layer[l];
        if (ideal->units->units[unit].last_layer == l)
            ideal->backward_order[position++] = unit;
    }
    g_assert(position == n);
}

static gint64
largest_owned_elements(const Ideal *ideal)
{
    gint64 largest = 0;
    for (gint32 u = 0; u < ideal->units->n_units; u++)
        largest = MAX(largest, ideal->units->units[u].largest_parameter_elements);
    return ideal->job->zero.stage >= 1 ? ideal_shard_elements(ideal, largest) : largest;
}

static void
optimizer_step(Ideal *ideal)
{
    const ZpJob *job = ideal->job;
    zp_tape_tag(ideal->tape, ZP_PHASE_OPTIMIZER, ZP_TAPE_NONE, ZP_TAPE_NONE);
    gint64 owned = ideal_owned_elements(ideal);
    gint32 temporary = zp_tape_make(
        ideal->tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY,
        ZP_ROLE_NONE,
        zp_optimizer_temporary_bytes(job->optimizer, owned, largest_owned_elements(ideal)));
    double traffic = (double)owned * job->optimizer->traffic_bits / 8.0;
    ideal_launch_kernel(ideal, ZP_KIND_OPTIMIZER, zp_cost_kernel(&job->device, 0.0, traffic), 0.0,
                        ZP_COST_ROOFLINE);
    zp_tape_drop(ideal->tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE, temporary);
}

static void
write_step(Ideal *ideal)
{
    const ZpZero *zero = &ideal->job->zero;
    gboolean updates = zero->stage == 1 || zero->stage == 2;
    zp_tape_begin_step(ideal->tape);
    if (updates && zero->overlap_gather)
        ideal_gather_updated(ideal); /* by the step before: every step but a run's first */
    ideal->previous_reduced = ideal->before_previous_reduced = ZP_TAPE_NONE;
    ideal_micro_batches(ideal);
    ideal_wait_reduced(ideal);
    optimizer_step(ideal);
    if (updates && !zero->overlap_gather)
        ideal_gather_updated(ideal);
}

static gboolean
compile(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error)
{
    (void)error; /* every combination is legal here */
    gsize n_units = (gsize)units->n_units;
    gsize n_layers = (gsize)units->n_layers;
    g_autofree IdealUnit *state = g_new(IdealUnit, n_units);
    gsize n_slots = (gsize)zp_parallel_in_flight(job);
    g_autofree gint32 *numbers = g_new(gint32, 2 * n_units + n_layers);
    g_autofree gint32 *slots = g_new(gint32, n_slots * n_layers);
    g_autoptr(GArray) open = g_array_sized_new(FALSE, FALSE, sizeof(gint32), (guint)n_units);
    Ideal ideal = {
        .job = job,
        .units = units,
        .tape = tape,
        .state = state,
        .forward_order = numbers,
        .backward_order = numbers + n_units,
        .slots = slots,
        .n_slots = (gint64)n_slots,
        .recomputed = numbers + 2 * n_units,
        .tokens = job->training.micro_batch * job->training.sequence,
        .open = open,
    };
    ideal.pairs = ideal.tokens * job->training.sequence;
    zp_layer_bytes_init(&ideal.bytes, job);
    for (gsize u = 0; u < n_units; u++)
        state[u] =
            (IdealUnit){.gathered = ZP_TAPE_NONE, .ready = ZP_TAPE_NONE, .gradient = ZP_TAPE_NONE};
    zp_communicators_init(&ideal.communicators, FALSE);
    declare(&ideal);
    order_units(&ideal);
    ideal_allocate_persistent(&ideal);
    for (gint32 s = 0; s < job->simulation.steps; s++)
        write_step(&ideal);
    zp_layer_bytes_clear(&ideal.bytes);
    return TRUE;
}

static gboolean
supports_stage(int stage)
{
    return stage >= 0 && stage <= 3;
}

const ZpRuntime zp_runtime_ideal = {
    .name = "ideal",
    .summary = "ZeRO as the paper draws it: just-in-time gathers, freed on the device clock",
    .compile = compile,
    .supports_stage = supports_stage,
};
