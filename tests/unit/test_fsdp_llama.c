/* Statements about Llama-3-8B, wrapped as torchtitan does (embedding; every block; norm with head),
 * bf16 parameters, fp32 reduction, AdamW foreach, a steady step: parameters and buffers alone.
 * Measured on PyTorch 2.14.1, with activations of 69,206,016 bytes (and the loss) at the peaks. */
#include "fsdp_fixture.h"
#include "models/catalog.h"
#include "models/runtimes/fsdp_model.h"
#include "models/wrapping.h"

#define N_ELEMENTS G_GINT64_CONSTANT(8030261248)
#define LAYER_BYTES G_GINT64_CONSTANT(436224000)    /* of a block in bf16 */
#define HEAD_BYTES G_GINT64_CONSTANT(1050681344)    /* norm and head in bf16 */
#define LM_HEAD_BYTES G_GINT64_CONSTANT(1050673152) /* head alone */

static Figures
figures_of_llama(gint32 ranks)
{
    ZpArchitectureOptions options = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_catalog_build("Llama-3-8B", &options, &error);
    g_assert_no_error(error);
    g_assert_cmpint(model->n_elements, ==, N_ELEMENTS);
    ZpOptimizer optimizer = {.name = "adamw", .momentum = TRUE, .variance = TRUE};
    ZpJob job = {
        .runtime = "fsdp2",
        .model = model,
        .optimizer = &optimizer,
        .precision = {.parameter = ZP_DTYPE_FP32,
                      .gradient = ZP_DTYPE_BF16,
                      .gathered = ZP_DTYPE_BF16,
                      .reduce = ZP_DTYPE_FP32,
                      .master = ZP_DTYPE_NONE,
                      .moments = ZP_DTYPE_FP32},
        .training = {.micro_batch = 1, .sequence = 256, .accumulation = 1},
        .world = {ranks, ranks},
        .zero = {.stage = 3,
                 .wrap = ZP_WRAP_BLOCK,
                 .wrap_blocks = 1,
                 .outer = ZP_OUTER_OWN,
                 .reshard_after_forward = TRUE},
    };
    g_autoptr(ZpUnits) units = zp_wrapping_apply(model, &job.zero);
    g_autoptr(ZpFsdpPlan) plan = zp_fsdp_model_plan(&job, units, &error);
    g_assert_no_error(error);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    zp_fsdp2_compile(plan, NULL, 2, tape);
    return figures_of(tape);
}

/* 31: twelve bytes a parameter at rest, 20 in the optimizer's step. */
static void
test_at_rest(void)
{
    Figures figures = figures_of_llama(8);
    g_assert_cmpint(figures.start_bytes, ==, 12 * N_ELEMENTS / 8);
    g_assert_cmpint(figures.peak_bytes[ZP_PHASE_OPTIMIZER], ==, 20 * N_ELEMENTS / 8);
    g_assert_cmpint(figures.count[ZP_KIND_ALL_GATHER], ==, 67);
    g_assert_cmpint(figures.count[ZP_KIND_REDUCE_SCATTER], ==, 34);
    g_assert_cmpint(figures.bytes[ZP_KIND_ALL_GATHER], ==, G_GINT64_CONSTANT(31070363648));
    g_assert_cmpint(figures.bytes[ZP_KIND_REDUCE_SCATTER], ==, G_GINT64_CONSTANT(32121044992));
    figures_clear(&figures);
}

/* 32: the head is copied out while the last block's gathered parameters still live. */
static void
test_forward(void)
{
    for (int i = 0; i < 2; i++) {
        Figures figures = figures_of_llama(i ? 64 : 8);
        g_assert_cmpint(figures.peak_bytes[ZP_PHASE_FORWARD] - figures.start_bytes, ==,
                        LAYER_BYTES + 2 * HEAD_BYTES);
        figures_clear(&figures);
    }
}

/* 33: at 64 ranks the peak of backward is the head's reduction, beside the block gathered ahead; at
 * 8 the gradients have grown by the time that the embedding is reduced, in the final callback. */
static void
test_backward(void)
{
    Figures wide = figures_of_llama(64);
    gint64 reduced = 2 * HEAD_BYTES + 2 * HEAD_BYTES / 64;
    gint64 at_head = reduced + LM_HEAD_BYTES + LAYER_BYTES;
    g_assert_cmpint(at_head, ==, G_GINT64_CONSTANT(3690299656) - 69206024);
    g_assert_cmpint(wide.peak_bytes[ZP_PHASE_BACKWARD] - wide.start_bytes, ==, at_head);
    figures_clear(&wide);
    Figures narrow = figures_of_llama(8);
    gint64 table = G_GINT64_CONSTANT(128256) * 4096;
    /* its gradient and the reduction's input, beside all sharded gradients */
    g_assert_cmpint(narrow.peak_bytes[ZP_PHASE_BACKWARD] - narrow.start_bytes, ==,
                    2 * table + 4 * table + 4 * N_ELEMENTS / 8);
    figures_clear(&narrow);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/llama/at-rest", test_at_rest);
    g_test_add_func("/llama/forward", test_forward);
    g_test_add_func("/llama/backward", test_backward);
    return g_test_run();
}
