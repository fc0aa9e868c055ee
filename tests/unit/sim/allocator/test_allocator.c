/* The caching allocator model: its rules one by one, and reserved bytes of whole steps. */
#include "sim/allocator/allocator.h"

#include "sim/players/player.h"
#include "tests/unit/fixtures/fsdp_fixture.h"

static const ZpAllocatorConfig defaults;

static ZpTape *
new_tape(int n_streams)
{
    ZpTape *tape = zp_tape_new(zp_vocabulary_get());
    for (int s = 0; s < n_streams; s++)
        zp_tape_add_stream(tape, "stream", ZP_TAPE_COMPUTE);
    zp_tape_begin_step(tape);
    return tape;
}

static gint32
make(ZpTape *tape, guint8 stream, gint64 bytes)
{
    return zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, stream, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE, bytes);
}

static void
drop(ZpTape *tape, guint8 stream, gint32 buffer)
{
    zp_tape_drop(tape, ZP_TAPE_CLOCK_HOST, stream, buffer);
}

static ZpAllocator *
replay(const ZpTape *tape, const ZpAllocatorConfig *config)
{
    ZpAllocator *allocator = zp_allocator_new(tape, config);
    zp_allocator_replay(allocator);
    return allocator;
}

static gint64
reserved_for(gint64 bytes)
{
    g_autoptr(ZpTape) tape = new_tape(1);
    make(tape, 0, bytes);
    g_autoptr(ZpAllocator) allocator = replay(tape, &defaults);
    return zp_allocator_result(allocator)->peak.reserved_bytes;
}

static void
test_segments(void)
{
    g_assert_cmpint(reserved_for(1), ==, 2 * MIB);
    g_assert_cmpint(reserved_for(MIB), ==, 2 * MIB);
    g_assert_cmpint(reserved_for(MIB + 1), ==, 20 * MIB);
    g_assert_cmpint(reserved_for(10 * MIB - 512), ==, 20 * MIB);
    g_assert_cmpint(reserved_for(10 * MIB), ==, 10 * MIB);
    g_assert_cmpint(reserved_for(11 * MIB), ==, 12 * MIB);
}

static void
test_rounding(void)
{
    g_autoptr(ZpTape) tape = new_tape(1);
    make(tape, 0, 1);
    make(tape, 0, 513);
    g_autoptr(ZpAllocator) allocator = replay(tape, &defaults);
    const ZpAllocatorResult *result = zp_allocator_result(allocator);
    g_assert_cmpint(result->now.requested_bytes, ==, 514);
    g_assert_cmpint(result->now.allocated_bytes, ==, 512 + 1024);
    g_assert_cmpint(result->rounding_bytes, ==, 511); /* at the first request, which reserved */
}

/* A large block keeps a rest of 1 MiB or less. */
static void
test_splitting(void)
{
    g_autoptr(ZpTape) tape = new_tape(1);
    make(tape, 0, 19 * MIB / 2); /* 9.5 of 20 MiB: split */
    make(tape, 0, 19 * MIB / 2); /* 9.5 of 10.5 MiB: a rest of 1 MiB stays */
    g_autoptr(ZpAllocator) allocator = replay(tape, &defaults);
    const ZpAllocatorResult *result = zp_allocator_result(allocator);
    g_assert_cmpint(result->now.reserved_bytes, ==, 20 * MIB);
    g_assert_cmpint(result->now.requested_bytes, ==, 19 * MIB);
    g_assert_cmpint(result->now.allocated_bytes, ==, 20 * MIB);
    g_assert_cmpint(result->n_splits, ==, 1);
}

/* Best fit, and neighbours merge when they are free again. */
static void
test_merging(void)
{
    g_autoptr(ZpTape) tape = new_tape(1);
    gint32 a = make(tape, 0, 6 * MIB), b = make(tape, 0, 6 * MIB), c = make(tape, 0, 6 * MIB);
    drop(tape, 0, a);
    drop(tape, 0, c);
    drop(tape, 0, b);
    make(tape, 0, 20 * MIB);
    g_autoptr(ZpAllocator) allocator = replay(tape, &defaults);
    g_assert_cmpint(zp_allocator_result(allocator)->now.reserved_bytes, ==, 20 * MIB);
    g_assert_cmpint(zp_allocator_result(allocator)->n_segments, ==, 1);
}

/* Two free pieces of 6 MiB with a live one between them cannot serve 8 MiB. */
static void
test_fragmentation(void)
{
    g_autoptr(ZpTape) tape = new_tape(2);
    gint32 a = make(tape, 0, 7 * MIB);
    make(tape, 0, 6 * MIB);
    gint32 c = make(tape, 0, 7 * MIB);
    drop(tape, 0, a);
    drop(tape, 0, c);
    gint32 other = make(tape, 1, 30 * MIB);
    drop(tape, 1, other);
    make(tape, 0, 8 * MIB);
    g_autoptr(ZpAllocator) allocator = replay(tape, &defaults);
    const ZpAllocatorResult *result = zp_allocator_result(allocator);
    g_assert_cmpint(result->peak.reserved_bytes, ==, (20 + 30 + 20) * MIB);
    g_assert_cmpint(result->request_bytes, ==, 8 * MIB);
    g_assert_cmpint(result->fragmented_bytes, ==, (7 + 7 + 12) * MIB);
    g_assert_cmpint(result->other_streams_bytes, ==, 30 * MIB);
    g_assert_cmpint(result->other_sizes_bytes, ==, 0);
    g_assert_cmpint(result->n_pools, ==, 2);
    g_assert_cmpint(result->pools[0].largest_free_bytes, ==, 12 * MIB);
}

/* A block goes back to the pool of its own stream. */
static void
test_streams(void)
{
    g_autoptr(ZpTape) tape = new_tape(2);
    drop(tape, 0, make(tape, 0, 4 * MIB));
    make(tape, 0, 4 * MIB);
    make(tape, 1, 4 * MIB);
    g_autoptr(ZpAllocator) allocator = replay(tape, &defaults);
    g_assert_cmpint(zp_allocator_result(allocator)->now.reserved_bytes, ==, 40 * MIB);
}

static gint32
launch(ZpTape *tape, guint8 stream, ZpTime duration)
{
    ZpTapeWork work = {
        .solo_ps = duration,
        .kind = ZP_KIND_FORWARD,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COMPUTE,
        .label = ZP_TAPE_NONE,
    };
    gint32 index = zp_tape_add_work(tape, &work);
    zp_tape_launch(tape, stream, index);
    return index;
}

/* Plays a buffer of stream 0 that stream 1 uses for a second; it is asked for again after `pause`.
 */
static ZpAllocatorResult
play_use(ZpTime pause)
{
    g_autoptr(ZpTape) tape = new_tape(3);
    gint32 a = make(tape, 0, 4 * MIB);
    launch(tape, 1, ZP_TIME_PER_S);
    zp_tape_use(tape, 1, a);
    drop(tape, 0, a);
    launch(tape, 2, pause);
    zp_tape_sync(tape, zp_tape_record(tape, 2));
    make(tape, 0, 18 * MIB);
    g_autoptr(ZpAllocator) allocator = zp_allocator_new(tape, &defaults);
    ZpObserver observer = zp_allocator_observer(allocator);
    ZpPlayConfig config = {.n_ranks = 1, .observer = &observer};
    g_auto(ZpPlayResult) result = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_player_play(tape, &config, &result, &error));
    return *zp_allocator_result(allocator);
}

static void
test_record_stream(void)
{
    ZpAllocatorResult early = play_use(ZP_TIME_PER_S / 2);
    g_assert_cmpint(early.n_deferred, ==, 1);
    g_assert_cmpint(early.peak.active_bytes, ==, 22 * MIB);
    g_assert_cmpint(early.peak.allocated_bytes, ==, 18 * MIB);
    g_assert_cmpint(early.waiting_bytes, ==, 4 * MIB);
    g_assert_cmpint(early.peak.reserved_bytes, ==, 38 * MIB);
    ZpAllocatorResult late = play_use(2 * ZP_TIME_PER_S);
    g_assert_cmpint(late.peak.active_bytes, ==, 18 * MIB);
    g_assert_cmpint(late.peak.reserved_bytes, ==, 20 * MIB);
    g_assert_cmpint(late.waiting_bytes, ==, 0);
}

static void
test_capacity(void)
{
    g_autoptr(ZpTape) tape = new_tape(1);
    drop(tape, 0, make(tape, 0, 30 * MIB));
    make(tape, 0, 40 * MIB);
    ZpAllocatorConfig config = {.capacity_bytes = 50 * MIB};
    g_autoptr(ZpAllocator) allocator = replay(tape, &config);
    const ZpAllocatorResult *result = zp_allocator_result(allocator);
    g_assert_cmpint(result->n_flushes, ==, 1);
    g_assert_cmpint(result->now.reserved_bytes, ==, 40 * MIB);
    g_assert_cmpint(result->out_of_memory_instr, ==, ZP_TAPE_NONE);
    make(tape, 0, 20 * MIB);
    g_autoptr(ZpAllocator) second = replay(tape, &config);
    g_assert_cmpint(zp_allocator_result(second)->out_of_memory_instr, ==, tape->n_instrs - 1);
}

static void
test_expandable(void)
{
    g_autoptr(ZpTape) tape = new_tape(1);
    gint32 a = make(tape, 0, 15 * MIB);
    make(tape, 0, 15 * MIB);
    drop(tape, 0, a);
    make(tape, 0, 30 * MIB);
    ZpAllocatorConfig config = {.expandable_segments = TRUE};
    g_autoptr(ZpAllocator) allocator = replay(tape, &config);
    const ZpAllocatorResult *result = zp_allocator_result(allocator);
    /* 20, grown to 40 for the second; 10 free behind it, so 20 more for the third. */
    g_assert_cmpint(result->now.reserved_bytes, ==, 60 * MIB);
    g_assert_cmpint(result->n_segments, ==, 1);
    g_assert_cmpint(result->now.allocated_bytes, ==, 45 * MIB);
}

/* Segments come from the device as a whole; what is allocated never exceeds what is active, nor
 * that what is reserved. */
static void
check_order(ZpTime time, gint32 instr, const ZpAllocatorBytes *now, gpointer data)
{
    (void)time;
    (void)instr;
    int *n = data;
    g_assert_cmpint(now->requested_bytes, <=, now->allocated_bytes);
    g_assert_cmpint(now->allocated_bytes, <=, now->active_bytes);
    g_assert_cmpint(now->active_bytes, <=, now->reserved_bytes);
    (*n)++;
}

static gint64
reserved_by_stream(const ZpAllocatorResult *result, guint8 stream)
{
    gint64 sum = 0;
    for (int p = 0; p < result->n_pools; p++) {
        if (result->pools[p].stream == stream)
            sum += result->pools[p].bytes.reserved_bytes;
    }
    return sum;
}

typedef struct {
    gint64 d;
    int n_blocks;
    int param_bytes;
    int reduce_bytes;
    gint32 reshard_after_forward, shard, replicate;
    gint64 reserved_bytes, copy_in_bytes, reduce_bytes_reserved;
} Expected;

/* Reserved bytes, in all and of the pools of the copy-in and the reduction stream, from a model of
 * the same rules fed with the events of PyTorch's code.  That run also had rows of activations and
 * the optimizer's step counters, which took one more segment of the small pool. */
static void
test_toy_pools(void)
{
    static const Expected cases[] = {
        {1024, 6, 2, 4, 1, 8, 1, 104857600, 23068672, 8388608},
        {1024, 6, 0, 0, 1, 8, 1, 102760448, 20971520, 8388608},
        {1024, 6, 2, 4, 0, 8, 1, 125829120, 23068672, 8388608},
        {1024, 12, 2, 4, 1, 8, 1, 136314880, 23068672, 14680064},
        {1024, 6, 2, 4, 1, 4, 2, 146800640, 23068672, 20971520},
        {4096, 6, 2, 4, 1, 8, 1, 1025507328, 155189248, 117440512},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Expected *expected = &cases[i];
        Toy toy = toy_default();
        toy.d = toy.inner = expected->d;
        toy.n_blocks = expected->n_blocks;
        toy.param_bytes = expected->param_bytes;
        toy.reduce_bytes = expected->reduce_bytes;
        toy.reshard_after_forward = expected->reshard_after_forward;
        toy.shard = expected->shard;
        toy.replicate = expected->replicate;
        g_autoptr(ZpFsdpPlan) plan = toy_plan(&toy);
        plan->settings.first_step = TRUE;
        g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
        zp_fsdp2_compile(plan, NULL, 3, tape);
        g_autoptr(ZpAllocator) allocator = zp_allocator_new(tape, &defaults);
        int n = 0;
        zp_allocator_set_func(allocator, check_order, &n);
        zp_allocator_replay(allocator);
        const ZpAllocatorResult *result = zp_allocator_result(allocator);
        g_assert_cmpint(result->peak.reserved_bytes, ==, expected->reserved_bytes - 2 * MIB);
        g_assert_cmpint(reserved_by_stream(result, 1), ==, expected->copy_in_bytes);
        g_assert_cmpint(reserved_by_stream(result, 3), ==, expected->reduce_bytes_reserved);
        g_assert_cmpint(n, >, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/allocator/segments", test_segments);
    g_test_add_func("/allocator/rounding", test_rounding);
    g_test_add_func("/allocator/splitting", test_splitting);
    g_test_add_func("/allocator/merging", test_merging);
    g_test_add_func("/allocator/fragmentation", test_fragmentation);
    g_test_add_func("/allocator/streams", test_streams);
    g_test_add_func("/allocator/record-stream", test_record_stream);
    g_test_add_func("/allocator/capacity", test_capacity);
    g_test_add_func("/allocator/expandable", test_expandable);
    g_test_add_func("/allocator/toy-pools", test_toy_pools);
    return g_test_run();
}
