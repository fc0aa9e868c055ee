/* Costs of the layers of a model expanded from a module tree.
 *
 * FLOPs, forward, per token: 2 x elements of the matrices a token meets (a mixture: its chosen
 * experts and the router), nothing for a table look-up; the attention core 2 (d_qk + d_v) per head
 * and key, half of it where the mask is causal (PaLM, arXiv 2204.02311, appendix B; Korthikanti et
 * al., arXiv 2205.05198, appendix A).
 *
 * Activations kept for backward, bytes per token, with b bytes a number:
 *   LayerNorm block (arXiv 2205.05198 section 4.1, there with b = 2: 34 h + 5 a s):
 *     attention  2b h (norm's input and output) + b (q + k + v + out) + h (dropout mask)
 *     MLP        2b h + 2b f (activation function's input and output) + h (dropout mask)
 *   RMSNorm block as huggingface/transformers computes it (models/llama/modeling_llama.py):
 *     norms      (4 + 2b) h: fp32 copy, normalised, output; b h more where the scale is 1 + w
 *     attention  b (q + k + v + out), with query/key norms (4 + b)(q + k) more
 *     MLP        4b f: gate, its activation, up, product
 *   flash attention keeps a fp32 log-sum-exp per head (Dao et al., arXiv 2205.14135), eager
 *   attention per head and pair the probabilities: (2b + 1) with dropout (b, mask, b), else 4 + b
 *   (fp32 softmax and its cast).
 *   A mixture of experts keeps 2b h a chosen expert more: its gathered input and its output.
 * Selective checkpointing drops what grows with pairs and recomputes the attention core; full
 * keeps a block's input, b h.
 *
 * Loss, per token and vocabulary entry: logits b, and in fp32 the log-softmax kept and two
 * gradients, 12 (torch.nn.functional.cross_entropy on logits.float()).
 *
 * Traffic (device memory moved in forward beside the parameters) counts what each eager kernel
 * reads and writes: RMSNorm 21 b, LayerNorm 2 b a number, rotary embedding 18.5 b, gated activation
 * 8.5 b a product, matrix products their inputs and outputs, a residual addition 3 b.
 * (RMSNorm, rotary and gated factors: linkedin/Liger-Kernel benchmark data.) */
#pragma once

#include "models/architecture.h"
#include "models/families_tree.h"

/* `facts` is parallel to model->layers.  Switches read from `symbols`: gated, ln (LayerNorm),
 * scale_plus_one, dropout, qk_norm, positions, V. */
void zp_architecture_cost_layers(ZpModel *model, const GArray *facts, const ZpSymbols *symbols,
                                 const ZpArchitectureOptions *options);
