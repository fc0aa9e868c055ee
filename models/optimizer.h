/* Optimizers as data: what state they keep and what their step costs.
 *
 * A state tensor is described by elements per parameter element (num/den; Adafactor's factored
 * variance is near 0 and counted per row and column), its dtype, and who owns it. */
#pragma once

#include "models/dtype.h"
#include "models/model.h"

typedef struct {
    const char *name;    /* "adamw" */
    const char *summary; /* one line for `zeropeak list optimizers` */
    gboolean master;     /* keeps a master copy when the parameter dtype is below fp32 */
    gboolean momentum, variance;
    gboolean factored;  /* variance kept as one row and one column vector for >= 2-D parameters */
    ZpDtype moments;    /* default dtype of the moments */
    int block_elements; /* 8-bit states: one fp32 scale per block and state; 0: none */
    int temporary_bits; /* temporaries at the step, bits per owned element (foreach: 32) */
    int traffic_bits;   /* device memory moved by the update, bits per owned element, fp32 state */
    const char *source; /* evidence */
} ZpOptimizer;

const ZpOptimizer *zp_optimizer_find(const char *name); /* NULL if unknown */
const ZpOptimizer *zp_optimizer_table(gsize *n);

/* Elements of the variance for `model` under this optimizer (== trainable elements unless
 * factored); for one unit's shard scale by the caller. */
gint64 zp_optimizer_variance_elements(const ZpOptimizer *optimizer,
                                      const ZpModelParameter *parameter);
