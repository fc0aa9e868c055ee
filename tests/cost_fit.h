/* Leave-one-table-out: the platform-free parameters of collectives fitted to all measured tables
 * but one, and the errors of that one under them. */
#pragma once

#include <math.h>
#include <string.h>

#include "models/prices/cost.h"
#include "models/prices/fabric.h"
#include "models/prices/tables.h"

enum {
    FIT_RING,
    FIT_COPY,
    FIT_NVLS,
    FIT_NICS,
    FIT_TAU_NEAR,
    FIT_TAU_FAR, /* of InfiniBand; EFA and GCP follow */
    FIT_FILL = FIT_TAU_FAR + ZP_N_FABRICS,
    FIT_ALPHA,
    FIT_LAUNCH,
    FIT_N
};

/* Start: round numbers of the right size, not the library's. */
static const double fit_start[FIT_N] = {0.7,    0.1,    1.0,    1.0,   20e-6, 200e-6,
                                        200e-6, 200e-6, 200e-6, 20e-6, 20e-6};

typedef struct {
    const ZpCostTable *table;
    double link, nics;
    int generation;
    gboolean launched; /* by torch, or by one process for all GPUs */
} FitTable;

static inline double
fit_nics(const char *network)
{
    const struct {
        const char *name;
        double bytes_per_s;
    } fabrics[] = {{"NDR400 x8", 400e9},
                   {"8x400", 400e9},
                   {"32x100", 400e9},
                   {"8x200", 200e9},
                   {"4x100", 50e9}};
    for (gsize i = 0; i < G_N_ELEMENTS(fabrics); i++)
        if (strstr(network, fabrics[i].name) != NULL)
            return fabrics[i].bytes_per_s;
    return 0.0;
}

/* Switched GPUs, up to 16 nodes; not V100's mesh, TCPX, an old stack, boards of 72, or tables of a
 * few bytes. */
static inline GArray *
fit_tables(void)
{
    GArray *chosen = g_array_new(FALSE, FALSE, sizeof(FitTable));
    const GArray *all = zp_cost_tables_all();
    for (guint t = 0; t < all->len; t++) {
        const ZpCostTable *table = &g_array_index(all, ZpCostTable, t);
        FitTable fit = {.table = table, .generation = 8, .link = 300e9};
        if (g_str_has_prefix(table->gpu, "H100") || g_str_has_prefix(table->gpu, "H200"))
            fit.generation = 9, fit.link = 450e9;
        else if (g_str_has_prefix(table->gpu, "B200"))
            fit.generation = 10, fit.link = 900e9;
        else if (!g_str_has_prefix(table->gpu, "A100"))
            continue;
        fit.nics = table->nodes > 1 ? fit_nics(table->network) : 0.0;
        if (table->kind == ZP_KIND_ALL_TO_ALL || strstr(table->network, "A3 High") != NULL ||
            strstr(table->network, "2023 stack") != NULL || /* superseded by a later one */
            (table->nodes > 1 && fit.nics == 0.0))
            continue;
        fit.launched = table->nodes > 1 ? strstr(table->source, "all_reduce_bench") != NULL
                                        : strstr(table->source, "p5)") == NULL &&
                                              strstr(table->source, "Vultr") == NULL;
        g_array_append_val(chosen, fit);
    }
    return chosen;
}

/* The latency of a fabric is known, not fitted: most were seen in one table.  The point it was read
 * off, an all-reduce of a few bytes, is no prediction and does not count. */
static inline gboolean
fit_counts(const FitTable *fit, guint point)
{
    return fit->table->nodes == 1 || fit->table->kind != ZP_KIND_ALL_REDUCE || point > 0 ||
           g_array_index(fit->table->points, ZpCostPoint, point).bytes >= 1024;
}

/* The library's share of the link for a reduction in Hopper's switch. */
static inline double
fit_nvls(void)
{
    ZpNetwork network = {.gpus_per_node = 8};
    zp_cost_network_defaults(&network, 1e9, 0.0, 9);
    return network.nvls_bytes_per_s / 1e9;
}

static inline double
fit_predict(const FitTable *fit, const double p[FIT_N], gint64 bytes)
{
    ZpNetwork network = {.gpus_per_node = fit->table->nodes > 1 ? fit->table->gpus_per_node : 8};
    zp_cost_network_defaults(&network, fit->link, fit->nics, fit->generation);
    ZpFabric fabric = zp_cost_network_fabric(&network, fit->table->network);
    network.link_efficiency = p[FIT_RING];
    network.link_copy = p[FIT_COPY];
    network.network_efficiency = p[FIT_NICS];
    network.nvls_bytes_per_s *= p[FIT_NVLS] / fit_nvls();
    network.link_tau_ps = zp_time_from_seconds(p[FIT_TAU_NEAR]);
    network.network_tau_ps = zp_time_from_seconds(p[FIT_TAU_FAR + fabric]);
    network.network_fill_ps = zp_time_from_seconds(p[FIT_FILL]);
    double launch = fit->launched ? p[FIT_LAUNCH] : 0.0;
    network.link_latency_ps = zp_time_from_seconds(p[FIT_ALPHA] + launch);
    network.network_latency_ps += zp_time_from_seconds(launch) - ZP_COST_FABRIC_LAUNCH_PS;
    ZpCost cost = zp_cost_collective(&network, fit->table->kind, bytes,
                                     fit->table->nodes * fit->table->gpus_per_node, 1);
    return zp_time_to_seconds(cost.fixed_ps) + zp_time_to_seconds(cost.solo_ps);
}

/* Mean soft-L1 of the logarithm, each table counting once. */
static inline double
fit_loss(const GArray *tables, guint left_out, const double p[FIT_N])
{
    double sum = 0.0;
    for (guint t = 0; t < tables->len; t++) {
        const FitTable *fit = &g_array_index(tables, FitTable, t);
        double own = 0.0;
        guint n = fit->table->points->len;
        for (guint i = 0; t != left_out && i < n; i++) {
            if (!fit_counts(fit, i))
                continue;
            const ZpCostPoint *point = &g_array_index(fit->table->points, ZpCostPoint, i);
            double off = log(fit_predict(fit, p, point->bytes) / point->seconds) / 0.1;
            own += sqrt(1.0 + off * off) - 1.0;
        }
        sum += own / n;
    }
    return sum;
}

/* Coordinate descent on the logarithms of the parameters; `left_out` G_MAXUINT: none. */
static inline void
fit_run(const GArray *tables, guint left_out, double p[FIT_N])
{
    double best = fit_loss(tables, left_out, p);
    for (double step = 0.3; step > 0.005; step /= 2.0) {
        for (int turn = 0; turn < 6; turn++) {
            double before = best;
            for (int i = 0; i < 2 * FIT_N; i++) {
                double old = p[i / 2];
                p[i / 2] *= i % 2 == 0 ? 1.0 + step : 1.0 / (1.0 + step);
                double now = fit_loss(tables, left_out, p);
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

enum { FIT_SMALL, FIT_MIDDLE, FIT_LARGE, FIT_N_SIZES };

static inline int
fit_size(gint64 bytes)
{
    return bytes < (1 << 20) ? FIT_SMALL : bytes <= (64 << 20) ? FIT_MIDDLE : FIT_LARGE;
}

static inline void
fit_errors(const FitTable *fit, const double p[FIT_N], GArray *errors[FIT_N_SIZES])
{
    for (guint i = 0; i < fit->table->points->len; i++) {
        if (!fit_counts(fit, i))
            continue;
        const ZpCostPoint *point = &g_array_index(fit->table->points, ZpCostPoint, i);
        double error = fabs(fit_predict(fit, p, point->bytes) / point->seconds - 1.0);
        g_array_append_val(errors[fit_size(point->bytes)], error);
    }
}

static inline int
fit_compare(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double
fit_quantile(GArray *errors, double share)
{
    if (errors->len == 0)
        return 0.0;
    g_array_sort(errors, fit_compare);
    return g_array_index(errors, double, (guint)(share * (errors->len - 1)));
}
