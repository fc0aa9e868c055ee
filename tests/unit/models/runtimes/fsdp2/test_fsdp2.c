/* The fsdp2 runtime through the product's path: catalogue model, wrapping, plan, tape, play. */
#include "models/families/catalog.h"
#include "models/job/fsdp.h"
#include "models/job/optimizer.h"
#include "models/runtimes/fsdp/model.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/words/vocabulary.h"
#include "sim/players/player.h"
#include "tests/unit/fixtures/job_fixture.h"

typedef struct {
    ZpModel *model;
    ZpFsdp settings;
    ZpJob job;
    ZpUnits *units;
    ZpTape *tape;
} Case;

/* Llama-3-8B as torchtitan trains it: fp32 parameters, bf16 compute, fp32 reduction. */
static void
case_init(Case *c, gint32 ranks)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 1, 1);
    *c = (Case){.job = fixture.job, .settings = *zp_fsdp_defaults()};
    job_fixture_clear(&fixture);
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    c->model = zp_catalog_build("Llama-3-8B", &options, &error);
    g_assert_no_error(error);
    c->job.model = c->model;
    c->job.optimizer = zp_optimizer_find("adamw");
    c->job.fsdp = &c->settings;
    c->job.precision = (ZpPrecision){.parameter = ZP_DTYPE_FP32,
                                     .gradient = ZP_DTYPE_FP32,
                                     .gathered = ZP_DTYPE_BF16,
                                     .reduce = ZP_DTYPE_FP32,
                                     .master = ZP_DTYPE_NONE,
                                     .moments = ZP_DTYPE_FP32};
    c->job.training = (ZpTraining){.micro_batch = 1,
                                   .sequence = 256,
                                   .accumulation = 1,
                                   .checkpointing = ZP_CHECKPOINTING_FULL};
    c->job.world = (ZpWorld){.ranks = ranks, .shard_group = ranks};
    c->job.zero.prefetch_forward = c->job.zero.prefetch_backward = 1;
}

static void
case_clear(Case *c)
{
    zp_model_free(c->model);
    zp_wrapping_free(c->units);
    zp_tape_free(c->tape);
}

static void
compile(Case *c)
{
    g_autoptr(GError) error = NULL;
    zp_wrapping_free(c->units);
    c->units = zp_wrapping_apply(c->model, &c->job.zero);
    if (c->tape == NULL)
        c->tape = zp_tape_new(zp_vocabulary_get());
    zp_tape_clear(c->tape);
    g_assert_true(zp_runtime_fsdp2.compile(&c->job, c->units, c->tape, &error));
    g_assert_no_error(error);
    g_assert_true(zp_tape_check(c->tape, TRUE, ZP_CLASSES_PERSISTENT, &error));
    g_assert_no_error(error);
}

static int
count(const Case *c, ZpKind kind)
{
    int n = 0;
    for (gint32 i = c->tape->step_begin[c->tape->n_steps - 1]; i < c->tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &c->tape->instrs[i];
        n += instr->op == ZP_TAPE_LAUNCH && c->tape->works[instr->a].kind == (gint16)kind;
    }
    return n;
}

/* Peak of a class over the tape in host order. */
static gint64
class_peak(const Case *c, ZpClass class_id)
{
    gint64 now = 0, peak = 0;
    for (gint32 i = 0; i < c->tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &c->tape->instrs[i];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        const ZpTapeBuffer *buffer = &c->tape->buffers[instr->a];
        if (buffer->class_id == class_id && buffer->space == ZP_TAPE_SPACE_DEVICE)
            now += instr->op == ZP_TAPE_ALLOC ? buffer->bytes : -buffer->bytes;
        peak = MAX(peak, now);
    }
    return peak;
}

static gint64
persistent_bytes(const Case *c)
{
    gint64 sum = 0;
    for (gint32 i = 0; i < c->tape->step_begin[0]; i++) {
        const ZpTapeInstr *instr = &c->tape->instrs[i];
        const ZpTapeBuffer *buffer = &c->tape->buffers[instr->a];
        if (instr->op == ZP_TAPE_ALLOC && buffer->space == ZP_TAPE_SPACE_DEVICE &&
            buffer->class_id != ZP_CLASS_RUNTIME)
            sum += buffer->bytes;
    }
    return sum;
}

/* As torchtitan wraps: embedding, blocks, norm with head; the last is not resharded. */
static void
test_titan_wrapping(void)
{
    Case c;
    case_init(&c, 8);
    compile(&c);
    g_assert_cmpint(persistent_bytes(&c), ==, G_GINT64_CONSTANT(12) * 8030261248 / 8);
    g_assert_cmpint(class_peak(&c, ZP_CLASS_OPTIMIZER_TEMPORARY), ==,
                    G_GINT64_CONSTANT(4) * 8030261248 / 8);
    g_assert_cmpint(count(&c, ZP_KIND_ALL_GATHER), ==, 67);
    g_assert_cmpint(count(&c, ZP_KIND_REDUCE_SCATTER), ==, 34);
    /* Blocks and the root: 65 and 33. */
    c.job.zero.outer = ZP_OUTER_ROOT;
    compile(&c);
    g_assert_cmpint(count(&c, ZP_KIND_ALL_GATHER), ==, 65);
    g_assert_cmpint(count(&c, ZP_KIND_REDUCE_SCATTER), ==, 33);
    c.job.zero.wrap = ZP_WRAP_MODEL;
    compile(&c);
    g_assert_cmpint(count(&c, ZP_KIND_ALL_GATHER), ==, 1);
    g_assert_cmpint(count(&c, ZP_KIND_REDUCE_SCATTER), ==, 1);
    c.job.zero.wrap = ZP_WRAP_BLOCK;
    c.job.zero.wrap_blocks = 4;
    compile(&c);
    g_assert_cmpint(count(&c, ZP_KIND_ALL_GATHER), ==, 2 * 8 + 1);
    c.job.zero.wrap = ZP_WRAP_SUBLAYER;
    compile(&c);
    g_assert_cmpint(count(&c, ZP_KIND_REDUCE_SCATTER), >, 2 * 32);
    case_clear(&c);
}

static void
test_stage_2(void)
{
    Case c;
    case_init(&c, 8);
    c.job.zero.stage = 2;
    compile(&c);
    g_assert_cmpint(count(&c, ZP_KIND_ALL_GATHER), ==, 34);
    g_assert_cmpint(count(&c, ZP_KIND_REDUCE_SCATTER), ==, 34);
    case_clear(&c);
}

/* A master copy in fp32 is how PyTorch stores parameters that it computes with in bf16. */
static void
test_master(void)
{
    Case c;
    case_init(&c, 8);
    compile(&c);
    gint64 stored = persistent_bytes(&c);
    c.job.precision.parameter = ZP_DTYPE_BF16;
    c.job.precision.master = ZP_DTYPE_FP32;
    compile(&c);
    g_assert_cmpint(persistent_bytes(&c), ==, stored);
    c.job.precision.master = ZP_DTYPE_NONE; /* pure bf16: half of everything */
    compile(&c);
    g_assert_cmpint(persistent_bytes(&c), ==, stored / 2);
    case_clear(&c);
}

/* CPU offload: shards, gradients and states are in host memory, copies and the optimizer too. */
static void
test_offload(void)
{
    Case c;
    case_init(&c, 8);
    c.settings.cpu_offload = TRUE;
    compile(&c);
    g_assert_cmpint(persistent_bytes(&c), ==, 0);
    g_assert_cmpint(class_peak(&c, ZP_CLASS_PARAMETER), ==, 0);
    g_assert_cmpint(count(&c, ZP_KIND_HOST_TO_DEVICE), ==, 67);
    g_assert_cmpint(count(&c, ZP_KIND_DEVICE_TO_HOST), ==, 34);
    g_assert_cmpint(count(&c, ZP_KIND_HOST_OPTIMIZER), ==, 1);
    g_assert_cmpint(count(&c, ZP_KIND_OPTIMIZER), ==, 0);
    gint64 pinned = 0;
    for (gint32 b = 0; b < c.tape->n_buffers; b++) {
        if (c.tape->buffers[b].space == ZP_TAPE_SPACE_HOST && c.tape->buffers[b].pinned)
            pinned += c.tape->buffers[b].bytes;
    }
    /* Parameters and gradients. */
    g_assert_cmpint(pinned, ==, G_GINT64_CONSTANT(8) * 8030261248 / 8);
    c.job.training.accumulation = 2;
    compile(&c);
    case_clear(&c);
}

static ZpTime
host_optimizer_time(Case *c)
{
    compile(c);
    ZpTime sum = 0;
    for (gint32 i = 0; i < c->tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &c->tape->instrs[i];
        if (instr->op == ZP_TAPE_LAUNCH && c->tape->works[instr->a].kind == ZP_KIND_HOST_OPTIMIZER)
            sum += c->tape->works[instr->a].solo_ps;
    }
    return sum;
}

/* Eight ranks of a node share cores that update 4e9 elements a second; of two nodes each has its
 * own. */
static void
test_host_optimizer(void)
{
    Case c;
    case_init(&c, 8);
    c.settings.cpu_offload = TRUE;
    c.settings.optimizer = ZP_FSDP_OPTIMIZER_FUSED;
    const double fused = 8030261248.0 / 4e9;
    double slack = 1e-6;
    g_assert_cmpfloat_with_epsilon(zp_time_to_seconds(host_optimizer_time(&c)), fused, slack);
    c.settings.optimizer = ZP_FSDP_OPTIMIZER_FOREACH;
    g_assert_cmpfloat_with_epsilon(zp_time_to_seconds(host_optimizer_time(&c)), 5.8 * fused, slack);
    c.settings.optimizer = ZP_FSDP_OPTIMIZER_FUSED;
    c.settings.cpu_adam_elements_per_s = 8e9;
    g_assert_cmpfloat_with_epsilon(zp_time_to_seconds(host_optimizer_time(&c)), fused / 2, slack);
    c.job.world = (ZpWorld){.ranks = 16, .shard_group = 16};
    g_assert_cmpfloat_with_epsilon(zp_time_to_seconds(host_optimizer_time(&c)), fused / 4, slack);
    case_clear(&c);
}

/* Every combination makes a tape that is legal and leaves nothing behind. */
static void
test_combinations(void)
{
    Case c;
    case_init(&c, 16);
    static const gint32 reshards[] = {-1, 0, 2};
    for (int i = 0; i < 3 * 64; i++) {
        c.settings.reshard_after_forward = reshards[i % 3];
        int bits = i / 3;
        c.job.training.accumulation = 1 + (bits & 1);
        c.settings.sync_every_micro_batch = bits & 2;
        c.settings.reshard_after_backward = bits & 4;
        c.settings.all_reduce_every_micro_batch = bits & 8;
        c.job.world.shard_group = bits & 16 ? 4 : 16;
        c.settings.reduce_dtype_unset = bits & 32;
        c.settings.cpu_offload = (i % 5) == 0;
        c.settings.checkpoint_outside = (i % 7) == 0;
        c.settings.forward_prefetch = i % 4;
        c.settings.backward_prefetch = (i / 2) % 3;
        c.job.zero.wrap = (i % 6) == 0 ? ZP_WRAP_SUBLAYER : ZP_WRAP_BLOCK;
        compile(&c);
    }
    case_clear(&c);
}

static void
test_refusals(void)
{
    Case c;
    case_init(&c, 8);
    c.units = zp_wrapping_apply(c.model, &c.job.zero);
    c.tape = zp_tape_new(zp_vocabulary_get());
    c.settings.reshard_after_forward = 3;
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_runtime_fsdp2.compile(&c.job, c.units, c.tape, &error));
    g_assert_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_RANGE);
    g_assert_nonnull(strstr(error->message, "must divide"));
    case_clear(&c);
}

/* The all-gather of the next unit runs beside computation: prefetching is worth something. */
static void
test_overlap(void)
{
    Case c;
    case_init(&c, 8);
    c.job.training.sequence = 4096;
    c.job.device.flops_per_s = 400e12;
    c.job.zero.outer = ZP_OUTER_OWN;
    compile(&c);
    ZpPlayConfig config = {.n_ranks = 1};
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_player_play(c.tape, &config, &result, &error));
    const ZpPlayRank *rank = &result.ranks[0];
    g_assert_cmpint(rank->busy[ZP_TAPE_COMMUNICATION], >, 2 * rank->exposed);
    g_assert_cmpint(rank->memory[ZP_TAPE_SPACE_DEVICE].total_bytes, ==,
                    persistent_bytes(&c) + c.job.device.overhead_bytes);
    case_clear(&c);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fsdp2/titan-wrapping", test_titan_wrapping);
    g_test_add_func("/fsdp2/stage-2", test_stage_2);
    g_test_add_func("/fsdp2/master", test_master);
    g_test_add_func("/fsdp2/offload", test_offload);
    g_test_add_func("/fsdp2/host-optimizer", test_host_optimizer);
    g_test_add_func("/fsdp2/combinations", test_combinations);
    g_test_add_func("/fsdp2/refusals", test_refusals);
    g_test_add_func("/fsdp2/overlap", test_overlap);
    return g_test_run();
}
