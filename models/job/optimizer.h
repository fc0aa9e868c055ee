/* Optimizers as data: what state they keep and what their step costs.
 *
 * State is per trainable element: a master copy, a momentum, a variance, each or none.  A factored
 * variance (Adafactor) keeps one row and one column vector per matrix instead. */
#pragma once

#include "models/job/model.h"
#include "models/words/dtype.h"

typedef struct {
    const char *name;    /* "adamw" */
    const char *summary; /* one line for `zeropeak list optimizers` */
    gboolean master;     /* keeps a master copy when the parameter dtype is below fp32 */
    gboolean momentum, variance;
    gboolean factored; /* variance kept as one row and one column vector for >= 2-D parameters */
    ZpDtype moments;   /* default dtype of the moments */
    gboolean moments_as_parameters; /* they follow the parameters' dtype instead */
    int block_elements;             /* 8-bit states: one fp32 scale per block and state; 0: none */
    int temporary_bits; /* temporaries at the step, bits per owned element (foreach: 32) */
    int temporary_largest_copies; /* or: fp32 copies of the largest owned parameter (for-loop: 3) */
    int traffic_bits;   /* device memory moved by the update, bits per owned element, fp32 state */
    const char *source; /* evidence */
} ZpOptimizer;

const ZpOptimizer *zp_optimizer_find(const char *name); /* NULL if unknown; ignores case */
const ZpOptimizer *zp_optimizer_table(gsize *n);

/* Whether a master copy of dtype `master` exists beside parameters of dtype `parameter`: the
 * optimizer keeps one, one was asked for, and it says more than the parameters do (they are below
 * fp32, or of another width). */
gboolean zp_optimizer_keeps_master(const ZpOptimizer *optimizer, ZpDtype parameter, ZpDtype master);

/* Default dtype of the moments beside parameters of this dtype. */
ZpDtype zp_optimizer_moments(const ZpOptimizer *optimizer, ZpDtype parameter);

/* Elements of the variance of one parameter under this optimizer: all of them unless factored; a
 * matrix then keeps one number per row and one per column of its two last dimensions (Shazeer and
 * Stern 2018, arXiv 1804.04235, section 3).  0 without variance.  For one unit's shard scale by the
 * caller. */
gint64 zp_optimizer_variance_elements(const ZpOptimizer *optimizer,
                                      const ZpModelParameter *parameter);

/* Temporaries of one step for `owned_elements`, the largest parameter owning
 * `largest_owned_elements` of them. */
gint64 zp_optimizer_temporary_bytes(const ZpOptimizer *optimizer, gint64 owned_elements,
                                    gint64 largest_owned_elements);
