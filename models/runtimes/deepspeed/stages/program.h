/* A job being compiled for DeepSpeed: what the stages share.
 *
 * The walk over the module tree runs kernels and makes gradients; a stage says what happens when
 * a gradient is complete, at the end of a micro-batch, at the gradient accumulation boundary and
 * in the optimizer step. */
#pragma once

#include "models/runtimes/deepspeed/coordinator/walk.h"
#include "models/runtimes/deepspeed/emit/compute.h"
#include "models/runtimes/deepspeed/emit/gathers.h"

typedef struct _ZpDsProgram ZpDsProgram;

typedef struct {
    /* Allocates what lives before the first step; cold: with the collectives of initialization. */
    void (*begin)(ZpDsProgram *program);
    /* The gradient of a trainable parameter is complete (post-accumulate hook). */
    void (*gradient)(ZpDsProgram *program, gint32 id);
    /* After the backward of each micro-batch, the boundary's reduction included. */
    void (*micro_batch_end)(ZpDsProgram *program);
    void (*step)(ZpDsProgram *program);
    void (*end)(ZpDsProgram *program); /* frees the stage's own state, not tape buffers */
} ZpDsStage;

extern const ZpDsStage zp_ds_stage0;
extern const ZpDsStage zp_ds_stage12;
extern const ZpDsStage zp_ds_stage_bf16; /* BF16_Optimizer */
extern const ZpDsStage zp_ds_stage3;

struct _ZpDsProgram {
    ZpDs ds;
    const ZpDsStage *stage;
    gpointer state; /* of the stage */
    ZpDsTree *tree;
    ZpDsCompute compute;
    ZpDsWalk walk;
    gint32 *unit_of;  /* by module: tape unit, or ZP_TAPE_NONE */
    gint32 *group_of; /* by ds_id: torch parameter group */
    gint32 n_groups;
    gint32 rank; /* whose tape */
    /* gradients */
    gint32 *gradients;   /* by ds_id: buffer of param.grad, or ZP_TAPE_NONE */
    gint32 *pending;     /* by ds_id: uses in this forward whose backward is due */
    gint64 step, micro;  /* step counts from the first ever */
    gboolean boundary;   /* last micro-batch of a step */
    gboolean first_step; /* no optimizer step was taken yet */
};

void zp_ds_program_tag(ZpDsProgram *program, ZpPhase phase, gint32 module);
/* Trainable parameters' ids of one torch group, ascending; free the array. */
GArray *zp_ds_program_group(const ZpDsProgram *program, gint32 group);
/* "broadcast" of every parameter from rank 0 (engine._broadcast_model). */
void zp_ds_program_broadcast_model(ZpDsProgram *program);
static inline gint64
zp_ds_program_elements(const ZpDsProgram *program, gint32 id)
{
    return zp_ds_tree_parameter(program->tree, id)->elements;
}
/* Moments appear at the first optimizer step: two tensors of `elements`, where the master is. */
void zp_ds_program_make_moments(ZpDsProgram *program, gint64 elements, gboolean on_host);
/* The optimizer's kernel on the device, over `elements` of which the largest tensor has `largest`.
 * torch.optim.AdamW holds two temporaries of a tensor at once while it makes its denominator
 * (torch/optim/adam.py, _single_tensor_adam: the root of the variance, and its quotient by the bias
 * correction); FusedAdam has none. */
void zp_ds_program_optimize(ZpDsProgram *program, gint64 elements, gint64 largest);
