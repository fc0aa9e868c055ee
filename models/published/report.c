/* Tables of a validation, for people. */
#include <math.h>
#include <string.h>

#include "models/published/validate.h"

static void
append_time(GString *out, const ZpValidateRow *row)
{
    if (row->measured_ms > 0.0)
        g_string_append_printf(out, "%12.1f ", row->measured_ms);
    else
        g_string_append_printf(out, "%12s ", "-");
    if (row->simulated_ms <= 0.0) {
        g_string_append_printf(out, "%12s %7s %7s  ", "-", "-", "-");
        return;
    }
    g_string_append_printf(out, "%12.1f %+6.1f%% ", row->simulated_ms, 100.0 * row->error);
    if (isnan(row->null_error))
        g_string_append_printf(out, "%7s  ", "-");
    else
        g_string_append_printf(out, "%+6.1f%%  ", 100.0 * row->null_error);
}

static const char *
verdict(gboolean fits)
{
    return fits ? "fits" : "OOM";
}

/* NULL: nothing. */
static void
append_memory(GString *out, const ZpValidateMemory *memory)
{
    const double mib_per_gib = 1024.0;
    if (memory == NULL)
        g_string_append_printf(out, "%-9s %8s %8s %7s  ", "", "", "", "");
    else if (memory->reason != NULL && memory->figure == ZP_VALIDATE_FITS)
        g_string_append_printf(out, "%-9s %8s %8s %7s  ", zp_validate_figure_name(memory->figure),
                               verdict(memory->measured_fits), "-", "-");
    else if (memory->reason != NULL)
        g_string_append_printf(out, "%-9s %8.2f %8s %7s  ", zp_validate_figure_name(memory->figure),
                               memory->measured_mib / mib_per_gib, "-", "-");
    else if (memory->figure == ZP_VALIDATE_FITS)
        g_string_append_printf(out, "%-9s %8s %8s %7s  ", zp_validate_figure_name(memory->figure),
                               verdict(memory->measured_fits), verdict(memory->simulated_fits),
                               zp_validate_memory_error(memory) > 0.0 ? "differs" : "agrees");
    else
        g_string_append_printf(
            out, "%-9s %8.2f %8.2f %+6.1f%%  ", zp_validate_figure_name(memory->figure),
            memory->measured_mib / mib_per_gib, memory->simulated_mib / mib_per_gib,
            100.0 * zp_validate_memory_error(memory));
}

static const ZpValidateMemory *
memory_of(const ZpValidateRow *row, guint index)
{
    return index < row->memory->len ? &g_array_index(row->memory, ZpValidateMemory, index) : NULL;
}

/* Time's rule and reason; then why memory was not simulated, if that is another reason. */
static void
append_words(GString *out, const ZpValidateRow *row)
{
    const ZpValidateMemory *memory = memory_of(row, 0);
    const char *parts[] = {
        row->simulated_ms > 0.0 ? row->rule : NULL, row->reason,
        memory != NULL && g_strcmp0(memory->reason, row->reason) != 0 ? memory->reason : NULL};
    const char *between = "";
    for (gsize p = 0; p < G_N_ELEMENTS(parts); p++) {
        if (parts[p] == NULL)
            continue;
        g_string_append_printf(out, "%s%s%s", between, p == 2 ? "memory: " : "", parts[p]);
        between = "; ";
    }
    g_string_append_c(out, '\n');
}

char *
zp_validate_table(const ZpValidation *validation)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(
        out, "%-9s %-9s %-14s %-16s %5s %12s %12s %7s %7s  %-9s %8s %8s %7s  %s\n", "id", "subset",
        "gpu", "model", "ranks", "measured ms", "simulated ms", "error", "null", "memory", "GiB",
        "sim. GiB", "error", "rule, or reason");
    for (guint i = 0; i < validation->rows->len; i++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, i);
        g_string_append_printf(out, "%-9s %-9s %-14.14s %-16.16s %5" G_GINT64_FORMAT " ", row->id,
                               row->subset, row->gpu, row->model, row->ranks);
        append_time(out, row);
        append_memory(out, memory_of(row, 0));
        append_words(out, row);
        for (guint m = 1; m < row->memory->len; m++) {
            g_string_append_printf(out, "%-9s %-90s", row->id, "");
            append_memory(out, memory_of(row, m));
            g_string_append_c(out, '\n');
        }
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

static void
append_memory_summary(GString *out, const ZpValidation *validation, const char *subset)
{
    for (int f = 0; f < ZP_N_VALIDATE_FIGURES; f++) {
        ZpValidateFigures own = zp_validate_memory_figures(validation, subset, (ZpValidateFigure)f);
        ZpValidateFigures none = {.n = 0};
        g_autofree char *name = g_strdup_printf(
            "  memory: %s", f == ZP_VALIDATE_FITS ? "verdict of a failed run"
                                                  : zp_validate_figure_name((ZpValidateFigure)f));
        append_figures(out, name, &own, &none);
    }
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
                g_autofree char *name =
                    g_strdup_printf("  %s%s%s", gpu, *family != '\0' ? " " : "", family);
                append_figures(out, name, &own, &null);
            }
        }
        own = zp_validate_ratios(validation, subset, FALSE);
        null = zp_validate_ratios(validation, subset, TRUE);
        append_figures(out, "  ratios inside a family", &own, &null);
        append_memory_summary(out, validation, subset);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
