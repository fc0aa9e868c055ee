#include "scenarios/imports/deepspeed/config.h"

#include <string.h>

GQuark
zp_ds_apply_error_quark(void)
{
    return g_quark_from_static_string("zp-ds-apply-error");
}

static gboolean
on(const ZpDsConfig *config, ZpDsKey key)
{
    return zp_ds_config_boolean(config, key);
}

static gint64
count(const ZpDsConfig *config, ZpDsKey key)
{
    return zp_ds_config_integer(config, key);
}

static gint32
ranks(const ZpDsConfig *config, ZpDsKey key)
{
    return (gint32)CLAMP(count(config, key), 0, G_MAXINT32);
}

static ZpDsDevice
device(const ZpDsConfig *config, ZpDsKey key)
{
    const char *name = zp_ds_config_text(config, key);
    return g_strcmp0(name, "cpu") == 0    ? ZP_DS_CPU
           : g_strcmp0(name, "nvme") == 0 ? ZP_DS_NVME
                                          : ZP_DS_NOWHERE;
}

static ZpDtype
format(const ZpDsConfig *config, ZpDsKey key)
{
    const char *name = zp_ds_config_text(config, key);
    ZpDtype dtype;
    return name && zp_dtype_parse(name, &dtype) ? dtype : ZP_DTYPE_NONE;
}

static void
apply_stage_3(const ZpDsConfig *config, ZpDeepspeed *settings)
{
    settings->prefetch_bucket_elements = count(config, ZP_DS_PREFETCH_BUCKET_SIZE);
    settings->max_live_elements = count(config, ZP_DS_MAX_LIVE);
    settings->max_reuse_distance_elements = count(config, ZP_DS_MAX_REUSE);
    settings->param_persistence_elements = count(config, ZP_DS_PARAM_PERSISTENCE);
    settings->model_persistence_elements = count(config, ZP_DS_MODEL_PERSISTENCE);
    settings->module_granularity = count(config, ZP_DS_MODULE_GRANULARITY);
    settings->all_reduce_for_fetch = on(config, ZP_DS_ALL_REDUCE_FETCH);
    settings->allgather_sequential = on(config, ZP_DS_ALLGATHER_SEQUENTIAL);
    settings->memory_efficient_linear = on(config, ZP_DS_MEMORY_EFFICIENT_LINEAR);
    settings->leaf_classes =
        (const char *const *)zp_ds_config_value(config, ZP_DS_LEAF_CLASSES)->list;
    settings->leaf_names = (const char *const *)zp_ds_config_value(config, ZP_DS_LEAF_NAMES)->list;
    settings->sub_group_elements = count(config, ZP_DS_SUB_GROUP_SIZE);
    settings->hpz_partition_ranks = MAX(ranks(config, ZP_DS_HPZ), 1);
    settings->quantized_weights = on(config, ZP_DS_QUANTIZED_WEIGHTS);
    settings->quantized_nontrainable = on(config, ZP_DS_QUANTIZED_FROZEN);
    settings->quantized_gradients = on(config, ZP_DS_QUANTIZED_GRADIENTS);
    settings->mics_shard_ranks = ranks(config, ZP_DS_MICS_SHARD_SIZE);
    settings->mics_hierarchical = on(config, ZP_DS_MICS_HIERARCHICAL);
    settings->offload_param.device = device(config, ZP_DS_OFFLOAD_PARAM_DEVICE);
    settings->offload_param.pin_memory = on(config, ZP_DS_OFFLOAD_PARAM_PIN);
    settings->offload_param.buffer_count = ranks(config, ZP_DS_OFFLOAD_PARAM_BUFFERS);
    settings->offload_param.buffer_elements = count(config, ZP_DS_OFFLOAD_PARAM_BUFFER_SIZE);
    settings->offload_param.max_in_cpu_elements = count(config, ZP_DS_OFFLOAD_PARAM_MAX_IN_CPU);
    settings->offload_optimizer.buffer_count = ranks(config, ZP_DS_OFFLOAD_OPTIMIZER_BUFFERS);
    settings->offload_optimizer.ratio = zp_ds_config_real(config, ZP_DS_OFFLOAD_OPTIMIZER_RATIO);
}

static void
apply_settings(const ZpDsConfig *config, int stage, ZpDeepspeed *settings)
{
    zp_deepspeed_init(settings);
    settings->communication = format(config, ZP_DS_COMMUNICATION_DATA_TYPE);
    settings->gradient_accumulation = format(config, ZP_DS_GRAD_ACCUM_DTYPE);
    if (zp_ds_config_value(config, ZP_DS_GRADIENT_CLIPPING)->known)
        settings->gradient_clipping = zp_ds_config_real(config, ZP_DS_GRADIENT_CLIPPING);
    if (stage == 0)
        return;
    settings->contiguous_gradients = on(config, ZP_DS_CONTIGUOUS_GRADIENTS);
    settings->reduce_scatter = on(config, ZP_DS_REDUCE_SCATTER);
    settings->reduce_bucket_elements = count(config, ZP_DS_REDUCE_BUCKET_SIZE);
    settings->overlap_comm = on(config, ZP_DS_OVERLAP_COMM);
    settings->offload_optimizer.device = device(config, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE);
    settings->offload_optimizer.pin_memory = on(config, ZP_DS_OFFLOAD_OPTIMIZER_PIN);
    if (stage == 3) {
        apply_stage_3(config, settings);
        return;
    }
    settings->multi_rank_bucket = on(config, ZP_DS_MULTI_RANK_BUCKET);
    settings->round_robin_gradients = on(config, ZP_DS_ROUND_ROBIN);
    settings->allgather_bucket_elements = count(config, ZP_DS_ALLGATHER_BUCKET_SIZE);
    settings->check_grad_overflow = on(config, ZP_DS_BF16_CHECK_OVERFLOW);
    settings->immediate_grad_update = stage == 1 && on(config, ZP_DS_BF16_IMMEDIATE);
    /* Stages 1 and 2 take any device for the host (stage_1_and_2.py). */
    if (settings->offload_optimizer.device == ZP_DS_NVME)
        settings->offload_optimizer.device = ZP_DS_CPU;
}

static void
apply_precision(const ZpDsConfig *config, int stage, ZpPrecision *precision)
{
    ZpDtype model = zp_ds_config_precision(config);
    gboolean master_fp16 = stage > 0 && on(config, ZP_DS_FP16_MASTER);
    gboolean master_bf16 = stage > 0 && on(config, ZP_DS_BF16_MASTER);
    ZpDtype reduce = format(config, ZP_DS_COMMUNICATION_DATA_TYPE);
    *precision = (ZpPrecision){
        .parameter = model,
        .gradient = model,
        .gathered = model,
        .reduce = reduce == ZP_DTYPE_NONE ? model : reduce,
        .master = master_fp16   ? ZP_DTYPE_FP16
                  : master_bf16 ? ZP_DTYPE_BF16
                                : ZP_DTYPE_FP32,
        .moments = stage > 0 && on(config, ZP_DS_BF16_STATES) ? ZP_DTYPE_BF16 : ZP_DTYPE_FP32,
    };
    /* FusedAdam keeps moments in the format of the master partition, the CPU's Adam in fp32. */
    if (device(config, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE) == ZP_DS_NOWHERE &&
        precision->master != ZP_DTYPE_FP32)
        precision->moments = precision->master;
}

/* Keys that the job cannot do without. */
static gboolean
check_open(const ZpDsConfig *config, const ZpJob *job, GError **error)
{
    for (int key = 0; key < ZP_N_DS_KEYS; key++) {
        const ZpDsEntry *entry = zp_ds_schema_get((ZpDsKey)key);
        const ZpDsValue *value = zp_ds_config_value(config, (ZpDsKey)key);
        gboolean elsewhere = (key == ZP_DS_MICRO_BATCH_SIZE && job->training.micro_batch > 0) ||
                             (key == ZP_DS_ACCUMULATION_STEPS && job->training.accumulation > 0) ||
                             key == ZP_DS_TRAIN_BATCH_SIZE || key == ZP_DS_GRADIENT_CLIPPING;
        if (value->origin != ZP_DS_FROM_NOWHERE || entry->effect == ZP_DS_EFFECT_NONE || elsewhere)
            continue;
        g_set_error(error, ZP_DS_APPLY_ERROR, ZP_DS_APPLY_ERROR_OPEN,
                    "%s:%d: %s is \"auto\", which the HF Trainer fills from %s: say what that is",
                    config->messages->file, value->line, entry->path, entry->automatic);
        return FALSE;
    }
    return TRUE;
}

gboolean
zp_ds_apply_job(const ZpDsConfig *config, ZpDeepspeed *settings, ZpJob *job, GError **error)
{
    g_return_val_if_fail(error == NULL || *error == NULL, FALSE);
    g_autofree char *refused = zp_import_message_first_error(config->messages);
    if (refused) {
        g_set_error_literal(error, ZP_DS_APPLY_ERROR, ZP_DS_APPLY_ERROR_REFUSED, refused);
        return FALSE;
    }
    if (!check_open(config, job, error))
        return FALSE;
    int stage = zp_ds_config_stage(config);
    apply_settings(config, stage, settings);
    apply_precision(config, stage, &job->precision);
    job->runtime = "deepspeed";
    job->deepspeed = settings;
    job->zero.stage = stage;
    job->zero.bucket_elements = settings->reduce_bucket_elements;
    job->zero.overlap = zp_deepspeed_overlap(settings, stage);
    job->zero.reshard_after_forward = stage == 3;
    if (count(config, ZP_DS_MICRO_BATCH_SIZE) > 0)
        job->training.micro_batch = count(config, ZP_DS_MICRO_BATCH_SIZE);
    if (count(config, ZP_DS_ACCUMULATION_STEPS) > 0)
        job->training.accumulation = count(config, ZP_DS_ACCUMULATION_STEPS);
    return TRUE;
}
