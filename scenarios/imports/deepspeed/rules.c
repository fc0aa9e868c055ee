/* Keys that depend on each other: precision, optimizer formats, offload, sizes. */
#include "scenarios/imports/deepspeed/ds_internal.h"

#define D "%" G_GINT64_FORMAT
/* Below this a collective is all latency: 100,000 elements are 200 kB in 16 bits, which a link of
 * 25 GB/s moves in 8 us, less than one collective takes to start. */
#define TINY_BUCKET 100000
#define LARGE_BUCKET_BYTES 8e9
/* No rank steps a shard of 10^10 elements: its states alone are 120 GB. */
#define ENDLESS_SUB_GROUP 10000000000
/* Larger than any matrix of a model of hidden size 8192 (8192 x 8192 = 6.7e7). */
#define LARGE_PERSISTENCE 100000000

static gint64
integer(const ZpDsReader *reader, ZpDsKey key)
{
    return zp_ds_config_integer(reader->config, key);
}

static gboolean
on(const ZpDsReader *reader, ZpDsKey key)
{
    return zp_ds_config_boolean(reader->config, key);
}

static gboolean
given(const ZpDsReader *reader, ZpDsKey key)
{
    return zp_ds_config_given(reader->config, key);
}

static const char *
device(const ZpDsReader *reader, ZpDsKey key)
{
    const char *name = zp_ds_config_text(reader->config, key);
    return name ? name : "none";
}

static void
check_precision(const ZpDsReader *reader, int stage)
{
    if (on(reader, ZP_DS_FP16_ENABLED) && on(reader, ZP_DS_BF16_ENABLED))
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_FP16_ENABLED, "switch one of the two off",
                           "fp16 and bf16 are both enabled: DeepSpeed refuses that");
    if (on(reader, ZP_DS_AMP_ENABLED) &&
        (stage > 0 || on(reader, ZP_DS_FP16_ENABLED) || on(reader, ZP_DS_BF16_ENABLED)))
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_AMP_ENABLED, "use bf16 or fp16 alone",
                           "Apex AMP excludes ZeRO, fp16 and bf16");
    if (on(reader, ZP_DS_AUTOCAST_ENABLED) && on(reader, ZP_DS_QUANTIZED_WEIGHTS))
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_QUANTIZED_WEIGHTS, NULL,
                           "quantized gathers do not work with torch_autocast");
    const char *op = zp_ds_config_text(reader->config, ZP_DS_ALLREDUCE_OP);
    if (stage == 3 && g_strcmp0(op, "sum") == 0)
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_ALLREDUCE_OP, "write mean",
                           "sum is not supported at stage 3");
}

/* Gradients accumulated in another format than the model's. */
static void
check_accumulation(const ZpDsReader *reader, int stage)
{
    const char *format = zp_ds_config_text(reader->config, ZP_DS_GRAD_ACCUM_DTYPE);
    if (g_strcmp0(format, "fp32") != 0 || zp_ds_config_precision(reader->config) != ZP_DTYPE_BF16)
        return;
    if (stage == 0) {
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_GRAD_ACCUM_DTYPE, "use stage 1",
                           "bf16 with fp32 accumulation is not implemented at stage 0");
    } else if (zp_ds_config_uses_bf16_optimizer(reader->config)) {
        zp_ds_internal_conclude(reader, ZP_DS_GRAD_ACCUM_DTYPE,
                                "BF16 optimizer: every rank keeps all gradients in fp32, 4 bytes "
                                "per parameter, beside 2 bytes in bf16");
        zp_ds_internal_say(reader, ZP_IMPORT_NOTE, ZP_DS_GRAD_ACCUM_DTYPE, NULL,
                           "selects the BF16 optimizer: every rank keeps the full gradient in "
                           "fp32, 4 bytes per parameter on top of 2 bytes in bf16");
    } else if (stage <= 2) {
        reader->config->values[ZP_DS_GRAD_ACCUM_DTYPE].ignored =
            g_strdup("at stage 2, and with offload, gradients stay in the format of the model");
    }
}

static void
check_masters(const ZpDsReader *reader, int stage)
{
    static const ZpDsKey keys[] = {ZP_DS_FP16_MASTER, ZP_DS_BF16_MASTER};
    gboolean offloaded = g_strcmp0(device(reader, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), "none") != 0;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (!on(reader, keys[i]))
            continue;
        if (stage == 0)
            zp_ds_internal_say(reader, ZP_IMPORT_ERROR, keys[i], "use stage 1, 2 or 3",
                               "16-bit master weights need a ZeRO stage");
        else if (!offloaded && !(keys[i] == ZP_DS_BF16_MASTER && on(reader, ZP_DS_BF16_STATES)))
            zp_ds_internal_say(reader, ZP_IMPORT_ERROR, keys[i],
                               "add offload_optimizer with device cpu",
                               "16-bit master weights need the optimizer on the CPU "
                               "(DeepSpeedCPUAdam)");
        else
            zp_ds_internal_conclude(reader, keys[i],
                                    "master weights and their gradients take 2 bytes each");
    }
    if (on(reader, ZP_DS_BF16_STATES) && !on(reader, ZP_DS_BF16_MASTER))
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_BF16_STATES,
                           "switch bf16_master_weights_and_grads on",
                           "bf16_optimizer_states needs bf16_master_weights_and_grads");
}

/* ZeRO wraps the optimizers it was tested with (runtime/zero/utils.py,
 * ZERO_SUPPORTED_OPTIMIZERS); others need a permission. */
static void
check_optimizer(const ZpDsReader *reader, int stage)
{
    static const char *const tested[] = {"adam", "adamw", "adagrad", "lion", "muon"};
    const char *type = zp_ds_config_text(reader->config, ZP_DS_OPTIMIZER_TYPE);
    if (!type || stage == 0 || on(reader, ZP_DS_ALLOW_UNTESTED))
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(tested); i++)
        if (g_ascii_strcasecmp(type, tested[i]) == 0)
            return;
    zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_OPTIMIZER_TYPE,
                       "set zero_allow_untested_optimizer to true, or use AdamW",
                       "%.40s is not tested with ZeRO: DeepSpeed stops", type);
}

/* Pinned pool between NVMe and GPU (swap_tensor/partitioned_param_swapper.py): each buffer is
 * aligned to 1024 bytes times the threads of one transfer. */
static void
explain_param_pool(const ZpDsReader *reader)
{
    gint64 size = integer(reader, ZP_DS_OFFLOAD_PARAM_BUFFER_SIZE);
    gint64 count = integer(reader, ZP_DS_OFFLOAD_PARAM_BUFFERS);
    gint64 threads = integer(reader, ZP_DS_AIO_PARALLELISM), grain, bytes, total;
    gint64 width = zp_ds_config_precision(reader->config) == ZP_DTYPE_FP32 ? 4 : 2;
    if (__builtin_mul_overflow(threads, 1024, &grain) ||
        __builtin_mul_overflow(size, width, &bytes) ||
        __builtin_add_overflow(bytes, grain - 1, &bytes) ||
        __builtin_mul_overflow(bytes / grain * grain, count, &total)) {
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_OFFLOAD_PARAM_BUFFER_SIZE, NULL,
                           "the buffers are more than any memory holds");
        return;
    }
    zp_ds_internal_conclude(reader, ZP_DS_OFFLOAD_PARAM_BUFFER_SIZE,
                            "pinned host memory: " D " x " D " elements = " D " bytes", count,
                            bytes / grain * grain / width, total);
}

static void
check_offload(const ZpDsReader *reader, int stage)
{
    static const ZpDsKey devices[] = {ZP_DS_OFFLOAD_OPTIMIZER_DEVICE, ZP_DS_OFFLOAD_PARAM_DEVICE};
    static const ZpDsKey paths[] = {ZP_DS_OFFLOAD_OPTIMIZER_PATH, ZP_DS_OFFLOAD_PARAM_PATH};
    for (gsize i = 0; i < G_N_ELEMENTS(devices); i++) {
        if (g_strcmp0(device(reader, devices[i]), "nvme") != 0)
            continue;
        if (!zp_ds_config_text(reader->config, paths[i]))
            zp_ds_internal_say(reader, stage == 3 ? ZP_IMPORT_ERROR : ZP_IMPORT_WARNING, devices[i],
                               "add nvme_path", "device nvme needs nvme_path");
    }
    if (stage == 3 && g_strcmp0(device(reader, ZP_DS_OFFLOAD_PARAM_DEVICE), "none") != 0 &&
        g_strcmp0(device(reader, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), "none") == 0)
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_OFFLOAD_PARAM_DEVICE,
                           "add offload_optimizer with device cpu",
                           "parameters are offloaded only together with the optimizer: DeepSpeed "
                           "stops");
    gboolean optimizer_nvme =
        g_strcmp0(device(reader, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE), "nvme") == 0;
    if (optimizer_nvme && (stage == 1 || stage == 2))
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_OFFLOAD_OPTIMIZER_DEVICE,
                           "use stage 3, or write cpu",
                           "nvme works at stage 3 only: stage %d keeps the optimizer states in "
                           "host memory",
                           stage);
    if (optimizer_nvme && stage == 3)
        zp_ds_internal_conclude(reader, ZP_DS_OFFLOAD_OPTIMIZER_BUFFERS,
                                "pinned host memory: " D
                                " buffers of the largest sub-group in fp32",
                                integer(reader, ZP_DS_OFFLOAD_OPTIMIZER_BUFFERS));
    if (stage == 3 && g_strcmp0(device(reader, ZP_DS_OFFLOAD_PARAM_DEVICE), "nvme") == 0) {
        explain_param_pool(reader);
        zp_ds_internal_conclude(reader, ZP_DS_OFFLOAD_PARAM_MAX_IN_CPU,
                                "up to " D " elements of the own partition stay in host memory",
                                integer(reader, ZP_DS_OFFLOAD_PARAM_MAX_IN_CPU));
    }
    if (on(reader, ZP_DS_LEGACY_STAGE1))
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_LEGACY_STAGE1, "remove it",
                           "the old stage 1 exists no more: DeepSpeed stops");
    if (on(reader, ZP_DS_ELASTIC_CHECKPOINT) && stage == 3)
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_ELASTIC_CHECKPOINT, "remove it",
                           "stage 3 cannot save elastic checkpoints: saving will fail");
    if (on(reader, ZP_DS_GATHER_16BIT) && stage == 3) {
        const char *text = "saving gathers one full 16-bit copy of the model in the host memory of "
                           "rank 0: 2 bytes per parameter";
        zp_ds_internal_conclude(reader, ZP_DS_GATHER_16BIT, "%s", text);
        if (given(reader, ZP_DS_GATHER_FP16))
            zp_ds_internal_say(reader, ZP_IMPORT_NOTE, ZP_DS_GATHER_FP16, NULL, "%s", text);
    }
}

/* Bytes of one gradient bucket: the format of the model, 2 bytes while that is open. */
static double
bucket_bytes(const ZpDsReader *reader)
{
    int width = zp_ds_config_precision(reader->config) == ZP_DTYPE_FP32 ? 4 : 2;
    return (double)integer(reader, ZP_DS_REDUCE_BUCKET_SIZE) * width;
}

static void
check_bucket(const ZpDsReader *reader, int stage)
{
    gint64 bucket = integer(reader, ZP_DS_REDUCE_BUCKET_SIZE);
    gint64 parameters = reader->context->parameters;
    if (!zp_ds_config_value(reader->config, ZP_DS_REDUCE_BUCKET_SIZE)->known)
        return;
    double bytes = bucket_bytes(reader);
    int buffers = stage < 3 && on(reader, ZP_DS_OVERLAP_COMM) ? 2 : 1;
    g_autofree char *as =
        bucket <= G_MAXINT32
            ? g_strdup_printf("%d buffer%s of %.0f bytes", buffers, buffers == 1 ? "" : "s", bytes)
            : NULL;
    if (as && on(reader, ZP_DS_CONTIGUOUS_GRADIENTS))
        zp_ds_internal_conclude(reader, ZP_DS_REDUCE_BUCKET_SIZE, "%s", as);
    if (bucket < TINY_BUCKET && (parameters == 0 || parameters > bucket))
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_REDUCE_BUCKET_SIZE,
                           "a bucket of 50 MB in 16 bits is 25000000 elements; the default is "
                           "500000000",
                           "a bucket of " D " elements (not MB): every gradient, or slice of one, "
                           "is reduced by itself, in tiny collectives that are all latency",
                           bucket);
    gboolean more = parameters > 0 && bucket > parameters && bytes > 1e9;
    if (bytes > LARGE_BUCKET_BYTES || more)
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_REDUCE_BUCKET_SIZE,
                           "write at most the number of parameters of the model",
                           "a bucket of " D " elements is larger than most models: gradients then "
                           "form one bucket of the flat group, and the buffer taken literally is "
                           "%.0f GB%s",
                           bucket, bytes / 1e9, buffers == 2 ? ", twice with overlap_comm" : "");
}

static void
check_sizes(const ZpDsReader *reader, int stage)
{
    if (stage >= 1)
        check_bucket(reader, stage);
    if ((stage == 1 || stage == 2) && integer(reader, ZP_DS_ALLGATHER_BUCKET_SIZE) % 2 != 0)
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, ZP_DS_ALLGATHER_BUCKET_SIZE,
                           "write an even number", "the all-gather bucket must be even");
    if (stage == 3 && integer(reader, ZP_DS_SUB_GROUP_SIZE) >= ENDLESS_SUB_GROUP)
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_SUB_GROUP_SIZE,
                           "the default is 1000000000",
                           "one sub-group whatever the model: the temporaries of the optimizer "
                           "then scale with the whole shard of a rank (6 bytes per element)");
    if (stage == 3 && integer(reader, ZP_DS_PARAM_PERSISTENCE) >= LARGE_PERSISTENCE)
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_PARAM_PERSISTENCE,
                           "the default is 100000",
                           "parameters up to this size stay on every rank: nearly nothing is "
                           "partitioned");
    if (stage >= 2 && on(reader, ZP_DS_REDUCE_SCATTER) &&
        (on(reader, ZP_DS_PRESCALE_GRADIENTS) ||
         zp_ds_config_real(reader->config, ZP_DS_PREDIVIDE_FACTOR) != 1.0))
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR,
                           on(reader, ZP_DS_PRESCALE_GRADIENTS) ? ZP_DS_PRESCALE_GRADIENTS
                                                                : ZP_DS_PREDIVIDE_FACTOR,
                           "remove it, or set reduce_scatter to false",
                           "not supported with reduce_scatter at stages 2 and 3");
}

static void
check_groups(const ZpDsReader *reader, int stage)
{
    static const ZpDsKey keys[] = {ZP_DS_HPZ, ZP_DS_MICS_SHARD_SIZE};
    gint64 world = reader->context->world;
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        gint64 ranks = integer(reader, keys[i]);
        if (stage == 3 && ranks > 1 && world > ranks && world % ranks != 0)
            zp_ds_internal_say(reader, ZP_IMPORT_ERROR, keys[i], "choose a divisor of the world",
                               D " ranks do not divide the world of " D, ranks, world);
    }
    if (stage == 3 && integer(reader, ZP_DS_HPZ) > 1)
        zp_ds_internal_conclude(reader, ZP_DS_HPZ,
                                "a second copy of the weights inside " D " ranks: 2 bytes x "
                                "parameters / " D " per GPU; backward gathers stay inside",
                                integer(reader, ZP_DS_HPZ), integer(reader, ZP_DS_HPZ));
    if (stage == 3 && on(reader, ZP_DS_QUANTIZED_WEIGHTS))
        zp_ds_internal_conclude(reader, ZP_DS_QUANTIZED_WEIGHTS,
                                "1 byte per element on the link instead of 2");
    if (stage == 3 && on(reader, ZP_DS_QUANTIZED_GRADIENTS))
        zp_ds_internal_conclude(reader, ZP_DS_QUANTIZED_GRADIENTS,
                                "half a byte per element on the link, all-to-all; between nodes "
                                "only");
    if (stage == 3 && given(reader, ZP_DS_LEAF_CLASSES))
        zp_ds_internal_conclude(reader, ZP_DS_LEAF_CLASSES,
                                "each such module is gathered as one unit: all experts of a layer "
                                "together");
}

/* Degrees of a model that DeepSpeed cuts; a scenario has its own keys for them. */
static void
check_cuts(const ZpDsReader *reader)
{
    if (integer(reader, ZP_DS_AUTOTP_SIZE) > 1)
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_AUTOTP_SIZE,
                           "write parallel.tensor in the scenario",
                           "left out: it is not taken over");
    if (integer(reader, ZP_DS_SEQUENCE_PARALLEL_SIZE) > 1)
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, ZP_DS_SEQUENCE_PARALLEL_SIZE,
                           "write parallel.context in the scenario",
                           "left out: its all-to-alls are not modelled, the nearest key of a "
                           "scenario is parallel.context");
}

void
zp_ds_rules_check(const ZpDsReader *reader)
{
    int stage = zp_ds_config_stage(reader->config);
    ZpDsValue *overlap = &reader->config->values[ZP_DS_OVERLAP_COMM];
    if (!overlap->known) {
        overlap->known = TRUE;
        overlap->boolean = stage == 3;
        zp_ds_internal_explain(reader, ZP_DS_OVERLAP_COMM, "at stage %d", stage);
    }
    check_precision(reader, stage);
    check_accumulation(reader, stage);
    check_masters(reader, stage);
    check_optimizer(reader, stage);
    check_offload(reader, stage);
    check_sizes(reader, stage);
    check_groups(reader, stage);
    check_cuts(reader);
}
