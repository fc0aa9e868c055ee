/* Kernels and activations of the module tree: what runs between the hooks.
 *
 * The model prices layers; hooks hang on modules.  A layer's work is shared by its modules in
 * proportion to their own parameters.  Activations of a layer are born at its first module's
 * forward and die after its first module's backward.  What a pass needs beside them lives while
 * its modules run: from the first one's pre-forward hook to the last one's post-forward hook, in
 * backward from the last one's pre-backward hook to the first one's kernels.
 *
 * DeepSpeed checkpoints whole blocks, by calling their modules again.  What a selective policy
 * drops comes back without hooks, layer by layer, before the block's backward. */
#pragma once

#include "models/runtimes/deepspeed/emit/context.h"
#include "models/runtimes/shared/layer_bytes.h"

typedef struct {
    double flops;         /* forward */
    double traffic_bytes; /* forward */
    gint32 layer;         /* it has this share of; share 0: of none */
    double share;
} ZpDsModuleCost;

typedef struct {
    gint32 first_module, last_module; /* in call order */
    gint32 kept, recomputed, beside;  /* buffers */
} ZpDsLayerState;

typedef struct {
    ZpDs *ds;
    const ZpDsTree *tree;
    gint64 tokens, pairs;
    ZpLayerBytesTable bytes; /* where there are layers */
    ZpDsModuleCost *modules;
    ZpDsLayerState *layers;
    gint32 *starts; /* by module: the layer whose first module it is, or ZP_MODEL_NONE */
    gint32 *ends;   /* by module: the layer whose last module it is, or ZP_MODEL_NONE */
    gint32 n_layers;
    gint32 brought_back; /* block that the selective policy recomputed last, or ZP_MODEL_NONE */
} ZpDsCompute;

void zp_ds_compute_init(ZpDsCompute *compute, ZpDs *ds, const ZpDsTree *tree);
void zp_ds_compute_clear(ZpDsCompute *compute);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpDsCompute, zp_ds_compute_clear)
/* The module's own computation, on the compute stream. */
void zp_ds_compute_forward(ZpDsCompute *compute, gint32 module, gboolean recompute);
void zp_ds_compute_backward(ZpDsCompute *compute, gint32 module);
/* What dies with the backward of the module; after its gradients were handed over. */
void zp_ds_compute_backward_done(ZpDsCompute *compute, gint32 module);
