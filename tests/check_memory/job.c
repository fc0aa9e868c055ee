#include <string.h>

#include "models/cost.h"
#include "tests/check_memory/memory.h"

/* The sequence of torchtitan's other runs of the model. */
#define SEQUENCE_OF_UNSTATED 8192

static ZpDtype
dtype_of(const MemoryRow *row, const char *column, ZpDtype missing)
{
    g_auto(GStrv) words = g_strsplit(memory_row_text(row, column), " ", 2);
    ZpDtype dtype = missing;
    if (words[0] == NULL || !zp_dtype_parse(words[0], &dtype))
        return missing;
    return dtype;
}

static gboolean
refuse(const char **reason, const char *text)
{
    *reason = text;
    return FALSE;
}

/* A cumulative ladder keeps what an earlier step of it added. */
static gboolean
is_after(const MemoryRow *row, const char *part)
{
    if (!memory_row_has(row, "notes", "cumulative ladder"))
        return FALSE;
    for (guint r = 0; r <= row->record; r++) {
        MemoryRow before = {row->csv, r};
        if (strcmp(memory_row_text(&before, "source"), memory_row_text(row, "source")) == 0 &&
            memory_row_has(&before, "notes", part))
            return TRUE;
    }
    return FALSE;
}

static gboolean
check_scope(const MemoryRow *row, const char **reason)
{
    if (memory_row_has(row, "cpu_offload", "y"))
        return refuse(reason, "offload is not among these comparisons");
    if (is_after(row, "chunked cross entropy"))
        return refuse(reason, "a loss in chunks is not modelled");
    if (memory_row_has(row, "optimizer", "in backward"))
        return refuse(reason, "an optimizer step inside backward is not modelled");
    return TRUE;
}

static gboolean
fill_training(MemoryJob *self, const MemoryRow *row, const char **reason)
{
    gboolean out = memory_row_has(row, "oom", "y");
    ZpTraining *training = &self->job.training;
    gboolean demo = memory_row_has(row, "n_layers", "enc");
    training->micro_batch = memory_row_integer(row, "micro_batch", out ? 1 : 0);
    training->sequence = memory_row_integer(row, "seq_len",
                                            demo  ? 35
                                            : out ? SEQUENCE_OF_UNSTATED
                                                  : 0);
    training->accumulation = memory_row_integer(row, "grad_accum", 1);
    gint64 ranks = memory_row_integer(row, "n_gpus", 0);
    if (training->micro_batch == 0 || training->sequence == 0 || ranks == 0)
        return refuse(reason, "micro-batch, sequence or number of GPUs is not stated");
    training->checkpointing = ZP_CHECKPOINTING_NONE;
    if (memory_row_has(row, "activation_ckpt", "full"))
        training->checkpointing = ZP_CHECKPOINTING_FULL;
    else if (memory_row_has(row, "activation_ckpt", "selective"))
        training->checkpointing = ZP_CHECKPOINTING_SELECTIVE;
    self->job.world = (ZpWorld){(gint32)ranks, (gint32)ranks};
    return TRUE;
}

static const char *
runtime_of(const MemoryRow *row)
{
    static const char *const names[] = {"fsdp1", "fsdp2", "ddp", "deepspeed"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(memory_row_text(row, "framework"), names[i]) == 0)
            return names[i];
    }
    return "ideal";
}

static int
stage_of(const MemoryRow *row)
{
    static const struct {
        const char *part;
        int stage;
    } stages[] = {{"zero3", 3},          {"full_shard", 3}, {"shard_grad_op", 2},
                  {"zero2", 2},          {"zero1", 1},      {"no_shard", 0},
                  {"none (stage 0)", 0}, {"ddp", 0},        {"none", 0}};
    for (gsize i = 0; i < G_N_ELEMENTS(stages); i++) {
        if (memory_row_has(row, "strategy", stages[i].part))
            return stages[i].stage;
    }
    return -1;
}

static void
fill_precision(ZpJob *job, const MemoryRow *row)
{
    gboolean fsdp = g_str_has_prefix(job->runtime, "fsdp");
    ZpDtype compute = dtype_of(row, "param_dtype", ZP_DTYPE_BF16);
    gboolean pure = memory_row_has(row, "master_dtype", "none");
    ZpDtype stored = fsdp ? ZP_DTYPE_FP32 : compute;
    job->precision = (ZpPrecision){
        .parameter = stored,
        .gradient = stored,
        .gathered = compute,
        .reduce = dtype_of(row, "reduce_dtype", compute),
        .master = fsdp || pure ? ZP_DTYPE_NONE : dtype_of(row, "master_dtype", ZP_DTYPE_FP32),
        .moments = pure ? compute : ZP_DTYPE_FP32,
    };
    job->optimizer = zp_optimizer_find(pure ? "adamw_bf16" : "adamw");
}

static gboolean
fill_strategy(MemoryJob *self, const MemoryRow *row, const char **reason)
{
    ZpJob *job = &self->job;
    job->runtime = runtime_of(row);
    int stage = stage_of(row);
    if (stage < 0)
        return refuse(reason, "the strategy is not modelled");
    job->zero = (ZpZero){
        .stage = stage,
        .wrap = ZP_WRAP_BLOCK,
        .wrap_blocks = 1,
        .outer = ZP_OUTER_ROOT,
        .prefetch_forward = 1,
        .prefetch_backward = 1,
        .bucket_elements = 1,
        .overlap = TRUE,
        .reshard_after_forward = TRUE,
    };
    fill_precision(job, row);
    self->fsdp = *zp_fsdp_defaults();
    self->fsdp.first_step = memory_row_has(row, "source", "(step 1)");
    self->fsdp.next_forward_prefetch =
        memory_row_has(row, "prefetch_overlap", "forward_prefetch=true");
    self->fsdp.use_orig_params = memory_row_has(row, "prefetch_overlap", "use_orig_params") ||
                                 memory_row_has(row, "source", "pytorch-lightning");
    self->fsdp.zero_grad_after_forward = memory_row_has(row, "source", "pytorch-lightning");
    if (!memory_row_has(row, "optimizer", "foreach"))
        self->fsdp.optimizer = ZP_FSDP_OPTIMIZER_FUSED;
    job->fsdp = &self->fsdp;
    zp_deepspeed_init(&self->deepspeed);
    job->deepspeed = &self->deepspeed;
    return TRUE;
}

static ZpAllocatorMode
allocator_of(const MemoryRow *row)
{
    gboolean titan =
        memory_row_has(row, "source", "torchtitan") || memory_row_has(row, "source", "torchao");
    gboolean expandable = memory_row_has(row, "notes", "expandable") ||
                          (titan && !memory_row_has(row, "source", "pr#165"));
    return expandable ? ZP_ALLOCATOR_EXPANDABLE : ZP_ALLOCATOR_CACHING;
}

static gboolean
fill_device(MemoryJob *self, const MemoryRow *row, const ZpHardware *hardware, const char **reason)
{
    g_autofree char *gpu_name = g_strdup(memory_row_text(row, "gpu"));
    const ZpGpu *gpu = zp_hardware_gpu(hardware, gpu_name);
    if (gpu == NULL && g_str_has_suffix(gpu_name, "GB")) {
        gpu_name[strlen(gpu_name) - 2] = '\0';
        gpu = zp_hardware_gpu(hardware, gpu_name);
    }
    if (gpu == NULL) /* a name without a size, or a variant: its generation decides about time */
        gpu = zp_hardware_gpu(hardware, g_str_has_prefix(gpu_name, "H100") ? "H100-80" : "A100-80");
    if (gpu == NULL)
        return refuse(reason, "the GPU is not in the catalogue");
    gint64 sold = memory_row_integer(row, "gpu_mem_gb", 0);
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
    self->job.network.gpus_per_node = (gint32)memory_row_integer(row, "gpus_per_node", 8);
    self->job.host.launch_overhead_ps = 5 * ZP_TIME_PER_US;
    return TRUE;
}

MemoryJob *
memory_job_new(const MemoryRow *row, const ZpHardware *hardware, const char **reason)
{
    g_autoptr(MemoryJob) self = g_new0(MemoryJob, 1);
    if (!check_scope(row, reason) || !fill_training(self, row, reason) ||
        !fill_strategy(self, row, reason) || !fill_device(self, row, hardware, reason))
        return NULL;
    self->model = memory_model_new(row, self->job.precision.gathered, reason);
    if (self->model == NULL)
        return NULL;
    self->job.model = self->model;
    if (!memory_activations_apply(row, self->model, &self->job)) {
        *reason = "the shape is none that activations are counted for";
        return NULL;
    }
    self->job.simulation = (ZpSimulation){
        .simulated_ranks = 1, .steps = self->fsdp.first_step ? 1 : 2, .slow_rank = ZP_MODEL_NONE};
    return g_steal_pointer(&self);
}

void
memory_job_free(MemoryJob *job)
{
    if (job == NULL)
        return;
    zp_model_free(job->model);
    g_free(job);
}
