/* What every tape of PyTorch's runtimes must keep, whatever is wrapped, frozen or set. */
#include "sim/events/rng.h"
#include "sim/players/maxplus.h"
#include "sim/players/player.h"
#include "tests/random_plan.h"
#include "tests/unit/fixtures/fsdp_fixture.h"

enum { N_PLANS = 400, N_STEPS = 5, N_BYTES = 96 };

typedef enum { RUNTIME_DDP, RUNTIME_ZERO_OPTIMIZER, RUNTIME_FSDP1, RUNTIME_FSDP2 } Runtime;

static void
compile(const ZpFsdpPlan *plan, Runtime runtime, ZpTape *tape)
{
    switch (runtime) {
    case RUNTIME_DDP:
    case RUNTIME_ZERO_OPTIMIZER:
        zp_ddp_compile(plan, NULL, runtime == RUNTIME_ZERO_OPTIMIZER, N_STEPS, tape);
        break;
    case RUNTIME_FSDP1:
        zp_fsdp1_compile(plan, NULL, N_STEPS, tape);
        break;
    case RUNTIME_FSDP2:
        zp_fsdp2_compile(plan, NULL, N_STEPS, tape);
        break;
    }
}

/* Bytes that live when a step begins, by class. */
static void
bytes_at_step(const ZpTape *tape, gint32 step, gint64 *by_class)
{
    for (int c = 0; c < ZP_N_CLASSES; c++)
        by_class[c] = 0;
    g_autofree guint8 *class_of = g_new0(guint8, (gsize)tape->n_buffers + 1);
    gint32 end = step < tape->n_steps ? tape->step_begin[step] : tape->n_instrs;
    for (gint32 i = 0; i < end; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_ALLOC)
            class_of[instr->a] = tape->buffers[instr->a].class_id;
        if (instr->op == ZP_TAPE_ALLOC || instr->op == ZP_TAPE_RETAG)
            by_class[class_of[instr->a]] -=
                instr->op == ZP_TAPE_RETAG ? tape->buffers[instr->a].bytes : 0;
        if (instr->op == ZP_TAPE_RETAG)
            class_of[instr->a] = (guint8)(instr->b & 0xff);
        if (instr->op == ZP_TAPE_ALLOC || instr->op == ZP_TAPE_RETAG)
            by_class[class_of[instr->a]] += tape->buffers[instr->a].bytes;
        if (instr->op == ZP_TAPE_FREE)
            by_class[class_of[instr->a]] -= tape->buffers[instr->a].bytes;
    }
}

/* What one rank keeps of a parameter under fsdp2, and of a unit under fsdp1, in elements. */
static gint64
padded_shard(const ZpFsdpPlan *plan, const ZpFsdpParameter *parameter)
{
    return (parameter->rows + plan->shard - 1) / plan->shard * parameter->row_elements;
}

static gint64
flat_shard(const ZpFsdpPlan *plan, const ZpFsdpUnit *unit)
{
    gint64 elements = 0;
    int width = plan->param_bytes ? plan->param_bytes : plan->stored_bytes;
    gint64 alignment = plan->settings.use_orig_params ? 16 / width : 1;
    for (gint32 p = 0; p < unit->n_parameters; p++) {
        elements = (elements + alignment - 1) / alignment * alignment;
        elements +=
            zp_fsdp_parameter_elements(zp_fsdp_plan_parameter(plan, unit->first_parameter + p));
    }
    gint64 ranks = plan->shard > 1 ? plan->shard : plan->replicate;
    if (plan->settings.use_orig_params)
        elements = (elements + ranks - 1) / ranks * ranks;
    return (elements + plan->shard - 1) / plan->shard;
}

static gint64
parameter_bytes(const ZpFsdpPlan *plan, Runtime runtime)
{
    gint64 elements = 0;
    if (runtime == RUNTIME_FSDP1) {
        for (gint32 u = 0; u < (gint32)plan->units->len; u++)
            elements += flat_shard(plan, zp_fsdp_plan_unit(plan, u));
    } else {
        for (gint32 p = 0; p < (gint32)plan->parameters->len; p++) {
            const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
            elements += runtime == RUNTIME_FSDP2 ? padded_shard(plan, parameter)
                                                 : zp_fsdp_parameter_elements(parameter);
        }
    }
    return elements * plan->stored_bytes;
}

static gint64
trainable_bytes(const ZpFsdpPlan *plan)
{
    gint64 bytes = 0;
    for (gint32 p = 0; p < (gint32)plan->parameters->len; p++) {
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, p);
        bytes += parameter->trainable ? zp_fsdp_parameter_elements(parameter) : 0;
    }
    return bytes * plan->stored_bytes;
}

static void
check_persistent(const ZpFsdpPlan *plan, Runtime runtime, const ZpTape *tape)
{
    gint64 third[ZP_N_CLASSES], last[ZP_N_CLASSES];
    bytes_at_step(tape, N_STEPS - 1, third);
    bytes_at_step(tape, N_STEPS, last);
    for (int c = 0; c < ZP_N_CLASSES; c++)
        g_assert_cmpint(third[c], ==, last[c]);
    g_assert_cmpint(last[ZP_CLASS_PARAMETER], ==, parameter_bytes(plan, runtime));
    g_assert_cmpint(last[ZP_CLASS_OPTIMIZER_TEMPORARY], ==, 0);
    if (runtime == RUNTIME_DDP || runtime == RUNTIME_ZERO_OPTIMIZER) {
        g_assert_cmpint(last[ZP_CLASS_COMMUNICATION], ==, trainable_bytes(plan));
        gboolean own = !plan->settings.set_to_none && !plan->settings.gradient_as_bucket_view;
        g_assert_cmpint(last[ZP_CLASS_GRADIENT], ==, own ? trainable_bytes(plan) : 0);
    } else if (plan->settings.set_to_none && !plan->settings.use_orig_params &&
               !plan->settings.zero_grad_after_forward) {
        g_assert_cmpint(last[ZP_CLASS_COMMUNICATION], ==, 0);
        g_assert_cmpint(last[ZP_CLASS_GRADIENT], ==, 0);
    }
    gboolean whole = runtime == RUNTIME_FSDP1 && plan->strategy == ZP_FSDP_STRATEGY_SHARD_GRAD_OP;
    if (!whole) /* a frozen unit that no backward reaches stays gathered */
        g_assert_cmpint(last[ZP_CLASS_GATHERED], ==, 0);
    if (runtime == RUNTIME_DDP)
        g_assert_cmpint(last[ZP_CLASS_MOMENTUM], ==, plan->moments > 0 ? trainable_bytes(plan) : 0);
}

/* Every gradient is reduced once in each micro-batch that synchronises. */
static void
check_reduction(const ZpFsdpPlan *plan, Runtime runtime, const ZpTape *tape)
{
    gint64 bytes = 0, n_sync = 0;
    if (runtime != RUNTIME_DDP || plan->settings.find_unused_parameters)
        return;
    for (guint m = 0; m < plan->micro_batches->len; m++)
        n_sync += g_array_index(plan->micro_batches, ZpFsdpMicroBatch, m).sync != FALSE;
    for (gint32 i = tape->step_begin[N_STEPS - 1]; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_LAUNCH && tape->works[instr->a].kind == ZP_KIND_ALL_REDUCE)
            bytes += tape->works[instr->a].bytes;
    }
    g_assert_cmpint(bytes, ==, n_sync * trainable_bytes(plan));
}

/* A run that is under way comes to the same steady step as one that begins. */
static void
check_beginning(ZpFsdpPlan *plan, Runtime runtime, const ZpTape *tape)
{
    g_autoptr(ZpTape) other = zp_tape_new(zp_vocabulary_get());
    plan->settings.first_step = !plan->settings.first_step;
    compile(plan, runtime, other);
    Figures one = figures_of(tape), two = figures_of(other);
    g_assert_cmpint(one.start_bytes, ==, two.start_bytes);
    for (int phase = 0; phase < ZP_N_PHASES; phase++) {
        g_assert_cmpint(one.peak_bytes[phase], ==, two.peak_bytes[phase]);
        g_assert_cmpint(one.end_bytes[phase], ==, two.end_bytes[phase]);
    }
    for (int kind = 0; kind < ZP_N_KINDS; kind++)
        g_assert_cmpint(one.bytes[kind], ==, two.bytes[kind]);
    g_assert_cmpstr(one.collectives->str, ==, two.collectives->str);
    figures_clear(&one);
    figures_clear(&two);
}

static void
check_players(const ZpTape *tape)
{
    ZpPlayConfig config = {.n_ranks = 1};
    g_auto(ZpPlayResult) played = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_player_play(tape, &config, &played, &error));
    g_assert_no_error(error);
}

static void
test_random(gconstpointer data)
{
    Runtime runtime = (Runtime)GPOINTER_TO_INT(data);
    for (int n = 0; n < N_PLANS; n++) {
        guint8 bytes[N_BYTES];
        for (int i = 0; i < N_BYTES; i++)
            bytes[i] = (guint8)zp_rng_bits((guint64)n, (gint32)runtime, i);
        RandomBytes source = {bytes, bytes + N_BYTES};
        g_autoptr(ZpFsdpPlan) plan = random_plan(&source);
        g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
        g_autoptr(GError) error = NULL;
        compile(plan, runtime, tape);
        g_test_message("plan %d", n);
        zp_tape_check(tape, FALSE, 0, &error);
        g_assert_no_error(error);
        check_persistent(plan, runtime, tape);
        check_reduction(plan, runtime, tape);
        check_players(tape);
        check_beginning(plan, runtime, tape);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/properties/ddp", GINT_TO_POINTER(RUNTIME_DDP), test_random);
    g_test_add_data_func("/properties/zero-optimizer", GINT_TO_POINTER(RUNTIME_ZERO_OPTIMIZER),
                         test_random);
    g_test_add_data_func("/properties/fsdp1", GINT_TO_POINTER(RUNTIME_FSDP1), test_random);
    g_test_add_data_func("/properties/fsdp2", GINT_TO_POINTER(RUNTIME_FSDP2), test_random);
    return g_test_run();
}
