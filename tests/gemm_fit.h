/* The shape model of matrix products fitted to a measured table. */
#pragma once

#include <math.h>
#include <string.h>

#include "models/cost_layer.h"

typedef struct {
    const char *gpu, *table;
    double peak, multiprocessors;
} GemmTable;

static const GemmTable gemm_tables[] = {
    {"A100-PCIe-80", "simumax", 312e12, 108},
    {"H100-SXM", "xla", 989.5e12, 132},
    {"B200-SXM", "xla", 2250e12, 148},
    {"B200-SXM", "simumax", 2250e12, 148},
};

typedef struct {
    double m, n, k, seconds;
} GemmShape;

enum { GEMM_EFFICIENCY, GEMM_TILE, GEMM_DEPTH, GEMM_LATENCY, GEMM_N };

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
                       .gemm_sustained = 1.0,
                       .gemm_efficiency = p[GEMM_EFFICIENCY],
                       .gemm_tile = p[GEMM_TILE],
                       .gemm_depth = p[GEMM_DEPTH],
                       .gemm_latency_ps = zp_time_from_seconds(p[GEMM_LATENCY])};
    ZpDevice device = {.flops_per_s = table->peak, .calibration = &c};
    return zp_cost_gemm_seconds(&device, shape->m, shape->n, shape->k) / shape->seconds - 1.0;
}

static inline double
gemm_loss(const GemmTable *table, const GArray *shapes, const double p[GEMM_N])
{
    double sum = 0.0;
    for (guint i = 0; i < shapes->len; i++) {
        double off = log1p(gemm_error(table, &g_array_index(shapes, GemmShape, i), p)) / 0.05;
        sum += sqrt(1.0 + off * off) - 1.0;
    }
    return sum;
}

static inline void
gemm_run(const GemmTable *table, const GArray *shapes, double p[GEMM_N])
{
    const double start[GEMM_N] = {0.7, 0.1, 100.0, 5e-6};
    memcpy(p, start, sizeof start);
    double best = gemm_loss(table, shapes, p);
    for (double step = 0.4; step > 0.004; step /= 2.0) {
        for (int turn = 0; turn < 20; turn++) {
            double before = best;
            for (int i = 0; i < 2 * GEMM_N; i++) {
                double old = p[i / 2];
                p[i / 2] *= i % 2 == 0 ? 1.0 + step : 1.0 / (1.0 + step);
                double now = gemm_loss(table, shapes, p);
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
