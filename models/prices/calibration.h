/* What was measured on a GPU: the constants behind the prices of layers.
 *
 * One file per GPU (models/calibration, embedded; GKeyFile syntax), each with the evidence it came
 * from.  A user's own file has the same form (models/published/calibrate.h writes one). */
#pragma once

#include "models/job/job.h"
#include "models/words/grade.h"

#define ZP_CALIBRATION_MAX_SEQUENCES 12

/* Head sizes that attention was measured for. */
enum { ZP_CALIBRATION_HEAD_64, ZP_CALIBRATION_HEAD_128, ZP_CALIBRATION_N_HEADS };

struct _ZpCalibration {
    const char *gpu;  /* name in the hardware catalogue */
    const char *rule; /* what a price from these constants says of itself */
    ZpGrade grade;    /* MEASURED, unless models/prices/board.h made them for another board */
    /* A matrix product m x n x k:
     *   latency + t (1 + (1/sustained - 1) t / (t + heat)),
     *   t = 2mnk / (peak x efficiency) x (1 + tile multiprocessors / tiles) (1 + depth / k),
     * tiles = ceil(m/128) ceil(n/256): few tiles leave multiprocessors idle, a short k leaves the
     * pipeline unfilled.  `sustained` is what a warm GPU keeps of its speed (power and clocks); a
     * lone product as long as `heat` warms it half.  In a training step it is always warm: heat 0,
     * the default, divides t by `sustained`.
     *
     * Median and 90th percentile of the absolute error, shapes predicted by constants fitted
     * without them and their permutations (tests/unit/models/prices/test_cost_fit.c):
     *   A100 PCIe, SimuMax, 183 shapes   2.9 %, 10.7 %
     *   H100, XLA, 64                    2.7 %,  9.2 %
     *   B200, XLA, 61                    4.3 %, 11.3 %
     *   B200, SimuMax, 514               5.6 %, 25.5 %: XLA's constants, sustained and heat fitted
     * The last table measured 105 shapes two to four times (224 rows): the other measurements of a
     * shape predict one within 7.3 %, 23.3 % (A100: 1.8 %, 4.1 %).  What is left is the state of
     * the GPU, no function of the shape. */
    double multiprocessors;
    double gemm_efficiency, gemm_sustained, gemm_tile, gemm_depth;
    ZpTime gemm_latency_ps, gemm_heat_ps;
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
ZpCalibration *zp_calibration_copy(const ZpCalibration *calibration);
/* Multiplies the rates of attention. */
void zp_calibration_scale_attention(ZpCalibration *calibration, double factor);
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
