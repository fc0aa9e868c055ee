/* The operators that blocks are written in; each is one rule: what it allocates, what it saves and
 * what its backward allocates.  Sources: tools/autograd/derivatives.yaml and FunctionsManual.cpp of
 * PyTorch for what is saved and how gradients are made, aten/src/ATen/native for composites, the
 * CUDA meta functions (torch/_meta_registrations.py) for fused kernels.  Private to
 * models/activation*.c.
 *
 * Every function borrows its tensors, but drops those marked by zp_take(), and returns a new one.
 */
#pragma once

#include "models/activation/operators/trace.h"

/* --- elementwise (activation_ops_elementwise.c) --- */
ZpTensor *zp_add(ZpTrace *trace, ZpTensor *a, ZpTensor *b);
ZpTensor *zp_mul(ZpTrace *trace, ZpTensor *a, ZpTensor *b);
ZpTensor *zp_scale(ZpTrace *trace, ZpTensor *a);  /* times or over a number */
ZpTensor *zp_offset(ZpTrace *trace, ZpTensor *a); /* plus a number */
ZpTensor *zp_neg(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_square(ZpTrace *trace, ZpTensor *a); /* pow(2) */
ZpTensor *zp_pow(ZpTrace *trace, ZpTensor *a);    /* another exponent */
ZpTensor *zp_rsqrt(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_tanh(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_silu(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_gelu(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_relu(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_to(ZpTrace *trace, ZpTensor *a, int element_bytes); /* no copy when equal */
ZpTensor *zp_native_dropout(ZpTrace *trace, ZpTensor *a);        /* CUDA: mask of bools */
ZpTensor *zp_noise_dropout(ZpTrace *trace, ZpTensor *a); /* CPU: noise of the input's dtype */

/* --- views and reductions (activation_ops_view.c) --- */
ZpTensor *zp_reshape(ZpTrace *trace, ZpTensor *a, int rank, const gint64 *sizes);
ZpTensor *zp_transpose(ZpTrace *trace, ZpTensor *a, int first, int second);
ZpTensor *zp_expand(ZpTrace *trace, ZpTensor *a, int rank, const gint64 *sizes);
ZpTensor *zp_slice(ZpTrace *trace, ZpTensor *a, int dimension, gint64 start, gint64 length);
/* Parts of `length` along a dimension, the last may be shorter; returns how many of `parts`
 * (ZP_TRACE_OUTPUTS of them, NULL before) were filled. */
int zp_split(ZpTrace *trace, ZpTensor *a, int dimension, gint64 length, ZpTensor **parts);
ZpTensor *zp_cat_last(ZpTrace *trace, ZpTensor *a, ZpTensor *b);
ZpTensor *zp_mean_last(ZpTrace *trace, ZpTensor *a);  /* keeps the dimension */
ZpTensor *zp_sum_last(ZpTrace *trace, ZpTensor *a);   /* keeps the dimension */
ZpTensor *zp_sum_middle(ZpTrace *trace, ZpTensor *a); /* of three dimensions, the second goes */
ZpTensor *zp_sum_to(ZpTrace *trace, ZpTensor *a, const ZpTraceShape *shape);
ZpTensor *zp_contiguous(ZpTrace *trace, ZpTensor *a);

/* --- products (activation_ops_product.c) --- */
ZpTensor *zp_mm(ZpTrace *trace, ZpTensor *a, ZpTensor *b);
ZpTensor *zp_bmm(ZpTrace *trace, ZpTensor *a, ZpTensor *b);
/* Rows [s, in], sorted by expert, with each expert's matrix of [E, in, out] (F.grouped_mm). */
ZpTensor *zp_grouped_mm(ZpTrace *trace, ZpTensor *a, ZpTensor *b);
/* F.linear of [.., in] with a weight [out, in] and, when given, a bias. */
ZpTensor *zp_linear(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias);
ZpTensor *zp_matmul(ZpTrace *trace, ZpTensor *a, ZpTensor *b); /* of equal rank, batched */

/* --- the loss (activation_ops_loss.c) --- */
ZpTensor *zp_log_softmax(ZpTrace *trace, ZpTensor *a);
/* The scalar loss of rows of log-probabilities. */
ZpTensor *zp_nll_loss(ZpTrace *trace, ZpTensor *a, ZpTensor *target);
ZpTensor *zp_sum_rows(ZpTrace *trace, ZpTensor *a); /* over the last dimension, which goes */
ZpTensor *zp_sum_all(ZpTrace *trace, ZpTensor *a);
ZpTensor *zp_masked_fill_in_place(ZpTrace *trace, ZpTensor *a, ZpTensor *mask);
ZpTensor *zp_divide(ZpTrace *trace, ZpTensor *a, ZpTensor *divisor); /* no gradient of divisor */
/* A tensor of no history: comparisons, integer results. */
ZpTensor *zp_plain(ZpTrace *trace, const char *name, const ZpTraceShape *shape, int element_bytes);

/* --- sequence parallelism (activation_ops_parallel.c) --- */
/* A product over all tokens of an input [b, s / ways, in]: gathered for the product alone. */
ZpTensor *zp_gathered_linear(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias,
                             gint64 ways);
ZpTensor *zp_reduce_scatter(ZpTrace *trace, ZpTensor *a, gint64 ways);

/* --- kernels of a compiler (activation_ops_compiled.c) --- */
ZpTensor *zp_fused_rotate(ZpTrace *trace, ZpTensor *a); /* position embeddings of queries, keys */
ZpTensor *zp_fused_gate(ZpTrace *trace, ZpTensor *gate, ZpTensor *up); /* activation and product */
/* The residual stream is never written: whoever reads it adds the branch, whose storage it is. */
ZpTensor *zp_fused_sum(ZpTrace *trace, ZpTensor *stream, ZpTensor *branch);
/* Casts and the loss of rows of logits. */
ZpTensor *zp_fused_cross_entropy(ZpTrace *trace, ZpTensor *logits, ZpTensor *target);

/* --- rows by index (activation_ops_index.c) --- */
/* second NULL: one index tensor over the first dimension; else two over the first two. */
ZpTensor *zp_index(ZpTrace *trace, ZpTensor *a, ZpTensor *first, ZpTensor *second);
ZpTensor *zp_index_add_in_place(ZpTrace *trace, ZpTensor *a, ZpTensor *index, ZpTensor *source);
ZpTensor *zp_topk(ZpTrace *trace, ZpTensor *a, gint64 count, ZpTensor **indices);
ZpTensor *zp_quotient(ZpTrace *trace, ZpTensor *a, ZpTensor *b); /* both with gradients */

/* --- norms and attention kernels (activation_ops_fused.c) --- */
ZpTensor *zp_rms_norm(ZpTrace *trace, ZpTensor *a, ZpTensor *weight);
/* CUDA keeps fp32 statistics, the CPU's are of the input's dtype. */
ZpTensor *zp_layer_norm(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias);
ZpTensor *zp_layer_norm_cpu(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias);
ZpTensor *zp_softmax(ZpTrace *trace, ZpTensor *a);
typedef enum {
    ZP_KERNEL_FLASH,
    ZP_KERNEL_EFFICIENT,
    ZP_KERNEL_CUDNN,
    ZP_KERNEL_CPU,
} ZpAttentionKernel;
/* mask: no gradient; NULL: none. */
ZpTensor *zp_attention_kernel(ZpTrace *trace, ZpAttentionKernel kernel, ZpTensor *query,
                              ZpTensor *key, ZpTensor *value, ZpTensor *mask);
