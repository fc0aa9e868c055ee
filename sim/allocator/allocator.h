/* A caching allocator played from a tape: reserved and active memory beside allocated.
 *
 * The rules are those of PyTorch's CUDA allocator (c10/cuda/CUDACachingAllocator.cpp, constants in
 * c10/core/AllocatorConfig.h, 2.14):
 *  - requests are rounded up to 512 bytes; those up to 1 MiB come from the small pool, others from
 *    the large one; every stream has its own two pools;
 *  - the best fit (smallest, then lowest address) among the free blocks of the pool is taken; the
 *    rest is split off when it has 512 bytes or more (small pool), or more than 1 MiB (large);
 *  - otherwise a segment is reserved: 2 MiB (small pool), 20 MiB (requests below 10 MiB), else the
 *    request rounded up to 2 MiB;
 *  - a released block merges with free neighbours of its segment.  If other streams used it (USE)
 *    it stays active until what they were given before the release has ended, which is looked at
 *    when memory is asked for;
 *  - when a segment would exceed the capacity, waiting blocks are waited for, segments that are
 *    wholly free are returned, and the request is tried again; then memory is out (counted, and the
 *    segment is reserved all the same: a simulator must say by how much a run does not fit);
 *  - with expandable segments a pool has one segment that grows by pages of 2 or 20 MiB, and every
 *    rest of 512 bytes or more is split off.
 *
 * Give the observer to a play: changes and works then come in order of time.  Without a play,
 * zp_allocator_replay() takes the tape in host order and lets all work end at once. */
#pragma once

#include "sim/players/observer.h"

typedef struct {
    gboolean expandable_segments;
    gint64 max_split_bytes;  /* larger blocks are not split; 0: no limit */
    gint64 capacity_bytes;   /* for segments; 0: unlimited */
    guint32 outside_classes; /* bit set: classes that do not come from the allocator */
} ZpAllocatorConfig;

typedef struct {
    gint64 requested_bytes; /* as asked for */
    gint64 allocated_bytes; /* rounded, not released */
    gint64 active_bytes;    /* allocated, or released but still used by another stream */
    gint64 reserved_bytes;  /* segments */
} ZpAllocatorBytes;

typedef struct {
    guint8 stream; /* index into the tape's streams */
    gboolean small;
    ZpAllocatorBytes bytes;
    gint64 largest_free_bytes;
    gint32 n_segments;
} ZpAllocatorPool;

#define ZP_ALLOCATOR_MAX_POOLS (2 * ZP_TAPE_MAX_STREAMS)

typedef struct {
    ZpAllocatorBytes now;
    ZpAllocatorBytes peak;              /* each figure's own maximum */
    ZpAllocatorBytes at_allocated_peak; /* all figures when allocated_bytes first peaked */

    /* The moment reserved_bytes first reached its maximum: why the cache could not serve. */
    ZpTime time;
    gint32 instr;         /* the ALLOC that needed the segment, or ZP_TAPE_NONE */
    gint64 request_bytes; /* rounded */
    ZpAllocatorBytes at_peak;
    gint64 rounding_bytes;      /* allocated - requested */
    gint64 waiting_bytes;       /* active - allocated: released, but used by another stream */
    gint64 fragmented_bytes;    /* free in the pool that had to grow, in pieces too small */
    gint64 other_streams_bytes; /* free in pools of other streams, same size class */
    gint64 other_sizes_bytes;   /* free in pools of the other size class */
    ZpAllocatorPool pools[ZP_ALLOCATOR_MAX_POOLS];
    int n_pools;

    gint64 n_segments, n_splits, n_deferred; /* made, made, releases that had to wait */
    gint64 n_flushes;                        /* times the cache was emptied for lack of memory */
    gint32 out_of_memory_instr;              /* first ALLOC that did not fit, or ZP_TAPE_NONE */
} ZpAllocatorResult;

typedef struct _ZpAllocator ZpAllocator;

/* The tape is borrowed. */
ZpAllocator *zp_allocator_new(const ZpTape *tape, const ZpAllocatorConfig *config);
void zp_allocator_free(ZpAllocator *allocator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpAllocator, zp_allocator_free)

/* Called at every change of the figures, in order of time. */
typedef void (*ZpAllocatorFunc)(ZpTime time, gint32 instr, const ZpAllocatorBytes *now,
                                gpointer data);
void zp_allocator_set_func(ZpAllocator *allocator, ZpAllocatorFunc func, gpointer data);

/* Observes rank 0; the observer refers to the allocator. */
ZpObserver zp_allocator_observer(ZpAllocator *allocator);
void zp_allocator_replay(ZpAllocator *allocator);

/* Owned by the allocator. */
const ZpAllocatorResult *zp_allocator_result(const ZpAllocator *allocator);
