/* The optimizer's states and temporaries as torch.optim makes them (2.14: optim/adam.py
 * _single_tensor_adam, _multi_tensor_adam, optim/sgd.py).
 *
 * States are zeros_like() of what the rank really owns, without padding, and appear at the first
 * step.  foreach takes the square root of all variances at once; the loop keeps the denominator of
 * one parameter until that of the next one replaces it; fused kernels need nothing.
 *
 * On the host (CPUOffloadPolicy) the ranks of a node share its cores.  Together they update 4e9
 * parameters a second with a fused Adam (ZpFsdp.cpu_adam_elements_per_s: Llama-8B with ZeRO-3 and
 * CPU AdamW on H200 and B200, 2.0 s beside the FLOPs, stas00/ml-engineering); other optimizers as
 * much as they move fewer or more bytes.  Without fused kernels each pass over the tensors is one
 * of its own: 5.8 times as long, the middle of what DeepSpeedCPUAdam gains over torch's (5.1
 * to 6.5, DeepSpeed's documentation). */
#pragma once

#include "models/runtimes/fsdp/emit.h"

typedef struct {
    gint64 elements;  /* owned by this rank */
    gint32 unit;      /* or ZP_FSDP_NONE */
    gint32 parameter; /* index in the model, or ZP_FSDP_NONE */
    gint32 states[2];
} ZpFsdpSlot;

typedef struct {
    ZpFsdpSlot *slots; /* in the optimizer's order */
    gint32 n_slots;
    gboolean has_states;
    gboolean on_host; /* CPU offload: states, temporaries and work are the host's */
    int host_stream;  /* where host work is queued; on_host only */
} ZpFsdpOptimizer;

/* Without slots, with room for `most_slots`. */
void zp_fsdp_optimizer_init(ZpFsdpOptimizer *optimizer, guint most_slots);
/* `unit` and `parameter` as in ZpFsdpSlot; its states are not yet made. */
void zp_fsdp_optimizer_add(ZpFsdpOptimizer *optimizer, gint64 elements, gint32 unit,
                           gint32 parameter);
void zp_fsdp_optimizer_clear(ZpFsdpOptimizer *optimizer);
/* Allocates the states now (prologue), unless the plan's first step is a run's first. */
void zp_fsdp_optimizer_prepare(ZpFsdpEmit *emit, ZpFsdpOptimizer *optimizer);
void zp_fsdp_optimizer_step(ZpFsdpEmit *emit, ZpFsdpOptimizer *optimizer);
