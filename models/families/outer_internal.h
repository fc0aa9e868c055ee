/* Activations of what is not a transformer block: lookup tables, final norms, projections, the head
 * with the loss.  The same under every checkpointing policy.
 *
 * Tables keep the token's id (8 bytes) and a dropout mask (1 byte a number); a norm over them keeps
 * its input and statistics.  What they make is the residual stream that the first block reads.
 * Forward and backward hold one tensor of its width more where something is added to it, scales it
 * or masks it; a learned position is looked up once a position.
 *
 * Final norms: zp_activation_norm_part().
 *
 * A projection keeps its input, what its activation function reads and what its norm reads, and
 * holds input and output, and their gradients.  Head and loss:
 * zp_activation_loss_part(); the vocabulary is cut by tensor parallelism. */
#pragma once

#include "models/families/traits_internal.h"
#include "models/families/trees/tree.h"

/* `encoder`: of a stack whose output goes to another one's cross-attention. */
ZpModelActivation zp_outer_embedding(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts,
                                     gboolean encoder);
/* `encoder`: blocks follow, whose cross-attention keeps what it makes. */
ZpModelActivation zp_outer_norm(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts,
                                gboolean encoder);
ZpModelActivation zp_outer_projection(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts);
/* FALSE where the layer has no product: no head.  Fills the model's head_events of a model with one
 * head and no autocast, whose copies of weights are in the sums alone. */
gboolean zp_outer_head(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModel *model,
                       ZpModelActivation *activation);
