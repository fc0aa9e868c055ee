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

gboolean
memory_activations_apply(const MemoryRow *row, ZpModel *model, const ZpJob *job)
{
    if (memory_row_has(row, "n_layers", "enc") || memory_row_has(row, "framework", "llm.c"))
        return TRUE; /* stated elsewhere, or by nobody */
    ZpActivationBlock block = describe_block(row, job, strcmp(model->family, "llama") == 0);
    if (!zp_activation_check(&block, NULL))
        return FALSE;
    ZpActivationLoss loss = describe_loss(row, job);
    ZpActivationParts parts = zp_activation_parts(&block);
    ZpModelActivation end = zp_activation_loss_part(&loss);
    gint32 before = ZP_MODEL_NONE;
    int part = 0; /* of the block */
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        part = layer->block == before ? part + 1 : 0;
        before = layer->block;
        if (layer->kind == ZP_LAYER_HEAD)
            layer->activation = zp_model_add_activation(model, &end);
        if (layer->block == ZP_MODEL_NONE)
            continue;
        g_assert(part < parts.n_parts);
        layer->activation = zp_model_add_activation(model, &parts.parts[part]);
    }
    return TRUE;
}
