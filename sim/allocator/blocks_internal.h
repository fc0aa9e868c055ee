/* Segments, blocks and free lists of the allocator model. */
#pragma once

#include "sim/allocator/allocator.h"

#define ZP_ALLOCATOR_ROUND_BYTES 512
#define ZP_ALLOCATOR_SMALL_BYTES (G_GINT64_CONSTANT(1) << 20)
#define ZP_ALLOCATOR_SMALL_SEGMENT_BYTES (G_GINT64_CONSTANT(2) << 20)
#define ZP_ALLOCATOR_LARGE_SEGMENT_BYTES (G_GINT64_CONSTANT(20) << 20)
#define ZP_ALLOCATOR_LARGE_REQUEST_BYTES (G_GINT64_CONSTANT(10) << 20)
#define ZP_ALLOCATOR_ROUND_SEGMENT_BYTES (G_GINT64_CONSTANT(2) << 20)

typedef struct {
    gint64 bytes, address; /* address: made up, unique, ascending in order of reservation */
    gint32 previous, next; /* neighbours in the segment, or ZP_TAPE_NONE */
    guint8 pool;
    gboolean is_free;
} ZpAllocatorBlock;

typedef struct {
    GArray *free; /* gint32: blocks by size, then address */
    ZpAllocatorBytes bytes;
    gint32 n_segments;
    gint32 last; /* expandable: last block of the one segment, or ZP_TAPE_NONE */
} ZpAllocatorPoolState;

typedef struct {
    const ZpAllocatorConfig *config;
    GArray *blocks; /* ZpAllocatorBlock */
    GArray *spare;  /* gint32: unused entries of blocks */
    ZpAllocatorPoolState pools[ZP_ALLOCATOR_MAX_POOLS];
    gint64 next_address;
    gint64 n_segments, n_splits;
} ZpAllocatorBlocks;

void zp_allocator_blocks_init(ZpAllocatorBlocks *blocks, const ZpAllocatorConfig *config);
void zp_allocator_blocks_clear(ZpAllocatorBlocks *blocks);

static inline gboolean
zp_allocator_blocks_is_small(gint64 bytes)
{
    return bytes <= ZP_ALLOCATOR_SMALL_BYTES;
}

static inline guint8
zp_allocator_blocks_pool(guint8 stream, gint64 bytes)
{
    return (guint8)(2 * stream + zp_allocator_blocks_is_small(bytes));
}

/* A block of `bytes` (rounded) from the cache of the pool, or ZP_TAPE_NONE. */
gint32 zp_allocator_blocks_take(ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes);
/* Bytes that serving the request from new memory reserves. */
gint64 zp_allocator_blocks_growth(const ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes);
/* Reserves them and takes the block. */
gint32 zp_allocator_blocks_grow(ZpAllocatorBlocks *blocks, guint8 pool, gint64 bytes);
/* Returns a block to its pool. */
void zp_allocator_blocks_release(ZpAllocatorBlocks *blocks, gint32 block);
/* Gives back what is wholly free; returns the bytes. */
gint64 zp_allocator_blocks_flush(ZpAllocatorBlocks *blocks);

static inline ZpAllocatorBlock *
zp_allocator_blocks_get(const ZpAllocatorBlocks *blocks, gint32 block)
{
    return &g_array_index(blocks->blocks, ZpAllocatorBlock, (guint)block);
}
