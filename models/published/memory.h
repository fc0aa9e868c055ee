/* Published memory figures against the simulator, row by row.
 *
 * The table has the columns of tests/reference/runs_memory.csv; those that count: id, source,
 * subset, model_name, n_params, n_layers, d_model, n_heads, n_kv_heads, d_ff, vocab, seq_len,
 * tied_embeddings, attn_impl, gpu, gpu_mem_gb, n_gpus, gpus_per_node, framework, strategy,
 * prefetch_overlap, param_dtype, reduce_dtype, master_dtype, optimizer, micro_batch, grad_accum,
 * activation_ckpt, cpu_offload, compile, peak_alloc_gib, peak_reserved_gib, oom, notes.
 *
 * From a row to a job, for all rows alike:
 *  - runtime: fsdp1, fsdp2, ddp and deepspeed by name, a block a unit and all else in the root
 *    unit; Megatron-LM, llm.c, pipelines and
 *    single-device programs are `ideal` at the stage of the strategy;
 *  - dtypes: of the columns; parameters are stored in fp32 under FSDP, in param_dtype elsewhere;
 *  - Lightning builds FSDP with use_orig_params and zeroes gradients after forward, in its closure;
 *  - optimizer: without temporaries, unless the column says foreach (so HF-023, whose form is not
 *    stated, is judged at its least: with the 16 GiB of foreach it would not fit);
 *  - attention: fused kernels, unless the column says eager or the source is from before them
 *    (FlashAttention, arXiv 2205.14135, is of 2022);
 *  - activations: models/activation/activation.h for the row's program, as
 * validate_memory_activations.c says;
 *  - the storages of the head and its loss are replayed one by one, since they are the largest;
 *  - what a ladder of settings added once stays;
 *  - a PyTorch program on one device without master weights is `ddp` without its reducer: gradients
 *    live from backward to zero_grad(set_to_none=True);
 *  - the MLP is gated where that parameter count is nearer to n_params; "32 enc + 32 dec" is
 *    PyTorch's nn.Transformer;
 *  - notes "LoRA r=R on q,k,v,o": the model is frozen and has adapters beside those projections;
 *  - notes "step 1": the first step of a run; otherwise the second is measured;
 *  - expandable segments where the notes say so and in torchtitan's launcher, not yet in its
 *    PR #165 (April 2024);
 *  - what a row that ran out of memory does not say is the least it can be: micro-batch 1, full
 *    checkpointing, sequence of the model in the source's other rows (8192);
 *  - memory of the device: what the driver leaves to PyTorch (models/catalog/hardware.csv), and the
 *    context and communicators beside it;
 *  - measured: the MiB that the notes quote ("printed 39596.3 MB"), else the column.
 *  - cuts of the model as in models/published/validate.h; Megatron-LM adds gradients up in fp32.
 * Nothing is fitted to a row. */
#pragma once

#include "models/machine/hardware.h"
#include "models/published/csv.h"
#include "models/step/step.h"

/* What a column of the table states. */
typedef enum {
    ZP_VALIDATE_ALLOCATED,
    ZP_VALIDATE_ACTIVE,
    ZP_VALIDATE_RESERVED,
    ZP_VALIDATE_FITS, /* it states nothing, or that the run went out of memory */
    ZP_N_VALIDATE_FIGURES,
} ZpValidateFigure;

typedef struct {
    const char *id, *subset, *name; /* of the table */
    ZpValidateFigure figure;
    gint64 ranks;
    gint64 elements;                    /* of the model; of a rank's part of it where it is cut */
    double measured_mib, simulated_mib; /* 0: does not apply */
    gboolean measured_fits, simulated_fits;
    const char *cause; /* what the simulator is known to leave out here; "" : nothing */
    char *reason;      /* not simulated; or NULL */
} ZpValidateMemory;

/* Appends one or two results of a row (allocated and reserved) to an array of
 * zp_validate_memory_array(). */
void zp_validate_memory_row(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware,
                            GArray *results);
GArray *zp_validate_memory_array(void);
/* All rows. */
GArray *zp_validate_memory_run(const ZpValidateCsv *csv);
const ZpValidateMemory *zp_validate_memory_find(const GArray *results, const char *id,
                                                ZpValidateFigure figure);
/* Of a simulated result: simulated / measured - 1; of a verdict 0 where both agree, else 1. */
double zp_validate_memory_error(const ZpValidateMemory *memory);
/* "allocated" and the like. */
const char *zp_validate_figure_name(ZpValidateFigure figure);
