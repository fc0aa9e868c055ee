/* Activations of a row's program, from models/activation.h: what its blocks and its loss keep, and
 * what lives beside that. */
#include <string.h>

#include "models/activation.h"
#include "tests/check_memory/memory.h"

static ZpBlockRegime
regime_of(const MemoryRow *row, const ZpJob *job)
{
    if (memory_row_has(row, "param_dtype", "amp"))
        return ZP_REGIME_AMP;
    return job->precision.gathered == ZP_DTYPE_FP32 ? ZP_REGIME_FP32 : ZP_REGIME_BF16;
}

/* Compiled programs run norms as one kernel; others write them out. */
static ZpActivationBlock
describe_block(const MemoryRow *row, const ZpJob *job, gboolean gated)
{
    const ZpModel *model = job->model;
    gboolean compiled = g_str_has_prefix(memory_row_text(row, "compile"), "y");
    gboolean eager = memory_row_eager(row);
    return (ZpActivationBlock){
        .family = gated ? ZP_BLOCK_LLAMA : ZP_BLOCK_GPT2,
        .norm = compiled || !gated ? ZP_NORM_FUSED : ZP_NORM_EAGER,
        .attention = eager                             ? ZP_BLOCK_EAGER
                     : model->heads != model->kv_heads ? ZP_BLOCK_FLASH_REPEATED
                                                       : ZP_BLOCK_FLASH,
        .activation = gated ? ZP_BLOCK_SILU : ZP_BLOCK_GELU,
        .regime = regime_of(row, job),
        .policy = memory_row_has(row, "activation_ckpt", "selective_op")
                      ? ZP_KEEP_EVERY_SECOND_PRODUCT
                      : ZP_KEEP_ALL,
        /* Megatron-LM's defaults: hidden_dropout and attention_dropout 0.1 */
        .dropout = memory_row_has(row, "source", "megatron"),
        .attention_dropout = memory_row_has(row, "source", "megatron"),
        .batch = job->training.micro_batch,
        .tokens = job->training.sequence,
        .hidden = model->hidden,
        .heads = model->heads,
        .kv_heads = model->kv_heads,
        .head_size = model->head_size,
        .ffn = model->ffn,
    };
}

/* torchtitan and torchtune cast the logits to fp32 at the loss; Hugging Face's Llama (of the
 * programs on it) in the model, and then shifts a copy of them. */
static ZpActivationLoss
describe_loss(const MemoryRow *row, const ZpJob *job)
{
    gboolean hugging =
        memory_row_has(row, "source", "dlrover") || memory_row_has(row, "source", "huggingface");
    return (ZpActivationLoss){
        .kind = hugging ? ZP_LOSS_SHIFT_FLOAT : ZP_LOSS_FLOAT,
        .regime = regime_of(row, job),
        /* released before backward since torchtitan's PR #391 (June 2024) */
        .keep_logits = memory_row_has(row, "source", "pr#165"),
        .batch = job->training.micro_batch,
        .tokens = job->training.sequence,
        .hidden = job->model->hidden,
        .vocabulary = job->model->vocabulary,
    };
}

static ZpModelPeak
peak_of(gint64 bytes)
{
    return (ZpModelPeak){.n_forms = bytes > 0, .forms = {{.constant_bytes = bytes}}};
}

/* A policy of a block described with it: what it brings back is part of its backward. */
static void
set_policy(ZpModelPolicyBytes *policy, const ZpActivationLayer *own, gint64 tokens, gint64 pairs)
{
    const ZpModelBytes *back = &policy->recomputed;
    gint64 recomputed =
        back->constant_bytes + back->bytes_per_token * tokens + back->bytes_per_pair * pairs;
    policy->forward = peak_of(own->selective_forward_transient_bytes);
    policy->backward = peak_of(own->selective_backward_transient_bytes - recomputed);
}

static ZpModelActivation
measure_block(const ZpActivationBlock *block)
{
    ZpActivationBlock full = *block;
    full.policy = ZP_KEEP_INPUT;
    ZpActivationLayer own = zp_activation_layer(block), checkpointed = zp_activation_layer(&full);
    const ZpModelBytes kept = {.constant_bytes = own.kept_bytes,
                               .bytes_per_token = own.kept_bytes_per_token,
                               .bytes_per_pair = own.kept_bytes_per_pair};
    const ZpModelBytes selective = {.constant_bytes = own.selective_bytes,
                                    .bytes_per_token = own.selective_bytes_per_token,
                                    .bytes_per_pair = own.selective_bytes_per_pair};
    const ZpModelBytes input = {.bytes_per_token = own.input_bytes_per_token};
    ZpModelActivation entry = zp_model_activation_of(&kept, &selective, &input);
    gint64 tokens = block->batch * block->tokens, pairs = tokens * block->tokens;
    entry.policies[ZP_CHECKPOINTING_NONE].forward = peak_of(own.forward_transient_bytes);
    entry.policies[ZP_CHECKPOINTING_NONE].backward = peak_of(own.backward_transient_bytes);
    set_policy(&entry.policies[ZP_CHECKPOINTING_SELECTIVE], &own, tokens, pairs);
    set_policy(&entry.policies[ZP_CHECKPOINTING_FULL], &checkpointed, tokens, pairs);
    return entry;
}

static ZpModelActivation
measure_loss(const ZpActivationLoss *loss)
{
    ZpActivationLayer own = zp_activation_loss_layer(loss);
    const ZpModelBytes kept = {.constant_bytes = own.kept_bytes,
                               .bytes_per_token = own.kept_bytes_per_token,
                               .bytes_per_pair = own.kept_bytes_per_pair};
    ZpModelActivation entry = zp_model_activation_of(&kept, &kept, &kept);
    entry.policies[ZP_CHECKPOINTING_NONE].forward = peak_of(own.forward_transient_bytes);
    entry.policies[ZP_CHECKPOINTING_NONE].backward = peak_of(own.backward_transient_bytes);
    return entry;
}

/* The first layer of a block holds what the block does. */
gboolean
memory_activations_apply(const MemoryRow *row, ZpModel *model, const ZpJob *job)
{
    if (memory_row_has(row, "n_layers", "enc") || memory_row_has(row, "framework", "llm.c"))
        return TRUE; /* stated elsewhere, or by nobody */
    ZpActivationBlock block = describe_block(row, job, strcmp(model->family, "llama") == 0);
    if (!zp_activation_check(&block, NULL))
        return FALSE;
    ZpActivationLoss loss = describe_loss(row, job);
    ZpModelActivation of_block = measure_block(&block), of_loss = measure_loss(&loss);
    gint32 before = ZP_MODEL_NONE;
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        if (layer->kind == ZP_LAYER_HEAD)
            layer->activation = zp_model_add_activation(model, &of_loss);
        if (layer->block == ZP_MODEL_NONE)
            continue;
        layer->activation =
            layer->block != before ? zp_model_add_activation(model, &of_block) : ZP_MODEL_NONE;
        before = layer->block;
    }
    return TRUE;
}
