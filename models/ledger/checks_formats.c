/* Own arithmetic of the checks, and what each runtime makes of a job's precision and stage. */
#include "models/ledger/checks_internal.h"

int
checks_bits(ZpDtype dtype)
{
    switch (dtype) {
    case ZP_DTYPE_FP64:
        return 64;
    case ZP_DTYPE_FP32:
    case ZP_DTYPE_TF32:
        return 32;
    case ZP_DTYPE_BF16:
    case ZP_DTYPE_FP16:
        return 16;
    case ZP_DTYPE_FP8:
    case ZP_DTYPE_INT8:
        return 8;
    case ZP_DTYPE_INT4:
        return 4;
    case ZP_DTYPE_NONE:
    case ZP_N_DTYPES:
        break;
    }
    return 0;
}

gint64
checks_bytes(ZpDtype dtype, gint64 elements)
{
    int bits = checks_bits(dtype);
    return bits % 8 == 0 ? elements * (bits / 8) : checks_ceil(elements * bits, 8);
}

/* Data parallel ranks among which DeepSpeed divides; MiCS has smaller groups at stage 3. */
static gint32
deepspeed_owners(const ChecksFacts *facts)
{
    const ZpDeepspeed *settings = facts->deepspeed;
    if (facts->job->zero.stage == 3 && settings->mics_shard_ranks > 0)
        return settings->mics_shard_ranks;
    return facts->job->world.ranks;
}

static gint32
owners_from(const ChecksFacts *facts, int stage)
{
    if (facts->runtime == CHECKS_DEEPSPEED)
        return facts->job->zero.stage >= stage ? deepspeed_owners(facts) : 1;
    return facts->job->zero.stage >= stage ? facts->job->world.shard_group : 1;
}

/* fully_shard and FSDP store shards at stage 2 too (SHARD_GRAD_OP frees them later, no more). */
gint32
checks_parameter_owners(const ChecksFacts *facts)
{
    return owners_from(facts, facts->runtime & CHECKS_FSDP ? 1 : 3);
}

gint32
checks_gradient_owners(const ChecksFacts *facts)
{
    return owners_from(facts, facts->runtime & CHECKS_FSDP ? 1 : 2);
}

gint32
checks_state_owners(const ChecksFacts *facts)
{
    if (facts->runtime == CHECKS_DDP)
        return facts->job->zero.stage >= 1 ? facts->job->world.ranks : 1;
    return owners_from(facts, 1);
}

/* PyTorch's way to a master copy is to store the parameters in its format. */
ZpDtype
checks_stored(const ChecksFacts *facts)
{
    const ZpPrecision *precision = &facts->job->precision;
    return facts->runtime & CHECKS_TORCH && precision->master != ZP_DTYPE_NONE
               ? precision->master
               : precision->parameter;
}

ZpDtype
checks_gathered(const ChecksFacts *facts)
{
    const ZpPrecision *precision = &facts->job->precision;
    if (facts->runtime == CHECKS_DEEPSPEED)
        return precision->parameter;
    return precision->gathered != ZP_DTYPE_NONE ? precision->gathered : checks_stored(facts);
}

ZpDtype
checks_reduced(const ChecksFacts *facts)
{
    const ZpPrecision *precision = &facts->job->precision;
    const ZpDeepspeed *deepspeed = facts->deepspeed;
    if (facts->runtime == CHECKS_DDP)
        return checks_stored(facts);
    if (facts->runtime == CHECKS_DEEPSPEED)
        return deepspeed->communication != ZP_DTYPE_NONE ? deepspeed->communication
                                                         : precision->parameter;
    if (facts->runtime & CHECKS_FSDP &&
        (facts->fsdp->reduce_dtype_unset || precision->reduce == ZP_DTYPE_NONE))
        return checks_gathered(facts);
    return precision->reduce;
}

gboolean
checks_offloads(const ChecksFacts *facts)
{
    const ZpDeepspeed *deepspeed = facts->deepspeed;
    if (facts->runtime == CHECKS_DEEPSPEED)
        return (deepspeed->offload_param.device != ZP_DS_NOWHERE ||
                deepspeed->offload_optimizer.device != ZP_DS_NOWHERE);
    return (facts->runtime & CHECKS_TORCH) != 0 && facts->fsdp->cpu_offload;
}

gboolean
checks_quantises(const ChecksFacts *facts)
{
    const ZpDeepspeed *deepspeed = facts->deepspeed;
    return facts->runtime == CHECKS_DEEPSPEED &&
           (deepspeed->quantized_weights || deepspeed->quantized_nontrainable ||
            deepspeed->quantized_gradients);
}
