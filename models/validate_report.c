/* Tables of a validation, for people. */
#include <math.h>
#include <string.h>

#include "models/validate.h"

char *
zp_validate_table(const ZpValidation *validation)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out, "%-9s %-9s %-14s %-16s %5s %12s %12s %7s %7s  %s\n", "id", "subset",
                           "gpu", "model", "ranks", "measured ms", "simulated ms", "error", "null",
                           "rule, or reason");
    for (guint i = 0; i < validation->rows->len; i++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, i);
        g_string_append_printf(out, "%-9s %-9s %-14.14s %-16.16s %5" G_GINT64_FORMAT " %12.1f ",
                               row->id, row->subset, row->gpu, row->model, row->ranks,
                               row->measured_ms);
        if (row->simulated_ms <= 0.0) {
            g_string_append_printf(out, "%12s %7s %7s  %s\n", "-", "-", "-", row->reason);
            continue;
        }
        g_string_append_printf(out, "%12.1f %+6.1f%% ", row->simulated_ms, 100.0 * row->error);
        if (isnan(row->null_error))
            g_string_append_printf(out, "%7s  ", "-");
        else
            g_string_append_printf(out, "%+6.1f%%  ", 100.0 * row->null_error);
        g_string_append_printf(out, "%s%s%s\n", row->rule, row->reason != NULL ? "; " : "",
                               row->reason != NULL ? row->reason : "");
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void
append_figures(GString *out, const char *name, const ZpValidateFigures *own,
               const ZpValidateFigures *null)
{
    if (own->n == 0)
        return;
    g_string_append_printf(out, "%-34s %5d  %5.1f %6.1f %6.1f %6.1f %+6.1f ", name, own->n,
                           100.0 * own->mean, 100.0 * own->median, 100.0 * own->p90,
                           100.0 * own->max, 100.0 * own->bias);
    if (null->n > 0)
        g_string_append_printf(out, "  %5.1f %6.1f %6.1f", 100.0 * null->mean, 100.0 * null->p90,
                               100.0 * null->max);
    g_string_append_c(out, '\n');
}

/* Distinct values of a member, in order of appearance. */
static GPtrArray *
distinct(const ZpValidation *validation, gsize offset)
{
    GPtrArray *values = g_ptr_array_new();
    for (guint i = 0; i < validation->rows->len; i++) {
        char *row = g_ptr_array_index(validation->rows, i);
        char *value = *(char **)(gpointer)(row + offset);
        if (!g_ptr_array_find_with_equal_func(values, value, g_str_equal, NULL))
            g_ptr_array_add(values, value);
    }
    return values;
}

char *
zp_validate_summary(const ZpValidation *validation)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out, "%-34s %5s  %5s %6s %6s %6s %6s   %5s %6s %6s\n",
                           "absolute errors, %", "rows", "mean", "median", "p90", "max", "bias",
                           "null", "p90", "max");
    g_autoptr(GPtrArray) subsets = distinct(validation, offsetof(ZpValidateRow, subset));
    g_autoptr(GPtrArray) gpus = distinct(validation, offsetof(ZpValidateRow, gpu));
    g_autoptr(GPtrArray) families = distinct(validation, offsetof(ZpValidateRow, family));
    for (guint s = 0; s < subsets->len; s++) {
        const char *subset = g_ptr_array_index(subsets, s);
        ZpValidateFigures own = zp_validate_figures(validation, subset, NULL, NULL, FALSE);
        ZpValidateFigures null = zp_validate_figures(validation, subset, NULL, NULL, TRUE);
        append_figures(out, subset, &own, &null);
        for (guint g = 0; g < gpus->len; g++) {
            for (guint f = 0; f < families->len; f++) {
                const char *gpu = g_ptr_array_index(gpus, g);
                const char *family = g_ptr_array_index(families, f);
                own = zp_validate_figures(validation, subset, gpu, family, FALSE);
                null = zp_validate_figures(validation, subset, gpu, family, TRUE);
                g_autofree char *name = g_strdup_printf("  %s %s", gpu, family);
                append_figures(out, name, &own, &null);
            }
        }
        own = zp_validate_ratios(validation, subset, FALSE);
        null = zp_validate_ratios(validation, subset, TRUE);
        append_figures(out, "  ratios inside a family", &own, &null);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
