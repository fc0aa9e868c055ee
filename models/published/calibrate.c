#include "models/published/calibrate.h"

#include <math.h>
#include <string.h>

#include "models/published/job_internal.h"
#include "models/published/validate.h"
#include "models/step/step.h"

#define MIN_ROWS_FOR_OVERLAP 3
#define TURNS 7
#define SECTIONS 9
/* More rows than this are left out by every tenth: refitting for each takes their square. */
#define MAX_LEFT_OUT_ALONE 20
#define FOLDS 10
#define REFIT_SECTIONS 6 /* without one row the optimum is near */

typedef struct {
    ZpValidateJob *job;
    ZpStep *step;
    double measured_ps;
    double error; /* of the constants tried last */
    char *id;
} Sample;

typedef struct {
    GPtrArray *samples;  /* Sample */
    guint fold, n_folds; /* left out: samples i with i % n_folds == fold; n_folds 0: none */
    double sustained, overlap;
} Fit;

static void
free_sample(gpointer data)
{
    Sample *sample = data;
    zp_validate_job_free(sample->job);
    zp_step_free(sample->step);
    g_free(sample->id);
    g_free(sample);
}

static double
predict(Sample *sample, double sustained, double overlap)
{
    ZpStepSummary summary;
    sample->job->calibration->gemm_sustained = sustained;
    sample->job->calibration->overlap_loss = overlap;
    g_autoptr(GError) error = NULL;
    if (!zp_step_simulate(sample->step, &sample->job->job, NULL, NULL, &summary, &error))
        g_error("a job that was simulated before: %s", error->message);
    return (double)summary.step_ps / sample->measured_ps;
}

/* Soft absolute logarithm of the ratios: quadratic below 2 %, so that turns of one-dimensional
 * searches do not get caught in a kink; linear above, so that no outlier rules. */
static double
loss(const Fit *fit, double sustained, double overlap)
{
    double sum = 0.0;
    for (guint i = 0; i < fit->samples->len; i++) {
        Sample *sample = g_ptr_array_index(fit->samples, i);
        if (fit->n_folds == 0 || i % fit->n_folds != fit->fold)
            sum += sqrt(1.0 + pow(log(predict(sample, sustained, overlap)) / 0.02, 2.0)) - 1.0;
    }
    return sum;
}

static double
along(const Fit *fit, gboolean overlap, double value)
{
    return overlap ? loss(fit, fit->sustained, value) : loss(fit, value, fit->overlap);
}

static double
golden_section(const Fit *fit, gboolean overlap, double low, double high, int sections)
{
    const double ratio = 0.6180339887498949;
    double a = high - ratio * (high - low), b = low + ratio * (high - low);
    double at_a = along(fit, overlap, a), at_b = along(fit, overlap, b);
    for (int i = 0; i < sections; i++) {
        if (at_a < at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - ratio * (high - low);
            at_a = along(fit, overlap, a);
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + ratio * (high - low);
            at_b = along(fit, overlap, b);
        }
    }
    return (low + high) / 2.0;
}

static void
search(Fit *fit, gboolean both)
{
    for (int turn = 0; turn < TURNS; turn++) {
        double width = turn == 0 ? 2.0 : 1.05, reach = turn == 0 ? 1.0 : 0.2;
        fit->sustained = golden_section(fit, FALSE, fit->sustained / width,
                                        MIN(2.0, fit->sustained * width), SECTIONS);
        if (!both)
            return;
        fit->overlap = golden_section(fit, TRUE, MAX(0.0, fit->overlap - reach),
                                      fit->overlap + reach, SECTIONS);
    }
}

static void
search_near(Fit *fit, gboolean both)
{
    fit->sustained = golden_section(fit, FALSE, fit->sustained / 1.1,
                                    MIN(2.0, fit->sustained * 1.1), REFIT_SECTIONS);
    if (both)
        fit->overlap = golden_section(fit, TRUE, MAX(0.0, fit->overlap - 0.2), fit->overlap + 0.2,
                                      REFIT_SECTIONS);
}

/* Does the share of communication differ among the rows?  Else its loss cannot be told from the
 * speed of products. */
static gboolean
tells_overlap(const Fit *fit)
{
    if (fit->samples->len < MIN_ROWS_FOR_OVERLAP)
        return FALSE;
    double least = INFINITY, most = 0.0;
    for (guint i = 0; i < fit->samples->len; i++) {
        Sample *sample = g_ptr_array_index(fit->samples, i);
        double gain = predict(sample, fit->sustained, fit->overlap + 0.5) /
                      predict(sample, fit->sustained, fit->overlap);
        least = MIN(least, gain);
        most = MAX(most, gain);
    }
    return most - least > 0.02;
}

/* Is the row of a GPU that is known, and another one? */
static gboolean
of_another_gpu(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware, const char *gpu)
{
    ZpGpu variant;
    const ZpGpu *found =
        zp_validate_record_gpu(&(ZpValidateRecord){csv, record}, hardware, &variant, NULL);
    return found != NULL && strcmp(found->name, gpu) != 0;
}

static Sample *
make_sample(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware, GError **error)
{
    double measured = zp_validate_csv_number(
        csv, record, "step_ms", zp_validate_csv_number(csv, record, "step_ms_derived", 0.0));
    if (!(measured > 0.0) || isinf(measured)) {
        g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                            "step_ms states no time");
        return NULL;
    }
    g_autoptr(ZpValidateJob) job = zp_validate_job_new(csv, record, hardware, NULL, error);
    if (job == NULL)
        return NULL;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    if (!zp_step_simulate(step, &job->job, NULL, NULL, &summary, error))
        return NULL;
    Sample *sample = g_new0(Sample, 1);
    sample->job = g_steal_pointer(&job);
    sample->step = g_steal_pointer(&step);
    sample->measured_ps = measured * 1e9;
    sample->id = g_strdup(zp_validate_csv_get(csv, record, "id"));
    return sample;
}

/* Rows in `unused`, one a line, with the reason of each. */
static int
add_samples(Fit *fit, const ZpValidateCsv *csv, const char *gpu, const char *subset,
            GString *unused)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    int n_unused = 0;
    for (guint r = 0; r < csv->records->len; r++) {
        if (of_another_gpu(csv, r, hardware, gpu) ||
            (subset != NULL && strcmp(subset, zp_validate_csv_get(csv, r, "subset")) != 0))
            continue;
        g_autoptr(GError) why = NULL;
        Sample *sample = make_sample(csv, r, hardware, &why);
        if (sample != NULL) {
            g_ptr_array_add(fit->samples, sample);
            continue;
        }
        g_string_append_printf(unused, "%s%s (line %d): %s", n_unused > 0 ? "\n" : "",
                               zp_validate_csv_get(csv, r, "id"), g_array_index(csv->lines, int, r),
                               why->message);
        n_unused++;
    }
    return n_unused;
}

static void
refuse(const ZpValidateCsv *csv, const char *gpu, const GString *unused, GError **error)
{
    if (unused->len > 0)
        g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                    "no row of %s can be simulated: %s", gpu, unused->str);
    else
        g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                    "none of the %u rows is of %s (columns gpu and, where asked for, subset)",
                    csv->records->len, gpu);
}

static double
mean_error(const Fit *fit, double sustained, double overlap)
{
    double sum = 0.0;
    for (guint i = 0; i < fit->samples->len; i++)
        sum += fabs(predict(g_ptr_array_index(fit->samples, i), sustained, overlap) - 1.0);
    return sum / fit->samples->len;
}

static int
compare_errors(gconstpointer a, gconstpointer b)
{
    double x = (*(const Sample *const *)a)->error, y = (*(const Sample *const *)b)->error;
    return (x > y) - (x < y);
}

static void
leave_out(const Fit *fit, gboolean both, ZpCalibrate *result)
{
    guint n = fit->samples->len;
    result->left_out = result->left_out_p90 = result->left_out_max = n > 1 ? 0.0 : NAN;
    Fit without = *fit;
    without.n_folds = n > MAX_LEFT_OUT_ALONE ? FOLDS : n;
    for (without.fold = 0; n > 1 && without.fold < without.n_folds; without.fold++) {
        without.sustained = fit->sustained;
        without.overlap = fit->overlap;
        search_near(&without, both);
        for (guint i = without.fold; i < n; i += without.n_folds) {
            Sample *sample = g_ptr_array_index(fit->samples, i);
            sample->error = fabs(predict(sample, without.sustained, without.overlap) - 1.0);
            result->left_out += sample->error / n;
        }
    }
    if (n < 2)
        return;
    g_ptr_array_sort(fit->samples, compare_errors);
    guint p90 = (guint)ceil(0.9 * n) - 1;
    result->left_out_p90 = ((Sample *)g_ptr_array_index(fit->samples, p90))->error;
    result->left_out_max = ((Sample *)g_ptr_array_index(fit->samples, n - 1))->error;
}

static char *
describe(const Fit *fit, const ZpCalibrate *result)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "%s fitted to %d run%s: mean error %.1f %%, was %.1f %%\n",
                           result->fitted_overlap ? "gemm sustained and overlap loss"
                                                  : "gemm sustained",
                           result->n_rows, result->n_rows > 1 ? "s" : "", 100.0 * result->after,
                           100.0 * result->before);
    if (result->n_rows > 1)
        g_string_append_printf(
            text,
            "each predicted without itself: mean %.1f %%, nine in ten within %.1f %%, "
            "worst %.1f %%\n",
            100.0 * result->left_out, 100.0 * result->left_out_p90, 100.0 * result->left_out_max);
    else
        g_string_append(text, "one run says nothing of the error of others\n");
    g_string_append(text, "runs:");
    for (guint i = 0; i < fit->samples->len; i++)
        g_string_append_printf(text, " %s", ((Sample *)g_ptr_array_index(fit->samples, i))->id);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static int
compare_ids(gconstpointer a, gconstpointer b)
{
    return strcmp((*(const Sample *const *)a)->id, (*(const Sample *const *)b)->id);
}

ZpCalibrate *
zp_calibrate_run(const char *text, const char *gpu, const char *subset, GError **error)
{
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, error);
    if (csv == NULL)
        return NULL;
    const ZpCalibration *base = zp_calibration_find(gpu);
    if (base == NULL) {
        g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                    "nothing was measured on %s that a fit could start from", gpu);
        return NULL;
    }
    g_autoptr(GPtrArray) samples = g_ptr_array_new_with_free_func(free_sample);
    g_autoptr(GString) unused = g_string_new(NULL);
    Fit fit = {.samples = samples};
    int n_unused = add_samples(&fit, csv, gpu, subset, unused);
    if (samples->len == 0) {
        refuse(csv, gpu, unused, error);
        return NULL;
    }
    ZpCalibrate *result = g_new0(ZpCalibrate, 1);
    result->n_unused = n_unused;
    result->unused = n_unused > 0 ? g_strdup(unused->str) : NULL;
    result->n_rows = (int)samples->len;
    fit.sustained = base->gemm_sustained;
    fit.overlap = base->overlap_loss;
    result->before = mean_error(&fit, fit.sustained, fit.overlap);
    result->fitted_overlap = tells_overlap(&fit);
    search(&fit, result->fitted_overlap);
    result->after = mean_error(&fit, fit.sustained, fit.overlap);
    result->calibration = g_memdup2(base, sizeof *base);
    result->calibration->gemm_sustained = fit.sustained;
    result->calibration->overlap_loss = fit.overlap;
    leave_out(&fit, result->fitted_overlap, result);
    g_ptr_array_sort(samples, compare_ids);
    result->evidence = describe(&fit, result);
    return result;
}

void
zp_calibrate_free(ZpCalibrate *calibrate)
{
    if (calibrate == NULL)
        return;
    zp_calibration_free(calibrate->calibration);
    g_free(calibrate->evidence);
    g_free(calibrate->unused);
    g_free(calibrate);
}

char *
zp_calibrate_file(const ZpCalibrate *calibrate)
{
    return zp_calibration_print(calibrate->calibration, calibrate->evidence);
}
