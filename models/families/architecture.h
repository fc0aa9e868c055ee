/* A transformer described by its dimensions, and the model built from it.
 *
 * What two models of the same family do differently is a field here, never an `if` on a name;
 * families only choose defaults (models/catalog/families.txt). */
#pragma once

#include "models/activation/activation.h"
#include "models/families/trees/error.h"
#include "models/job/job.h"
#include "models/words/dtype.h"

typedef enum {
    ZP_ATTENTION_FLASH, /* grouped keys and values as they are: enable_gqa, or flash-attn */
    ZP_ATTENTION_EAGER,
    ZP_ATTENTION_FLASH_REPEATED, /* keys and values repeated to all heads before the kernel */
    ZP_ATTENTION_EFFICIENT,      /* the memory-efficient kernel, repeated as well */
    ZP_ATTENTION_CUDNN,
    ZP_ATTENTION_DEFAULT, /* what the family's own program runs (symbol eager_attention) */
} ZpAttentionImpl;

/* A trait the family has a default for. */
typedef enum { ZP_TRAIT_DEFAULT, ZP_TRAIT_NO, ZP_TRAIT_YES } ZpTrait;

/* A loss as ZpArchitectureOptions has it. */
#define ZP_ARCHITECTURE_LOSS(kind) ((gint32)(kind) + 1)

typedef struct {
    const char *family; /* "llama": chooses module and class names; "" = generic names */
    /* kv_heads 0: equal to heads; head_size 0: hidden / heads; the others are needed. */
    gint64 layers, hidden, heads, kv_heads, head_size, ffn, vocabulary;
    gint64 positions; /* learned position table rows; 0: none */
    gboolean gated;   /* gate and up projections (SwiGLU), else one up projection */
    gboolean tied;    /* head shares the embedding table */
    gboolean attention_bias, mlp_bias, head_bias;
    gboolean qkv_bias;  /* q, k, v only (qwen2); implied by attention_bias */
    gboolean norm_bias; /* LayerNorm with bias; RMSNorm otherwise */
    gboolean final_norm;
    int norms_per_block; /* 1, 2 or 4; 0 means 2 */
} ZpArchitecture;

/* The last release of version 4, and the newest known. */
enum { ZP_TRANSFORMERS_4 = 4, ZP_TRANSFORMERS_NEWEST = 5 };

typedef enum { ZP_COMPILE_NONE, ZP_COMPILE_BLOCKS, ZP_COMPILE_BLOCKS_AND_LOSS } ZpCompile;

/* What the costs of a layer depend on beside the architecture. */
typedef struct {
    ZpDtype compute; /* activations and gathered weights */
    /* fp32 weights and residual stream, products in 16 bits (torch.autocast); the weights' 16-bit
     * copies count as kept by the layers that use them, since the cache holds them to the end of
     * forward and products for backward. */
    gboolean autocast;
    gboolean narrow_weights; /* with autocast: weights and residual stream have 16 bits (FSDP's
                              * param_dtype under accelerate's autocast) */
    gboolean hold_outputs;   /* the caller's variable holds what the model returned to the end of
                              * backward: the logits */
    gint32 lora_rank;        /* of adapters that zp_model_add_lora() will add; 0: none */
    const char *lora_targets;
    gboolean lora_dropout;
    gboolean padding; /* batches have attention masks that are not all ones */
    gint64 sequence;  /* tokens of a sequence, for windows of attention; 0: not known */
    ZpAttentionImpl attention;
    /* torch.compile: elementwise chains of blocks are one kernel each, in time and in what they
     * hold (models/activation/activation.h; in what they hold Llama-like blocks alone). */
    ZpCompile compile;
    ZpTrait fused_norms;   /* RMS norms as one kernel; default: written out (LayerNorm is one) */
    gboolean fused_rotary; /* rotary embedding as one kernel; counts in time alone */
    ZpTrait dropout, attention_dropout; /* default: the configuration's */
    ZpTrait grouped_experts;            /* one product for all (default), or expert by expert */
    gint32 transformers;                /* major version of the models' code; 0: the newest known */
    gint32 loss;                        /* ZP_ARCHITECTURE_LOSS(kind); 0: the family's own */
    gint32 loss_chunks;                 /* of the chunked losses, 0: 8 */
    ZpSelective selective;
    gboolean reentrant; /* full checkpointing as torch's reentrant variant */
    gboolean causal;    /* half of the pairs */
    /* Tokens of the busiest rank's experts over the mean, >= 1; 0 means 1.  Scales the cost of a
     * mixture's experts, not their parameters. */
    double expert_imbalance;
    /* Cuts of Megatron-LM, 0 or 1: none.  They divide what a rank holds and computes of a layer:
     * tensor parallelism heads, MLP width and vocabulary, sequence parallelism also what it leaves
     * whole, context parallelism the tokens. */
    gint32 tensor_parallel, context_parallel;
    gboolean sequence_parallel;
} ZpArchitectureOptions;

#define ZP_ARCHITECTURE_MAX_DIMENSION (G_GINT64_CONSTANT(1) << 40)

/* Checks dimensions (positive, heads divide, no overflow of int64 products): the message names
 * every key that is missing or wrong at once. */
gboolean zp_architecture_check(const ZpArchitecture *architecture, GError **error);
ZpModel *zp_architecture_build(const ZpArchitecture *architecture,
                               const ZpArchitectureOptions *options, const char *name,
                               GError **error);
