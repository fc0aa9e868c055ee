#include "models/published/figures_internal.h"

#include <math.h>
#include <string.h>

static int
compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
quantile(const GArray *sorted, double share)
{
    if (sorted->len == 0)
        return NAN;
    double at = share * (sorted->len - 1);
    guint low = (guint)at;
    double a = g_array_index(sorted, double, low);
    double b = g_array_index(sorted, double, MIN(low + 1, sorted->len - 1));
    return a + (at - low) * (b - a);
}

double
zp_validate_figures_median(GArray *values)
{
    g_array_sort(values, compare_doubles);
    return quantile(values, 0.5);
}

ZpValidateFigures
zp_validate_figures_of(GArray *errors)
{
    ZpValidateFigures figures = {.n = (int)errors->len};
    for (guint i = 0; i < errors->len; i++) {
        double *error = &g_array_index(errors, double, i);
        figures.bias += *error / errors->len;
        *error = fabs(*error);
        figures.mean += *error / errors->len;
    }
    g_array_sort(errors, compare_doubles);
    figures.median = quantile(errors, 0.5);
    figures.p90 = quantile(errors, 0.9);
    figures.max = quantile(errors, 1.0);
    return figures;
}

ZpValidateFigures
zp_validate_figures(const ZpValidation *validation, const char *subset, const char *gpu,
                    const char *family, gboolean null_model)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < validation->rows->len; i++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, i);
        double error = null_model ? row->null_error : row->error;
        if (row->simulated_ms > 0.0 && !isnan(error) &&
            (subset == NULL || strcmp(row->subset, subset) == 0) &&
            (gpu == NULL || strcmp(row->gpu, gpu) == 0) &&
            (family == NULL || strcmp(row->family, family) == 0))
            g_array_append_val(errors, error);
    }
    return zp_validate_figures_of(errors);
}

ZpValidateFigures
zp_validate_ratios(const ZpValidation *validation, const char *subset, gboolean null_model)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < validation->rows->len; i++) {
        const ZpValidateRow *a = g_ptr_array_index(validation->rows, i);
        for (guint j = i + 1; j < validation->rows->len; j++) {
            const ZpValidateRow *b = g_ptr_array_index(validation->rows, j);
            if (a->simulated_ms <= 0.0 || b->simulated_ms <= 0.0 || strcmp(a->key, b->key) != 0 ||
                (subset != NULL &&
                 (strcmp(a->subset, subset) != 0 || strcmp(b->subset, subset) != 0)) ||
                (a->ranks == b->ranks && a->micro_batch == b->micro_batch &&
                 strcmp(a->strategy, b->strategy) == 0))
                continue;
            double error = null_model ? (1.0 + a->null_error) / (1.0 + b->null_error) - 1.0
                                      : (1.0 + a->error) / (1.0 + b->error) - 1.0;
            if (!isnan(error))
                g_array_append_val(errors, error);
        }
    }
    return zp_validate_figures_of(errors);
}

ZpValidateFigures
zp_validate_memory_figures(const ZpValidation *validation, const char *subset,
                           ZpValidateFigure figure)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < validation->rows->len; i++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, i);
        for (guint m = 0; m < row->memory->len; m++) {
            const ZpValidateMemory *memory = &g_array_index(row->memory, ZpValidateMemory, m);
            if (memory->figure != figure || memory->reason != NULL ||
                (subset != NULL && strcmp(row->subset, subset) != 0))
                continue;
            double error = zp_validate_memory_error(memory);
            g_array_append_val(errors, error);
        }
    }
    return zp_validate_figures_of(errors);
}
