/* Statements about Llama-3-8B, wrapped as torchtitan does (embedding; every block; norm with head),
 * bf16 parameters, fp32 reduction, AdamW foreach, a steady step: parameters and buffers alone.
 * Measured on PyTorch 2.14.1, with activations of 69,206,016 bytes (and the loss) at the peaks. */
#include "models/families/catalog.h"
#include "models/job/wrapping.h"
#include "models/runtimes/fsdp/model.h"
#include "tests/unit/fixtures/fsdp_fixture.h"

#define N_ELEMENTS G_GINT64_CONSTANT(8030261248)
#define LAYER_BYTES G_GINT64_CONSTANT(436224000)    /* of a block in bf16 */
#define HEAD_BYTES G_GINT64_CONSTANT(1050681344)    /* norm and head in bf16 */
#define LM_HEAD_BYTES G_GINT64_CONSTANT(1050673152) /* head alone */

/* Highest value in backward of the last step while the unit's own buffers are made. */
static gint64
peak_of_unit(const ZpTape *tape, gint32 unit)
{
    gint64 now = 0, peak = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_FREE)
            now -= tape->buffers[instr->a].bytes;
        if (instr->op != ZP_TAPE_ALLOC)
            continue;
        now += tape->buffers[instr->a].bytes;
        if (i >= tape->step_begin[tape->n_steps - 1] && instr->phase == ZP_PHASE_BACKWARD &&
            instr->unit == unit)
            peak = MAX(peak, now);
    }
    return peak;
}

/* `head_peak_bytes` (if wanted): backward's while the head's gradients are reduced. */
static Figures
figures_of_llama(gint32 ranks, gint64 *head_peak_bytes)
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
        .world = {.ranks = ranks, .shard_group = ranks},
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
    if (head_peak_bytes)
        *head_peak_bytes = peak_of_unit(tape, units->n_units - 1);
    return figures_of(tape);
}

/* 31: twelve bytes a parameter at rest, 20 in the optimizer's step. */
static void
test_at_rest(void)
{
    Figures figures = figures_of_llama(8, NULL);
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
        Figures figures = figures_of_llama(i ? 64 : 8, NULL);
        g_assert_cmpint(figures.peak_bytes[ZP_PHASE_FORWARD] - figures.start_bytes, ==,
                        LAYER_BYTES + 2 * HEAD_BYTES);
        figures_clear(&figures);
    }
}

/* 33: the head's reduction, beside the block gathered ahead, and at the end the embedding's, in the
 * final callback, when all gradients are there.  The latter is the peak, but
 * for the activations beside the former: with them 64 ranks peak at the head. */
static void
test_backward(void)
{
    gint64 table = G_GINT64_CONSTANT(128256) * 4096;
    for (gint32 ranks = 8; ranks <= 64; ranks *= 8) {
        gint64 head_peak_bytes;
        Figures figures = figures_of_llama(ranks, &head_peak_bytes);
        gint64 at_head = 2 * HEAD_BYTES + 2 * HEAD_BYTES / ranks + LM_HEAD_BYTES + LAYER_BYTES;
        gint64 at_embedding = 2 * table + 4 * table + 4 * N_ELEMENTS / ranks;
        if (ranks == 64)
            g_assert_cmpint(at_head, ==, G_GINT64_CONSTANT(3690299656) - 69206024);
        g_assert_cmpint(head_peak_bytes - figures.start_bytes, ==, at_head);
        g_assert_cmpint(figures.peak_bytes[ZP_PHASE_BACKWARD] - figures.start_bytes, ==,
                        at_embedding);
        figures_clear(&figures);
    }
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
