/* What a layer takes on a GPU that was measured: matrix products by shape, attention by sequence
 * and head size, the rest by bytes; never less than the host needs to launch its kernels. */
#pragma once

#include "models/prices/calibration.h"
#include "models/prices/cost.h"

/* Seconds of a product m x n x k on this device; see ZpCalibration. */
double zp_cost_gemm_seconds(const ZpDevice *device, double m, double n, double k);

/* Duration of one pass (ZP_KIND_FORWARD, _BACKWARD or _RECOMPUTE) of a layer of job->model over
 * one micro-batch.  job->device.calibration must be set.
 *
 * Products are those of a dense transformer of the model's dimensions, scaled to the layer's FLOPs
 * per token (experts); a model without dimensions is priced as one product.  Backward is two
 * products each, for inputs and for weights that are trained (zp_model_frozen_share()). Elementwise
 * bytes are the layer's traffic without what the products and the attention kernel themselves read
 * and write.  Recomputation repeats what the checkpointing policy dropped, of full checkpointing
 * all of it, but for the last product of a block where the program stops early. */
typedef struct {
    double products, attention, elementwise; /* seconds on the GPU, one after the other */
    double host;                             /* the host's, at the same time */
} ZpCostParts;
ZpCostParts zp_cost_layer_parts(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass);
ZpTime zp_cost_layer(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass);
/* Which rule prices the layers of a job: its calibration's, else ZP_COST_ROOFLINE. */
const char *zp_cost_layer_rule(const ZpJob *job);

/* How communication and computation slow each other down in this tape, as a player wants it
 * (sim/players/play.h); nothing without a calibration.  What counts is how hard the collectives
 * lean on the GPU: the mean over the tape of their speed against a ring over the GPU's own links.
 */
void zp_cost_interference(const ZpJob *job, const ZpTape *tape,
                          gint32 ppm[ZP_TAPE_N_CATEGORIES][ZP_TAPE_N_CATEGORIES]);
