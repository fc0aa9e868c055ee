/* Words of the column "gpu" are read by meaning, in any order. */
#include "models/published/record_internal.h"

static const ZpGpu *
read_gpu(const ZpHardware *hardware, const char *name, ZpGpu *variant)
{
    g_autofree char *text = g_strdup_printf("id,gpu\nA-1,\"%s\"\n", name);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, &error);
    g_assert_no_error(error);
    const ZpGpu *board =
        zp_validate_record_gpu(&(ZpValidateRecord){csv, 0}, hardware, variant, &error);
    g_assert_true((board == NULL) == (error != NULL));
    return board;
}

static void
test_boards(void)
{
    static const struct {
        const char *text, *board; /* NULL: refused */
    } rows[] = {{"A100-80GB", "A100-SXM-80"},
                {"A100-80GB-SXM", "A100-SXM-80"},
                {"NVIDIA A100-SXM4-40GB", "A100-SXM-40"},
                {"A100 PCIe 80GB", "A100-PCIe-80"},
                {"A800-80GB", "A800-SXM-80"},
                {"H100-96GB", "H100-SXM-80"},
                {"500W H100-96GB", "H100-SXM-80"},
                {"H100-96GB-HBM2e-500W", "H100-SXM-80"},
                {"H100-NVL-94GB", "H100-NVL-94"},
                {"V100-32GB", "V100-SXM2-32"},
                {"RTX 4090 24GB", "RTX4090-24"},
                {"A100-80GB-watercooled", NULL},
                {"A1000-80GB", NULL},
                {"", NULL}};
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        ZpGpu variant;
        const ZpGpu *board = read_gpu(hardware, rows[r].text, &variant);
        g_assert_cmpstr(board != NULL ? board->name : NULL, ==, rows[r].board);
    }
}

/* What differs from the catalogue's board is in the variant alone. */
static void
test_variants(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    ZpGpu plain, variant;
    const ZpGpu *board = read_gpu(hardware, "H100-80GB", &plain);
    g_assert_cmpint(plain.memory_bytes, ==, board->memory_bytes);
    g_assert_cmpstr(plain.name, ==, board->name);
    read_gpu(hardware, "H100-96GB-HBM2e-500W", &variant);
    g_assert_cmpfloat_with_epsilon((double)variant.memory_bytes / (double)board->memory_bytes, 1.2,
                                   1e-6);
    g_assert_cmpfloat_with_epsilon(variant.memory_bytes_per_s, 2.448e12, 1e9);
    g_assert_cmpfloat(zp_hardware_sustained_flops(hardware, &variant), <,
                      zp_hardware_sustained_flops(hardware, board));
    g_assert_cmpstr(variant.name, !=, board->name);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gpu-words/boards", test_boards);
    g_test_add_func("/gpu-words/variants", test_variants);
    return g_test_run();
}
