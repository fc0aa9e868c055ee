/* What the ideal runtime stores: persistent tensors, gathered units, activations. */
#include "models/runtimes/ideal/ideal_internal.h"

gint64
ideal_shard_elements(const Ideal *ideal, gint64 elements)
{
    gint32 owners = ideal->job->world.shard_group;
    return zp_wrapping_shard_elements(elements, owners);
}

gint64
ideal_gathered_bytes(const Ideal *ideal, gint32 unit)
{
    const ZpPrecision *precision = &ideal->job->precision;
    gint64 shard = ideal_shard_elements(ideal, ideal->units->units[unit].elements);
    gint64 padded = shard * ideal->job->world.shard_group;
    int bits = zp_dtype_bits(precision->gathered);
    if (precision->gathered == precision->parameter)
        return zp_dtype_bytes(bits, padded - shard);
    return zp_dtype_bytes(bits, padded);
}

static void
persist(Ideal *ideal, ZpClass class_id, gint64 bytes)
{
    zp_tape_make(ideal->tape, ZP_TAPE_CLOCK_DEVICE, IDEAL_COMPUTE, (guint8)class_id, ZP_ROLE_SHARD,
                 bytes);
}

/* Is the tensor class divided among the shard group at this stage? */
static gboolean
divided(const Ideal *ideal, ZpClass class_id)
{
    int stage = ideal->job->zero.stage;
    if (class_id == ZP_CLASS_PARAMETER)
        return stage >= 3;
    if (class_id == ZP_CLASS_GRADIENT)
        return stage >= 2;
    return stage >= 1;
}

/* Elements of a class that one rank stores, padding included. */
static gint64
stored_elements(const Ideal *ideal, ZpClass class_id)
{
    gint64 sum = 0;
    for (gint32 u = 0; u < ideal->units->n_units; u++) {
        const ZpUnit *unit = &ideal->units->units[u];
        gint64 n = class_id == ZP_CLASS_PARAMETER ? unit->elements : unit->trainable_elements;
        sum += divided(ideal, class_id) ? ideal_shard_elements(ideal, n) : n;
    }
    return sum;
}

gint64
ideal_owned_elements(const Ideal *ideal)
{
    return stored_elements(ideal, ZP_CLASS_MASTER);
}

/* Factored variance: row and column sums per parameter, collected by unit. */
static gint64
factored_elements(const Ideal *ideal)
{
    const ZpModel *model = ideal->job->model;
    g_autofree gint64 *by_unit = g_new0(gint64, (gsize)ideal->units->n_units);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->tied_to != ZP_MODEL_NONE || !parameter->trainable || parameter->layer < 0)
            continue;
        by_unit[ideal->units->unit_of_layer[parameter->layer]] +=
            zp_optimizer_variance_elements(ideal->job->optimizer, parameter);
    }
    gint64 sum = 0;
    for (gint32 u = 0; u < ideal->units->n_units; u++)
        sum += divided(ideal, ZP_CLASS_VARIANCE) ? ideal_shard_elements(ideal, by_unit[u])
                                                 : by_unit[u];
    return sum;
}

/* One moment: the numbers and, for block-wise quantised states, a scale for each block. */
static gint64
moment_bytes(const Ideal *ideal, gint64 elements)
{
    const ZpOptimizer *optimizer = ideal->job->optimizer;
    gint64 bytes = zp_dtype_bytes(zp_dtype_bits(ideal->job->precision.moments), elements);
    if (optimizer->block_elements > 0)
        bytes += 4 * (elements / optimizer->block_elements +
                      (elements % optimizer->block_elements != 0));
    return bytes;
}

void
ideal_allocate_persistent(Ideal *ideal)
{
    const ZpJob *job = ideal->job;
    const ZpOptimizer *optimizer = job->optimizer;
    const ZpPrecision *precision = &job->precision;
    zp_tape_tag(ideal->tape, ZP_PHASE_INIT, ZP_TAPE_NONE, ZP_TAPE_NONE);
    persist(ideal, ZP_CLASS_RUNTIME, job->device.overhead_bytes);
    persist(ideal, ZP_CLASS_PARAMETER,
            zp_dtype_bytes(zp_dtype_bits(precision->parameter),
                           stored_elements(ideal, ZP_CLASS_PARAMETER)));
    persist(ideal, ZP_CLASS_GRADIENT,
            zp_dtype_bytes(zp_dtype_bits(precision->gradient),
                           stored_elements(ideal, ZP_CLASS_GRADIENT)));
    if (precision->master != ZP_DTYPE_NONE)
        persist(ideal, ZP_CLASS_MASTER,
                zp_dtype_bytes(zp_dtype_bits(precision->master),
                               stored_elements(ideal, ZP_CLASS_MASTER)));
    if (optimizer->momentum)
        persist(ideal, ZP_CLASS_MOMENTUM,
                moment_bytes(ideal, stored_elements(ideal, ZP_CLASS_MOMENTUM)));
    if (optimizer->variance)
        persist(ideal, ZP_CLASS_VARIANCE,
                moment_bytes(ideal, optimizer->factored
                                        ? factored_elements(ideal)
                                        : stored_elements(ideal, ZP_CLASS_VARIANCE)));
}

ZpLayerBytes
ideal_layer_bytes(const Ideal *ideal, gint32 layer)
{
    return *zp_layer_bytes_get(&ideal->bytes, layer);
}
