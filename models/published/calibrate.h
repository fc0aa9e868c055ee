/* From a table of one's own runs to one's own constants.
 *
 * Fitted are at most two constants, those no lone benchmark can give: what a step sustains of a
 * lone product's speed (`gemm_sustained`), and what computation loses to communication
 * (`overlap_loss`). All others stay those of the GPU the fit starts from.  The fit minimises a soft
 * absolute logarithm of simulated / measured over the rows of that GPU, by turns of golden-section
 * searches.  With fewer than three rows, or rows that all expose alike, only the first is fitted.
 * The error band is honest: each row is predicted by constants fitted without it; of more than 20
 * rows without it and every tenth beside it.  One row alone has no such band (NAN). */
#pragma once

#include "models/prices/calibration.h"

typedef struct {
    ZpCalibration *calibration;
    int n_rows;
    gboolean fitted_overlap;
    double before, after; /* mean absolute error with the old and new constants */
    double left_out, left_out_p90, left_out_max; /* of rows predicted without themselves; NAN */
    int n_unused;   /* rows of this GPU, or of none that is known, that cannot be simulated */
    char *unused;   /* "run 2 (line 3): the GPU is not in the catalogue", one a line; or NULL */
    char *evidence; /* what was fitted to which rows, for the file */
} ZpCalibrate;

/* `csv` as in models/published/validate.h; rows of other GPUs than `gpu` (a name of the hardware
 * catalogue) and of other subsets than `subset` (NULL: any) are ignored.  Fails where nothing was
 * measured on the GPU to start from, and where no row can be simulated, saying why not. */
ZpCalibrate *zp_calibrate_run(const char *csv, const char *gpu, const char *subset, GError **error);
void zp_calibrate_free(ZpCalibrate *calibrate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpCalibrate, zp_calibrate_free)
/* The hardware file: constants with the evidence in front. */
char *zp_calibrate_file(const ZpCalibrate *calibrate);
