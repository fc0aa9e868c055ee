#include "scenarios/imports/fsdp/config.h"

#include "models/parallel/parallel.h"

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

/* The degrees that hold: the file's, else the job's own. */
static ZpParallel
parallel_of(const ZpFsdpConfig *config, const ZpJob *job)
{
    const ZpParallel *file = &config->parallel, *own = &job->world.parallel;
    return (ZpParallel){
        .tensor = file->tensor > 0 ? file->tensor : own->tensor,
        .context = file->context > 0 ? file->context : own->context,
        .pipeline = file->pipeline > 0 ? file->pipeline : own->pipeline,
        .sequence = file->tensor > 0 ? file->sequence : own->sequence,
    };
}

/* Ranks of one shard group among `ranks` that hold the same parameters; 0 if they do not divide
 * them.  Context parallel ranks are of the group (torchtitan, distributed/parallel_dims.py, mesh
 * dp_shard_cp). */
static gint32
shard_group(const ZpFsdpConfig *config, const ZpJob *job, gint32 ranks)
{
    const ZpParallel *parallel = &job->world.parallel;
    gint64 group = ranks;
    if (config->uses_ddp)
        return ranks;
    gboolean hybrid =
        config->strategy == ZP_FSDP_HYBRID_SHARD || config->strategy == ZP_FSDP_HYBRID_SHARD_ZERO2;
    if (config->shard_degree > 0)
        group = config->shard_degree * zp_parallel_context(parallel);
    else if (config->replicate_degree > 1)
        group = ranks % config->replicate_degree == 0 ? ranks / config->replicate_degree : 0;
    else if (hybrid)
        group = MIN(ranks, MAX(1, job->network.gpus_per_node / zp_parallel_tensor(parallel)));
    return group > 0 && ranks % group == 0 ? (gint32)group : 0;
}

/* World and degrees of the file on a copy of the job. */
static gboolean
apply_world(const ZpFsdpConfig *config, ZpJob *job, GError **error)
{
    if (config->world > G_MAXINT32)
        return refuse(error, config, "no world has that many ranks");
    if (config->world > 0)
        job->world.ranks = (gint32)config->world;
    job->world.parallel = parallel_of(config, job);
    gint32 ranks = zp_parallel_data_ranks(&job->world.parallel, job->world.ranks);
    if (ranks == 0 || ranks % zp_parallel_context(&job->world.parallel) != 0)
        return refuse(error, config,
                      "tensor, context and pipeline parallel ranks do not divide the world");
    job->world.shard_group = shard_group(config, job, ranks);
    return job->world.shard_group > 0 ||
           refuse(error, config, "the shard group does not divide the world");
}

/* Context parallel ranks share their samples (torchtitan, train.py: the degree of a batch). */
static gboolean
apply_batch(const ZpFsdpConfig *config, ZpJob *job, GError **error)
{
    if (config->micro_batch > 0)
        job->training.micro_batch = config->micro_batch;
    if (config->accumulation > 0)
        job->training.accumulation = config->accumulation;
    if (config->sequence > 0)
        job->training.sequence = config->sequence;
    if (config->global_batch == 0)
        return TRUE;
    const ZpParallel *parallel = &job->world.parallel;
    gint64 ranks =
        zp_parallel_data_ranks(parallel, job->world.ranks) / zp_parallel_context(parallel);
    gint64 pass = 0;
    if (__builtin_mul_overflow(ranks, job->training.micro_batch, &pass) ||
        config->global_batch % pass != 0)
        return refuse(error, config,
                      "the local batches of all data parallel ranks do not divide the global batch "
                      "(training.global_batch_size)");
    job->training.accumulation = config->global_batch / pass;
    return TRUE;
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
    ZpJob trial = *job;
    if (!apply_world(config, &trial, error) || !apply_batch(config, &trial, error))
        return FALSE;
    *job = trial;
    apply_settings(config, settings);
    apply_precision(config, &job->precision);
    apply_wrap(config, &job->zero);
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
    return TRUE;
}
