/* Between which bytes each class of what a rank stores must lie. */
#include "models/ledger/checks_internal.h"

/* Between the elements of one rank, and what padding, alignment and whole small tensors add. */
static ChecksBounds
between(ZpDtype dtype, gint64 low, gint64 high)
{
    return (ChecksBounds){checks_bytes(dtype, low), checks_bytes(dtype, high)};
}

/* What frameworks add at most to a rank's share: FSDP2 a row of each parameter (chunks of dimension
 * 0), FSDP1 16 bytes for each and a share of a unit's end, DeepSpeed up to twice the ranks for a
 * flat group or a parameter. */
static gint64
padding_elements(const ChecksFacts *facts, gint32 owners)
{
    switch (facts->runtime) {
    case CHECKS_FSDP2:
        return owners > 1 ? facts->row_elements : 0;
    case CHECKS_FSDP1:
        return 16 * (gint64)facts->n_parameters +
               facts->units->n_units * (gint64)(owners > 1 ? 1 : facts->job->world.shard_group);
    case CHECKS_DEEPSPEED:
        return (2 * (gint64)facts->n_parameters + 2) * (owners > 1 ? 2 : facts->job->world.ranks);
    default:
        return 0;
    }
}

/* ZeroRedundancyOptimizer hands whole parameters to the ranks, largest first. */
static gint64
whole_parameters_elements(const ChecksFacts *facts)
{
    return facts->runtime == CHECKS_DDP && facts->job->zero.stage >= 1
               ? facts->largest_parameter_elements
               : 0;
}

static gint64
share(const ChecksFacts *facts, gint64 whole, gint64 of_units, gint32 owners)
{
    if (owners == 1)
        return whole;
    return facts->runtime == CHECKS_IDEAL ? of_units : whole / owners;
}

/* Stage 3 keeps small parameters whole, and hpZ a second partition. */
static gint64
kept_whole_elements(const ChecksFacts *facts)
{
    const ZpDeepspeed *settings = facts->deepspeed;
    const ZpModel *model = facts->job->model;
    gint64 sum = 0;
    if (facts->runtime != CHECKS_DEEPSPEED || facts->job->zero.stage < 3)
        return 0;
    for (guint p = 0; p < model->parameters->len; p++) {
        gint64 n = zp_model_parameter(model, (gint32)p)->elements;
        sum += n < settings->param_persistence_elements ? n + facts->job->world.ranks : 0;
    }
    gint32 secondary = settings->hpz_partition_ranks;
    return sum + (secondary > 1 ? facts->elements / secondary + facts->elements / 8 : 0);
}

static ChecksBounds
parameters(const ChecksFacts *facts)
{
    gint32 owners = checks_parameter_owners(facts);
    ZpDtype dtype = checks_stored(facts);
    gint64 low = share(facts, facts->elements, facts->shard_elements, owners);
    gint64 high = low + padding_elements(facts, owners) + kept_whole_elements(facts);
    if (facts->runtime & CHECKS_TORCH && owners == 1) /* what no layer uses is there as well */
        high += facts->job->model->n_elements - facts->elements;
    ChecksBounds bounds = between(dtype, low, high);
    if (checks_bits(dtype) < 8) /* what stays in 16 bits of a model in four */
        bounds.high = 4 * bounds.high;
    if (checks_offloads(facts) || checks_quantises(facts))
        bounds = (ChecksBounds){0, 0};
    return bounds;
}

/* A rank's part of FSDP1's flat parameters may hold many of few trained elements, or none. */
static gboolean
is_uneven(const ChecksFacts *facts)
{
    return facts->runtime == CHECKS_FSDP1 && facts->trainable < facts->elements;
}

/* From stage 2 on a rank keeps the gradients of its share, at stage 2 those of the parameters at
 * its ends as a whole; in the model's format or that of accumulation.  Stage 1 may keep a whole
 * accumulator. */
static ChecksBounds
deepspeed_gradients(const ChecksFacts *facts)
{
    gint32 owners = checks_gradient_owners(facts);
    ZpDtype model = facts->job->precision.parameter, kept = facts->deepspeed->gradient_accumulation;
    int bits = checks_bits(model), kept_bits = checks_bits(kept != ZP_DTYPE_NONE ? kept : model);
    if (checks_offloads(facts))
        return (ChecksBounds){0, 0};
    gint32 least_owners =
        owners == 1 && facts->job->zero.stage > 0 ? facts->job->world.ranks : owners;
    gint64 least = facts->trainable / least_owners;
    gint64 most =
        facts->trainable / owners + padding_elements(facts, owners) +
        facts->largest_parameter_elements * 2 * MAX(1, facts->deepspeed->n_parameter_groups);
    return (ChecksBounds){
        .low = least * MIN(bits, kept_bits) / 8,
        .high = facts->job->zero.stage >= 2 ? most * MAX(bits, kept_bits) / 8 : 0,
    };
}

static ChecksBounds
gradients(const ChecksFacts *facts)
{
    gint32 owners = checks_gradient_owners(facts);
    const ZpPrecision *precision = &facts->job->precision;
    gint64 own = share(facts, facts->trainable, facts->shard_trainable, owners);
    if (facts->runtime == CHECKS_IDEAL)
        return between(precision->gradient, own, own);
    if (facts->runtime == CHECKS_DEEPSPEED)
        return deepspeed_gradients(facts);
    if (is_uneven(facts)) /* a flat parameter has a gradient as a whole */
        return between(checks_stored(facts), 0, facts->elements + padding_elements(facts, owners));
    /* Views of buckets are counted as buckets. */
    if (facts->runtime & CHECKS_TORCH &&
        !(facts->runtime == CHECKS_DDP && facts->fsdp->gradient_as_bucket_view))
        return between(checks_stored(facts), own, own + padding_elements(facts, owners));
    return (ChecksBounds){0, 0};
}

static gint64
measured_gradients(const ChecksFacts *facts)
{
    return facts->runtime == CHECKS_IDEAL ? facts->bytes[ZP_CLASS_GRADIENT]
                                          : facts->scan->gradient_at_step_bytes;
}

/* One number for each trainable element that a rank owns. */
static ChecksBounds
states(const ChecksFacts *facts, ZpDtype dtype)
{
    gint32 owners = checks_state_owners(facts);
    gint64 whole = whole_parameters_elements(facts);
    gint64 own = share(facts, facts->trainable, facts->shard_trainable, owners);
    gint64 low = own - (owners - 1) * whole / owners;
    if (is_uneven(facts))
        return between(dtype, 0, facts->trainable);
    return between(dtype, MAX(0, low), own + whole + padding_elements(facts, owners));
}

static gboolean
has_master(const ChecksFacts *facts)
{
    const ZpPrecision *precision = &facts->job->precision;
    if (facts->runtime == CHECKS_DEEPSPEED)
        return facts->job->zero.stage > 0 || precision->parameter != ZP_DTYPE_FP32;
    return facts->runtime == CHECKS_IDEAL && precision->master != ZP_DTYPE_NONE;
}

static ChecksBounds
master(const ChecksFacts *facts)
{
    ZpDtype dtype = facts->job->precision.master;
    if (!has_master(facts))
        return (ChecksBounds){0, 0};
    return states(facts, dtype != ZP_DTYPE_NONE ? dtype : ZP_DTYPE_FP32);
}

/* Adafactor's variance: a number a row and one a column of each matrix. */
static gint64
factored_elements(const ChecksFacts *facts)
{
    const ZpModel *model = facts->job->model;
    g_autofree gint64 *of_unit = g_new0(gint64, (gsize)facts->units->n_units);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (!parameter->trainable || parameter->tied_to != ZP_MODEL_NONE ||
            parameter->layer == ZP_MODEL_NONE)
            continue;
        gint64 rows = 0, columns = 0;
        if (parameter->n_dims >= 2) {
            columns = parameter->shape[parameter->n_dims - 1];
            rows = parameter->shape[parameter->n_dims - 2];
        }
        gint64 matrices = rows * columns > 0 ? parameter->elements / (rows * columns) : 0;
        of_unit[facts->units->unit_of_layer[parameter->layer]] +=
            matrices > 0 ? matrices * (rows + columns) : parameter->elements;
    }
    gint64 sum = 0;
    for (gint32 u = 0; u < facts->units->n_units; u++)
        sum += checks_ceil(of_unit[u], checks_state_owners(facts));
    return sum;
}

static ZpDtype
moment_format(const ChecksFacts *facts)
{
    const ZpJob *job = facts->job;
    if (facts->runtime & CHECKS_TORCH && job->optimizer->block_elements == 0)
        return checks_stored(facts);
    if (job->precision.moments == ZP_DTYPE_NONE)
        return ZP_DTYPE_FP32;
    return job->precision.moments;
}

static gboolean
keeps(const ChecksFacts *facts, ZpClass class_id)
{
    const ZpOptimizer *optimizer = facts->job->optimizer;
    return class_id == ZP_CLASS_MOMENTUM ? optimizer->momentum : optimizer->variance;
}

static ChecksBounds
moment(const ChecksFacts *facts, ZpClass class_id)
{
    const ZpOptimizer *optimizer = facts->job->optimizer;
    ZpDtype dtype = moment_format(facts);
    if (!keeps(facts, class_id))
        return (ChecksBounds){0, 0};
    if (class_id == ZP_CLASS_VARIANCE && optimizer->factored) {
        gint64 own = factored_elements(facts);
        return facts->runtime == CHECKS_IDEAL ? between(dtype, own, own) : (ChecksBounds){0, 0};
    }
    return states(facts, dtype);
}

/* Block-wise quantised states (Dettmers et al., arXiv 2110.02861): one fp32 maximum a block. */
static gint64
scale_bytes(const ChecksFacts *facts, ZpClass class_id)
{
    const ZpOptimizer *optimizer = facts->job->optimizer;
    if (facts->runtime != CHECKS_IDEAL || optimizer->block_elements == 0 || !keeps(facts, class_id))
        return 0;
    gint64 own = checks_state_owners(facts) > 1 ? facts->shard_trainable : facts->trainable;
    if (class_id == ZP_CLASS_VARIANCE && optimizer->factored)
        own = factored_elements(facts);
    return 4 * checks_ceil(own, optimizer->block_elements);
}

static void
store_state(ChecksFacts *facts, ZpClass class_id, ChecksStored *stored)
{
    gboolean is_master = class_id == ZP_CLASS_MASTER;
    *stored =
        (ChecksStored){.measured = facts->bytes[class_id], .owners = checks_state_owners(facts)};
    /* What DeepSpeed offloads has buffers, files and pinned copies with sizes of their own. */
    if (facts->runtime == CHECKS_DEEPSPEED && checks_offloads(facts))
        return;
    stored->bounds = is_master ? master(facts) : moment(facts, class_id);
    stored->dtype = is_master ? facts->job->precision.master : moment_format(facts);
    stored->whole_bytes = checks_bytes(stored->dtype, facts->trainable);
    stored->absent = is_master ? !has_master(facts) : !keeps(facts, class_id);
    stored->scale_bytes = is_master ? 0 : scale_bytes(facts, class_id);
}

void
checks_store(ChecksFacts *facts)
{
    ZpDtype dtype = checks_stored(facts);
    facts->stored[CHECKS_PARAMETERS] =
        (ChecksStored){.measured = facts->bytes[ZP_CLASS_PARAMETER],
                       .bounds = parameters(facts),
                       .whole_bytes = checks_bytes(dtype, facts->elements),
                       .owners = checks_parameter_owners(facts),
                       .dtype = dtype};
    if (facts->runtime == CHECKS_IDEAL)
        dtype = facts->job->precision.gradient;
    facts->stored[CHECKS_GRADIENTS] =
        (ChecksStored){.measured = measured_gradients(facts),
                       .bounds = gradients(facts),
                       .whole_bytes = checks_bytes(dtype, facts->trainable),
                       .owners = checks_gradient_owners(facts),
                       .dtype = dtype};
    store_state(facts, ZP_CLASS_MASTER, &facts->stored[CHECKS_MASTER]);
    store_state(facts, ZP_CLASS_MOMENTUM, &facts->stored[CHECKS_MOMENTUM]);
    store_state(facts, ZP_CLASS_VARIANCE, &facts->stored[CHECKS_VARIANCE]);
}
