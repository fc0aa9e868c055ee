#include "sim/allocator/blocks_internal.h"

void
zp_allocator_blocks_init(ZpAllocatorBlocks *blocks, const ZpAllocatorConfig *config)
{
    *blocks = (ZpAllocatorBlocks){
        .config = config,
        .blocks = g_array_new(FALSE, FALSE, sizeof(ZpAllocatorBlock)),
        .spare = g_array_new(FALSE, FALSE, sizeof(gint32)),
    };
    for (int p = 0; p < ZP_ALLOCATOR_MAX_POOLS; p++) {
        blocks->pools[p].free = g_array_new(FALSE, FALSE, sizeof(gint32));
        blocks->pools[p].last = ZP_TAPE_NONE;
    }
}

void
zp_allocator_blocks_clear(ZpAllocatorBlocks *blocks)
{
    g_array_unref(blocks->blocks);
    g_array_unref(blocks->spare);
    for (int p = 0; p < ZP_ALLOCATOR_MAX_POOLS; p++)
        g_array_unref(blocks->pools[p].free);
}

static gint32
new_block(ZpAllocatorBlocks *blocks, ZpAllocatorBlock block)
{
    if (blocks->spare->len > 0) {
        gint32 index = g_array_index(blocks->spare, gint32, blocks->spare->len - 1);
        g_array_set_size(blocks->spare, blocks->spare->len - 1);
        *zp_allocator_blocks_get(blocks, index) = block;
        return index;
    }
    g_array_append_val(blocks->blocks, block);
    return (gint32)blocks->blocks->len - 1;
}

/* First place in the free list whose block is not smaller than (bytes, address). */
static guint
lower_bound(const ZpAllocatorBlocks *blocks, const GArray *list, gint64 bytes, gint64 address)
{
    guint low = 0, high = list->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        const ZpAllocatorBlock *block =
            zp_allocator_blocks_get(blocks, g_array_index(list, gint32, middle));
        if (block->bytes < bytes || (block->bytes == bytes && block->address < address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
insert_free(ZpAllocatorBlocks *blocks, gint32 index)
{
    ZpAllocatorBlock *block = zp_allocator_blocks_get(blocks, index);
    GArray *list = blocks->pools[block->pool].free;
    block->is_free = TRUE;
    guint at = lower_bound(blocks, list, block->bytes, block->address);
    g_array_insert_val(list, at, index);
}

static void
remove_free(ZpAllocatorBlocks *blocks, gint32 index)
{
    ZpAllocatorBlock *block = zp_allocator_blocks_get(blocks, index);
    GArray *list = blocks->pools[block->pool].free;
    guint at = lower_bound(blocks, list, block->bytes, block->address);
    g_assert(at < list->len && g_array_index(list, gint32, at) == index);
    g_array_remove_index(list, at);
    block->is_free = FALSE;
}

static gboolean
is_split(const ZpAllocatorBlocks *blocks, guint8 pool, gint64 block_bytes, gint64 bytes)
{
    gint64 rest = block_bytes - bytes;
    if ((pool & 1) || blocks->config->expandable_segments)
        return rest >= ZP_ALLOCATOR_ROUND_BYTES;
    gint64 limit = blocks->config->max_split_bytes;
    return (limit == 0 || bytes < limit) && rest > ZP_ALLOCATOR_SMALL_BYTES;
}

/* Cuts the rest of a block that was just taken. */
static void
split(ZpAllocatorBlocks *blocks, gint32 index, gint64 bytes)
{
    ZpAllocatorBlock whole = *zp_allocator_blocks_get(blocks, index);
    if (!is_split(blocks, whole.pool, whole.bytes, bytes))
        return;
    gint32 rest = new_block(blocks, (ZpAllocatorBlock){
                                        .bytes = whole.bytes - bytes,
                                        .address = whole.address + bytes,
                                        .previous = index,
                                        .next = whole.next,
                                        .pool = whole.pool,
                                    });
    if (whole.next != ZP_TAPE_NONE)
        zp_allocator_blocks_get(blocks, whole.next)->previous = rest;
    ZpAllocatorBlock *block = zp_allocator_blocks_get(blocks, index);
    block->bytes = bytes;
    block->next = rest;
    if (blocks->pools[whole.pool].last == index)
        blocks->pools[whole.pool].last = rest;
    insert_free(blocks, rest);
    blocks->n_splits++;
}

gint32
zp_allocator_blocks_take(ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes)
{
    GArray *list = blocks->pools[pool].free;
    guint at = lower_bound(blocks, list, bytes, 0);
    if (at == list->len)
        return ZP_TAPE_NONE;
    gint32 index = g_array_index(list, gint32, at);
    gint64 limit = blocks->config->max_split_bytes;
    /* Blocks too large to be split are kept for large requests. */
    if (limit > 0 && !(pool & 1) && bytes < limit &&
        zp_allocator_blocks_get(blocks, index)->bytes >= limit)
        return ZP_TAPE_NONE;
    remove_free(blocks, index);
    split(blocks, index, bytes);
    return index;
}

static gint64
round_up(gint64 bytes, gint64 unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* The free block that an expandable segment ends with, or ZP_TAPE_NONE. */
static gint32
free_tail(const ZpAllocatorBlocks *blocks, guint8 pool)
{
    gint32 last = blocks->pools[pool].last;
    return last != ZP_TAPE_NONE && zp_allocator_blocks_get(blocks, last)->is_free ? last
                                                                                  : ZP_TAPE_NONE;
}

gint64
zp_allocator_blocks_growth(const ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes)
{
    gboolean small = pool & 1;
    if (blocks->config->expandable_segments) {
        gint32 tail = free_tail(blocks, pool);
        gint64 present = tail == ZP_TAPE_NONE ? 0 : zp_allocator_blocks_get(blocks, tail)->bytes;
        return round_up(bytes - present, small ? ZP_ALLOCATOR_SMALL_SEGMENT_BYTES
                                               : ZP_ALLOCATOR_LARGE_SEGMENT_BYTES);
    }
    if (small)
        return ZP_ALLOCATOR_SMALL_SEGMENT_BYTES;
    if (bytes < ZP_ALLOCATOR_LARGE_REQUEST_BYTES)
        return ZP_ALLOCATOR_LARGE_SEGMENT_BYTES;
    return round_up(bytes, ZP_ALLOCATOR_ROUND_SEGMENT_BYTES);
}

static gint32
new_segment(ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes)
{
    gint32 index = new_block(blocks, (ZpAllocatorBlock){
                                         .bytes = bytes,
                                         .address = blocks->next_address,
                                         .previous = ZP_TAPE_NONE,
                                         .next = ZP_TAPE_NONE,
                                         .pool = pool,
                                     });
    /* An expandable segment may grow to any size: leave room for its addresses. */
    blocks->next_address +=
        blocks->config->expandable_segments ? G_GINT64_CONSTANT(1) << 50 : bytes;
    blocks->pools[pool].n_segments++;
    blocks->n_segments++;
    return index;
}

/* Adds `bytes` to the end of a pool's expandable segment and takes its last block. */
static gint32
extend(ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes)
{
    ZpAllocatorPoolState *state = &blocks->pools[pool];
    gint32 tail = free_tail(blocks, pool);
    if (tail != ZP_TAPE_NONE) {
        remove_free(blocks, tail);
        zp_allocator_blocks_get(blocks, tail)->bytes += bytes;
        return tail;
    }
    if (state->last == ZP_TAPE_NONE)
        return state->last = new_segment(blocks, pool, bytes);
    const ZpAllocatorBlock *last = zp_allocator_blocks_get(blocks, state->last);
    gint32 index = new_block(blocks, (ZpAllocatorBlock){
                                         .bytes = bytes,
                                         .address = last->address + last->bytes,
                                         .previous = state->last,
                                         .next = ZP_TAPE_NONE,
                                         .pool = pool,
                                     });
    zp_allocator_blocks_get(blocks, state->last)->next = index;
    state->last = index;
    return index;
}

gint32
zp_allocator_blocks_grow(ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes)
{
    gint64 growth = zp_allocator_blocks_growth(blocks, pool, bytes);
    gint32 index = blocks->config->expandable_segments ? extend(blocks, pool, growth)
                                                       : new_segment(blocks, pool, growth);
    blocks->pools[pool].bytes.reserved_bytes += growth;
    split(blocks, index, bytes);
    return index;
}

/* Takes `other` (free, a neighbour behind) into `index`. */
static void
merge_next(ZpAllocatorBlocks *blocks, gint32 index)
{
    ZpAllocatorBlock *block = zp_allocator_blocks_get(blocks, index);
    gint32 other = block->next;
    if (other == ZP_TAPE_NONE || !zp_allocator_blocks_get(blocks, other)->is_free)
        return;
    remove_free(blocks, other);
    const ZpAllocatorBlock *taken = zp_allocator_blocks_get(blocks, other);
    block->bytes += taken->bytes;
    block->next = taken->next;
    if (block->next != ZP_TAPE_NONE)
        zp_allocator_blocks_get(blocks, block->next)->previous = index;
    if (blocks->pools[block->pool].last == other)
        blocks->pools[block->pool].last = index;
    g_array_append_val(blocks->spare, other);
}

void
zp_allocator_blocks_release(ZpAllocatorBlocks *blocks, gint32 block)
{
    merge_next(blocks, block);
    gint32 previous = zp_allocator_blocks_get(blocks, block)->previous;
    if (previous != ZP_TAPE_NONE && zp_allocator_blocks_get(blocks, previous)->is_free) {
        remove_free(blocks, previous);
        ZpAllocatorBlock *own = zp_allocator_blocks_get(blocks, block);
        own->is_free = TRUE;
        GArray *list = blocks->pools[own->pool].free;
        guint at = lower_bound(blocks, list, own->bytes, own->address);
        g_array_insert_val(list, at, block);
        merge_next(blocks, previous);
        block = previous;
    }
    insert_free(blocks, block);
}

/* A whole segment is a block without neighbours; an expandable one gives back its free tail. */
gint64
zp_allocator_blocks_flush(ZpAllocatorBlocks *blocks)
{
    gint64 returned = 0;
    for (int p = 0; p < ZP_ALLOCATOR_MAX_POOLS; p++) {
        ZpAllocatorPoolState *pool = &blocks->pools[p];
        for (guint i = pool->free->len; i > 0; i--) {
            gint32 index = g_array_index(pool->free, gint32, i - 1);
            ZpAllocatorBlock *block = zp_allocator_blocks_get(blocks, index);
            gboolean whole = block->previous == ZP_TAPE_NONE && block->next == ZP_TAPE_NONE;
            gboolean tail = pool->last == index;
            if (!whole && !tail)
                continue;
            g_array_remove_index(pool->free, i - 1);
            returned += block->bytes;
            pool->bytes.reserved_bytes -= block->bytes;
            pool->n_segments -= whole;
            if (tail)
                pool->last = block->previous;
            if (block->previous != ZP_TAPE_NONE)
                zp_allocator_blocks_get(blocks, block->previous)->next = ZP_TAPE_NONE;
            g_array_append_val(blocks->spare, index);
        }
    }
    return returned;
}
