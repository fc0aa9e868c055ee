/* What the cost models get wrong, table by table: collectives left out one by one, matrix products,
 * published steps beside the null model.  Run from the source folder or name it. */
#include <stdio.h>

#include "models/prices/layer.h"
#include "models/published/validate.h"
#include "tests/cost_fit.h"
#include "tests/gemm_fit.h"

static void
print_errors(GArray *errors[FIT_N_SIZES])
{
    for (int s = 0; s < FIT_N_SIZES; s++)
        printf("  %5.1f %5.1f (%u)", 100.0 * fit_quantile(errors[s], 0.5),
               100.0 * fit_quantile(errors[s], 0.9), errors[s]->len);
    printf("\n");
}

static void
collectives(void)
{
    g_autoptr(GArray) tables = fit_tables();
    GArray *all[FIT_N_SIZES], *own[FIT_N_SIZES];
    for (int s = 0; s < FIT_N_SIZES; s++) {
        all[s] = g_array_new(FALSE, FALSE, sizeof(double));
        own[s] = g_array_new(FALSE, FALSE, sizeof(double));
    }
    printf("collectives, each table predicted by parameters fitted without it; median and p90 of "
           "|error| %%, (points)\n%-58s  %-17s  %-17s  %s\n",
           "table", "< 1 MiB", "1-64 MiB", "> 64 MiB");
    for (guint t = 0; t < tables->len; t++) {
        const FitTable *fit = &g_array_index(tables, FitTable, t);
        double p[FIT_N];
        memcpy(p, fit_start, sizeof p);
        fit_run(tables, t, p);
        for (int s = 0; s < FIT_N_SIZES; s++)
            g_array_set_size(own[s], 0);
        fit_errors(fit, p, own);
        fit_errors(fit, p, all);
        printf("%-11s %2dx%d %-16.16s %-14s %-10.10s", fit->table->gpu, fit->table->nodes,
               fit->table->gpus_per_node, fit->table->network,
               zp_vocabulary_kind_name(fit->table->kind), fit->table->source);
        print_errors(own);
    }
    printf("%-58s", "all");
    print_errors(all);
    double p[FIT_N];
    memcpy(p, fit_start, sizeof p);
    fit_run(tables, G_MAXUINT, p);
    printf(
        "fitted to all: ring %.3f copy %.3f NVLS %.3f of the link, NICs %.3f; tau %.1f us inside, "
        "%.0f InfiniBand %.0f EFA %.0f GCP, fill %.0f us, alpha %.1f us, launch %.1f us\n\n",
        p[FIT_RING], p[FIT_COPY], p[FIT_NVLS], p[FIT_NICS], p[FIT_TAU_NEAR] * 1e6,
        p[FIT_TAU_FAR] * 1e6, p[FIT_TAU_FAR + ZP_FABRIC_EFA] * 1e6,
        p[FIT_TAU_FAR + ZP_FABRIC_GCP] * 1e6, p[FIT_FILL] * 1e6, p[FIT_ALPHA] * 1e6,
        p[FIT_LAUNCH] * 1e6);
    for (int s = 0; s < FIT_N_SIZES; s++) {
        g_array_unref(all[s]);
        g_array_unref(own[s]);
    }
}

static void
products(const char *text)
{
    printf(
        "matrix products: median and p90 of |error| %%, constants fitted to the table; left out: "
        "to the rest of it;\nrepeated: a shape predicted by its other measurements\n");
    for (gsize i = 0; i < G_N_ELEMENTS(gemm_tables); i++) {
        const GemmTable *table = &gemm_tables[i];
        double p[GEMM_N];
        g_autoptr(GArray) shapes = gemm_read(text, table);
        gemm_run(table, shapes, GEMM_FOLDS, p);
        g_autoptr(GArray) errors = gemm_errors(table, shapes, p);
        g_autoptr(GArray) left_out = gemm_left_out(table, shapes);
        g_autoptr(GArray) repeated = gemm_repetitions(shapes);
        printf("%-14s %-8s %4u shapes  %5.1f %5.1f   left out %5.1f %5.1f   repeated %5.1f %5.1f "
               "(%u)\n    efficiency %.3f tile %.3f depth %.0f latency %.1f us sustained %.2f heat "
               "%.0f us\n",
               table->gpu, table->table, shapes->len, 100.0 * fit_quantile(errors, 0.5),
               100.0 * fit_quantile(errors, 0.9), 100.0 * fit_quantile(left_out, 0.5),
               100.0 * fit_quantile(left_out, 0.9), 100.0 * fit_quantile(repeated, 0.5),
               100.0 * fit_quantile(repeated, 0.9), repeated->len, p[GEMM_EFFICIENCY], p[GEMM_TILE],
               p[GEMM_DEPTH], p[GEMM_LATENCY] * 1e6, p[GEMM_SUSTAINED], p[GEMM_HEAT] * 1e6);
    }
    printf("\n");
}

static char *
read_file(const char *root, const char *name)
{
    g_autofree char *path = g_build_filename(root, "tests/reference", name, NULL);
    char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error))
        g_error("%s", error->message);
    return text;
}

int
main(int argc, char **argv)
{
    const char *root = argc > 1 ? argv[1] : ".";
    collectives();
    g_autofree char *gemm = read_file(root, "gemm_measured.csv");
    products(gemm);
    g_autofree char *runs = read_file(root, "runs.csv");
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpValidation) validation = zp_validate_run(runs, NULL, NULL, &error);
    g_assert_no_error(error);
    g_autofree char *table = zp_validate_table(validation);
    g_autofree char *summary = zp_validate_summary(validation);
    printf("%s\n%s", table, summary);
    return 0;
}
