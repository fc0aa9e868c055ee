/* The order in which PyTorch calls DeepSpeed's hooks on a module tree.
 *
 * Forward: pre-hook, children in call order, post-hook.  Backward: a module's pre-backward hook
 * fires when the first gradient reaches its outputs, before its children's; its post-backward
 * hook when the gradients of its inputs are there, so never for a module whose inputs need none;
 * of a module called twice only the backward of the last call fires it, because the counter it
 * waits for is set again at each forward.  A checkpointed module's forward runs again right
 * before its backward.
 *
 * Source: DeepSpeed 0.19, runtime/zero/parameter_offload.py (_register_deepspeed_module). */
#pragma once

#include "models/runtimes/deepspeed/coordinator/coordinator.h"

typedef struct {
    const ZpDsTree *tree;
    ZpDsCoordinator *coordinator; /* NULL: no hooks, runs alone (stages 0 to 2) */
    ZpDsListener listener;        /* of the runs */
    gpointer data;
    gint32 *pending; /* by module: forward calls whose post-backward is due */
} ZpDsWalk;

void zp_ds_walk_init(ZpDsWalk *walk, const ZpDsTree *tree, ZpDsCoordinator *coordinator);
/* Runs go to this listener; with a coordinator its hooks' events go to its own. */
void zp_ds_walk_listen(ZpDsWalk *walk, ZpDsListener listener, gpointer data);
void zp_ds_walk_clear(ZpDsWalk *walk);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpDsWalk, zp_ds_walk_clear)

/* The root's forward, reset_step before it. */
void zp_ds_walk_forward(ZpDsWalk *walk);
/* The root's backward.  The framework's own end of a micro-batch (last gradients, then
 * zp_ds_coordinator_leftovers()) comes after it. */
void zp_ds_walk_backward(ZpDsWalk *walk);
