/* What the programs of blocks share.  Private to models/activation*.c. */
#pragma once

#include "models/activation/activation.h"
#include "models/activation/operators/ops.h"

typedef struct {
    ZpTrace *trace;
    int compute_bytes;  /* of products */
    int residual_bytes; /* of the residual, the weights and the tables */
    gboolean autocast;
    gboolean compiled; /* chains of elementwise operators are one kernel */
    gboolean frozen;   /* parameters get no gradient, but those of adapters */
    gint64 adapter_rank;
    guint64 adapted;
    gboolean adapter_dropout;
    gint64 sequence_ways; /* ranks that share the tokens outside of split products; 1: none */
} ZpProgram;

/* How tensor parallelism cuts a product: not, its output, or its input (then summed over ranks). */
typedef enum { ZP_LINEAR_WHOLE, ZP_LINEAR_COLUMN, ZP_LINEAR_ROW } ZpLinearCut;

ZpProgram zp_program(ZpTrace *trace, ZpBlockRegime regime);
void zp_program_freeze(ZpProgram *program, const ZpActivationBlock *block); /* as it is adapted */
ZpTensor *zp_program_parameter(const ZpProgram *program, int rank, const gint64 *sizes);
ZpTensor *zp_program_constant(const ZpProgram *program, int element_bytes, int rank,
                              const gint64 *sizes);
/* F.linear with a new weight [out, in] and a bias if asked; autocast casts all three. */
ZpTensor *zp_program_linear(const ZpProgram *program, ZpLinearCut cut, ZpTensor *a, gint64 out,
                            gboolean bias);
/* The dtype of products, where autocast would cast. */
ZpTensor *zp_program_cast(const ZpProgram *program, ZpTensor *a);
ZpTensor *zp_program_cast_weight(const ZpProgram *program, ZpTensor *weight);
ZpTensor *zp_program_cast32(const ZpProgram *program, ZpTensor *a);
ZpTensor *zp_program_norm(const ZpProgram *program, ZpBlockNorm norm, ZpTensor *a, gint64 width);
ZpTensor *zp_program_layer_norm(const ZpProgram *program, gboolean cpu, ZpTensor *a, gint64 width);
ZpTensor *zp_program_dropout(const ZpProgram *program, gboolean on, gboolean cpu, ZpTensor *a);
ZpTensor *zp_program_activation(const ZpProgram *program, ZpBlockActivation kind, ZpTensor *a);
/* The norm of T5: the fp32 copy serves the variance alone. */
ZpTensor *zp_program_t5_norm(const ZpProgram *program, ZpTensor *a, gint64 width);
/* From the normed input to the output projection. */
ZpTensor *zp_program_attention(const ZpProgram *program, const ZpActivationBlock *block,
                               ZpTensor *a);
/* source NULL: self-attention. */
ZpTensor *zp_program_t5_attention(const ZpProgram *program, const ZpActivationBlock *block,
                                  ZpTensor *a, ZpTensor *source);
ZpTensor *zp_program_experts(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a);
ZpTensor *zp_program_block(ZpTrace *trace, ZpTensor *input, gconstpointer block);
/* The norm that ends a stack of such blocks. */
ZpTensor *zp_program_last_norm(ZpTrace *trace, ZpTensor *input, gconstpointer block);
int zp_program_parts(ZpBlockFamily family); /* ZpTrace.part runs from 0 to this */

/* --- measuring (activation.c) --- */
ZpTensor *zp_program_entry(ZpTrace *trace, ZpBlockRegime regime, gint64 batch, gint64 tokens,
                           gint64 hidden, gboolean needs_gradient);
/* What the forward left; drops the caller's reference to the input. */
void zp_program_note_forward(ZpActivationBytes *bytes, ZpTrace *trace, ZpTensor *input);
/* Runs the backward; takes the references to the root and to its gradient. */
void zp_program_note_backward(ZpActivationBytes *bytes, ZpTrace *trace, ZpTraceNode *root,
                              ZpTensor *grad);
/* As zp_activation_measure_block() and _loss(); every storage's life goes into `events`, if not
 * NULL, from the input, that the caller made, to the end of the backward.  The program is that of
 * blocks or of their last norm. */
ZpActivationBytes zp_program_measure_block(const ZpActivationBlock *block, ZpTraceProgram program,
                                           GArray *events);
ZpActivationBytes zp_program_measure_loss(const ZpActivationLoss *loss, GArray *events);
