/* Gradient buckets of the ideal runtime. */
#include "models/runtimes/ideal/ideal_internal.h"

/* Does this micro-batch reduce?  Sharded gradients must; full ones accumulate first. */
gboolean
ideal_reduces(const Ideal *ideal)
{
    if (ideal->job->world.ranks == 1)
        return FALSE;
    return ideal->job->zero.stage >= 2 || ideal->last_micro_batch;
}

/* Elements of a unit on the wire: padded where it is cut into shards. */
static gint64
message_elements(const Ideal *ideal, gint32 unit)
{
    gint64 n = ideal->units->units[unit].trainable_elements;
    if (ideal->job->zero.stage == 0)
        return n;
    return ideal_shard_elements(ideal, n) * ideal->job->world.shard_group;
}

void
ideal_begin_gradient(Ideal *ideal, gint32 unit)
{
    if (!ideal_reduces(ideal))
        return;
    ZpTape *tape = ideal->tape;
    /* At most one bucket in reduction while the next one fills. */
    if (ideal->open->len == 0 && ideal->before_previous_reduced != ZP_TAPE_NONE) {
        zp_tape_wait(tape, IDEAL_COMPUTE, ideal->before_previous_reduced);
        ideal->before_previous_reduced = ZP_TAPE_NONE;
    }
    gint64 bytes =
        zp_dtype_bytes(zp_dtype_bits(ideal->job->precision.reduce), message_elements(ideal, unit));
    ideal->state[unit].gradient = zp_tape_make(tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE,
                                               ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET, bytes);
}

static gboolean
has_replicas(const Ideal *ideal)
{
    return ideal->job->zero.stage > 0 && ideal->job->world.ranks > ideal->job->world.shard_group;
}

static void
launch_reduction(Ideal *ideal, gint64 elements)
{
    int bits = zp_dtype_bits(ideal->job->precision.reduce);
    if (ideal->job->zero.stage == 0) {
        ideal_launch_collective(ideal, IDEAL_REDUCE, ZP_KIND_ALL_REDUCE,
                                zp_dtype_bytes(bits, elements), IDEAL_GROUP_WORLD);
        return;
    }
    ideal_launch_collective(ideal, IDEAL_REDUCE, ZP_KIND_REDUCE_SCATTER,
                            zp_dtype_bytes(bits, elements), IDEAL_GROUP_SHARD);
    if (!ideal->last_micro_batch || !has_replicas(ideal))
        return;
    gint32 scattered = zp_tape_record(ideal->tape, IDEAL_REDUCE);
    zp_tape_wait(ideal->tape, IDEAL_REPLICATE, scattered);
    ideal_launch_collective(ideal, IDEAL_REPLICATE, ZP_KIND_ALL_REDUCE,
                            zp_dtype_bytes(bits, elements / ideal->job->world.shard_group),
                            IDEAL_GROUP_REPLICA);
}

void
ideal_flush(Ideal *ideal)
{
    if (ideal->open->len == 0)
        return;
    ZpTape *tape = ideal->tape;
    gint32 filled = zp_tape_record(tape, IDEAL_COMPUTE);
    zp_tape_wait(tape, IDEAL_REDUCE, filled);
    gint64 elements = 0;
    for (guint i = 0; i < ideal->open->len; i++)
        elements += message_elements(ideal, g_array_index(ideal->open, gint32, i));
    launch_reduction(ideal, elements);
    for (guint i = 0; i < ideal->open->len; i++) {
        IdealUnit *state = &ideal->state[g_array_index(ideal->open, gint32, i)];
        zp_tape_drop(tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_REDUCE, state->gradient);
        state->gradient = ZP_TAPE_NONE;
    }
    ideal->before_previous_reduced = ideal->previous_reduced;
    ideal->previous_reduced = zp_tape_record(tape, IDEAL_REDUCE);
    if (!ideal->job->zero.overlap)
        ideal_wait_reduced(ideal);
    g_array_set_size(ideal->open, 0);
    ideal->open_elements = 0;
}

void
ideal_finish_gradient(Ideal *ideal, gint32 unit)
{
    if (!ideal_reduces(ideal))
        return;
    g_array_append_val(ideal->open, unit);
    ideal->open_elements += ideal->units->units[unit].trainable_elements;
    if (ideal->open_elements >= ideal->job->zero.bucket_elements)
        ideal_flush(ideal);
}

void
ideal_wait_reduced(Ideal *ideal)
{
    if (ideal->previous_reduced != ZP_TAPE_NONE)
        zp_tape_wait(ideal->tape, IDEAL_COMPUTE, ideal->previous_reduced);
    if (has_replicas(ideal))
        zp_tape_wait(ideal->tape, IDEAL_COMPUTE, zp_tape_record(ideal->tape, IDEAL_REPLICATE));
    ideal->previous_reduced = ideal->before_previous_reduced = ZP_TAPE_NONE;
}
