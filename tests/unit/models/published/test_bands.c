/* Bands: the shipped file is what the rows give, and rows lie inside as often as they should. */
#include "models/published/bands.h"
#include "models/words/grade.h"
#include "models/words/resources.h"

static ZpValidation *
validate(const char *name)
{
    g_autofree char *path = g_build_filename(ZP_SOURCE_DIR, "tests/reference", name, NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, &error));
    ZpValidation *validation = zp_validate_run(text, NULL, NULL, &error);
    g_assert_no_error(error);
    return validation;
}

static void
assert_hold(const ZpValidation *validation, const char *subset, int least_rows, double low,
            double high)
{
    int rows, inside;
    zp_validate_bands_hold(validation, subset, &rows, &inside);
    g_assert_cmpint(rows, >=, least_rows);
    double share = (double)inside / rows;
    if (share < low || share > high)
        g_error("%d of %d rows of %s lie inside their band", inside, rows, subset);
}

static void
test_rows(void)
{
    g_autoptr(ZpValidation) published = validate("runs.csv");
    g_autofree char *text = zp_validate_bands(published);
    g_assert_cmpstr(text, ==, zp_resources_text("catalog/bands.ini"));
    assert_hold(published, "time_val", 190, 0.85, 0.95);
    /* Rows that no band was made of: 27 of 32 when this was written. */
    g_autoptr(ZpValidation) newer = validate("runs_2.csv");
    assert_hold(newer, NULL, 32, 0.84, 0.95);
}

static void
test_sums(void)
{
    const ZpBand tenth = {0.1, 0.2};
    /* One rule: errors add; two: as squares; a part that is certain dilutes. */
    const ZpBandPart same[] = {{30.0, 1, tenth}, {40.0, 1, tenth}};
    ZpBand band = zp_band_of_sum(same, 2);
    g_assert_cmpfloat_with_epsilon(band.low, 0.1, 1e-12);
    g_assert_cmpfloat_with_epsilon(band.high, 0.2, 1e-12);
    const ZpBandPart apart[] = {{30.0, 1, tenth}, {40.0, 2, tenth}};
    band = zp_band_of_sum(apart, 2);
    g_assert_cmpfloat_with_epsilon(band.low, 5.0 / 70.0, 1e-12);
    g_assert_cmpfloat_with_epsilon(band.high, 10.0 / 70.0, 1e-12);
    const ZpBandPart certain[] = {{30.0, 1, tenth}, {70.0, 2, {0.0, 0.0}}};
    g_assert_cmpfloat_with_epsilon(zp_band_of_sum(certain, 2).low, 0.03, 1e-12);
    g_assert_cmpfloat(zp_band_of_sum(NULL, 0).high, ==, 0.0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bands/rows", test_rows);
    g_test_add_func("/bands/sums", test_sums);
    return g_test_run();
}
