#include "sim/allocator/allocator.h"

#include <string.h>

#include "sim/allocator/blocks_internal.h"

/* A buffer of the tape that the allocator serves. */
typedef struct {
    gint32 block;         /* ZP_TAPE_NONE: not served */
    guint32 used_streams; /* bit set: streams that use it beside its own */
} Served;

/* A released block that other streams may still use. */
typedef struct {
    gint32 block;
    guint32 streams;
    gint64 until[ZP_TAPE_MAX_STREAMS]; /* works of each stream that must have ended */
} Waiting;

struct _ZpAllocator {
    const ZpTape *tape;
    ZpAllocatorConfig config;
    ZpAllocatorBlocks blocks;
    Served *served;  /* by buffer */
    GArray *waiting; /* Waiting */
    gint32 cursor;   /* next instruction to look at for LAUNCH and USE */
    gint64 issued[ZP_TAPE_MAX_STREAMS], ended[ZP_TAPE_MAX_STREAMS]; /* works */
    gint64 n_ended, n_ended_seen; /* of all streams; when waiting blocks were last looked at */
    gboolean instant;             /* works end as soon as they are issued */
    ZpAllocatorFunc func;
    gpointer data;
    ZpAllocatorResult result;
};

ZpAllocator *
zp_allocator_new(const ZpTape *tape, const ZpAllocatorConfig *config)
{
    ZpAllocator *allocator = g_new0(ZpAllocator, 1);
    allocator->tape = tape;
    allocator->config = *config;
    zp_allocator_blocks_init(&allocator->blocks, &allocator->config);
    allocator->served = g_new(Served, (gsize)tape->n_buffers + 1);
    for (gint32 b = 0; b < tape->n_buffers; b++)
        allocator->served[b] = (Served){.block = ZP_TAPE_NONE};
    allocator->waiting = g_array_new(FALSE, FALSE, sizeof(Waiting));
    allocator->result.instr = allocator->result.out_of_memory_instr = ZP_TAPE_NONE;
    return allocator;
}

void
zp_allocator_free(ZpAllocator *allocator)
{
    if (allocator == NULL)
        return;
    zp_allocator_blocks_clear(&allocator->blocks);
    g_array_unref(allocator->waiting);
    g_free(allocator->served);
    g_free(allocator);
}

void
zp_allocator_set_func(ZpAllocator *allocator, ZpAllocatorFunc func, gpointer data)
{
    allocator->func = func;
    allocator->data = data;
}

/* Counts works issued and notes uses up to an instruction. */
static void
advance(ZpAllocator *allocator, gint32 instr)
{
    for (; allocator->cursor < instr; allocator->cursor++) {
        const ZpTapeInstr *passed = &allocator->tape->instrs[allocator->cursor];
        if (passed->op == ZP_TAPE_LAUNCH)
            allocator->issued[passed->stream]++;
        else if (passed->op == ZP_TAPE_USE)
            allocator->served[passed->a].used_streams |= 1u << passed->stream;
    }
}

static void
add(ZpAllocatorBytes *sum, gint64 requested, gint64 allocated, gint64 active)
{
    sum->requested_bytes += requested;
    sum->allocated_bytes += allocated;
    sum->active_bytes += active;
}

static void
count(ZpAllocator *allocator, guint8 pool, gint64 requested, gint64 allocated, gint64 active)
{
    add(&allocator->blocks.pools[pool].bytes, requested, allocated, active);
    add(&allocator->result.now, requested, allocated, active);
}

static gint64
free_bytes(const ZpAllocatorPoolState *pool)
{
    return pool->bytes.reserved_bytes - pool->bytes.active_bytes;
}

static void
describe_pools(const ZpAllocator *allocator, ZpAllocatorResult *result)
{
    result->n_pools = 0;
    for (int p = 0; p < ZP_ALLOCATOR_MAX_POOLS; p++) {
        const ZpAllocatorPoolState *state = &allocator->blocks.pools[p];
        if (state->bytes.reserved_bytes == 0)
            continue;
        guint n = state->free->len;
        gint64 largest = n ? zp_allocator_blocks_get(&allocator->blocks,
                                                     g_array_index(state->free, gint32, n - 1))
                                 ->bytes
                           : 0;
        result->pools[result->n_pools++] = (ZpAllocatorPool){
            .stream = (guint8)(p / 2),
            .small = p & 1,
            .bytes = state->bytes,
            .largest_free_bytes = largest,
            .n_segments = state->n_segments,
        };
    }
}

/* Why this request needed new memory, by where the free memory is. */
static void
describe_peak(ZpAllocator *allocator, guint8 pool, gint64 bytes, gint64 taken, ZpTime time,
              gint32 instr)
{
    ZpAllocatorResult *result = &allocator->result;
    result->time = time;
    result->instr = instr;
    result->request_bytes = bytes;
    result->at_peak = result->now;
    result->rounding_bytes = result->now.allocated_bytes - result->now.requested_bytes;
    result->waiting_bytes = result->now.active_bytes - result->now.allocated_bytes;
    result->fragmented_bytes = result->other_streams_bytes = result->other_sizes_bytes = 0;
    for (int p = 0; p < ZP_ALLOCATOR_MAX_POOLS; p++) {
        gint64 unused = free_bytes(&allocator->blocks.pools[p]);
        if (p == pool)
            result->fragmented_bytes += unused - taken;
        else if ((p & 1) == (pool & 1))
            result->other_streams_bytes += unused;
        else
            result->other_sizes_bytes += unused;
    }
    describe_pools(allocator, result);
}

static void
raise_peaks(ZpAllocator *allocator)
{
    ZpAllocatorResult *result = &allocator->result;
    const ZpAllocatorBytes *now = &result->now;
    if (now->allocated_bytes > result->peak.allocated_bytes)
        result->at_allocated_peak = *now;
    result->peak.requested_bytes = MAX(result->peak.requested_bytes, now->requested_bytes);
    result->peak.allocated_bytes = MAX(result->peak.allocated_bytes, now->allocated_bytes);
    result->peak.active_bytes = MAX(result->peak.active_bytes, now->active_bytes);
    result->peak.reserved_bytes = MAX(result->peak.reserved_bytes, now->reserved_bytes);
}

static gboolean
is_over(const ZpAllocator *allocator, const Waiting *waiting)
{
    const gint64 *ended = allocator->instant ? allocator->issued : allocator->ended;
    for (guint32 left = waiting->streams; left != 0; left &= left - 1) {
        int s = g_bit_nth_lsf(left, -1);
        if (ended[s] < waiting->until[s])
            return FALSE;
    }
    return TRUE;
}

/* Returns waiting blocks to their pools: those whose users are done, or all of them. */
static void
end_waiting(ZpAllocator *allocator, gboolean all)
{
    GArray *waiting = allocator->waiting;
    guint kept = 0;
    /* Each was looked at when it was released: nothing is new before another work has ended. */
    if (!all && allocator->n_ended == allocator->n_ended_seen)
        return;
    allocator->n_ended_seen = allocator->n_ended;
    for (guint i = 0; i < waiting->len; i++) {
        const Waiting *one = &g_array_index(waiting, Waiting, i);
        if (!all && !is_over(allocator, one)) {
            if (kept < i)
                g_array_index(waiting, Waiting, kept) = *one;
            kept++;
            continue;
        }
        const ZpAllocatorBlock *block = zp_allocator_blocks_get(&allocator->blocks, one->block);
        count(allocator, block->pool, 0, 0, -block->bytes);
        zp_allocator_blocks_release(&allocator->blocks, one->block);
    }
    g_array_set_size(waiting, kept);
}

/* Empties the cache when a new segment would not fit; FALSE: it does not fit even then. */
static gboolean
make_room(ZpAllocator *allocator, guint8 pool, gint64 bytes)
{
    gint64 capacity = allocator->config.capacity_bytes;
    gint64 *reserved = &allocator->result.now.reserved_bytes;
    if (capacity == 0 ||
        *reserved + zp_allocator_blocks_growth(&allocator->blocks, pool, bytes) <= capacity)
        return TRUE;
    end_waiting(allocator, TRUE);
    *reserved -= zp_allocator_blocks_flush(&allocator->blocks);
    allocator->result.n_flushes++;
    return *reserved + zp_allocator_blocks_growth(&allocator->blocks, pool, bytes) <= capacity;
}

static gint32
reserve(ZpAllocator *allocator, guint8 pool, gint64 bytes, ZpTime time, gint32 instr)
{
    ZpAllocatorResult *result = &allocator->result;
    if (!make_room(allocator, pool, bytes) && result->out_of_memory_instr == ZP_TAPE_NONE)
        result->out_of_memory_instr = instr;
    /* Waiting blocks that came back while room was made may serve after all. */
    gint32 block = zp_allocator_blocks_take(&allocator->blocks, pool, bytes);
    if (block != ZP_TAPE_NONE)
        return block;
    result->now.reserved_bytes += zp_allocator_blocks_growth(&allocator->blocks, pool, bytes);
    block = zp_allocator_blocks_grow(&allocator->blocks, pool, bytes);
    if (result->now.reserved_bytes > result->peak.reserved_bytes) {
        gint64 taken = zp_allocator_blocks_get(&allocator->blocks, block)->bytes;
        describe_peak(allocator, pool, bytes, taken, time, instr);
    }
    return block;
}

static void
report(ZpAllocator *allocator, ZpTime time, gint32 instr)
{
    raise_peaks(allocator);
    if (allocator->func)
        allocator->func(time, instr, &allocator->result.now, allocator->data);
}

static void
allocate(ZpAllocator *allocator, gint32 instr, ZpTime time)
{
    const ZpTapeInstr *alloc = &allocator->tape->instrs[instr];
    const ZpTapeBuffer *buffer = &allocator->tape->buffers[alloc->a];
    if (buffer->bytes == 0)
        return;
    gint64 bytes = (buffer->bytes + ZP_ALLOCATOR_ROUND_BYTES - 1) / ZP_ALLOCATOR_ROUND_BYTES *
                   ZP_ALLOCATOR_ROUND_BYTES;
    guint8 pool = zp_allocator_blocks_pool(alloc->stream, bytes);
    if (allocator->waiting->len > 0)
        end_waiting(allocator, FALSE);
    gint32 block = zp_allocator_blocks_take(&allocator->blocks, pool, bytes);
    if (block == ZP_TAPE_NONE)
        block = reserve(allocator, pool, bytes, time, instr);
    allocator->served[alloc->a] = (Served){.block = block};
    gint64 held = zp_allocator_blocks_get(&allocator->blocks, block)->bytes;
    count(allocator, pool, buffer->bytes, held, held);
    if (allocator->result.instr == instr) { /* the figures of the peak include what made it */
        allocator->result.at_peak = allocator->result.now;
        allocator->result.rounding_bytes += held - buffer->bytes;
        describe_pools(allocator, &allocator->result);
    }
    report(allocator, time, instr);
}

static void
release(ZpAllocator *allocator, gint32 instr, ZpTime time)
{
    gint32 buffer = allocator->tape->instrs[instr].a;
    Served *served = &allocator->served[buffer];
    if (served->block == ZP_TAPE_NONE)
        return;
    const ZpAllocatorBlock *block = zp_allocator_blocks_get(&allocator->blocks, served->block);
    guint32 others = served->used_streams & ~(1u << (block->pool / 2));
    Waiting waiting = {.block = served->block, .streams = others};
    memcpy(waiting.until, allocator->issued, sizeof waiting.until);
    served->block = ZP_TAPE_NONE;
    served->used_streams = 0;
    gint64 requested = allocator->tape->buffers[buffer].bytes;
    if (others != 0 && !is_over(allocator, &waiting)) {
        count(allocator, block->pool, -requested, -block->bytes, 0);
        g_array_append_val(allocator->waiting, waiting);
        allocator->result.n_deferred++;
    } else {
        count(allocator, block->pool, -requested, -block->bytes, -block->bytes);
        zp_allocator_blocks_release(&allocator->blocks, waiting.block);
    }
    report(allocator, time, instr);
}

static gboolean
is_served(const ZpAllocator *allocator, gint32 instr)
{
    const ZpTapeBuffer *buffer = &allocator->tape->buffers[allocator->tape->instrs[instr].a];
    return buffer->space == ZP_TAPE_SPACE_DEVICE &&
           !(allocator->config.outside_classes >> buffer->class_id & 1);
}

static void
change(ZpAllocator *allocator, gint32 instr, ZpTime time)
{
    guint8 op = allocator->tape->instrs[instr].op;
    advance(allocator, instr);
    if (op == ZP_TAPE_ALLOC && is_served(allocator, instr))
        allocate(allocator, instr, time);
    else if (op == ZP_TAPE_FREE)
        release(allocator, instr, time);
}

static void
on_change(const ZpTape *tape, const ZpObserverChange *seen, gpointer data)
{
    (void)tape;
    change(data, seen->instr, seen->time);
}

static void
on_span(const ZpTape *tape, const ZpObserverSpan *seen, gpointer data)
{
    ZpAllocator *allocator = data;
    allocator->ended[tape->instrs[seen->instr].stream]++;
    allocator->n_ended++;
}

ZpObserver
zp_allocator_observer(ZpAllocator *allocator)
{
    return (ZpObserver){.span = on_span, .change = on_change, .data = allocator, .rank = 0};
}

void
zp_allocator_replay(ZpAllocator *allocator)
{
    allocator->instant = TRUE;
    for (gint32 i = 0; i < allocator->tape->n_instrs; i++) {
        guint8 op = allocator->tape->instrs[i].op;
        if (op == ZP_TAPE_ALLOC || op == ZP_TAPE_FREE)
            change(allocator, i, 0);
    }
}

const ZpAllocatorResult *
zp_allocator_result(const ZpAllocator *allocator)
{
    ZpAllocatorResult *result = (ZpAllocatorResult *)&allocator->result;
    result->n_segments = allocator->blocks.n_segments;
    result->n_splits = allocator->blocks.n_splits;
    return result;
}
