/* Kernels and activations of the module tree: what runs between the hooks.
 *
 * The model prices layers; hooks hang on modules.  A layer's work is shared by its modules in
 * proportion to their own parameters.  Activations of a layer are born at its first module's
 * forward and die after its first module's backward. */
#pragma once

#include "models/runtimes/deepspeed_internal.h"

typedef struct {
    double flops;         /* forward */
    double traffic_bytes; /* forward */
    gint32 layer;         /* it has this share of; share 0: of none */
    double share;
} ZpDsModuleCost;

typedef struct {
    gint32 first_module, last_module; /* in call order */
    gint32 kept, logits, recomputed;  /* buffers */
} ZpDsLayerState;

typedef struct {
    ZpDs *ds;
    const ZpDsTree *tree;
    gint64 tokens, pairs;
    ZpDsModuleCost *modules;
    ZpDsLayerState *layers;
    gint32 *starts; /* by module: the layer whose first module it is, or ZP_MODEL_NONE */
    gint32 n_layers;
} ZpDsCompute;

void zp_ds_compute_init(ZpDsCompute *compute, ZpDs *ds, const ZpDsTree *tree);
void zp_ds_compute_clear(ZpDsCompute *compute);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpDsCompute, zp_ds_compute_clear)
/* The module's own computation, on the compute stream. */
void zp_ds_compute_forward(ZpDsCompute *compute, gint32 module, gboolean recompute);
void zp_ds_compute_backward(ZpDsCompute *compute, gint32 module);
/* What dies with the backward of the module; after its gradients were handed over. */
void zp_ds_compute_backward_done(ZpDsCompute *compute, gint32 module);
