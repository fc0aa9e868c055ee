/* Costs of the layers of a model expanded from a module tree.
 *
 * FLOPs, forward, per token: 2 x elements of the matrices a token meets (a mixture: its chosen
 * experts and the router), nothing for a table look-up; the attention core 2 (d_qk + d_v) per head
 * and key, half of it where the mask is causal (PaLM, arXiv 2204.02311, appendix B; Korthikanti et
 * al., arXiv 2205.05198, appendix A).
 *
 * Activations: models/families/layer_activation_internal.h.
 *
 * Traffic (device memory moved in forward beside the parameters) counts what each eager kernel
 * reads and writes: RMSNorm 21 b, LayerNorm 2 b, fused RMSNorm 4 b a number (2 b move in forward
 * and 3 b in backward, there at a fifth to a quarter of the bandwidth that forward reaches), rotary
 * embedding 18.5 b (fused 2 b), gated activation 8.5 b a product (compiled 3 b), matrix products
 * their inputs and outputs, a residual addition 3 b.  Of a logit: written, cast to fp32 (but under
 * a raw loss), and read and written by the log-softmax. (RMSNorm, rotary and gated factors:
 * linkedin/Liger-Kernel benchmark data.) */
#pragma once

#include "models/families/architecture.h"
#include "models/families/trees/tree.h"

/* `facts` is parallel to model->layers.  What is read from `symbols`:
 * models/families/traits_internal.h.
 */
void zp_architecture_cost_layers(ZpModel *model, const GArray *facts, const ZpSymbols *symbols,
                                 const ZpArchitectureOptions *options);
