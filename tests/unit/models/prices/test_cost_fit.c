/* How well the cost formulas meet measurements they were not given. */
#include "tests/cost_fit.h"
#include "tests/gemm_fit.h"

/* Below 1 MiB, to 64 MiB, beyond.  9/28, 10/34 and 4/15 % are what one square-root term for all
 * networks reaches this way. */
static void
test_leave_one_table_out(void)
{
    g_autoptr(GArray) tables = fit_tables();
    g_assert_cmpuint(tables->len, >=, 25);
    GArray *errors[FIT_N_SIZES];
    for (int s = 0; s < FIT_N_SIZES; s++)
        errors[s] = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint t = 0; t < tables->len; t++) {
        double p[FIT_N];
        memcpy(p, fit_start, sizeof p);
        fit_run(tables, t, p);
        fit_errors(&g_array_index(tables, FitTable, t), p, errors);
    }
    const struct {
        double median, p90;
    } bounds[FIT_N_SIZES] = {{0.067, 0.231}, {0.10, 0.29}, {0.04, 0.117}};
    for (int s = 0; s < FIT_N_SIZES; s++) {
        double median = fit_quantile(errors[s], 0.5), p90 = fit_quantile(errors[s], 0.9);
        g_test_message("size class %d: median %.3f, p90 %.3f of %u", s, median, p90,
                       errors[s]->len);
        g_assert_cmpfloat(median, <=, bounds[s].median);
        g_assert_cmpfloat(p90, <=, bounds[s].p90);
        g_array_unref(errors[s]);
    }
}

/* The library's own parameters are no worse than fitted ones: they were not copied wrongly. */
static void
test_defaults(void)
{
    g_autoptr(GArray) tables = fit_tables();
    ZpNetwork network = {.gpus_per_node = 8};
    zp_cost_network_defaults(&network, 450e9, 400e9, 9);
    double built_in[FIT_N] = {
        [FIT_RING] = network.link_efficiency,
        [FIT_COPY] = network.link_copy,
        [FIT_NVLS] = fit_nvls(),
        [FIT_NICS] = network.network_efficiency,
        [FIT_TAU_NEAR] = zp_time_to_seconds(network.link_tau_ps),
        [FIT_FILL] = zp_time_to_seconds(network.network_fill_ps),
        [FIT_ALPHA] = zp_time_to_seconds(network.link_latency_ps - ZP_COST_FABRIC_LAUNCH_PS),
        [FIT_LAUNCH] = zp_time_to_seconds(ZP_COST_FABRIC_LAUNCH_PS),
    };
    const char *const fabrics[ZP_N_FABRICS] = {"InfiniBand", "EFAv2", "GCP"};
    for (int f = 0; f < ZP_N_FABRICS; f++) {
        g_assert_cmpint(zp_cost_network_fabric(&network, fabrics[f]), ==, f);
        built_in[FIT_TAU_FAR + f] = zp_time_to_seconds(network.network_tau_ps);
    }
    double fitted[FIT_N];
    memcpy(fitted, fit_start, sizeof fitted);
    fit_run(tables, G_MAXUINT, fitted);
    double best = fit_loss(tables, G_MAXUINT, fitted);
    g_assert_cmpfloat(fit_loss(tables, G_MAXUINT, built_in), <, 1.02 * best);
    g_assert_cmpfloat(fit_loss(tables, G_MAXUINT, fit_start), >, 1.25 * best);
}

/* Median 5 %, p90 15 % of shapes left out, on all dense tables but one: B200 of SimuMax ran the
 * same shapes at 1430 or 1080 TFLOP/s.  There the constants of the shape are those that ship, which
 * come from another source, and with two more the model is as near as the table is to itself. */
static void
test_products(void)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "tests/reference/gemm_measured.csv", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const struct {
        double median, p90;
    } bounds[G_N_ELEMENTS(gemm_tables)] = {
        {0.03, 0.108}, {0.028, 0.093}, {0.044, 0.114}, {0.057, 0.256}};
    for (gsize i = 0; i < G_N_ELEMENTS(gemm_tables); i++) {
        g_autoptr(GArray) shapes = gemm_read(text, &gemm_tables[i]);
        g_assert_cmpuint(shapes->len, >=, 60);
        g_autoptr(GArray) errors = gemm_left_out(&gemm_tables[i], shapes);
        g_assert_cmpuint(errors->len, ==, shapes->len);
        double median = fit_quantile(errors, 0.5), p90 = fit_quantile(errors, 0.9);
        g_test_message("%s %s: median %.3f, p90 %.3f", gemm_tables[i].gpu, gemm_tables[i].table,
                       median, p90);
        g_assert_cmpfloat(median, <=, bounds[i].median);
        g_assert_cmpfloat(p90, <=, bounds[i].p90);
        g_autoptr(GArray) repeated = gemm_repetitions(shapes);
        if (gemm_tables[i].shape_of == NULL)
            continue;
        g_assert_cmpuint(repeated->len, >, 200);
        g_assert_cmpfloat(median, <, fit_quantile(repeated, 0.5));
        g_assert_cmpfloat(p90, <, 1.15 * fit_quantile(repeated, 0.9));
    }
}

/* The constants that ship meet the lone products they cite as well, without what a step loses. */
static void
test_built_in_products(void)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "tests/reference/gemm_measured.csv", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const struct {
        const char *gpu;
        int table;
    } cases[] = {{"A100-SXM-80", 0}, {"H100-SXM-80", 1}, {"B200-SXM-180", 2}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ZpCalibration *c = zp_calibration_find(cases[i].gpu);
        g_assert_nonnull(c);
        double p[GEMM_N] = {c->gemm_efficiency,
                            c->gemm_tile,
                            c->gemm_depth,
                            zp_time_to_seconds(c->gemm_latency_ps),
                            1.0,
                            0.0};
        g_autoptr(GArray) shapes = gemm_read(text, &gemm_tables[cases[i].table]);
        g_autoptr(GArray) errors = gemm_errors(&gemm_tables[cases[i].table], shapes, p);
        g_assert_cmpfloat(fit_quantile(errors, 0.5), <=, 0.05);
        g_assert_cmpfloat(fit_quantile(errors, 0.9), <=, 0.15);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cost-fit/leave-one-table-out", test_leave_one_table_out);
    g_test_add_func("/cost-fit/defaults", test_defaults);
    g_test_add_func("/cost-fit/products", test_products);
    g_test_add_func("/cost-fit/built-in-products", test_built_in_products);
    return g_test_run();
}
