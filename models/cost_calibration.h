/* What was measured on a GPU: the constants behind the prices of layers.
 *
 * One file per GPU (models/calibration, embedded; GKeyFile syntax), each with the evidence it came
 * from.  A user's own file has the same form (models/calibrate.h writes one). */
#pragma once

#include "models/job.h"

#define ZP_CALIBRATION_MAX_SEQUENCES 12

/* Head sizes that attention was measured for. */
enum { ZP_CALIBRATION_HEAD_64, ZP_CALIBRATION_HEAD_128, ZP_CALIBRATION_N_HEADS };

struct _ZpCalibration {
    const char *gpu;  /* name in the hardware catalogue */
    const char *rule; /* what a price from these constants says of itself */
    /* A matrix product m x n x k:
     *   latency + 2mnk / (peak x efficiency x sustained)
     *             x (1 + tile multiprocessors / tiles) (1 + depth / k),
     * tiles = ceil(m/128) ceil(n/256): few tiles leave multiprocessors idle, a short k leaves the
     * pipeline unfilled.  `sustained` is what a training step keeps of what a lone product gets
     * (power and clocks). */
    double multiprocessors;
    double gemm_efficiency, gemm_sustained, gemm_tile, gemm_depth;
    ZpTime gemm_latency_ps;
    double memory_efficiency; /* of elementwise kernels, share of the nominal bandwidth */
    /* FLOP/s of a fused attention kernel (forward and backward together, backward counted 2.5 x
     * forward), by sequence; causal FLOPs are half. */
    int n_sequences;
    double sequences[ZP_CALIBRATION_MAX_SEQUENCES];
    double attention[2][ZP_CALIBRATION_N_HEADS][ZP_CALIBRATION_MAX_SEQUENCES]; /* [causal] */
    /* While a collective runs at the speed of the link inside a node, computation loses
     * `overlap_loss` of the time the collective would take alone, and the collective runs at
     * `overlap_rate`. */
    double overlap_loss, overlap_rate;
    /* The program that runs on the GPU, not the GPU: */
    double attention_share;      /* speed of its attention kernel over the one above */
    double elementwise_backward; /* bytes of backward over those of forward */
    double loss_bytes_per_logit; /* cross-entropy, forward and backward */
    double recompute_share;      /* of the checkpointed blocks that are recomputed */
    gboolean
        recompute_stops_early; /* not the last product of a block, which backward never needs */
    ZpTime host_kernel_ps;     /* the host's time to launch a kernel */
};

/* Built-in constants for a GPU of the catalogue; NULL where none were made. */
const ZpCalibration *zp_calibration_find(const char *gpu);
/* Reads a file's text.  Errors name the key and what is legal. */
ZpCalibration *zp_calibration_parse(const char *text, GError **error);
/* Where the constants were read, for `rule`: "constants of ORIGIN". */
void zp_calibration_set_origin(ZpCalibration *calibration, const char *origin);
void zp_calibration_free(ZpCalibration *calibration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpCalibration, zp_calibration_free)
/* The text that zp_calibration_parse() reads back; `evidence` (may be NULL) is put in front as
 * comments. */
char *zp_calibration_print(const ZpCalibration *calibration, const char *evidence);

/* FLOP/s of attention: between sequences by their logarithm, between head sizes linearly. */
double zp_calibration_attention(const ZpCalibration *calibration, gboolean causal, double sequence,
                                double head_size);

typedef enum {
    ZP_CALIBRATION_ERROR_SYNTAX,
    ZP_CALIBRATION_ERROR_KEY,
    ZP_CALIBRATION_ERROR_RANGE,
} ZpCalibrationError;
#define ZP_CALIBRATION_ERROR (zp_calibration_error_quark())
GQuark zp_calibration_error_quark(void);
