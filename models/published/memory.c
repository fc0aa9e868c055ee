#include "models/published/memory.h"

#include <string.h>

#include "models/published/memory_job_internal.h"

static const double mib = 1024.0 * 1024.0;

/* What is known to be missing, by rule and not by row. */
static const char *
cause_of(const ZpValidateRecord *row)
{
    if (zp_validate_record_has(row, "n_layers", "enc"))
        return "";
    if (zp_validate_record_has(row, "framework", "llm.c"))
        return "activations are eager PyTorch's, not llm.c's own list of buffers";
    if (zp_validate_record_has(row, "param_dtype", "amp"))
        return "what else lives around the loss under autocast is not known";
    if (*zp_validate_record_text(row, "peak_reserved_gib") != '\0')
        return "but for the head, a layer's tensors are one buffer: the cache is cut up less here";
    if (zp_validate_record_has(row, "compile", "y"))
        return "the PyTorch that compiled is not stated, and not all of it is known";
    return "";
}

static void
push(GArray *results, const ZpValidateMemory *base, ZpValidateFigure figure, double measured_gib,
     gint64 simulated_bytes)
{
    ZpValidateMemory result = *base;
    result.figure = figure;
    result.measured_mib = measured_gib * 1024.0;
    result.simulated_mib = (double)simulated_bytes / mib;
    if (base->reason != NULL)
        result.reason = g_strdup(base->reason);
    g_array_append_val(results, result);
}

/* MiB. */
static double
printed(const ZpValidateRecord *row)
{
    const char *at = strstr(zp_validate_record_text(row, "notes"), "printed ");
    char *end = NULL;
    double value = at != NULL ? g_ascii_strtod(at + strlen("printed "), &end) : 0.0;
    return end != NULL && g_str_has_prefix(end, " MB") && strstr(end, "MiB") != NULL ? value : 0.0;
}

static void
compare(const ZpValidateRecord *row, const ZpValidateMemory *base, const ZpStepSummary *summary,
        gint64 overhead_bytes, GArray *results)
{
    double allocated = zp_validate_csv_number(row->csv, row->record, "peak_alloc_gib", 0.0);
    double reserved = zp_validate_csv_number(row->csv, row->record, "peak_reserved_gib", 0.0);
    if (printed(row) > 0.0)
        allocated = printed(row) / 1024.0;
    gboolean active = zp_validate_record_has(row, "notes", "active");
    if (allocated > 0.0)
        push(results, base, active ? ZP_VALIDATE_ACTIVE : ZP_VALIDATE_ALLOCATED, allocated,
             active ? summary->allocator.peak.active_bytes : summary->peak_bytes - overhead_bytes);
    if (reserved > 0.0)
        push(results, base, ZP_VALIDATE_RESERVED, reserved, summary->allocator.peak.reserved_bytes);
    if (allocated <= 0.0 && reserved <= 0.0)
        push(results, base, ZP_VALIDATE_FITS, 0.0, summary->reserved_bytes);
}

static void
run_row(const ZpValidateRecord *row, const ZpHardware *hardware, ZpStep *step, GArray *results)
{
    ZpValidateMemory base = {
        .id = zp_validate_record_text(row, "id"),
        .subset = zp_validate_record_text(row, "subset"),
        .name = zp_validate_record_text(row, "model_name"),
        .ranks = zp_validate_record_integer(row, "n_gpus", 0),
        .measured_fits = !zp_validate_record_has(row, "oom", "y"),
        .cause = cause_of(row),
    };
    ZpStepSummary summary = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpValidateJob) job = zp_validate_memory_job_new(row, hardware, &error);
    gint64 overhead = 0;
    if (job != NULL) {
        base.elements = job->model->n_elements;
        overhead = job->job.device.overhead_bytes;
        if (!zp_step_simulate(step, &job->job, NULL, NULL, &summary, &error))
            g_assert(error != NULL);
    }
    base.reason = error != NULL ? error->message : NULL; /* copied for each result */
    base.simulated_fits = summary.fits;
    compare(row, &base, &summary, overhead, results);
}

static void
clear_result(gpointer data)
{
    ZpValidateMemory *result = data;
    g_free(result->reason);
}

GArray *
zp_validate_memory_array(void)
{
    GArray *results = g_array_new(FALSE, TRUE, sizeof(ZpValidateMemory));
    g_array_set_clear_func(results, clear_result);
    return results;
}

void
zp_validate_memory_row(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware,
                       GArray *results)
{
    ZpValidateRecord row = {csv, record};
    g_autoptr(ZpStep) step = zp_step_new();
    run_row(&row, hardware, step, results);
}

GArray *
zp_validate_memory_run(const ZpValidateCsv *csv)
{
    GArray *results = zp_validate_memory_array();
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    for (guint r = 0; r < csv->records->len; r++)
        zp_validate_memory_row(csv, r, hardware, results);
    return results;
}

const ZpValidateMemory *
zp_validate_memory_find(const GArray *results, const char *id, ZpValidateFigure figure)
{
    for (guint i = 0; i < results->len; i++) {
        const ZpValidateMemory *result = &g_array_index(results, ZpValidateMemory, i);
        if (result->figure == figure && strcmp(result->id, id) == 0)
            return result;
    }
    return NULL;
}

const char *
zp_validate_figure_name(ZpValidateFigure figure)
{
    static const char *const names[ZP_N_VALIDATE_FIGURES] = {"allocated", "active", "reserved",
                                                             "fits"};
    return names[figure];
}

double
zp_validate_memory_error(const ZpValidateMemory *memory)
{
    if (memory->figure == ZP_VALIDATE_FITS)
        return memory->measured_fits == memory->simulated_fits ? 0.0 : 1.0;
    return memory->simulated_mib / memory->measured_mib - 1.0;
}
