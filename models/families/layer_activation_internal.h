/* Activations of the layers of a model expanded from a module tree: one entry of
 * model->activations for each kind of layer, and each layer's index into them.
 *
 * Blocks: the parts that models/activation/activation.h gives for the block that
 * architecture_blocks.h finds, what is kept corrected by the closed forms where the two differ
 * (dropped under a policy that recomputes, and recomputed then); cross-attention outside T5 as
 * attention once more.  The attention core alone recomputed (Megatron-LM): as where all is kept,
 * without what grows with pairs, which the core's own forward and backward hold.  What an imbalance
 * of experts adds is their part of what is kept, and transients of the mixture in proportion.
 * Copies of weights that autocast makes are constant bytes of the layer.  Context parallelism
 * divides by tokens. */
#pragma once

#include "models/families/blocks_internal.h"

/* `facts` (ZpTreeLayer) is parallel to model->layers.  Sets `activation`, and what the selective
 * policy recomputes, of every layer; the layers' FLOPs are read. */
void zp_architecture_attach_activations(ZpModel *model, const GArray *facts,
                                        const ZpArchitectureTraits *traits);
