/* Published (or own) runs against the simulator, row by row.
 *
 * The table is CSV with a header; the columns that count, by name: id, subset, model_name,
 * n_params, n_layers, d_model, n_heads, n_kv_heads, d_ff, vocab, seq_len, tied_embeddings,
 * attn_impl, gpu, n_gpus, gpus_per_node, interconnect, framework, strategy, prefetch_overlap,
 * param_dtype, reduce_dtype, micro_batch, grad_accum, global_batch, activation_ckpt, cpu_offload,
 * step_ms, step_ms_derived, notes, source.  Others are ignored, missing ones are empty.
 *
 * From a row to a job:
 *  - runtime: fsdp1 or fsdp2 where the framework says FSDP and the strategy is full or hybrid
 *    sharding (units of a block, embedding and head in the root unit); else `ideal` at the stage of
 *    the strategy (zero1, zero2, ddp), the nearest there is;
 *  - a strategy "hsdp", "hybrid..." or "... in the node" shards within a node and replicates over
 *    nodes;
 *  - cuts of the model (models/parallel/parallel.h) from the strategy: "tp8 pp4 cp2", "fsdp32 x
 * tp8", "mp4"; sequence parallelism beside tensor parallelism under Megatron-LM and FSDP, not in
 *    Megatron-DeepSpeed and InternLM; expert parallelism, Ulysses, interleaved pipelines and
 *    asynchronous tensor parallelism are refused; "sharded in 4": shard groups of 4;
 *  - what the notes say of a repository's defaults ("micro batch 1 and seq 4096") where the columns
 *    are empty, a vocabulary of "about 250k" as 250,000;
 *  - Megatron: gradients in fp32, reduced after backward, unless the strategy is "overlapped";
 *  - cpu_offload "y": DeepSpeed's stage 3 with parameters and optimizer on the host;
 *  - a vocabulary that is not stated is what the parameter count leaves for the two tables;
 *  - attention is fused unless attn_impl says "eager", but on V100, for which no fused kernel is
 *    published;
 *  - the GPU by the words of its column, whatever their order: chip, form ("SXM", "PCIe", "NVL";
 *    SXM where it is not said), "96GB", "HBM2e", "500W"; a word that is not understood refuses the
 *    row.  Another limit of power scales the chip's constants (models/prices/board.h);
 *  - layers that are not stated are as many plain blocks as give n_params, or the size in the
 *    model's name ("GPT-200B"), in multiples of the pipeline's stages; heads are of about 128;
 *  - adapters ("LoRA") have the rank that the notes state ("r=16"), else 8, on attention's
 *    projections, above a frozen base; those above 4-bit weights are refused, and rows whose
 *    seq_len is that of their longest sample;
 *  - the MLP is gated where that parameter count is nearer to n_params; without one where its width
 *    is not four hidden ones or heads share key heads;
 *  - network of a node: from `interconnect` ("1600 Gb/s", "4x100 Gb/s"), else the best that nodes
 *    with this GPU are sold with;
 *  - attention "triton": first-generation kernels, half the speed of FlashAttention-2;
 *  - checkpointing recomputes a whole block under PyTorch before 2.1 (notes) and outside FSDP,
 *    later ones stop before a block's last product; "selective (every n blocks)" recomputes half of
 *    them;
 *  - measured: step_ms, else step_ms_derived.
 *
 * Memory: models/published/memory.h.
 *
 * The null model to beat, computed on the same rows: hardware FLOPs (6 N + 12 L d s) a token, times
 * 4/3 under full checkpointing, over the ranks that share a replica, divided by the median rate of
 * the rows with the same GPU family and checkpointing in the subset time_val. */
#pragma once

#include "models/prices/calibration.h"
#include "models/published/memory.h"

typedef struct {
    char *id, *subset, *gpu, *family, *model; /* family: the id before its number, the source */
    char *key;                                /* model, GPU, sequence, checkpointing */
    char *strategy;
    gint64 ranks, micro_batch, accumulation;
    gint64 cut; /* ranks that share a replica: tensor x context x pipeline */
    int line;
    double measured_ms;
    ZpGrade grade;  /* of the constants that price its layers; and is it the ideal runtime that */
    gboolean ideal; /* stands for its framework: known once simulated */
    double simulated_ms; /* 0: not simulated, see reason */
    double error;        /* simulated / measured - 1 */
    double null_error;   /* the null model's; NAN where it does not apply */
    double exposed;      /* share of the step: communication without computation */
    const char *rule;    /* what most of the step went to */
    char *reason;        /* why a row was not simulated, or is known to be wrong; or NULL */
    GArray *memory;      /* ZpValidateMemory: what it states of memory; maybe none */
} ZpValidateRow;

typedef struct {
    GPtrArray *rows; /* ZpValidateRow */
} ZpValidation;

typedef struct {
    int n;
    double mean, median, p90, max; /* of absolute errors */
    double bias;                   /* mean of signed errors */
} ZpValidateFigures;

/* `own`: a user's constants, or NULL.  `subsets`: which to simulate, separated by blanks, or NULL
 * for all.  Fails only where the text is no table or none of its rows is asked for. */
ZpValidation *zp_validate_run(const char *csv, const ZpCalibration *own, const char *subsets,
                              GError **error);
void zp_validation_free(ZpValidation *validation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpValidation, zp_validation_free)

/* Of the simulated rows of a subset, GPU (as the table writes it) and family; NULL: any. */
ZpValidateFigures zp_validate_figures(const ZpValidation *validation, const char *subset,
                                      const char *gpu, const char *family, gboolean null_model);
/* Errors of ratios: pairs of rows with the same model, GPU, sequence and checkpointing that differ
 * in ranks, micro-batch or strategy; error = simulated ratio / measured ratio - 1. */
ZpValidateFigures zp_validate_ratios(const ZpValidation *validation, const char *subset,
                                     gboolean null_model);

/* The same of a memory figure: simulated / measured - 1; verdicts (ZP_VALIDATE_FITS): 0 where both
 * agree, else 1. */
ZpValidateFigures zp_validate_memory_figures(const ZpValidation *validation, const char *subset,
                                             ZpValidateFigure figure);

/* For people: one line a row; figures by subset, GPU and family beside the null model's. */
char *zp_validate_table(const ZpValidation *validation);
char *zp_validate_summary(const ZpValidation *validation);
/* A table in Markdown: groups of two rows and more by source, GPU and figure, worst first. */
char *zp_validate_worst(const ZpValidation *validation);
