/* Tensor, sequence, context and pipeline parallelism beside ZeRO.
 *
 * Ranks.  Of the GPUs of a job, tensor x context x pipeline together hold and compute one replica.
 * They are numbered tensor first, then context, then data, then pipeline (Megatron-LM,
 * megatron/core/parallel_state.py, order "tp-cp-ep-dp-pp"): tensor parallel ranks are neighbours
 * and the ranks that hold the same parameters, data x context, are `tensor` places apart.  Those
 * are job->world.ranks: ZeRO shards over them, and a simulated rank stands for its tensor parallel
 * neighbours too.
 *
 * Tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053, section 3) cuts the matrices of
 * attention and MLP by columns, those that end a sublayer by rows, embedding and head by rows of
 * the vocabulary, which is padded to a multiple of 128 x tensor (megatron/training/tokenizer,
 * _vocab_size_with_padding).  Every rank keeps at least one key head.  Norms, biases behind a
 * row-cut matrix, position tables, routers, the experts of a mixture and the down projections of
 * latent attention stay whole.  An attention or MLP layer ends with an all-reduce of b s h numbers
 * in forward and one in backward; so does the embedding in forward and the head in backward.
 *
 * Sequence parallelism (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2) also cuts what
 * tensor ranks repeat, norms and residual stream, by tokens: each all-reduce becomes an all-gather
 * and a reduce-scatter.  The second gather of an input, for the gradient of its weight, runs beside
 * the product before it and takes no time here.
 *
 * Context parallelism cuts the sequence: a rank takes sequence / context tokens and attends to all
 * of it, so that it gathers keys and values in forward, and in backward gathers them again and
 * scatters their gradients (Llama 3, arXiv 2407.21783, section 3.3.2).  A ring that hides behind
 * attention would take less.
 *
 * Pipeline parallelism (one forward, one backward: Narayanan et al. 2021, arXiv 2104.04473, section
 * 2.2): stages of blocks / pipeline blocks; the simulated rank is of the first stage, which holds
 * the embedding and keeps the activations of min(pipeline, micro-batches) micro-batches.  The
 * bubble, pipeline - 1 forwards and backwards of the other stages, is a wait of its own before the
 * receives.  No interleaving; the reduction of a tied embedding between first and last stage is
 * left out.
 *
 * All communication of the model is blocking, on the stream of the computation. */
#pragma once

#include "models/job/job.h"
#include "models/words/vocabulary.h"
#include "sim/tape/tape.h"

static inline gint32
zp_parallel_tensor(const ZpParallel *parallel)
{
    return MAX(1, parallel->tensor);
}

static inline gint32
zp_parallel_context(const ZpParallel *parallel)
{
    return MAX(1, parallel->context);
}

static inline gint32
zp_parallel_pipeline(const ZpParallel *parallel)
{
    return MAX(1, parallel->pipeline);
}

/* Ranks that hold the same parameters, data x context, among `gpus`; 0: the cuts do not divide
 * them. */
static inline gint32
zp_parallel_data_ranks(const ZpParallel *parallel, gint32 gpus)
{
    gint64 cut = (gint64)zp_parallel_tensor(parallel) * zp_parallel_pipeline(parallel);
    return gpus % cut == 0 ? (gint32)(gpus / cut) : 0;
}

/* Sequence parallelism is of tensor parallel ranks: alone it does nothing. */
static inline gboolean
zp_parallel_sequence(const ZpParallel *parallel)
{
    return parallel->sequence && parallel->tensor > 1;
}

/* Rows of embedding and head together: the multiple of 128 x tensor at or above; as it is without
 * tensor parallelism.  0 where that exceeds 64 bits. */
gint64 zp_parallel_padded_vocabulary(gint64 vocabulary, gint32 tensor);

/* What a rule is about; the scenario finds its key by it. */
typedef enum {
    ZP_PARALLEL_ERROR_TENSOR,
    ZP_PARALLEL_ERROR_SEQUENCE,
    ZP_PARALLEL_ERROR_CONTEXT,
    ZP_PARALLEL_ERROR_PIPELINE,
} ZpParallelError;
#define ZP_PARALLEL_ERROR (zp_parallel_error_quark())
GQuark zp_parallel_error_quark(void);

/* Do the cuts divide `gpus` and the job's sequence, and does its runtime know them? */
gboolean zp_parallel_check(const ZpJob *job, gint64 gpus, GError **error);
/* Fills world.ranks, the sequence that a rank takes, and the network's rank_stride of a checked
 * job whose training.sequence is still whole.  shard_group is the caller's. */
void zp_parallel_place(ZpJob *job, gint64 gpus);
/* Data x context parallel ranks that share a node; at least 1. */
gint32 zp_parallel_ranks_per_node(const ZpNetwork *network);

/* Leaves of a model what one tensor parallel rank holds and computes, and makes its pairs those of
 * a context parallel rank (its tokens x the whole sequence).  Activations are not touched: the
 * architecture was built with the same cuts.  `compute`: dtype the model was built with.  On errors
 * the model is unchanged. */
gboolean zp_parallel_cut(ZpModel *model, const ZpParallel *parallel, ZpDtype compute,
                         GError **error);
/* Leaves the first of `pipeline` stages; returns the layers of the last one (parameters left
 * out). */
ZpModel *zp_parallel_cut_stage(ZpModel *model, gint32 pipeline, GError **error);

/* Micro-batches whose activations the simulated stage keeps at the same time. */
gint64 zp_parallel_in_flight(const ZpJob *job);
