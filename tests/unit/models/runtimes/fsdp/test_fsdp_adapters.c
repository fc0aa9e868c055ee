/* Low-rank adapters under PyTorch's runtimes: what peft's wrapping makes of them. */
#include "models/families/adapters.h"
#include "models/families/catalog.h"
#include "models/job/wrapping.h"
#include "models/runtimes/fsdp/model.h"
#include "models/runtimes/fsdp1/fsdp1.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/words/vocabulary.h"

enum { N_BLOCKS = 12, RANK = 8, HIDDEN = 768 };

typedef struct {
    ZpModel *model;
    ZpOptimizer optimizer;
    ZpFsdp settings;
    ZpJob job;
    ZpUnits *units;
} Case;

/* GPT-2 with adapters on the fused projection [768, 2304] of each block. */
static void
case_init(Case *c)
{
    ZpArchitectureOptions options = {0};
    g_autoptr(GError) error = NULL;
    *c = (Case){.settings = *zp_fsdp_defaults()};
    c->model = zp_catalog_build("GPT-2", &options, &error);
    g_assert_no_error(error);
    g_assert_true(zp_model_add_lora(c->model, RANK, "c_attn", FALSE, &error));
    g_assert_no_error(error);
    c->optimizer = (ZpOptimizer){.name = "adamw", .momentum = TRUE, .variance = TRUE};
    c->job = (ZpJob){
        .runtime = "fsdp1",
        .model = c->model,
        .optimizer = &c->optimizer,
        .precision = {.parameter = ZP_DTYPE_BF16,
                      .gradient = ZP_DTYPE_BF16,
                      .gathered = ZP_DTYPE_BF16,
                      .reduce = ZP_DTYPE_BF16,
                      .master = ZP_DTYPE_NONE,
                      .moments = ZP_DTYPE_BF16},
        .training = {.micro_batch = 1, .sequence = 64, .accumulation = 1},
        .world = {.ranks = 4, .shard_group = 4},
        .zero = {.stage = 3,
                 .wrap = ZP_WRAP_BLOCK,
                 .wrap_blocks = 1,
                 .outer = ZP_OUTER_ROOT,
                 .reshard_after_forward = TRUE},
        .simulation = {.simulated_ranks = 1, .steps = 2, .slow_rank = ZP_MODEL_NONE},
    };
    c->job.fsdp = &c->settings;
    c->units = zp_wrapping_apply(c->model, &c->job.zero);
}

static void
case_clear(Case *c)
{
    zp_wrapping_free(c->units);
    zp_model_free(c->model);
}

/* Adapters in the unit of their block are what PyTorch refuses to flatten with the frozen rest. */
static void
test_refused(void)
{
    Case c;
    case_init(&c);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_runtime_fsdp1.compile(&c.job, c.units, tape, &error));
    g_assert_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_RANGE);
    g_assert_nonnull(strstr(error->message, "use_orig_params"));
    case_clear(&c);
}

static int
count_unit(const ZpTape *tape, ZpKind kind, const char *part)
{
    int n = 0;
    for (gint32 i = tape->step_begin[tape->n_steps - 1]; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_LAUNCH && tape->works[instr->a].kind == (gint16)kind &&
            instr->unit != ZP_TAPE_NONE)
            n += strstr(g_ptr_array_index(tape->unit_names, (guint)instr->unit), part) != NULL;
    }
    return n;
}

/* Each of the two matrices of an adapter is a unit; only they are reduced and have states. */
static void
test_wrapped(gconstpointer data)
{
    const ZpRuntime *runtime = data;
    Case c;
    case_init(&c);
    c.settings.wrap_trainable = TRUE;
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpFsdpPlan) plan = zp_fsdp_model_plan(&c.job, c.units, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(plan->units->len, ==, (guint)c.units->n_units + 2 * N_BLOCKS);
    const ZpFsdpUnit *last = zp_fsdp_plan_unit(plan, (gint32)plan->units->len - 1);
    g_assert_true(g_str_has_suffix(last->name, "lora_B.default"));
    g_assert_cmpint(last->n_parameters, ==, 1);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    g_assert_true(zp_runtime_fsdp1.compile(&c.job, c.units, tape, &error));
    g_clear_pointer(&tape, zp_tape_free);
    tape = zp_tape_new(zp_vocabulary_get());
    g_assert_true(runtime->compile(&c.job, c.units, tape, &error));
    g_assert_no_error(error);
    g_assert_true(zp_tape_check(tape, TRUE, ZP_CLASSES_PERSISTENT, &error));
    g_assert_cmpint(count_unit(tape, ZP_KIND_REDUCE_SCATTER, "lora_"), ==, 2 * N_BLOCKS);
    g_assert_cmpint(count_unit(tape, ZP_KIND_REDUCE_SCATTER, ""), ==, 2 * N_BLOCKS);
    gint64 momentum = 0;
    for (gint32 b = 0; b < tape->n_buffers; b++)
        if (tape->buffers[b].class_id == ZP_CLASS_MOMENTUM)
            momentum += tape->buffers[b].bytes;
    g_assert_cmpint(momentum, ==, N_BLOCKS * RANK * (HIDDEN + 3 * HIDDEN) / 4 * 2);
    case_clear(&c);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/adapters/refused", test_refused);
    g_test_add_data_func("/adapters/fsdp1", &zp_runtime_fsdp1, test_wrapped);
    g_test_add_data_func("/adapters/fsdp2", &zp_runtime_fsdp2, test_wrapped);
    return g_test_run();
}
