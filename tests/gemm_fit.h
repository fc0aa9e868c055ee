/* The shape model of matrix products fitted to measured tables, and left out of them. */
#pragma once

#include <math.h>
#include <string.h>

#include "models/prices/layer.h"

typedef struct {
    const char *gpu, *table;
    double peak, multiprocessors;
    const char *shape_of; /* a GPU whose built-in constants of the shape hold; NULL: fitted */
} GemmTable;

/* XLA's and A100's figures show no throttling.  SimuMax ran B200 at 1430 TFLOP/s or at 1080. */
static const GemmTable gemm_tables[] = {
    {"A100-PCIe-80", "simumax", 312e12, 108, NULL},
    {"H100-SXM", "xla", 989.5e12, 132, NULL},
    {"B200-SXM", "xla", 2250e12, 148, NULL},
    {"B200-SXM", "simumax", 2250e12, 148, "B200-SXM-180"},
};

typedef struct {
    double m, n, k, seconds;
} GemmShape;

enum {
    GEMM_EFFICIENCY,
    GEMM_TILE,
    GEMM_DEPTH,
    GEMM_LATENCY,
    GEMM_N_SHAPE,
    GEMM_SUSTAINED = GEMM_N_SHAPE,
    GEMM_HEAT,
    GEMM_N
};

#define GEMM_FOLDS 10

static inline GArray *
gemm_read(const char *text, const GemmTable *table)
{
    GArray *shapes = g_array_new(FALSE, FALSE, sizeof(GemmShape));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, ",", -1);
        if (g_strv_length(fields) != 6 || strcmp(fields[0], table->gpu) != 0 ||
            strcmp(fields[1], table->table) != 0)
            continue;
        GemmShape shape = {g_ascii_strtod(fields[2], NULL), g_ascii_strtod(fields[3], NULL),
                           g_ascii_strtod(fields[4], NULL), 0.0};
        shape.seconds =
            2.0 * shape.m * shape.n * shape.k / (g_ascii_strtod(fields[5], NULL) * 1e12);
        g_array_append_val(shapes, shape);
    }
    return shapes;
}

/* Signed error of one shape. */
static inline double
gemm_error(const GemmTable *table, const GemmShape *shape, const double p[GEMM_N])
{
    ZpCalibration c = {.multiprocessors = table->multiprocessors,
                       .gemm_sustained = p[GEMM_SUSTAINED],
                       .gemm_heat_ps = zp_time_from_seconds(p[GEMM_HEAT]),
                       .gemm_efficiency = p[GEMM_EFFICIENCY],
                       .gemm_tile = p[GEMM_TILE],
                       .gemm_depth = p[GEMM_DEPTH],
                       .gemm_latency_ps = zp_time_from_seconds(p[GEMM_LATENCY])};
    ZpDevice device = {.flops_per_s = table->peak, .calibration = &c};
    return zp_cost_gemm_seconds(&device, shape->m, shape->n, shape->k) / shape->seconds - 1.0;
}

/* Permutations of a shape are in one fold. */
static inline guint
gemm_fold(const GemmShape *shape)
{
    return (guint)fmod(fmod(shape->m * shape->n * shape->k, 999983.0), GEMM_FOLDS);
}

static inline double
gemm_loss(const GemmTable *table, const GArray *shapes, guint left_out, const double p[GEMM_N])
{
    double sum = 0.0;
    for (guint i = 0; i < shapes->len; i++) {
        const GemmShape *shape = &g_array_index(shapes, GemmShape, i);
        if (gemm_fold(shape) == left_out)
            continue;
        double off = log1p(gemm_error(table, shape, p)) / 0.05;
        sum += sqrt(1.0 + off * off) - 1.0;
    }
    return sum;
}

/* Where the constants of the shape are another source's, sustained and heat are fitted; else they
 * are, and the GPU is cold.  Returns the first constant that is fitted. */
static inline int
gemm_start(const GemmTable *table, double p[GEMM_N])
{
    const double start[GEMM_N] = {0.7, 0.1, 100.0, 5e-6, 1.0, 0.0};
    memcpy(p, start, sizeof start);
    if (table->shape_of == NULL)
        return 0;
    const ZpCalibration *c = zp_calibration_find(table->shape_of);
    p[GEMM_EFFICIENCY] = c->gemm_efficiency;
    p[GEMM_TILE] = c->gemm_tile;
    p[GEMM_DEPTH] = c->gemm_depth;
    p[GEMM_LATENCY] = zp_time_to_seconds(c->gemm_latency_ps);
    p[GEMM_SUSTAINED] = 0.7;
    p[GEMM_HEAT] = 100e-6;
    return GEMM_N_SHAPE;
}

/* `left_out` GEMM_FOLDS: fitted to all. */
static inline void
gemm_run(const GemmTable *table, const GArray *shapes, guint left_out, double p[GEMM_N])
{
    int first = gemm_start(table, p), last = first == 0 ? GEMM_N_SHAPE : GEMM_N;
    double best = gemm_loss(table, shapes, left_out, p);
    for (double step = 0.4; step > 0.004; step /= 2.0) {
        for (int turn = 0; turn < 20; turn++) {
            double before = best;
            for (int i = 2 * first; i < 2 * last; i++) {
                double old = p[i / 2];
                p[i / 2] *= i % 2 == 0 ? 1.0 + step : 1.0 / (1.0 + step);
                double now = gemm_loss(table, shapes, left_out, p);
                if (now < best)
                    best = now;
                else
                    p[i / 2] = old;
            }
            if (best >= before)
                break;
        }
    }
}

/* Absolute errors of all shapes under `p`. */
static inline GArray *
gemm_errors(const GemmTable *table, const GArray *shapes, const double p[GEMM_N])
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < shapes->len; i++) {
        double error = fabs(gemm_error(table, &g_array_index(shapes, GemmShape, i), p));
        g_array_append_val(errors, error);
    }
    return errors;
}

/* Absolute errors of all shapes, each under constants fitted without its fold. */
static inline GArray *
gemm_left_out(const GemmTable *table, const GArray *shapes)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint fold = 0; fold < GEMM_FOLDS; fold++) {
        double p[GEMM_N];
        gemm_run(table, shapes, fold, p);
        for (guint i = 0; i < shapes->len; i++) {
            const GemmShape *shape = &g_array_index(shapes, GemmShape, i);
            double error = fabs(gemm_error(table, shape, p));
            if (gemm_fold(shape) == fold)
                g_array_append_val(errors, error);
        }
    }
    return errors;
}

/* The table against itself: a shape measured several times (other layouts, other accumulation)
 * predicted by the geometric mean of its other measurements.  No function of the shape can be
 * expected to do better. */
static inline GArray *
gemm_repetitions(const GArray *shapes)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < shapes->len; i++) {
        const GemmShape *a = &g_array_index(shapes, GemmShape, i);
        double sum = 0.0;
        int others = 0;
        for (guint j = 0; j < shapes->len; j++) {
            const GemmShape *b = &g_array_index(shapes, GemmShape, j);
            if (j == i || a->m != b->m || a->n != b->n || a->k != b->k)
                continue;
            sum += log(b->seconds);
            others++;
        }
        double error = others > 0 ? fabs(exp(sum / others) / a->seconds - 1.0) : 0.0;
        if (others > 0)
            g_array_append_val(errors, error);
    }
    return errors;
}
