/* Gathering of parameters: just in time with prefetch at stage 3; what the optimizer updated at
 * stages 1 and 2. */
#include "models/runtimes/ideal/ideal_internal.h"

static void
gather(Ideal *ideal, gint32 unit, gint32 opened, ZpPhase phase)
{
    ZpTape *tape = ideal->tape;
    IdealUnit *state = &ideal->state[unit];
    state->issued = TRUE;
    if (state->gathered != ZP_TAPE_NONE)
        return; /* kept since forward */
    zp_tape_tag(tape, (guint8)phase, ideal->micro_batch, unit);
    zp_tape_wait(tape, IDEAL_GATHER, opened);
    gint64 bytes = ideal_gathered_bytes(ideal, unit);
    state->gathered = zp_tape_make(tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_GATHER, ZP_CLASS_GATHERED,
                                   ZP_ROLE_UNSHARDED, bytes);
    gint64 shard = ideal_shard_elements(ideal, ideal->units->units[unit].elements);
    gint64 message = zp_dtype_bytes(zp_dtype_bits(ideal->job->precision.gathered),
                                    shard * ideal->job->world.shard_group);
    ideal_launch_collective(ideal, IDEAL_GATHER, ZP_KIND_ALL_GATHER, message, IDEAL_GROUP_SHARD);
    state->ready = zp_tape_record(tape, IDEAL_GATHER);
}

void
ideal_open_unit(Ideal *ideal, const gint32 *order, gint32 position, gint32 prefetch, ZpPhase phase)
{
    ZpTape *tape = ideal->tape;
    gint32 unit = order[position];
    zp_tape_tag(tape, (guint8)phase, ideal->micro_batch, unit);
    if (ideal->job->zero.stage < 3) {
        if (ideal->state[unit].ready != ZP_TAPE_NONE)
            zp_tape_wait(tape, IDEAL_COMPUTE, ideal->state[unit].ready);
        ideal->state[unit].ready = ZP_TAPE_NONE;
        return;
    }
    gint32 opened = zp_tape_record(tape, IDEAL_COMPUTE);
    gint32 last = MIN(position + prefetch, ideal->units->n_units - 1);
    for (gint32 p = position; p <= last; p++) {
        if (!ideal->state[order[p]].issued)
            gather(ideal, order[p], opened, phase);
    }
    zp_tape_tag(tape, (guint8)phase, ideal->micro_batch, unit);
    if (ideal->state[unit].ready != ZP_TAPE_NONE)
        zp_tape_wait(tape, IDEAL_COMPUTE, ideal->state[unit].ready);
}

void
ideal_close_unit(Ideal *ideal, gint32 unit)
{
    zp_tape_drop(ideal->tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE, ideal->state[unit].gathered);
    ideal->state[unit].gathered = ZP_TAPE_NONE;
    ideal->state[unit].ready = ZP_TAPE_NONE;
}

void
ideal_gather_updated(Ideal *ideal)
{
    ZpTape *tape = ideal->tape;
    zp_tape_tag(tape, ZP_PHASE_GATHER, ZP_TAPE_NONE, ZP_TAPE_NONE);
    gint32 updated = zp_tape_record(tape, IDEAL_COMPUTE);
    zp_tape_wait(tape, IDEAL_GATHER, updated);
    int bits = zp_dtype_bits(ideal->job->precision.parameter);
    for (gint32 i = 0; i < ideal->units->n_units; i++) {
        gint32 u = ideal->forward_order[i];
        gint64 shard = ideal_shard_elements(ideal, ideal->units->units[u].trainable_elements);
        zp_tape_tag(tape, ZP_PHASE_GATHER, ZP_TAPE_NONE, u);
        ideal_launch_collective(ideal, IDEAL_GATHER, ZP_KIND_ALL_GATHER,
                                zp_dtype_bytes(bits, shard * ideal->job->world.shard_group),
                                IDEAL_GROUP_SHARD);
        ideal->state[u].ready = zp_tape_record(tape, IDEAL_GATHER);
    }
    if (ideal->job->zero.overlap_gather)
        return; /* each unit's forward waits for its own */
    for (gint32 u = 0; u < ideal->units->n_units; u++) {
        zp_tape_wait(tape, IDEAL_COMPUTE, ideal->state[u].ready);
        ideal->state[u].ready = ZP_TAPE_NONE;
    }
}
