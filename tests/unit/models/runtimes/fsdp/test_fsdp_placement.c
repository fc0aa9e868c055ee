/* Where fully_shard cuts a parameter: along the first dimension with padding, or along another. */
#include "models/families/catalog.h"
#include "models/job/wrapping.h"
#include "models/runtimes/fsdp/model.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/words/vocabulary.h"

enum { RANKS = 8, HIDDEN = 768, VOCABULARY = 50257 };

static gint64
bytes_of_role(const ZpTape *tape, ZpRole role, gint64 bytes)
{
    gint64 n = 0;
    for (gint32 b = 0; b < tape->n_buffers; b++)
        n += tape->buffers[b].role == role && tape->buffers[b].bytes == bytes;
    return n;
}

/* GPT-2's table has rows that eight ranks do not divide, and 768 columns that they do. */
static void
test_table(gconstpointer data)
{
    gboolean even = GPOINTER_TO_INT(data);
    ZpArchitectureOptions options = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_catalog_build("GPT-2", &options, &error);
    g_assert_no_error(error);
    ZpFsdp settings = *zp_fsdp_defaults();
    settings.shard_even = even;
    ZpOptimizer optimizer = {.name = "sgd"};
    ZpJob job = {
        .runtime = "fsdp2",
        .model = model,
        .optimizer = &optimizer,
        .fsdp = &settings,
        .precision = {.parameter = ZP_DTYPE_BF16,
                      .gradient = ZP_DTYPE_BF16,
                      .gathered = ZP_DTYPE_BF16,
                      .reduce = ZP_DTYPE_BF16,
                      .master = ZP_DTYPE_NONE,
                      .moments = ZP_DTYPE_BF16},
        .training = {.micro_batch = 1, .sequence = 64, .accumulation = 1},
        .world = {.ranks = RANKS, .shard_group = RANKS},
        .zero = {.stage = 3, .wrap = ZP_WRAP_BLOCK, .wrap_blocks = 1, .outer = ZP_OUTER_OWN},
        .simulation = {.simulated_ranks = 1, .steps = 1, .slow_rank = ZP_MODEL_NONE},
    };
    g_autoptr(ZpUnits) units = zp_wrapping_apply(model, &job.zero);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    g_assert_true(zp_runtime_fsdp2.compile(&job, units, tape, &error));
    g_assert_no_error(error);
    g_assert_true(zp_tape_check(tape, TRUE, ZP_CLASSES_PERSISTENT, &error));
    gint64 whole = (gint64)VOCABULARY * HIDDEN * 2;
    gint64 padded = (gint64)(VOCABULARY + RANKS - 1) / RANKS * RANKS * HIDDEN * 2;
    g_assert_cmpint(bytes_of_role(tape, ZP_ROLE_SHARD, whole / RANKS), ==, even);
    g_assert_cmpint(bytes_of_role(tape, ZP_ROLE_SHARD, padded / RANKS), ==, !even);
    /* Each copy-out needs a second buffer of its size, and the reduction a second gradient. */
    gint64 n_whole = bytes_of_role(tape, ZP_ROLE_UNSHARDED, whole);
    gint64 n_padded = bytes_of_role(tape, ZP_ROLE_UNSHARDED, padded);
    g_assert_cmpint(even ? n_padded : n_whole, ==, 0);
    g_assert_cmpint(even ? n_whole : n_padded, >, 0);
    g_assert_cmpint(n_whole % 2, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/placement/rows", GINT_TO_POINTER(FALSE), test_table);
    g_test_add_data_func("/placement/even", GINT_TO_POINTER(TRUE), test_table);
    return g_test_run();
}
