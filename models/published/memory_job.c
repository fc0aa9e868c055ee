#include <string.h>

#include "models/parallel/parallel.h"
#include "models/prices/cost.h"
#include "models/published/memory_job_internal.h"

/* The sequence of torchtitan's other runs of the model. */
#define SEQUENCE_OF_UNSTATED 8192
/* Of Lightning's demo (pytorch_lightning/demos/transformer.py). */
#define SEQUENCE_OF_DEMO 35

static ZpDtype
dtype_of(const ZpValidateRecord *row, const char *column, ZpDtype missing)
{
    g_auto(GStrv) words = g_strsplit(zp_validate_record_text(row, column), " ", 2);
    ZpDtype dtype = missing;
    if (words[0] == NULL || !zp_dtype_parse(words[0], &dtype))
        return missing;
    return dtype;
}

static gboolean
refuse(GError **error, const char *reason)
{
    g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW, reason);
    return FALSE;
}

static gboolean
check_scope(const ZpValidateRecord *row, GError **error)
{
    if (zp_validate_record_has(row, "cpu_offload", "y"))
        return refuse(error, "offload is not among these comparisons");
    gboolean adapters = zp_validate_record_has(row, "strategy", "lora") ||
                        zp_validate_record_has(row, "notes", "lora") ||
                        zp_validate_record_has(row, "model_name", "lora");
    if (adapters && !zp_validate_record_has(row, "notes", "lora r="))
        return refuse(error, "the adapters are not described");
    if (zp_validate_record_has(row, "notes", "fp8") ||
        zp_validate_record_has(row, "notes", "float8"))
        return refuse(error, "products in fp8 are not modelled");
    if (zp_validate_record_has(row, "optimizer", "in backward"))
        return refuse(error, "an optimizer step inside backward is not modelled");
    return TRUE;
}

static gboolean
fill_training(ZpValidateJob *self, const ZpValidateRecord *row, GError **error)
{
    gboolean out = zp_validate_record_has(row, "oom", "y");
    ZpTraining *training = &self->job.training;
    gboolean demo = zp_validate_record_has(row, "n_layers", "enc");
    training->micro_batch = zp_validate_record_micro_batch(row);
    training->sequence = zp_validate_record_sequence(row);
    if (training->micro_batch == 0 && out)
        training->micro_batch = 1;
    if (training->sequence == 0)
        training->sequence = demo ? SEQUENCE_OF_DEMO : out ? SEQUENCE_OF_UNSTATED : 0;
    training->accumulation = zp_validate_record_integer(row, "grad_accum", 1);
    gint64 ranks = zp_validate_record_integer(row, "n_gpus", 0);
    if (training->micro_batch == 0 || training->sequence == 0 || ranks == 0)
        return refuse(error, "micro-batch, sequence or number of GPUs is not stated");
    training->checkpointing = ZP_CHECKPOINTING_NONE;
    if (zp_validate_record_has(row, "activation_ckpt", "full"))
        training->checkpointing = ZP_CHECKPOINTING_FULL;
    else if (zp_validate_record_has(row, "activation_ckpt", "selective"))
        training->checkpointing = ZP_CHECKPOINTING_SELECTIVE;
    else if (*zp_validate_record_text(row, "activation_ckpt") == '\0') {
        if (!out)
            return refuse(error, "whether activations are recomputed is not stated");
        training->checkpointing = ZP_CHECKPOINTING_FULL; /* the least it can be */
    }
    return zp_validate_job_place(self, row, ranks, error);
}

/* A PyTorch program on one device that keeps no master weights. */
static gboolean
is_plain(const ZpValidateRecord *row)
{
    return zp_validate_record_has(row, "framework", "single device") &&
           zp_validate_record_has(row, "master_dtype", "none");
}

static const char *
runtime_of(const ZpValidateRecord *row, gint32 pipeline)
{
    static const char *const names[] = {"fsdp1", "fsdp2", "ddp", "deepspeed"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(zp_validate_record_text(row, "framework"), names[i]) == 0 && pipeline == 1)
            return names[i];
    }
    if (is_plain(row))
        return "ddp";
    return "ideal"; /* a pipeline is known to it alone */
}

static int
stage_of(const ZpValidateRecord *row)
{
    static const struct {
        const char *part;
        int stage;
    } stages[] = {{"zero3", 3},          {"full_shard", 3}, {"shard_grad_op", 2}, {"fsdp", 3},
                  {"zero0", 0},          {"zero2", 2},      {"zero1", 1},         {"no_shard", 0},
                  {"none (stage 0)", 0}, {"ddp", 0},        {"none", 0}};
    for (gsize i = 0; i < G_N_ELEMENTS(stages); i++) {
        if (zp_validate_record_has(row, "strategy", stages[i].part))
            return stages[i].stage;
    }
    return -1;
}

static void
fill_precision(ZpJob *job, const ZpValidateRecord *row)
{
    gboolean fsdp = g_str_has_prefix(job->runtime, "fsdp");
    ZpDtype compute = dtype_of(row, "param_dtype", ZP_DTYPE_BF16);
    gboolean pure = zp_validate_record_has(row, "master_dtype", "none");
    ZpDtype stored = fsdp ? ZP_DTYPE_FP32 : compute;
    /* It adds gradients of bf16 up in fp32 (megatron/training/arguments.py). */
    gboolean megatron = zp_validate_record_has(row, "framework", "megatron");
    job->precision = (ZpPrecision){
        .parameter = stored,
        .gradient = megatron ? ZP_DTYPE_FP32 : stored,
        .gathered = compute,
        .reduce = dtype_of(row, "reduce_dtype", megatron ? ZP_DTYPE_FP32 : compute),
        .master = fsdp || pure ? ZP_DTYPE_NONE : dtype_of(row, "master_dtype", ZP_DTYPE_FP32),
        .moments = pure ? compute : ZP_DTYPE_FP32,
    };
    job->optimizer = zp_optimizer_find(pure ? "adamw_bf16" : "adamw");
}

static gboolean
fill_strategy(ZpValidateJob *self, const ZpValidateRecord *row, GError **error)
{
    ZpJob *job = &self->job;
    job->runtime = runtime_of(row, zp_parallel_pipeline(&job->world.parallel));
    int stage = stage_of(row);
    if (stage < 0)
        return refuse(error, "the strategy is not modelled");
    job->zero.stage = stage;
    fill_precision(job, row);
    self->fsdp = *zp_fsdp_defaults();
    self->fsdp.unwrapped = is_plain(row);
    self->fsdp.first_step = zp_validate_record_has(row, "source", "(step 1)");
    self->fsdp.next_forward_prefetch =
        zp_validate_record_has(row, "prefetch_overlap", "forward_prefetch=true");
    self->fsdp.use_orig_params =
        zp_validate_record_has(row, "prefetch_overlap", "use_orig_params") ||
        zp_validate_record_has(row, "source", "pytorch-lightning");
    self->fsdp.zero_grad_after_forward = zp_validate_record_has(row, "source", "pytorch-lightning");
    if (!zp_validate_record_has(row, "optimizer", "foreach"))
        self->fsdp.optimizer = ZP_FSDP_OPTIMIZER_FUSED;
    self->fsdp.wrap_trainable = zp_validate_record_has(row, "notes", "lora r=");
    job->fsdp = &self->fsdp;
    zp_deepspeed_init(&self->deepspeed);
    job->deepspeed = &self->deepspeed;
    return TRUE;
}

static ZpAllocatorMode
allocator_of(const ZpValidateRecord *row)
{
    gboolean titan = zp_validate_record_has(row, "source", "torchtitan") ||
                     zp_validate_record_has(row, "source", "torchao");
    gboolean expandable = zp_validate_record_has(row, "notes", "expandable") ||
                          (titan && !zp_validate_record_has(row, "source", "pr#165"));
    return expandable ? ZP_ALLOCATOR_EXPANDABLE : ZP_ALLOCATOR_CACHING;
}

static gboolean
fill_device(ZpValidateJob *self, const ZpValidateRecord *row, const ZpHardware *hardware,
            GError **error)
{
    ZpGpu variant;
    const ZpGpu *gpu = zp_validate_record_gpu(row, hardware, &variant, NULL);
    if (gpu == NULL) { /* a name without a size, or a variant: its generation decides about time */
        gboolean hopper = g_str_has_prefix(zp_validate_record_text(row, "gpu"), "H100");
        gpu = zp_hardware_gpu(hardware, hopper ? "H100-80" : "A100-80");
    }
    if (gpu == NULL)
        return refuse(error, "the GPU is not in the catalogue");
    gint64 sold = zp_validate_record_integer(row, "gpu_mem_gb", 0);
    ZpOverhead overheads[8];
    gsize n = zp_hardware_overheads(hardware, gpu, 1, overheads, G_N_ELEMENTS(overheads));
    ZpDevice *device = &self->job.device;
    *device = (ZpDevice){
        .flops_per_s = gpu->flops_bf16,
        .flops_efficiency = 0.7,
        .memory_bytes_per_s = gpu->memory_bytes_per_s,
        .memory_efficiency = 0.8,
        .kernel_latency_ps = 5 * ZP_TIME_PER_US,
        .capacity_bytes = gpu->memory_bytes,
        .allocator = allocator_of(row),
    };
    /* A card of another size of the family keeps the same share for itself. */
    gint64 known = (gpu->memory_bytes + (G_GINT64_CONSTANT(1) << 29)) >> 30;
    if (sold > 0 && (sold > known + 2 || sold < known - 2))
        device->capacity_bytes = (gint64)((double)sold * 0.99 * (double)(1 << 30));
    for (gsize i = 0; i < n; i++)
        device->overhead_bytes += overheads[i].bytes;
    zp_cost_network_defaults(&self->job.network, gpu->link_bytes_per_s, 200e9, 8);
    self->job.network.gpus_per_node = (gint32)zp_validate_record_integer(row, "gpus_per_node", 8);
    return TRUE;
}

static gboolean
fill_model(ZpValidateJob *self, const ZpValidateRecord *row, GError **error)
{
    ZpModel *model = zp_validate_memory_model(row, &self->job, error);
    if (model == NULL || !zp_validate_job_cut(self, model, self->job.precision.gathered, error))
        return FALSE;
    if (!zp_validate_memory_activations(row, model, &self->job))
        return refuse(error, "the shape is none that activations are counted for");
    return zp_validate_job_cut_stage(self, error);
}

ZpValidateJob *
zp_validate_memory_job_new(const ZpValidateRecord *row, const ZpHardware *hardware, GError **error)
{
    g_autoptr(ZpValidateJob) self = zp_validate_job_start();
    ZpParallel *parallel = &self->job.world.parallel;
    if (!check_scope(row, error) || !zp_validate_record_parallel(row, parallel, error) ||
        !fill_strategy(self, row, error) || !fill_device(self, row, hardware, error) ||
        !fill_training(self, row, error) || !fill_model(self, row, error))
        return NULL;
    if (self->fsdp.first_step)
        self->job.simulation.steps = 1;
    return g_steal_pointer(&self);
}
