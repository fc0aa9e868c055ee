#include "scenarios/fsdp_apply.h"

GQuark
zp_fsdp_apply_error_quark(void)
{
    return g_quark_from_static_string("zp-fsdp-apply-error");
}

static gboolean
refuse(GError **error, const ZpFsdpConfig *config, const char *what)
{
    g_set_error(error, ZP_FSDP_APPLY_ERROR, ZP_FSDP_APPLY_ERROR_UNSUPPORTED, "%s: %s",
                config->messages->file, what);
    return FALSE;
}

static gboolean
check(const ZpFsdpConfig *config, GError **error)
{
    g_autofree char *refused = zp_import_message_first_error(config->messages);
    if (refused) {
        g_set_error_literal(error, ZP_FSDP_APPLY_ERROR, ZP_FSDP_APPLY_ERROR_REFUSED, refused);
        return FALSE;
    }
    if (!config->uses_fsdp && !config->uses_ddp)
        return refuse(error, config,
                      config->deepspeed ? "the file selects DeepSpeed"
                                        : "the file selects no FSDP");
    return TRUE;
}

static void
apply_wrap(const ZpFsdpConfig *config, ZpZero *zero)
{
    zero->outer = config->wrap == ZP_FSDP_WRAP_TITAN ? ZP_OUTER_OWN : ZP_OUTER_ROOT;
    zero->wrap_blocks = 1;
    switch (config->wrap) {
    case ZP_FSDP_WRAP_NONE:
        zero->wrap = ZP_WRAP_MODEL;
        break;
    case ZP_FSDP_WRAP_CLASSES:
    case ZP_FSDP_WRAP_TITAN:
        zero->wrap = ZP_WRAP_BLOCK;
        break;
    case ZP_FSDP_WRAP_SIZE:
        zero->wrap = ZP_WRAP_SIZE;
        zero->wrap_elements = config->wrap_elements;
        break;
    }
}

static int
stage_of(ZpFsdpSharding strategy)
{
    switch (strategy) {
    case ZP_FSDP_FULL_SHARD:
    case ZP_FSDP_HYBRID_SHARD:
        return 3;
    case ZP_FSDP_SHARD_GRAD_OP:
    case ZP_FSDP_HYBRID_SHARD_ZERO2:
        return 2;
    case ZP_FSDP_NO_SHARD:
        return 0;
    }
    g_assert_not_reached();
}

/* Ranks of one shard group in a world of `ranks`; 0 if they do not divide it. */
static gint32
shard_group(const ZpFsdpConfig *config, const ZpJob *job)
{
    gint64 ranks = job->world.ranks, group = ranks;
    if (config->uses_ddp)
        return job->world.ranks;
    gboolean hybrid =
        config->strategy == ZP_FSDP_HYBRID_SHARD || config->strategy == ZP_FSDP_HYBRID_SHARD_ZERO2;
    if (config->shard_degree > 0)
        group = config->shard_degree;
    else if (config->replicate_degree > 1)
        group = ranks % config->replicate_degree == 0 ? ranks / config->replicate_degree : 0;
    else if (hybrid)
        group = MIN(ranks, job->network.gpus_per_node);
    return group > 0 && ranks % group == 0 ? (gint32)group : 0;
}

static void
apply_precision(const ZpFsdpConfig *config, ZpPrecision *precision)
{
    ZpDtype stored = config->stored == ZP_DTYPE_NONE ? ZP_DTYPE_FP32 : config->stored;
    ZpDtype gathered = config->gathered == ZP_DTYPE_NONE ? stored : config->gathered;
    *precision = (ZpPrecision){
        .parameter = stored,
        .gradient = gathered,
        .gathered = gathered,
        .reduce = config->reduced == ZP_DTYPE_NONE ? gathered : config->reduced,
        .master = ZP_DTYPE_NONE, /* the sharded parameters are the masters */
        .moments = stored,
    };
}

/* Under autocast the parameters and their gradients keep their format. */
static void
apply_ddp(ZpJob *job)
{
    job->precision.gradient = job->precision.reduce = job->precision.parameter;
    job->zero.stage = 0;
    job->zero.reshard_after_forward = FALSE;
    job->runtime = "ddp";
}

static void
apply_settings(const ZpFsdpConfig *config, ZpFsdp *settings)
{
    *settings = *zp_fsdp_defaults();
    settings->cpu_offload = config->offload_parameters;
    settings->prefetch = config->backward_prefetch;
    settings->next_forward_prefetch = config->forward_prefetch;
    settings->limit_all_gathers = config->limit_all_gathers;
    settings->use_orig_params = config->use_orig_params;
}

gboolean
zp_fsdp_apply_job(const ZpFsdpConfig *config, ZpFsdp *settings, ZpJob *job, GError **error)
{
    g_return_val_if_fail(error == NULL || *error == NULL, FALSE);
    if (!check(config, error))
        return FALSE;
    if (config->world > G_MAXINT32)
        return refuse(error, config, "no world has that many ranks");
    gint32 ranks = config->world > 0 ? (gint32)config->world : job->world.ranks;
    ZpJob trial = *job;
    trial.world.ranks = ranks;
    gint32 group = shard_group(config, &trial);
    if (group == 0)
        return refuse(error, config, "the shard group does not divide the world");
    apply_settings(config, settings);
    apply_precision(config, &job->precision);
    apply_wrap(config, &job->zero);
    job->world.ranks = ranks;
    job->world.shard_group = group;
    job->zero.stage = stage_of(config->strategy);
    job->zero.reshard_after_forward = config->reshard_after_forward;
    job->runtime = config->version == 2 ? "fsdp2" : "fsdp1";
    if (config->uses_ddp)
        apply_ddp(job);
    job->fsdp = settings;
    job->training.checkpointing =
        config->checkpoint == ZP_FSDP_CHECKPOINT_NONE   ? ZP_CHECKPOINTING_NONE
        : config->checkpoint == ZP_FSDP_CHECKPOINT_FULL ? ZP_CHECKPOINTING_FULL
                                                        : ZP_CHECKPOINTING_SELECTIVE;
    if (config->checkpoint == ZP_FSDP_CHECKPOINT_OP)
        job->training.selective = ZP_SELECTIVE_EVERY_SECOND_PRODUCT;
    if (config->micro_batch > 0)
        job->training.micro_batch = config->micro_batch;
    if (config->accumulation > 0)
        job->training.accumulation = config->accumulation;
    if (config->sequence > 0)
        job->training.sequence = config->sequence;
    return TRUE;
}
