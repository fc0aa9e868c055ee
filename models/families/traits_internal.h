/* How a model's layers are computed: the options of a build, and where they leave it to the family,
 * the family's symbols (models/catalog/families.txt). */
#pragma once

#include "models/families/architecture.h"
#include "models/families/trees/expression.h"

typedef struct {
    ZpBlockRegime regime;
    /* Of what products make, of the residual stream. */
    gint64 number_bytes, residual_bytes;
    gint64 widened; /* sizes times this: 2 for fp64, which the operators' rules do not name */
    gboolean layer_norm;
    ZpBlockNorm norm; /* of RMS norms; ZP_NORM_PLUS_ONE: two or four in a block */
    gint64 norms;     /* in a block */
    ZpBlockAttention attention;
    gboolean compiled, compiled_loss;
    gboolean softmax_fp32, soft_cap, qk_norm;
    gboolean causal, rotary, fused_rotary, gated, parallel, post_norm, t5;
    gboolean dropout, attention_dropout, embedding_dropout;
    ZpBlockProjection projection;
    gboolean rotary_joined, rotary_named, scaled_query, contiguous_heads, two_norms, fused_gate;
    gboolean biases, bare_products, t5_interface;
    gint64 rotary_width; /* of a head; 0: all */
    /* Attention masks: of all blocks, or of those with a window: all but every n-th. */
    ZpBlockMask mask;
    gboolean windowed;
    gint64 window_step; /* 0: all blocks */
    ZpBlockActivation activation;
    ZpBlockExperts experts;
    gboolean router_fp32, shares_fp32, gated_shared;   /* of ZP_EXPERTS_GROUPED_MM */
    gboolean positions, token_types, scaled_embedding; /* added to or multiplied with a lookup */
    gint64 vocabulary, heads;
    /* Sequences of a length that the configuration states: of all layers, of an encoder's. */
    gint64 own_tokens, source_tokens;
    gint64 pixels;    /* of the image behind a sequence */
    gint64 lora_rank; /* 0: no adapters */
    gboolean lora_dropout;
    const char *lora_targets;
    ZpLossKind loss;
    int loss_chunks;
    gboolean logit_cap, hold_outputs;
    ZpSelective selective;
    gboolean reentrant;
    gint64 tensor_parallel, context_parallel; /* at least 1 */
    gboolean sequence_parallel;
    double expert_imbalance; /* at least 1 */
} ZpArchitectureTraits;

ZpArchitectureTraits zp_architecture_traits(const ZpSymbols *symbols,
                                            const ZpArchitectureOptions *options);

/* Tokens that a rank's norms and residual stream hold are divided by this. */
static inline gint64
zp_architecture_stream_ways(const ZpArchitectureTraits *traits)
{
    return traits->sequence_parallel ? traits->tensor_parallel : 1;
}
