#include <stdio.h>
#include <string.h>

#include "tests/check_memory/memory.h"

static void
print_row(const ZpValidateMemory *r)
{
    printf("%-8s %-8s %-26.26s %5" G_GINT64_FORMAT " %-9s ", r->id, r->subset, r->name, r->ranks,
           zp_validate_figure_name(r->figure));
    if (r->reason != NULL)
        printf("not simulated: %s\n", r->reason);
    else if (r->figure == ZP_VALIDATE_FITS)
        printf("%10s %10s %7s  %s: needs %.0f MiB\n", r->measured_fits ? "fits" : "OOM",
               r->simulated_fits ? "fits" : "OOM", "",
               r->measured_fits == r->simulated_fits ? "agrees" : "DIFFERS", r->simulated_mib);
    else
        printf("%10.1f %10.1f %+6.1f%%  %s\n", r->measured_mib, r->simulated_mib,
               100.0 * (r->simulated_mib / r->measured_mib - 1.0), r->cause);
}

static void
print_summary(const GArray *results, const char *subset, ZpValidateFigure figure)
{
    int n = 0, skipped = 0, right = 0;
    double sum = 0.0, worst = 0.0, bias = 0.0;
    for (guint i = 0; i < results->len; i++) {
        const ZpValidateMemory *r = &g_array_index(results, ZpValidateMemory, i);
        if (r->figure != figure || strcmp(r->subset, subset) != 0)
            continue;
        if (r->reason != NULL) {
            skipped++;
            continue;
        }
        n++;
        right += r->measured_fits == r->simulated_fits;
        double off = figure == ZP_VALIDATE_FITS ? 0.0 : r->simulated_mib / r->measured_mib - 1.0;
        bias += off;
        sum += ABS(off);
        worst = MAX(worst, ABS(off));
    }
    if (n + skipped == 0)
        return;
    printf("%-8s %-9s %3d rows, %2d not simulated", subset, zp_validate_figure_name(figure), n,
           skipped);
    if (n > 0 && figure == ZP_VALIDATE_FITS)
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
        print_row(&g_array_index(results, ZpValidateMemory, i));
    printf("\nMiB; errors by subset and figure\n");
    for (gsize s = 0; s < G_N_ELEMENTS(subsets); s++) {
        for (int f = ZP_VALIDATE_ALLOCATED; f <= ZP_VALIDATE_FITS; f++)
            print_summary(results, subsets[s], (ZpValidateFigure)f);
    }
}
