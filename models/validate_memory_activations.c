/* Activations of a row's program, from models/activation.h: what its blocks and its loss keep, and
 * what lives beside that. */
#include <string.h>

#include "models/activation.h"
#include "models/parallel.h"
#include "models/validate_memory_job.h"

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

/* Compiled programs run norms as one kernel; others write them out. */
static ZpActivationBlock
describe_block(const ZpValidateRecord *row, const ZpJob *job, gboolean gated)
{
    const ZpModel *model = job->model;
    gboolean compiled = g_str_has_prefix(zp_validate_record_text(row, "compile"), "y");
    gboolean eager = zp_validate_memory_is_eager(row);
    gint64 tensor = zp_parallel_tensor(&job->world.parallel);
    return (ZpActivationBlock){
        .family = gated ? ZP_BLOCK_LLAMA : ZP_BLOCK_GPT2,
        .norm = compiled || !gated ? ZP_NORM_FUSED : ZP_NORM_EAGER,
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

/* torchtitan and torchtune cast the logits to fp32 at the loss; Hugging Face's Llama (of the
 * programs on it) in the model, and then shifts a copy of them. */
static ZpActivationLoss
describe_loss(const ZpValidateRecord *row, const ZpJob *job)
{
    gboolean hugging = zp_validate_record_has(row, "source", "dlrover") ||
                       zp_validate_record_has(row, "source", "huggingface");
    return (ZpActivationLoss){
        .kind = hugging ? ZP_LOSS_SHIFT_FLOAT : ZP_LOSS_FLOAT,
        .regime = regime_of(row, job),
        /* released before backward since torchtitan's PR #391 (June 2024) */
        .keep_logits = zp_validate_record_has(row, "source", "pr#165"),
        .batch = job->training.micro_batch,
        .tokens = job->training.sequence,
        .hidden = job->model->hidden,
        .vocabulary = job->model->vocabulary,
    };
}

static gint64
per_token(gint64 bytes, gint64 tokens)
{
    return (bytes + tokens - 1) / tokens;
}

/* A layer of a model says what is kept.  What lives beside it while backward passes the block goes
 * with what is recomputed then, or, where nothing is, with the last block: there most is kept. */
static void
set_block(ZpModelLayer *layer, const ZpActivationLayer *own, gint64 tokens, gboolean transients)
{
    layer->kept_bytes_per_token = own->kept_bytes_per_token;
    layer->kept_bytes_per_pair = own->kept_bytes_per_pair;
    layer->selective_bytes_per_token = own->selective_bytes_per_token;
    layer->selective_bytes_per_pair = own->selective_bytes_per_pair;
    layer->input_bytes_per_token = own->input_bytes_per_token;
    if (transients)
        layer->kept_bytes_per_token += per_token(own->backward_transient_bytes, tokens);
}

gboolean
zp_validate_memory_activations(const ZpValidateRecord *row, ZpModel *model, const ZpJob *job)
{
    if (zp_validate_record_has(row, "n_layers", "enc") ||
        zp_validate_record_has(row, "framework", "llm.c"))
        return TRUE; /* stated elsewhere, or by nobody */
    gint64 tokens = job->training.micro_batch * job->training.sequence;
    ZpActivationBlock block = describe_block(row, job, strcmp(model->family, "llama") == 0);
    if (!zp_activation_check(&block, NULL))
        return FALSE;
    ZpActivationLoss loss = describe_loss(row, job);
    ZpActivationLayer own = zp_activation_layer(&block);
    ZpActivationLayer end = zp_activation_loss_layer(&loss);
    gboolean recomputes = job->training.checkpointing != ZP_CHECKPOINTING_NONE;
    gint32 before = ZP_MODEL_NONE;
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        if (layer->kind == ZP_LAYER_HEAD) {
            gint64 beside = MAX(end.forward_transient_bytes, end.backward_transient_bytes);
            layer->logits_bytes_per_token =
                end.kept_bytes_per_token + per_token(end.kept_bytes + beside, tokens);
        }
        if (layer->block == ZP_MODEL_NONE)
            continue;
        const ZpActivationLayer nothing = {0};
        gboolean last = layer->block == model->n_blocks - 1;
        set_block(layer, layer->block != before ? &own : &nothing, tokens, recomputes || last);
        before = layer->block;
    }
    return TRUE;
}
