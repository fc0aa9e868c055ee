#include "models/job/deepspeed.h"

#include "models/job/runtime.h"

void
zp_deepspeed_init(ZpDeepspeed *settings)
{
    *settings = (ZpDeepspeed){
        .contiguous_gradients = TRUE,
        .reduce_scatter = TRUE,
        .multi_rank_bucket = TRUE,
        .overlap_comm = -1,
        .reduce_bucket_elements = 500000000,
        .allgather_bucket_elements = 500000000,
        .sub_group_elements = 1000000000,
        .prefetch_bucket_elements = 50000000,
        .max_live_elements = 1000000000,
        .max_reuse_distance_elements = 1000000000,
        .param_persistence_elements = 100000,
        .model_persistence_elements = G_MAXINT64,
        .memory_efficient_linear = TRUE,
        .hpz_partition_ranks = 1,
        .offload_param = {.pin_memory = TRUE,
                          .buffer_count = 5,
                          .buffer_elements = 100000000,
                          .max_in_cpu_elements = 1000000000,
                          .ratio = 1.0},
        .offload_optimizer = {.pin_memory = TRUE, .buffer_count = 4, .ratio = 1.0},
        .pinned_power_of_two = TRUE,
        .gradient_clipping = 1.0,
        .check_grad_overflow = TRUE,
        .adam = ZP_DS_DEFAULT_ADAM,
        .rank = -1,
        /* ZeRO-Offload (arXiv 2101.06840), table 4: 1e9 parameters in 0.26 s on 2 x 28 cores. */
        .cpu_adam_elements_per_s = 1e9,
        .nvme_read_bytes_per_s = 3.2e9,
        .nvme_write_bytes_per_s = 1.5e9,
    };
}

gboolean
zp_deepspeed_overlap(const ZpDeepspeed *settings, int stage)
{
    return settings->overlap_comm < 0 ? stage == 3 : settings->overlap_comm > 0;
}

static gboolean
refuse(GError **error, const char *what)
{
    g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED, "deepspeed: %s", what);
    return FALSE;
}

static gboolean
check_stage3(const ZpDeepspeed *settings, const ZpJob *job, GError **error)
{
    gint32 ranks = job->world.ranks;
    if (settings->hpz_partition_ranks > 1 && ranks % MIN(settings->hpz_partition_ranks, ranks) != 0)
        return refuse(error, "zero_hpz_partition_size must divide the number of ranks");
    if (settings->mics_shard_ranks > 0 && ranks % settings->mics_shard_ranks != 0)
        return refuse(error, "mics_shard_size must divide the number of ranks");
    if (settings->mics_shard_ranks > 0 && settings->mics_shard_ranks < ranks &&
        settings->offload_optimizer.device != ZP_DS_NOWHERE)
        return refuse(error, "MiCS with several replicas cannot offload the optimizer");
    if (settings->offload_param.device != ZP_DS_NOWHERE &&
        settings->offload_optimizer.device == ZP_DS_NOWHERE)
        return refuse(error, "offload_param needs offload_optimizer (cpu or nvme)");
    if (settings->offload_optimizer.ratio < 0.0 || settings->offload_optimizer.ratio > 1.0)
        return refuse(error, "offload_optimizer.ratio must be between 0 and 1");
    return TRUE;
}

gboolean
zp_deepspeed_check(const ZpDeepspeed *settings, const ZpJob *job, GError **error)
{
    int stage = job->zero.stage;
    if (settings->reduce_bucket_elements < 1)
        return refuse(error, "reduce_bucket_size must be at least 1 element");
    if (settings->allgather_bucket_elements % 2 != 0)
        return refuse(error, "allgather_bucket_size must be even");
    if (settings->sub_group_elements < 1)
        return refuse(error, "sub_group_size must be at least 1 element");
    if (stage != 3 && settings->offload_param.device != ZP_DS_NOWHERE)
        return refuse(error, "offload_param needs stage 3");
    if (stage == 0 && settings->offload_optimizer.device != ZP_DS_NOWHERE)
        return refuse(error, "offload_optimizer needs stage 1, 2 or 3");
    if (stage == 0 && job->precision.parameter == ZP_DTYPE_BF16 &&
        settings->gradient_accumulation == ZP_DTYPE_FP32)
        return refuse(error, "stage 0 with bf16 cannot accumulate gradients in fp32 "
                             "(grad_accum_dtype): use stage 1");
    return stage == 3 ? check_stage3(settings, job, error) : TRUE;
}
