#include "models/published/bands.h"

#include <math.h>
#include <string.h>

#include "models/prices/bands.h"

/* 90th percentiles of the error of models/prices/board.h, with both products measured. */
static const double rule_errors[ZP_N_GRADES] = {
    [ZP_GRADE_SCALED] = 0.128,
    [ZP_GRADE_ASSUMED] = 0.33,
};
/* Of the median, models/published/bands.h. */
static const ZpBand overhead = {0.655, 0.426};

static int
compare(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The shortest interval that holds nine of ten; sorts. */
static ZpBand
shortest(GArray *errors)
{
    if (errors->len == 0)
        return (ZpBand){0.0, 0.0};
    g_array_sort(errors, compare);
    const double *e = (const double *)(gpointer)errors->data;
    guint n = (guint)ceil(0.9 * errors->len), best = 0;
    for (guint i = 1; i + n <= errors->len; i++)
        if (e[i + n - 1] - e[i] < e[best + n - 1] - e[best])
            best = i;
    return (ZpBand){MAX(0.0, -e[best]), MAX(0.0, e[best + n - 1])};
}

static gboolean
is_fitted(const ZpValidateRow *row)
{
    return strcmp(row->subset, "time_cal") == 0;
}

static GArray *
step_errors(const ZpValidation *validation, gboolean ideal)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint r = 0; r < validation->rows->len; r++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, r);
        double error = row->measured_ms / row->simulated_ms - 1.0;
        if (row->simulated_ms > 0.0 && !is_fitted(row) && row->grade == ZP_GRADE_MEASURED &&
            row->ideal == ideal)
            g_array_append_val(errors, error);
    }
    return errors;
}

static GArray *
reserved_errors(const ZpValidation *validation)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint r = 0; r < validation->rows->len; r++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, r);
        for (guint m = 0; m < row->memory->len; m++) {
            const ZpValidateMemory *memory = &g_array_index(row->memory, ZpValidateMemory, m);
            double error = memory->measured_mib / memory->simulated_mib - 1.0;
            if (memory->figure == ZP_VALIDATE_RESERVED && memory->simulated_mib > 0.0)
                g_array_append_val(errors, error);
        }
    }
    return errors;
}

static void
print_band(GString *out, const char *section, const char *from, ZpBand band)
{
    char low[G_ASCII_DTOSTR_BUF_SIZE], high[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(low, sizeof low, "%.3f", band.low);
    g_ascii_formatd(high, sizeof high, "%.3f", band.high);
    g_string_append_printf(out, "\n[%s]\n# %s\nlow=%s\nhigh=%s\n", section, from, low, high);
}

char *
zp_validate_bands(const ZpValidation *validation)
{
    GString *out = g_string_new(
        "# Written by `zeropeak validate --bands`: with nine chances of ten a figure lies between\n"
        "# itself x (1 - low) and itself x (1 + high).\n");
    for (int ideal = 0; ideal < 2; ideal++) {
        g_autoptr(GArray) errors = step_errors(validation, ideal);
        ZpBand measured = shortest(errors);
        for (int grade = ZP_GRADE_MEASURED; grade < ZP_N_GRADES; grade++) {
            g_autofree char *section = zp_bands_class((ZpGrade)grade, ideal);
            g_autofree char *from = g_strdup_printf(
                grade == ZP_GRADE_MEASURED ? "%u rows" : "those %u rows and the scaling rule",
                errors->len);
            ZpBand band = {MIN(0.95, hypot(measured.low, rule_errors[grade])),
                           hypot(measured.high, rule_errors[grade])};
            print_band(out, section, from, band);
        }
    }
    g_autoptr(GArray) errors = reserved_errors(validation);
    g_autofree char *from = g_strdup_printf("%u rows", errors->len);
    ZpBand reserved = shortest(errors);
    print_band(out, "reserved", from, reserved);
    print_band(out, "overhead", "7 public runs on several GPUs", overhead);
    return g_string_free(out, FALSE);
}

void
zp_validate_bands_hold(const ZpValidation *validation, const char *subset, int *rows, int *inside)
{
    *rows = *inside = 0;
    for (guint r = 0; r < validation->rows->len; r++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, r);
        if (row->simulated_ms <= 0.0 || (subset != NULL && strcmp(row->subset, subset) != 0))
            continue;
        ZpBand band = zp_bands_step(row->grade, row->ideal);
        double error = row->measured_ms / row->simulated_ms - 1.0;
        *rows += 1;
        *inside += error >= -band.low && error <= band.high;
    }
}
