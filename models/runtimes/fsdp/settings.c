#include "models/runtimes/fsdp/settings_internal.h"

static void
add_micro_batches(ZpFsdpPlan *plan, const ZpJob *job)
{
    const ZpFsdp *settings = &plan->settings;
    for (gint64 m = 0; m < job->training.accumulation; m++) {
        gboolean last = m == job->training.accumulation - 1;
        ZpFsdpMicroBatch micro_batch = {
            .sync = last || settings->sync_every_micro_batch,
            .all_reduce = last || settings->all_reduce_every_micro_batch,
            .reshard_after_backward = last || settings->reshard_after_backward,
            .last_backward = TRUE,
        };
        g_array_append_val(plan->micro_batches, micro_batch);
    }
}

/* Where a job asks for a master copy, PyTorch's way is to store the parameters in its dtype and to
 * gather them in the low one; the optimizer's states have the dtype of what is stored. */
static void
set_precision(ZpFsdpPlan *plan, const ZpJob *job)
{
    const ZpPrecision *precision = &job->precision;
    ZpDtype stored = precision->master != ZP_DTYPE_NONE ? precision->master : precision->parameter;
    plan->stored_bytes = MAX(1, zp_dtype_bits(stored) / 8);
    plan->param_bytes = zp_dtype_bits(precision->gathered) / 8;
    plan->reduce_bytes =
        plan->settings.reduce_dtype_unset ? 0 : zp_dtype_bits(precision->reduce) / 8;
    plan->moments = job->optimizer->momentum + job->optimizer->variance;
    plan->square_root = job->optimizer->variance;
    plan->moment_bytes = job->optimizer->block_elements > 0
                             ? MAX(1, zp_dtype_bits(precision->moments) / 8)
                             : plan->stored_bytes;
}

static ZpFsdpStrategy
strategy_of(const ZpJob *job, const ZpFsdp *settings)
{
    if (job->zero.stage == 0 || job->world.shard_group == 1)
        return ZP_FSDP_STRATEGY_NO_SHARD;
    if (settings->shard_gradients_only == ZP_FSDP_AUTO)
        return job->zero.stage == 2 || !job->zero.reshard_after_forward
                   ? ZP_FSDP_STRATEGY_SHARD_GRAD_OP
                   : ZP_FSDP_STRATEGY_FULL_SHARD;
    return settings->shard_gradients_only == ZP_FSDP_YES ? ZP_FSDP_STRATEGY_SHARD_GRAD_OP
                                                         : ZP_FSDP_STRATEGY_FULL_SHARD;
}

gboolean
zp_fsdp_settings_check(const ZpJob *job, const ZpFsdp *settings, GError **error)
{
    gint32 n = settings->reshard_after_forward;
    if (n > 1 && job->world.shard_group % n != 0) {
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_RANGE,
                    "reshard_after_forward = %d must divide the shard group of %d ranks", n,
                    job->world.shard_group);
        return FALSE;
    }
    if (settings->reduce_scatter_max_input_buffers < 1) {
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_RANGE,
                    "reduce_scatter_max_input_buffers = %d must be at least 1",
                    settings->reduce_scatter_max_input_buffers);
        return FALSE;
    }
    return TRUE;
}

void
zp_fsdp_settings_apply(ZpFsdpPlan *plan, const ZpJob *job, const ZpFsdp *settings)
{
    plan->settings = *settings;
    plan->shard = job->world.shard_group;
    plan->replicate = job->world.ranks / job->world.shard_group;
    plan->strategy = strategy_of(job, settings);
    set_precision(plan, job);
    add_micro_batches(plan, job);
}
