/* What a layer keeps for backward, in closed form, bytes per token: the difference between a layer
 * and the nearest block that models/activation/activation.h knows, and all there is of one it
 * cannot describe.
 *
 * Per number of a norm's width, with the norm's output where it goes on: measured coefficients of
 * the blocks in models/activation/activation.h, halved (two norms a block).  16 bits: LayerNorm and
 * a fused RMS norm 4, one written out 8 (fp32 copy 4, normalised 2, output 2), with weight 1 + w
 * 10, and 8 over a branch; under autocast 6, 9, 13, 13; fp32 8, 8, 12, 12.  Per number of an
 * attention core, of b bytes: query, keys, values, output, b each (keys and values of all heads
 * where they are repeated); a norm over queries and keys what a norm keeps beside its output.  Per
 * number of an MLP's width: gated 4 b (gate, opened gate, up, product), plain 2 b (the activation
 * function's input and output), ReLU b less (its output is all it needs), GELU written out 6 more
 * (12 where its cube is in fp32).  A dropout mask is a byte. */
#pragma once

#include "models/families/traits_internal.h"
#include "models/families/trees/tree.h"

/* A layer as the closed forms see it; widths per rank. */
typedef struct {
    gboolean layer_norm;
    ZpBlockNorm norm;
    gint64 norms_width;               /* before branches, summed */
    gint64 branch_norms_width;        /* over their outputs */
    gint64 query, key, value, output; /* of the attention core; query 0: none */
    gint64 query_norm, key_norm;      /* widths under a norm */
    gint64 latent;                    /* other norms */
    gint64 dropped;                   /* width under a dropout mask */
    gint64 inner, shared;             /* of the MLP; of a mixture's shared experts */
    gboolean gated;
    ZpBlockActivation activation;
} ZpClosedLayer;

/* A layer of a model, from its tree. */
ZpClosedLayer zp_closed_layer(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts);
gint64 zp_closed_bytes_per_token(const ZpArchitectureTraits *traits, const ZpClosedLayer *layer);

/* The whole activation of a layer by these forms alone.  Beside what is kept (rule, not measured):
 * forward the residual stream in and out; backward the gradients of both and the widest pair of
 * gradients inside, as where a gated MLP's product is taken back: of the MLP's width, or of query
 * and output.  `first`: keeps the block's input under full checkpointing. */
ZpModelActivation zp_closed_activation(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts,
                                       gboolean first);
