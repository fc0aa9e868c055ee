/* The fsdp1 runtime: record_stream and the rate limiter in time, and the product's path. */
#include "models/runtimes/fsdp1/fsdp1.h"

#include "sim/allocator/allocator.h"
#include "sim/players/player.h"
#include "tests/unit/fixtures/fsdp_fixture.h"
#include "tests/unit/fixtures/job_fixture.h"

typedef struct {
    JobFixture fixture;
    ZpFsdp settings;
    ZpUnits *units;
    ZpTape *tape;
} Case;

/* Eight layers; a gather takes about as long as a layer computes. */
static void
case_init(Case *c)
{
    *c = (Case){.settings = *zp_fsdp_defaults()};
    job_fixture_init(&c->fixture, 4000000, 8);
    c->fixture.job.optimizer = &c->fixture.optimizer;
    c->fixture.job.fsdp = &c->settings;
    c->fixture.job.precision.parameter = ZP_DTYPE_FP32;
    c->fixture.job.precision.master = ZP_DTYPE_NONE;
    c->fixture.job.precision.reduce = ZP_DTYPE_FP32;
    c->units = zp_wrapping_apply(c->fixture.model, &c->fixture.job.zero);
    c->tape = zp_tape_new(zp_vocabulary_get());
}

static void
case_clear(Case *c)
{
    job_fixture_clear(&c->fixture);
    zp_wrapping_free(c->units);
    zp_tape_free(c->tape);
}

static void
compile(Case *c)
{
    g_autoptr(GError) error = NULL;
    zp_tape_clear(c->tape);
    g_assert_true(zp_runtime_fsdp1.compile(&c->fixture.job, c->units, c->tape, &error));
    g_assert_no_error(error);
    g_assert_true(zp_tape_check(c->tape, TRUE, ZP_CLASSES_PERSISTENT, &error));
    g_assert_no_error(error);
}

static ZpAllocatorResult
play(Case *c)
{
    ZpAllocatorConfig rules = {.outside_classes = 1u << ZP_CLASS_RUNTIME};
    g_autoptr(ZpAllocator) allocator = zp_allocator_new(c->tape, &rules);
    ZpObserver observer = zp_allocator_observer(allocator);
    ZpPlayConfig config = {.n_ranks = 1, .observer = &observer};
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_player_play(c->tape, &config, &result, &error));
    return *zp_allocator_result(allocator);
}

/* Frees are held back by record_stream: active exceeds allocated.  Without the limiter the host
 * runs ahead and more units wait; what is allocated in host order is the same. */
static void
test_limiter(void)
{
    Case c;
    case_init(&c);
    compile(&c);
    ZpAllocatorResult limited = play(&c);
    g_assert_cmpint(limited.n_deferred, >, 0);
    g_assert_cmpint(limited.peak.active_bytes, >, limited.peak.allocated_bytes);
    c.settings.limit_all_gathers = FALSE;
    compile(&c);
    ZpAllocatorResult free_running = play(&c);
    g_assert_cmpint(free_running.peak.allocated_bytes, ==, limited.peak.allocated_bytes);
    g_assert_cmpint(free_running.peak.active_bytes, >, limited.peak.active_bytes);
    g_assert_cmpint(free_running.peak.reserved_bytes, >, limited.peak.reserved_bytes);
    case_clear(&c);
}

/* fsdp2 holds references instead: nothing is ever deferred. */
static void
test_fsdp2_defers_nothing(void)
{
    Case c;
    case_init(&c);
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_runtime_fsdp2.compile(&c.fixture.job, c.units, c.tape, &error));
    ZpAllocatorResult result = play(&c);
    g_assert_cmpint(result.n_deferred, ==, 0);
    g_assert_cmpint(result.peak.active_bytes, ==, result.peak.allocated_bytes);
    case_clear(&c);
}

static int
count_ops(const Case *c, ZpTapeOp op)
{
    int n = 0;
    for (gint32 i = 0; i < c->tape->n_instrs; i++)
        n += c->tape->instrs[i].op == op;
    return n;
}

/* Every freed unit records an event, and from the third gather on the host waits for one. */
static void
test_syncs(void)
{
    Case c;
    case_init(&c);
    compile(&c);
    int limited = count_ops(&c, ZP_TAPE_SYNC);
    g_assert_cmpint(limited, >=, 8 - 2);
    c.settings.limit_all_gathers = FALSE;
    compile(&c);
    g_assert_cmpint(count_ops(&c, ZP_TAPE_SYNC), ==, 0);
    case_clear(&c);
}

static gint64
end_bytes(const ZpTape *tape, ZpTapeSpace space)
{
    gint64 bytes = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        gboolean counts = (instr->op == ZP_TAPE_ALLOC || instr->op == ZP_TAPE_FREE) &&
                          tape->buffers[instr->a].space == space;
        if (counts)
            bytes += (instr->op == ZP_TAPE_ALLOC ? 1 : -1) * tape->buffers[instr->a].bytes;
    }
    return bytes;
}

static int
count_kind(const ZpTape *tape, ZpKind kind)
{
    int n = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++)
        n += tape->instrs[i].op == ZP_TAPE_LAUNCH &&
             tape->works[tape->instrs[i].a].kind == (gint16)kind;
    return n;
}

/* CPU offload: shards, gradients (for good) and states are in host memory.  A shard is brought for
 * every gather, and a gradient goes back for every reduction. */
static void
test_offload(void)
{
    Case c;
    case_init(&c);
    c.settings.cpu_offload = TRUE;
    for (int low = 0; low < 2; low++) {
        c.fixture.job.precision.gathered = low ? ZP_DTYPE_BF16 : ZP_DTYPE_FP32;
        compile(&c);
        g_assert_cmpint(end_bytes(c.tape, ZP_TAPE_SPACE_DEVICE), ==, 0);
        gint64 shard = 8 * G_GINT64_CONSTANT(4000000) / 8 * 4;
        g_assert_cmpint(end_bytes(c.tape, ZP_TAPE_SPACE_HOST), ==, 4 * shard);
        g_assert_cmpint(count_kind(c.tape, ZP_KIND_HOST_TO_DEVICE), ==,
                        count_kind(c.tape, ZP_KIND_ALL_GATHER));
        g_assert_cmpint(count_kind(c.tape, ZP_KIND_DEVICE_TO_HOST), ==, 8);
        g_assert_cmpint(count_kind(c.tape, ZP_KIND_HOST_OPTIMIZER), ==, 1);
    }
    /* What is gathered already is brought all the same. */
    c.fixture.job.zero.stage = 2;
    compile(&c);
    g_assert_cmpint(count_kind(c.tape, ZP_KIND_ALL_GATHER), ==, 8);
    g_assert_cmpint(count_kind(c.tape, ZP_KIND_HOST_TO_DEVICE), ==, 16);
    case_clear(&c);
}

static void
test_combinations(void)
{
    Case c;
    case_init(&c);
    static const int stages[] = {0, 2, 3};
    for (int i = 0; i < 3 * 128; i++) {
        int bits = i / 3;
        c.fixture.job.zero.stage = stages[i % 3];
        c.fixture.job.training.accumulation = 1 + (bits & 1);
        c.settings.sync_every_micro_batch = bits & 2;
        c.settings.use_orig_params = bits & 4;
        c.settings.next_forward_prefetch = bits & 8;
        c.settings.prefetch = (ZpFsdpPrefetch)(i % 3);
        c.fixture.job.world.shard_group = bits & 16 ? 2 : 8;
        c.settings.set_to_none = bits & 32;
        c.settings.cpu_offload = (i % 5) == 0;
        c.fixture.job.training.checkpointing =
            bits & 64 ? ZP_CHECKPOINTING_FULL : ZP_CHECKPOINTING_NONE;
        compile(&c);
    }
    case_clear(&c);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fsdp1/limiter", test_limiter);
    g_test_add_func("/fsdp1/fsdp2-defers-nothing", test_fsdp2_defers_nothing);
    g_test_add_func("/fsdp1/syncs", test_syncs);
    g_test_add_func("/fsdp1/offload", test_offload);
    g_test_add_func("/fsdp1/combinations", test_combinations);
    return g_test_run();
}
