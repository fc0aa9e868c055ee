/* Activation memory of one transformer block, or of the loss, in bytes.
 *
 * A block is described by its traits and sizes, walked as a program of tensor operators
 * (activation_trace.h), and what lives is counted: bytes kept for backward, peaks of forward and
 * backward.  The rules are those of PyTorch's eager autograd; raw bytes, no allocator rounding, no
 * workspaces inside kernels.  See docs of the fields for what is counted where. */
#pragma once

#include "models/job/model.h"

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
    ZP_BLOCK_GELU_FAST, /* written out with x * x for the power */
    ZP_BLOCK_RELU,
} ZpBlockActivation;

typedef enum {
    ZP_REGIME_BF16,   /* 16-bit weights, products and residual; norms and softmax as stated */
    ZP_REGIME_AMP,    /* fp32 weights and residual, 16-bit products (autocast) */
    ZP_REGIME_AMP_16, /* autocast over 16-bit weights and residual: LayerNorm is in fp32 */
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

typedef enum {
    ZP_PROJECTION_OWN,      /* GPT-2's block: FUSED; the others: a product each */
    ZP_PROJECTION_APART,    /* a product each */
    ZP_PROJECTION_FUSED,    /* one product, cut into queries, keys and values: views of it */
    ZP_PROJECTION_PER_HEAD, /* the same within every head (GPT-NeoX) */
    ZP_PROJECTION_COPIED,   /* one product; keys and values are picked out by index (Falcon) */
} ZpBlockProjection;

typedef enum {
    ZP_MASK_NONE,
    ZP_MASK_SHARED,   /* a window: one for all sequences */
    ZP_MASK_SEQUENCE, /* padding: one a sequence */
} ZpBlockMask;

typedef enum {
    ZP_EXPERTS_GROUPED,    /* rows by expert in equal shares, one batched product for all */
    ZP_EXPERTS_LOOP,       /* a module each */
    ZP_EXPERTS_GROUPED_MM, /* transformers 5: sorted rows, gate and up as one 3-D parameter */
} ZpBlockExperts;

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
    /* torch.compile of the block, its checkpoint inside: chains of elementwise operators and of
     * reductions are kernels that allocate their ends, what a chain makes is made again where
     * backward needs it unless a product or attention reads it, and a selective policy keeps only
     * what backward reads.  Norms are one kernel whatever `norm` says, but for the one that ends
     * the stack (zp_activation_norm_part()), which is no part of a block.  What is kept is not
     * written over.  Llama blocks with an attention kernel, no autocast. */
    gboolean compiled;
    gboolean cpu_kernels; /* CPU operators: noise dropout, statistics of the input's dtype */
    /* Counts in backward every tensor of a parameter's shape as a gradient of one, as the program
     * did that measured the reference cases; by default only what becomes one. */
    gboolean gradients_by_shape;
    /* Megatron's cuts, 0 or 1: none.  Tensor parallelism divides heads, key heads (at least one a
     * rank) and the MLP's width, and leaves whole what all ranks repeat: norms, residual, dropout
     * after a branch.  Sequence parallelism divides those by tokens.  Context parallelism is the
     * caller's: give the rank's tokens. */
    gint64 tensor_parallel;
    gboolean sequence_parallel;
    /* Of zp_activation_parts(): keeping the input alone is the reentrant checkpoint, as it is if
     * `policy` is that. */
    gboolean reentrant;
    gint64 batch, tokens; /* b, s */
    gint64 hidden, heads, kv_heads, head_size, ffn;
    gint64 expert_count, chosen_experts; /* E, k */
    ZpBlockProjection projection;
    /* A mask keeps fused attention to the memory-efficient kernel, over keys and values repeated to
     * all heads, and each block makes 16 bits of it. */
    ZpBlockMask mask;
    gboolean rotary_joined;    /* rotated and other numbers of a head are put together by cat */
    gboolean rotary_named;     /* with names for the parts (Phi) */
    gint64 rotary;             /* rotated numbers of a head; 0: all */
    gboolean scaled_query;     /* OPT, Whisper: before the kernel */
    gboolean contiguous_heads; /* Whisper: queries, keys and values are copied head by head */
    gboolean two_norms;        /* parallel: the MLP has a norm of its own over the input */
    gboolean fused_gate;       /* gate and up are one product */
    gboolean biases;           /* of attention's products where the family has none */
    /* T5 since transformers 5: attention may be fused (the position bias is its mask, made anew in
     * each layer, and has a gradient), written out it scales scores and keeps its softmax in the
     * products' dtype, and a decoder that is not checkpointed copies keys and values into a cache.
     */
    gboolean t5_interface;
    /* Low-rank adapters: everything else is frozen.  Bit k: the k-th parameter that the block uses
     * has one.  Without a checkpoint nothing before the first adapter needs a gradient. */
    gint64 adapter_rank; /* 0: none */
    guint64 adapted;
    gboolean adapter_dropout; /* of their input */
    gboolean input_frozen;    /* no adapter comes before the block */
    gboolean bare_products;   /* no biases of the MLP where the family has them */
    /* With ZP_EXPERTS_GROUPED_MM: the router's product in fp32, the shares of experts stay fp32, a
     * gated MLP of this width beside the experts, and a gate over it. */
    gboolean router_fp32, shares_fp32, gated_shared;
    gint64 shared;
} ZpActivationBlock;

typedef enum {
    ZP_LOSS_RAW,          /* logits in the dtype of the products go straight into the loss */
    ZP_LOSS_FLOAT,        /* logits.float(), the 16-bit logits still named; labels shifted */
    ZP_LOSS_FLOAT_REBIND, /* logits.float() under the same name, by the model: it returns fp32 */
    ZP_LOSS_SHIFT_FLOAT,  /* the same, then a shifted copy of the logits */
    ZP_LOSS_SHIFT_16,     /* a shifted copy, then fp32 */
    ZP_LOSS_CHUNKS,
    ZP_LOSS_CHUNKS_CHECKPOINTED,
} ZpLossKind;

typedef struct {
    ZpLossKind kind;
    ZpBlockRegime regime;
    gboolean keep_logits; /* the caller holds what the model returns through backward */
    gboolean soft_cap, label_smoothing;
    /* torch.compile of the loss's function, casts and shifts behind the model included: it keeps
     * the logits as the model returns them and writes their gradient alone.  In chunks: of each
     * chunk's loss. */
    gboolean compiled;
    gboolean frozen;       /* the head gets no gradient */
    gboolean without_norm; /* what comes in is the final norm's output */
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
    /* Not measured but read in flash attention's source: what its backward allocates inside the
     * kernel on CUDA, and the backward peak with it. */
    gint64 flash_workspace_bytes, backward_peak_with_workspace_bytes;
    const char *forward_peak_at, *backward_peak_at; /* operators; static strings */
} ZpActivationBytes;

/* Sizes that are positive where the family needs them and divide where they are cut; the message
 * names the field.  What follows takes checked blocks. */
gboolean zp_activation_check(const ZpActivationBlock *block, GError **error);
ZpActivationBytes zp_activation_measure_block(const ZpActivationBlock *block);
ZpActivationBytes zp_activation_measure_loss(const ZpActivationLoss *loss);

/* The parts of a block that are layers of a model: attention with its norm and the addition to the
 * residual stream, a T5 decoder's cross-attention, the MLP likewise (parallel blocks: the MLP and
 * both additions).  The selective policy is the description's own; if that is ZP_KEEP_ALL, all is
 * kept.  Keeping the input alone is the non-reentrant checkpoint, unless `reentrant` or the
 * description's policy says otherwise.
 *
 * A part answers for what is allocated while it runs, forward or again: the stream that it hands on
 * is its own if it stays, the block's input is the first part's.  `recomputed` is what lives of
 * that after the recomputation above what it kept: kept values that the recomputation used up count
 * against it, down to nothing (then the peaks are smaller).  Backward, an instant is of the part
 * whose operator runs.  The larger of a block's recompute and backward peaks is its backward peak;
 * neither they nor anything else is negative.
 *
 * Exact in b and s, as far as the allocations are forms: tokens divided by ranks, experts or chunks
 * divide (shares of less than a byte a token are rounded up), and the memory-efficient kernel,
 * which rounds its statistics to 32 tokens, gets whole ones.  The description's own batch and
 * tokens do not matter.  Together the parts give the block's kept bytes and its peaks of forward,
 * recomputation and backward.  Copies of parameters and what kernels allocate inside are beside. */
enum { ZP_ACTIVATION_PARTS = 3 };
typedef struct {
    int n_parts;
    ZpModelActivation parts[ZP_ACTIVATION_PARTS];
} ZpActivationParts;
/* `scripts`, if any (zeroed), is filled with the same in order, by policy; the caller clears it. */
ZpActivationParts zp_activation_parts(const ZpActivationBlock *block, ZpModelScripts *scripts);
/* The norm that ends a stack of such blocks (BERT has none), under no checkpoint: the same under
 * all policies.  Its output is the head's. */
ZpModelActivation zp_activation_norm_part(const ZpActivationBlock *block);
/* The head and the loss as one layer, the same under all policies; the final norm is not in it, but
 * its output, where that is kept.  What checkpointed chunks recompute is backward. */
ZpModelActivation zp_activation_loss_part(const ZpActivationLoss *loss);

/* The same tensor by tensor: what a block allocates and frees, in order, so that it can be replayed
 * through an allocator.
 *
 * Blocks hand on what lies between them: `input` lives when forward begins and is the output of the
 * block before, `output` when it ends; `output_gradient` lives when backward begins and is the
 * input gradient of the block after.  So the four are in the script from both sides: neither the
 * allocation of `input` and `output_gradient` nor the end of `output` and `input_gradient` are
 * events.  All else comes to life once and dies once.  Running sums have the peaks that
 * zp_activation_parts() tells, part by part. */
typedef enum {
    ZP_ACTIVATION_FORWARD,
    ZP_ACTIVATION_RECOMPUTE,
    ZP_ACTIVATION_BACKWARD,
    ZP_ACTIVATION_PASSES,
} ZpActivationPass;

typedef struct {
    gint32 storage; /* below n_storages */
    gint32 part;
    ZpActivationPass pass;
    gboolean frees;     /* else it is allocated */
    ZpModelBytes bytes; /* of the storage, either way; shares of tokens are rounded up */
} ZpActivationEvent;

typedef struct {
    int n_parts;
    gint32 n_storages;
    gint32 input, output, output_gradient, input_gradient;
    ZpModelBytes input_bytes, output_gradient_bytes;
    GArray *events; /* ZpActivationEvent */
} ZpActivationScript;

/* `one_sequence`: exact where b is 1, else where it is more.  The block's own policy is not read.
 * Free with zp_activation_script_free(). */
ZpActivationScript *zp_activation_script(const ZpActivationBlock *block, ZpBlockPolicy policy,
                                         gboolean one_sequence);
void zp_activation_script_free(ZpActivationScript *script);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpActivationScript, zp_activation_script_free)
/* How many events have happened when a part of a pass is through.  Forward and recomputation run
 * parts in rising order, backward in falling order; the last part's backward may allocate before
 * the recomputation that it asks for, and those events count to the recomputation's first part. */
guint zp_activation_script_end(const ZpActivationScript *script, ZpActivationPass pass, int part);

/* Appends a loss's storages to ZpModelEvents, the norm's output among them, where it is kept; the
 * gradient of that is what is left. */
void zp_activation_loss_events(const ZpActivationLoss *loss, gboolean one_sequence, GArray *events);

/* Do two descriptions say the same? */
gboolean zp_activation_equal(const ZpActivationBlock *a, const ZpActivationBlock *b);

typedef enum { ZP_ACTIVATION_ERROR_SIZE } ZpActivationError;
#define ZP_ACTIVATION_ERROR (zp_activation_error_quark())
GQuark zp_activation_error_quark(void);
