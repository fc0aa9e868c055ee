/* Activations of a row's program, from models/activation/activation.h: what its blocks and its loss
 * keep, and what lives beside that. */
#include <string.h>

#include "models/activation/activation.h"
#include "models/parallel/parallel.h"
#include "models/published/memory_job_internal.h"

static ZpBlockRegime
regime_of(const ZpValidateRecord *row, const ZpJob *job)
{
    if (zp_validate_record_has(row, "param_dtype", "amp"))
        return ZP_REGIME_AMP;
    return job->precision.gathered == ZP_DTYPE_FP32 ? ZP_REGIME_FP32 : ZP_REGIME_BF16;
}

/* Megatron-LM's defaults: hidden_dropout and attention_dropout 0.1 */
static gboolean
is_megatron(const ZpValidateRecord *row)
{
    return zp_validate_record_has(row, "source", "megatron");
}

static gboolean
is_compiled(const ZpValidateRecord *row)
{
    return g_str_has_prefix(zp_validate_record_text(row, "compile"), "y");
}

static ZpActivationBlock
describe_block(const ZpValidateRecord *row, const ZpJob *job, gboolean gated)
{
    const ZpModel *model = job->model;
    gboolean eager = zp_validate_record_is_eager(row);
    gint64 tensor = zp_parallel_tensor(&job->world.parallel);
    return (ZpActivationBlock){
        .family = gated ? ZP_BLOCK_LLAMA : ZP_BLOCK_GPT2,
        .norm = gated ? ZP_NORM_EAGER : ZP_NORM_FUSED,
        .compiled = is_compiled(row),
        .attention = eager                             ? ZP_BLOCK_EAGER
                     : model->heads != model->kv_heads ? ZP_BLOCK_FLASH_REPEATED
                                                       : ZP_BLOCK_FLASH,
        .activation = gated ? ZP_BLOCK_SILU : ZP_BLOCK_GELU,
        .regime = regime_of(row, job),
        .policy = zp_validate_record_has(row, "activation_ckpt", "selective_op")
                      ? ZP_KEEP_EVERY_SECOND_PRODUCT
                      : ZP_KEEP_ALL,
        .dropout = is_megatron(row),
        .attention_dropout = is_megatron(row),
        .tensor_parallel = tensor,
        .sequence_parallel = job->world.parallel.sequence,
        .batch = job->training.micro_batch,
        .tokens = job->training.sequence,
        .hidden = model->hidden,
        .heads = model->heads * tensor, /* the model is one rank's, the block all ranks' */
        .kv_heads = MIN(zp_validate_record_integer(row, "n_kv_heads", model->heads * tensor),
                        model->heads * tensor),
        .head_size = model->head_size,
        .ffn = model->ffn * tensor,
    };
}

/* torchtune's losses (modules/loss/ce_chunked_output_loss.py): the head's products are made in
 * chunks too. */
#define TORCHTUNE_CHUNKS 8

/* Hugging Face's Llama casts the logits to fp32 in the model and then shifts a copy of them;
 * torchtune's (modules/transformer.py, TransformerDecoder.forward) does the former, unless the loss
 * is in chunks, and compiles the loss with the blocks; torchtitan's (models/llama/model.py,
 * Transformer.forward) did so until its PR #391 (June 2024), whose loss casts what it is given and
 * drops it before backward, and is not compiled ("causes CUDA errors" in its train.py). */
static ZpActivationLoss
describe_loss(const ZpValidateRecord *row, const ZpJob *job)
{
    gboolean hugging = zp_validate_record_has(row, "source", "dlrover") ||
                       zp_validate_record_has(row, "source", "huggingface");
    gboolean early = zp_validate_record_has(row, "source", "pr#165");
    gboolean tune = zp_validate_record_has(row, "source", "torchtune");
    gboolean chunks = zp_validate_record_is_after(row, "chunked cross entropy");
    return (ZpActivationLoss){
        .kind = hugging         ? ZP_LOSS_SHIFT_FLOAT
                : chunks        ? ZP_LOSS_CHUNKS
                : early || tune ? ZP_LOSS_FLOAT_REBIND
                                : ZP_LOSS_FLOAT,
        .chunks = TORCHTUNE_CHUNKS,
        .compiled = tune && is_compiled(row),
        .regime = regime_of(row, job),
        /* by the training loop, as "pred" and "outputs" */
        .keep_logits = early || zp_validate_record_has(row, "source", "dlrover"),
        .batch = job->training.micro_batch,
        .tokens = job->training.sequence,
        .hidden = job->model->hidden,
        .vocabulary = job->model->vocabulary,
    };
}

gboolean
zp_validate_memory_activations(const ZpValidateRecord *row, ZpModel *model, const ZpJob *job)
{
    if (zp_validate_record_has(row, "n_layers", "enc") ||
        zp_validate_record_has(row, "framework", "llm.c"))
        return TRUE; /* stated elsewhere, or by nobody */
    ZpActivationBlock block = describe_block(row, job, strcmp(model->family, "llama") == 0);
    if (!zp_activation_check(&block, NULL))
        return FALSE;
    ZpActivationLoss loss = describe_loss(row, job);
    ZpModelScripts scripts = {0};
    ZpActivationParts parts = zp_activation_parts(&block, &scripts);
    g_array_append_val(model->scripts, scripts);
    ZpModelActivation end = zp_activation_loss_part(&loss);
    gint32 before = ZP_MODEL_NONE;
    int part = 0; /* of the block */
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        part = layer->block == before ? part + 1 : 0;
        before = layer->block;
        if (layer->kind == ZP_LAYER_HEAD) {
            layer->activation = zp_model_add_activation(model, &end);
            g_array_set_size(zp_model_head_events(model, loss.batch == 1), 0);
            zp_activation_loss_events(&loss, loss.batch == 1,
                                      zp_model_head_events(model, loss.batch == 1));
        }
        if (layer->block == ZP_MODEL_NONE)
            continue;
        g_assert(part < parts.n_parts);
        layer->activation = zp_model_add_activation(model, &parts.parts[part]);
        layer->script = block.compiled ? 0 : (gint32)model->scripts->len; /* eager's order */
        layer->part = part;
    }
    return TRUE;
}
