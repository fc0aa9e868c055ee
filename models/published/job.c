#include "models/published/job_internal.h"

#include <string.h>

#include "models/families/adapters.h"
#include "models/parallel/parallel.h"
#include "models/prices/board.h"
#include "models/prices/cost.h"
#include "models/prices/tables.h"
#include "models/published/model_internal.h"

/* Attention kernels of the first generation run at half the speed of the second (arXiv 2307.08691,
 * abstract: "around 2x speedup compared to FlashAttention"). */
#define FIRST_GENERATION_SHARE 0.5
/* Parameters a second of a node's cores under DeepSpeed's CPU Adam (step = F / 440 TFLOP/s + 2.0 s
 * for 8.03e9 parameters, Llama-8B with ZeRO-3 on H200 and B200; stas00/ml-engineering). */
#define CPU_ADAM_ELEMENTS_PER_S 4e9

/* Attention's projections of both shapes that rows are read as. */
#define ADAPTED "*.self_attn.*_proj,c_attn"

typedef ZpValidateRecord Row;

static const char *
text(const Row *row, const char *name)
{
    return zp_validate_record_text(row, name);
}

static gint64
integer(const Row *row, const char *name, gint64 missing)
{
    return zp_validate_record_integer(row, name, missing);
}

static gboolean
has(const Row *row, const char *name, const char *part)
{
    return zp_validate_record_has(row, name, part);
}

static gboolean
refuse(GError **error, const char *reason)
{
    g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW, reason);
    return FALSE;
}

/* No fused kernel is published for V100. */
static gboolean
is_eager(const Row *row)
{
    return has(row, "attn_impl", "eager") || has(row, "gpu", "v100");
}

static gboolean
is_compiled(const Row *row)
{
    return g_str_has_prefix(text(row, "compile"), "y");
}

/* "4x100 Gb/s RoCE", "1600 Gb/s": bytes per second of a node; 0: not said. */
static double
network_of(const char *text_of_link)
{
    const char *unit = strstr(text_of_link, "Gb/s");
    if (unit == NULL || unit == text_of_link)
        return 0.0;
    char *end = NULL;
    double count = g_ascii_strtod(text_of_link, &end);
    if (end == text_of_link)
        return 0.0;
    if (*end == 'x')
        count *= g_ascii_strtod(end + 1, &end);
    return count * 1e9 / 8.0;
}

/* The best network a node with this GPU is sold with, where the row does not say. */
static double
usual_network(const ZpHardware *hardware, const ZpGpu *gpu)
{
    gsize n = 0;
    const ZpNode *nodes = zp_hardware_nodes(hardware, &n);
    double best = 0.0;
    for (gsize i = 0; i < n; i++) {
        const ZpGpu *own = nodes[i].gpu != NULL ? zp_hardware_gpu(hardware, nodes[i].gpu) : NULL;
        if (own != NULL && own->flops_bf16 == gpu->flops_bf16 && nodes[i].gpus == 8)
            best = MAX(best, nodes[i].network_bytes_per_s);
    }
    return best;
}

static int
generation_of(const char *gpu)
{
    if (g_str_has_prefix(gpu, "H") || g_str_has_prefix(gpu, "GH"))
        return 9;
    return g_str_has_prefix(gpu, "B") || g_str_has_prefix(gpu, "GB") ? 10 : 8;
}

static gboolean
fill_device(ZpValidateJob *self, const Row *row, const ZpHardware *hardware,
            const ZpCalibration *own, GError **error)
{
    ZpGpu variant;
    const ZpGpu *board = zp_validate_record_gpu(row, hardware, &variant, error), *gpu = &variant;
    if (board == NULL)
        return FALSE;
    gboolean mine = own != NULL && (*own->gpu == '\0' || strcmp(own->gpu, board->name) == 0);
    self->calibration = mine ? zp_calibration_copy(own) : zp_board_constants(hardware, gpu);
    const ZpCalibration *constants = self->calibration;
    if (constants == NULL)
        return refuse(error, "nothing is known of the GPU's chip");
    self->memory_bytes = gpu->memory_bytes;
    gboolean half = has(row, "param_dtype", "fp16");
    self->job.device = (ZpDevice){
        .flops_per_s = half || gpu->flops_bf16 <= 0.0 ? gpu->flops_fp16 : gpu->flops_bf16,
        .flops_efficiency = constants->gemm_efficiency * constants->gemm_sustained,
        .memory_bytes_per_s = gpu->memory_bytes_per_s,
        .memory_efficiency = constants->memory_efficiency,
        .kernel_latency_ps = constants->gemm_latency_ps,
        .calibration = self->calibration,
    };
    ZpNetwork *network = &self->job.network;
    double node = network_of(text(row, "interconnect"));
    zp_cost_network_defaults(network, gpu->link_bytes_per_s,
                             node > 0.0 ? node : usual_network(hardware, gpu),
                             generation_of(gpu->name));
    network->gpus_per_node = (gint32)integer(row, "gpus_per_node", 8);
    network->host_to_device_bytes_per_s = gpu->host_to_device_bytes_per_s;
    network->device_to_host_bytes_per_s = gpu->device_to_host_bytes_per_s;
    self->tables = zp_cost_tables_new(board->name, NULL);
    network->measured = self->tables;
    return TRUE;
}

/* What the row says of the program, as far as it decides about time. */
static void
fill_software(ZpValidateJob *self, const Row *row)
{
    ZpCalibration *c = self->calibration;
    if (has(row, "attn_impl", "triton"))
        c->attention_share *= FIRST_GENERATION_SHARE;
    /* Non-reentrant checkpointing of PyTorch 2.1 stops when it has what backward needs. */
    gboolean old = has(row, "notes", "torch 1.") || has(row, "notes", "torch 2.0");
    c->recompute_stops_early = !old && has(row, "framework", "fsdp");
    if (has(row, "activation_ckpt", "every"))
        c->recompute_share = 0.5; /* of the blocks; n is not stated, HFU / MFU says 2 */
}

gboolean
zp_validate_job_place(ZpValidateJob *self, const ZpValidateRecord *row, gint64 gpus, GError **error)
{
    ZpJob *job = &self->job;
    if (!zp_parallel_check(job, gpus, error))
        return FALSE;
    zp_parallel_place(job, gpus);
    gint64 node = zp_parallel_ranks_per_node(&job->network);
    job->world.shard_group = (gint32)zp_validate_record_shard_group(row, job->world.ranks, node);
    return TRUE;
}

static gboolean
fill_training(ZpValidateJob *self, const Row *row, GError **error)
{
    ZpTraining *training = &self->job.training;
    training->micro_batch = zp_validate_record_micro_batch(row);
    training->sequence = zp_validate_record_sequence(row);
    gint64 ranks = integer(row, "n_gpus", 0), batch = integer(row, "global_batch", 0);
    if (training->micro_batch == 0 || training->sequence == 0 || ranks == 0)
        return refuse(error, "micro-batch, sequence or number of GPUs is not stated");
    const ZpParallel *parallel = &self->job.world.parallel;
    gint64 copies = (gint64)zp_parallel_tensor(parallel) * zp_parallel_context(parallel) *
                    zp_parallel_pipeline(parallel);
    gint64 implied = batch * copies / (training->micro_batch * ranks);
    training->accumulation = integer(row, "grad_accum", MAX(1, implied));
    if (has(row, "notes", "micro-iteration"))
        training->accumulation = 1; /* that is what was timed */
    const char *policy = text(row, "activation_ckpt");
    training->checkpointing = ZP_CHECKPOINTING_NONE;
    if (g_str_has_prefix(policy, "full") || has(row, "activation_ckpt", "every"))
        training->checkpointing = ZP_CHECKPOINTING_FULL;
    else if (g_str_has_prefix(policy, "selective"))
        training->checkpointing = ZP_CHECKPOINTING_SELECTIVE;
    return zp_validate_job_place(self, row, ranks, error);
}

/* Parameters, gradients and optimizer in host memory: only DeepSpeed's stage 3 does all of it. */
static void
offload_to_host(ZpValidateJob *self, const Row *row)
{
    ZpDeepspeed *settings = &self->deepspeed;
    zp_deepspeed_init(settings);
    settings->offload_param.device = settings->offload_optimizer.device = ZP_DS_CPU;
    settings->adam = ZP_DS_CPU_ADAM;
    settings->cpu_adam_elements_per_s =
        CPU_ADAM_ELEMENTS_PER_S /
        (double)MIN(integer(row, "n_gpus", 1), self->job.network.gpus_per_node);
    self->job.runtime = "deepspeed";
    self->job.deepspeed = settings;
    self->job.fsdp = NULL;
    self->job.zero.stage = 3;
    self->job.precision = (ZpPrecision){ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16,
                                        ZP_DTYPE_BF16, ZP_DTYPE_FP32, ZP_DTYPE_FP32};
}

/* Megatron-LM reduces gradients of bf16 in fp32 (megatron/arguments.py: "bfloat16 requires gradient
 * accumulation and all-reduce to be done in fp32"), after backward, and gathers parameters after
 * the step, unless told to overlap: Megatron-LLaMA's overlapped distributed optimizer does both
 * beside computation. */
static void
fill_megatron(ZpValidateJob *self, const Row *row)
{
    ZpJob *job = &self->job;
    if (!has(row, "param_dtype", "fp16"))
        job->precision.reduce = job->precision.gradient = ZP_DTYPE_FP32;
    job->zero.overlap = job->zero.overlap_gather = has(row, "strategy", "overlapped");
}

ZpValidateJob *
zp_validate_job_start(void)
{
    ZpValidateJob *self = g_new0(ZpValidateJob, 1);
    ZpJob *job = &self->job;
    job->zero = (ZpZero){
        .wrap = ZP_WRAP_BLOCK,
        .wrap_blocks = 1,
        .outer = ZP_OUTER_ROOT,
        .prefetch_forward = 1,
        .prefetch_backward = 1,
        .bucket_elements = 1,
        .overlap = TRUE,
        .reshard_after_forward = TRUE,
    };
    job->host.launch_overhead_ps = 5 * ZP_TIME_PER_US;
    job->simulation = (ZpSimulation){.simulated_ranks = 1, .steps = 2, .slow_rank = ZP_MODEL_NONE};
    return self;
}

static gboolean
has_adapters(const Row *row)
{
    return has(row, "strategy", "lora") || has(row, "notes", "lora") ||
           has(row, "model_name", "lora");
}

static gboolean
fill_strategy(ZpValidateJob *self, const Row *row, GError **error)
{
    ZpJob *job = &self->job;
    if (has(row, "notes", "fp8") || has(row, "notes", "float8") || has(row, "param_dtype", "fp8"))
        return refuse(error, "products in fp8 have no measured constants");
    job->runtime = "ideal";
    if (has(row, "notes", "qlora"))
        return refuse(error, "products of weights in 4 bits have no measured constants");
    if (has(row, "notes", "seq is the longest"))
        return refuse(error, "the sequence is the longest of the samples, not what a step ran");
    if (!zp_validate_record_stage(row, &job->zero.stage, error))
        return FALSE;
    job->precision = (ZpPrecision){ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16,
                                   ZP_DTYPE_BF16, ZP_DTYPE_FP32, ZP_DTYPE_FP32};
    if (has(row, "framework", "fsdp") && job->zero.stage >= 2) {
        job->runtime = has(row, "framework", "fsdp2") ? "fsdp2" : "fsdp1";
        job->precision.parameter = job->precision.gradient = ZP_DTYPE_FP32;
        job->precision.master = ZP_DTYPE_NONE;
        self->fsdp = *zp_fsdp_defaults();
        self->fsdp.prefetch = has(row, "prefetch_overlap", "backward_post") ? ZP_FSDP_PREFETCH_POST
                                                                            : ZP_FSDP_PREFETCH_PRE;
        self->fsdp.wrap_trainable = has_adapters(row);
        job->fsdp = &self->fsdp;
    }
    if (has(row, "reduce_dtype", "fp32"))
        job->precision.reduce = ZP_DTYPE_FP32;
    if (has(row, "framework", "megatron"))
        fill_megatron(self, row);
    const char *offload = text(row, "cpu_offload");
    if (strcmp(offload, "y") == 0)
        offload_to_host(self, row);
    else if (g_str_has_prefix(offload, "y"))
        return refuse(error, "what is offloaded is not simulated");
    return TRUE;
}

/* InternLM's hybrid ZeRO optimizer deals whole tensors to the ranks (greedy, by size), reduces each
 * rank's part to it and broadcasts it back (internlm/solver/optimizer/hybrid_zero_optim.py,
 * broadcast_params). */
static void
fill_pieces(ZpValidateJob *self, const Row *row)
{
    if (!has(row, "framework", "internlm") || self->job.zero.stage != 1)
        return;
    gint64 owners = MIN(self->job.world.shard_group, (gint64)self->model->parameters->len);
    self->job.network.piece_bytes = 2 * self->model->n_elements / owners;
}

gboolean
zp_validate_job_cut(ZpValidateJob *self, ZpModel *model, ZpDtype compute, GError **error)
{
    self->model = model;
    self->job.model = model;
    return zp_parallel_cut(model, &self->job.world.parallel, compute, error);
}

gboolean
zp_validate_job_cut_stage(ZpValidateJob *self, GError **error)
{
    gint32 pipeline = zp_parallel_pipeline(&self->job.world.parallel);
    if (pipeline > 1)
        self->last_stage = zp_parallel_cut_stage(self->model, pipeline, error);
    self->job.last_stage = self->last_stage;
    return pipeline == 1 || self->last_stage != NULL;
}

/* Frameworks whose blocks come with kernels of their own for norms and rotary embedding:
 * Megatron-LM and its kin (Apex, Transformer Engine). */
static gboolean
has_fused_kernels(const Row *row)
{
    return has(row, "framework", "megatron");
}

/* Of the rank that is stated, else of peft's default, 8, on attention's projections: what they cost
 * is little beside the gradients that their base is spared. */
static gboolean
add_adapters(ZpModel *model, const Row *row, GError **error)
{
    gint32 rank = (gint32)zp_validate_record_behind(row, "notes", "r=", 8);
    return zp_model_add_lora(model, rank, ADAPTED, FALSE, error);
}

static gboolean
fill_model(ZpValidateJob *self, const Row *row, GError **error)
{
    const ZpParallel *parallel = &self->job.world.parallel;
    ZpArchitectureOptions options = {
        .compute = ZP_DTYPE_BF16,
        .attention = is_eager(row) ? ZP_ATTENTION_EAGER : ZP_ATTENTION_FLASH,
        .compile = is_compiled(row) ? ZP_COMPILE_BLOCKS : ZP_COMPILE_NONE,
        .selective = has(row, "activation_ckpt", "selective_op") ? ZP_SELECTIVE_EVERY_SECOND_PRODUCT
                                                                 : ZP_SELECTIVE_ATTENTION_CORE,
        .fused_norms = has_fused_kernels(row) ? ZP_TRAIT_YES : ZP_TRAIT_DEFAULT,
        .fused_rotary = has_fused_kernels(row),
        .causal = TRUE,
        .transformers = ZP_TRANSFORMERS_4,
        .tensor_parallel = parallel->tensor,
        .sequence_parallel = parallel->sequence,
    };
    ZpModel *model = zp_validate_model_build(row, &options, TRUE, error);
    if (model != NULL && has_adapters(row) && !add_adapters(model, row, error)) {
        zp_model_free(model);
        return FALSE;
    }
    return model != NULL && zp_validate_job_cut(self, model, options.compute, error) &&
           zp_validate_job_cut_stage(self, error);
}

ZpValidateJob *
zp_validate_job_new(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware,
                    const ZpCalibration *own, GError **error)
{
    Row row = {csv, record};
    g_autoptr(ZpValidateJob) self = zp_validate_job_start();
    if (!fill_device(self, &row, hardware, own, error) ||
        !zp_validate_record_parallel(&row, &self->job.world.parallel, error) ||
        !fill_strategy(self, &row, error) || !fill_training(self, &row, error) ||
        !fill_model(self, &row, error))
        return NULL;
    fill_software(self, &row);
    fill_pieces(self, &row);
    ZpJob *job = &self->job;
    job->optimizer = zp_optimizer_find("adamw");
    job->zero.bucket_elements = job->zero.stage == 3 ? 1 : 250000000;
    return g_steal_pointer(&self);
}

void
zp_validate_job_free(ZpValidateJob *job)
{
    if (job == NULL)
        return;
    zp_model_free(job->model);
    zp_model_free(job->last_stage);
    zp_calibration_free(job->calibration);
    zp_cost_tables_free(job->tables);
    g_free(job);
}
