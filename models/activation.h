/* Activation memory of one transformer block, or of the loss, in bytes.
 *
 * A block is described by its traits and sizes, walked as a program of tensor operators
 * (activation_trace.h), and what lives is counted: bytes kept for backward, peaks of forward and
 * backward.  The rules are those of PyTorch's eager autograd; raw bytes, no allocator rounding, no
 * workspaces inside kernels.  See docs of the fields for what is counted where. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_BLOCK_LLAMA,      /* pre-norm, rotary, gated MLP; Gemma-2 with ZP_NORM_PLUS_ONE */
    ZP_BLOCK_GPT2,       /* pre-LayerNorm, fused q k v with biases, plain MLP */
    ZP_BLOCK_PARALLEL,   /* GPT-J, Falcon: attention and MLP read one LayerNorm */
    ZP_BLOCK_BERT,       /* post-LayerNorm, biases */
    ZP_BLOCK_T5_ENCODER, /* unscaled attention with a position bias */
    ZP_BLOCK_T5_DECODER, /* and cross-attention to a constant encoder output */
    ZP_BLOCK_MOE,        /* Llama attention, top-k mixture of gated experts */
} ZpBlockFamily;

typedef enum {
    ZP_NORM_EAGER,     /* RMS norm written out in the framework's operators, in fp32 */
    ZP_NORM_FUSED,     /* one kernel; keeps input and fp32 statistics */
    ZP_NORM_COMPOSITE, /* F.rms_norm where no kernel exists (CPU) */
    ZP_NORM_PLUS_ONE,  /* Gemma: weight 1 + w in fp32, and norms after both branches */
} ZpBlockNorm;

typedef enum {
    ZP_BLOCK_FLASH,
    ZP_BLOCK_FLASH_REPEATED, /* keys and values repeated to all heads before the kernel */
    ZP_BLOCK_EFFICIENT,      /* repeated as well */
    ZP_BLOCK_CUDNN,
    ZP_BLOCK_CPU_KERNEL,
    ZP_BLOCK_EAGER,
} ZpBlockAttention;

typedef enum {
    ZP_BLOCK_SILU,
    ZP_BLOCK_GELU, /* one operator; exact and tanh are alike */
    ZP_BLOCK_GELU_WRITTEN_OUT,
    ZP_BLOCK_RELU,
} ZpBlockActivation;

typedef enum {
    ZP_REGIME_BF16, /* 16-bit weights, products and residual; norms and softmax as stated */
    ZP_REGIME_AMP,  /* fp32 weights and residual, 16-bit products (autocast) */
    ZP_REGIME_FP32,
} ZpBlockRegime;

typedef enum {
    ZP_KEEP_ALL,
    ZP_KEEP_INPUT_REENTRANT,
    ZP_KEEP_INPUT, /* non-reentrant checkpoint */
    ZP_KEEP_ATTENTION,
    ZP_KEEP_PRODUCTS,
    ZP_KEEP_PRODUCTS_AND_ATTENTION,
    ZP_KEEP_EVERY_SECOND_PRODUCT, /* and attention: torchtitan's selective policy */
} ZpBlockPolicy;

typedef enum { ZP_EXPERTS_GROUPED, ZP_EXPERTS_LOOP } ZpBlockExperts;

typedef struct {
    ZpBlockFamily family;
    ZpBlockNorm norm;
    ZpBlockAttention attention;
    ZpBlockActivation activation;
    ZpBlockRegime regime;
    ZpBlockPolicy policy;
    ZpBlockExperts experts;
    gboolean softmax_fp32; /* eager: scores are cast before the softmax */
    gboolean qk_norm;
    gboolean soft_cap; /* eager: tanh over the scores */
    gboolean dropout, attention_dropout;
    gboolean cpu_kernels; /* CPU operators: noise dropout, statistics of the input's dtype */
    /* Counts in backward every tensor of a parameter's shape as a gradient of one, as the program
     * did that measured the reference cases; by default only what becomes one. */
    gboolean gradients_by_shape;
    gint64 batch, tokens; /* b, s */
    gint64 hidden, heads, kv_heads, head_size, ffn;
    gint64 expert_count, chosen_experts; /* E, k */
} ZpActivationBlock;

typedef enum {
    ZP_LOSS_RAW,          /* logits in the dtype of the products go straight into the loss */
    ZP_LOSS_FLOAT,        /* logits.float(), the 16-bit logits still named; labels shifted */
    ZP_LOSS_FLOAT_REBIND, /* logits.float() under the same name */
    ZP_LOSS_SHIFT_FLOAT,  /* fp32, then a shifted copy of the logits */
    ZP_LOSS_SHIFT_16,     /* a shifted copy, then fp32 */
    ZP_LOSS_CHUNKS,
    ZP_LOSS_CHUNKS_CHECKPOINTED,
} ZpLossKind;

typedef struct {
    ZpLossKind kind;
    ZpBlockRegime regime;
    gboolean keep_logits; /* the caller holds them through backward */
    gboolean soft_cap, label_smoothing;
    int chunks;
    gint64 batch, tokens, hidden, vocabulary;
} ZpActivationLoss;

typedef struct {
    gint64 input_bytes, output_bytes;
    gint64 kept_bytes; /* after forward, for backward; the block's input when it is kept */
    gboolean input_kept;
    gint64 kept_copy_bytes;    /* of parameters, cast for the products */
    gint64 forward_peak_bytes; /* above entry, where the input lives */
    gint64 forward_peak_with_copies_bytes;
    gint64 backward_entry_bytes;               /* kept and the gradient of the output */
    gint64 backward_peak_bytes;                /* absolute, without gradients of parameters */
    gint64 backward_peak_with_gradients_bytes; /* and copies */
    gint64 parameter_gradient_bytes;
    const char *forward_peak_at, *backward_peak_at; /* operators; static strings */
} ZpActivationBytes;

ZpActivationBytes zp_activation_measure_block(const ZpActivationBlock *block);
ZpActivationBytes zp_activation_measure_loss(const ZpActivationLoss *loss);
