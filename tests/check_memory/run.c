#include <stdio.h>
#include <string.h>

#include "tests/check_memory/memory.h"

static const double mib = 1024.0 * 1024.0;

/* What is known to be missing, by rule and not by row. */
static const char *
cause_of(const MemoryRow *row)
{
    if (memory_row_has(row, "n_layers", "enc"))
        return "";
    if (memory_row_has(row, "framework", "llm.c"))
        return "activations are eager PyTorch's, not llm.c's own list of buffers";
    if (*memory_row_text(row, "peak_reserved_gib") != '\0' && memory_row_has(row, "compile", "n"))
        return "a layer's tensors are one buffer: the cache is cut up less here";
    if (memory_row_has(row, "compile", "y"))
        return "what a compiler fuses and recomputes is not modelled";
    if (memory_row_has(row, "param_dtype", "amp"))
        return "what else lives around the loss under autocast is not known";
    return "the order of releases around the loss";
}

static void
push(GArray *results, const MemoryResult *base, MemoryFigure figure, double measured_gib,
     gint64 simulated_bytes)
{
    MemoryResult result = *base;
    result.figure = figure;
    result.measured_mib = measured_gib * 1024.0;
    result.simulated_mib = (double)simulated_bytes / mib;
    if (base->reason != NULL)
        result.reason = g_strdup(base->reason);
    g_array_append_val(results, result);
}

/* MiB. */
static double
printed(const MemoryRow *row)
{
    const char *at = strstr(memory_row_text(row, "notes"), "printed ");
    char *end = NULL;
    double value = at != NULL ? g_ascii_strtod(at + strlen("printed "), &end) : 0.0;
    return end != NULL && g_str_has_prefix(end, " MB") && strstr(end, "MiB") != NULL ? value : 0.0;
}

static void
compare(const MemoryRow *row, const MemoryResult *base, const ZpStepSummary *summary,
        gint64 overhead_bytes, GArray *results)
{
    double allocated = zp_validate_csv_number(row->csv, row->record, "peak_alloc_gib", 0.0);
    double reserved = zp_validate_csv_number(row->csv, row->record, "peak_reserved_gib", 0.0);
    if (printed(row) > 0.0)
        allocated = printed(row) / 1024.0;
    gboolean active = memory_row_has(row, "notes", "active");
    if (allocated > 0.0)
        push(results, base, active ? MEMORY_ACTIVE : MEMORY_ALLOCATED, allocated,
             active ? summary->allocator.peak.active_bytes : summary->peak_bytes - overhead_bytes);
    if (reserved > 0.0)
        push(results, base, MEMORY_RESERVED, reserved, summary->allocator.peak.reserved_bytes);
    if (allocated <= 0.0 && reserved <= 0.0)
        push(results, base, MEMORY_FITS, 0.0, summary->reserved_bytes);
}

static void
run_row(const MemoryRow *row, const ZpHardware *hardware, ZpStep *step, GArray *results)
{
    MemoryResult base = {
        .id = memory_row_text(row, "id"),
        .subset = memory_row_text(row, "subset"),
        .name = memory_row_text(row, "model_name"),
        .ranks = memory_row_integer(row, "n_gpus", 0),
        .measured_fits = !memory_row_has(row, "oom", "y"),
        .cause = cause_of(row),
    };
    ZpStepSummary summary = {0};
    const char *reason = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(MemoryJob) job = memory_job_new(row, hardware, &reason);
    gint64 overhead = 0;
    if (job != NULL) {
        base.elements = job->model->n_elements;
        overhead = job->job.device.overhead_bytes;
        if (!zp_step_simulate(step, &job->job, NULL, NULL, &summary, &error))
            reason = error->message;
    }
    base.reason = (char *)reason;
    base.simulated_fits = summary.fits;
    compare(row, &base, &summary, overhead, results);
}

static void
clear_result(gpointer data)
{
    MemoryResult *result = data;
    g_free(result->reason);
}

GArray *
memory_run(const ZpValidateCsv *csv)
{
    GArray *results = g_array_new(FALSE, TRUE, sizeof(MemoryResult));
    g_array_set_clear_func(results, clear_result);
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    for (guint r = 0; r < csv->records->len; r++) {
        MemoryRow row = {csv, r};
        g_autoptr(ZpStep) step = zp_step_new();
        run_row(&row, hardware, step, results);
    }
    return results;
}

const MemoryResult *
memory_find(const GArray *results, const char *id, MemoryFigure figure)
{
    for (guint i = 0; i < results->len; i++) {
        const MemoryResult *result = &g_array_index(results, MemoryResult, i);
        if (result->figure == figure && strcmp(result->id, id) == 0)
            return result;
    }
    return NULL;
}

static const char *const figures[] = {"allocated", "active", "reserved", "fits"};

static void
print_row(const MemoryResult *r)
{
    printf("%-8s %-8s %-26.26s %5" G_GINT64_FORMAT " %-9s ", r->id, r->subset, r->name, r->ranks,
           figures[r->figure]);
    if (r->reason != NULL)
        printf("not simulated: %s\n", r->reason);
    else if (r->figure == MEMORY_FITS)
        printf("%10s %10s %7s  %s: needs %.0f MiB\n", r->measured_fits ? "fits" : "OOM",
               r->simulated_fits ? "fits" : "OOM", "",
               r->measured_fits == r->simulated_fits ? "agrees" : "DIFFERS", r->simulated_mib);
    else
        printf("%10.1f %10.1f %+6.1f%%  %s\n", r->measured_mib, r->simulated_mib,
               100.0 * (r->simulated_mib / r->measured_mib - 1.0), r->cause);
}

static void
print_summary(const GArray *results, const char *subset, MemoryFigure figure)
{
    int n = 0, skipped = 0, right = 0;
    double sum = 0.0, worst = 0.0, bias = 0.0;
    for (guint i = 0; i < results->len; i++) {
        const MemoryResult *r = &g_array_index(results, MemoryResult, i);
        if (r->figure != figure || strcmp(r->subset, subset) != 0)
            continue;
        if (r->reason != NULL) {
            skipped++;
            continue;
        }
        n++;
        right += r->measured_fits == r->simulated_fits;
        double off = figure == MEMORY_FITS ? 0.0 : r->simulated_mib / r->measured_mib - 1.0;
        bias += off;
        sum += ABS(off);
        worst = MAX(worst, ABS(off));
    }
    if (n + skipped == 0)
        return;
    printf("%-8s %-9s %3d rows, %2d not simulated", subset, figures[figure], n, skipped);
    if (n > 0 && figure == MEMORY_FITS)
        printf(", %d verdicts right", right);
    else if (n > 0)
        printf(", mean absolute error %.1f%%, largest %.1f%%, bias %+.1f%%", 100.0 * sum / n,
               100.0 * worst, 100.0 * bias / n);
    printf("\n");
}

void
memory_print(const GArray *results)
{
    static const char *const subsets[] = {"mem_val", "both_val", "alloc_val"};
    printf("%-8s %-8s %-26s %5s %-9s %10s %10s %7s\n", "id", "subset", "model", "ranks", "figure",
           "measured", "simulated", "error");
    for (guint i = 0; i < results->len; i++)
        print_row(&g_array_index(results, MemoryResult, i));
    printf("\nMiB; errors by subset and figure\n");
    for (gsize s = 0; s < G_N_ELEMENTS(subsets); s++) {
        for (int f = MEMORY_ALLOCATED; f <= MEMORY_FITS; f++)
            print_summary(results, subsets[s], (MemoryFigure)f);
    }
}
