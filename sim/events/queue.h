/* The event queue: a priority queue of (time, payload), ties in the order of the pushes.
 *
 * An entry is one 128-bit integer, time over sequence over payload, so that one comparison orders
 * everything and compiles without branches.  Few entries are a sorted array that slides along its
 * memory, new ones entering from the late end, where most of them belong; many are a 4-ary heap
 * whose groups of siblings fill one cache line each.  A pop from the heap leaves a hole at the root
 * for the push that usually follows: a hold costs one sift.
 *
 * Times are not negative.  The sequence is 32 bits wide; before it wraps, the pending entries are
 * renumbered in their order, so that a queue may run for ever. */
#pragma once

#include "sim/events/time.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 ZpQueueKey;

#define ZP_QUEUE_SMALL 24  /* at most so many entries are kept sorted */
#define ZP_QUEUE_WINDOW 64 /* where they slide; the least capacity */
#define ZP_QUEUE_ROOT 3    /* siblings start at multiples of four */
#define ZP_QUEUE_NEVER (~(ZpQueueKey)0)

typedef struct {
    ZpQueueKey *keys;    /* 64-byte aligned; unused places of the heap hold ZP_QUEUE_NEVER */
    guint32 n, capacity; /* entries pending; places in keys */
    guint32 head;        /* of the sorted array: its first entry */
    guint32 sequence;
    gboolean is_heap;
    gboolean has_hole; /* the root was popped and nothing has taken its place */
} ZpQueue;

/* Changes the layout; queue.h keeps the fast paths only. */
void zp_queue_init(ZpQueue *queue);
void zp_queue_clear(ZpQueue *queue);        /* frees the memory */
void zp_queue_slide_back(ZpQueue *queue);   /* private */
void zp_queue_grow(ZpQueue *queue);         /* private */
void zp_queue_become_heap(ZpQueue *queue);  /* private */
void zp_queue_become_small(ZpQueue *queue); /* private */
void zp_queue_renumber(ZpQueue *queue);     /* private */

/* Moves the hole at `place` down until `key` fits there. */
static inline void
zp_queue_sift_down(ZpQueueKey *keys, guint32 place, guint32 limit, ZpQueueKey key)
{
    for (;;) {
        guint32 child = 4 * (place - 2);
        if (child >= limit)
            break;
        const ZpQueueKey *c = keys + child;
        gboolean right_a = c[1] < c[0], right_b = c[3] < c[2];
        ZpQueueKey a = right_a ? c[1] : c[0];
        ZpQueueKey b = right_b ? c[3] : c[2];
        gboolean second = b < a;
        ZpQueueKey least = second ? b : a;
        if (key <= least)
            break;
        guint32 index = second ? 2u + (guint32)right_b : (guint32)right_a;
        keys[place] = least;
        place = child + index;
    }
    keys[place] = key;
}

static inline void
zp_queue_sift_up(ZpQueueKey *keys, guint32 place, ZpQueueKey key)
{
    while (place > ZP_QUEUE_ROOT) {
        guint32 parent = (place >> 2) + 2;
        if (keys[parent] <= key)
            break;
        keys[place] = keys[parent];
        place = parent;
    }
    keys[place] = key;
}

/* Puts the last entry into the hole. */
static inline void
zp_queue_close_hole(ZpQueue *queue)
{
    guint32 last = ZP_QUEUE_ROOT + queue->n;
    ZpQueueKey key = queue->keys[last];
    queue->keys[last] = ZP_QUEUE_NEVER;
    queue->has_hole = FALSE;
    if (queue->n > 0)
        zp_queue_sift_down(queue->keys, ZP_QUEUE_ROOT, last, key);
    if (queue->n <= ZP_QUEUE_SMALL / 2)
        zp_queue_become_small(queue);
}

static inline void
zp_queue_push(ZpQueue *queue, ZpTime time, guint32 payload)
{
    if (G_UNLIKELY(queue->sequence == G_MAXUINT32))
        zp_queue_renumber(queue);
    ZpQueueKey key = (ZpQueueKey)(guint64)time << 64 | (guint64)queue->sequence++ << 32 | payload;
    if (!queue->is_heap) {
        if (G_LIKELY(queue->n < ZP_QUEUE_SMALL)) {
            if (G_UNLIKELY(queue->head + queue->n == ZP_QUEUE_WINDOW))
                zp_queue_slide_back(queue);
            ZpQueueKey *first = queue->keys + queue->head, *place = first + queue->n++;
            for (; place > first && place[-1] > key; place--)
                place[0] = place[-1];
            *place = key;
            return;
        }
        zp_queue_become_heap(queue);
    }
    if (queue->has_hole) {
        queue->has_hole = FALSE;
        queue->n++;
        zp_queue_sift_down(queue->keys, ZP_QUEUE_ROOT, ZP_QUEUE_ROOT + queue->n, key);
        return;
    }
    if (G_UNLIKELY(ZP_QUEUE_ROOT + queue->n + 4 >= queue->capacity))
        zp_queue_grow(queue);
    zp_queue_sift_up(queue->keys, ZP_QUEUE_ROOT + queue->n++, key);
}

/* Takes the earliest entry; FALSE when there is none. */
static inline gboolean
zp_queue_pop(ZpQueue *queue, ZpTime *time, guint32 *payload)
{
    if (queue->has_hole)
        zp_queue_close_hole(queue);
    if (queue->n == 0)
        return FALSE;
    ZpQueueKey key;
    queue->n--;
    if (queue->is_heap) {
        key = queue->keys[ZP_QUEUE_ROOT];
        queue->has_hole = TRUE;
    } else {
        key = queue->keys[queue->head++];
    }
    *time = (ZpTime)(guint64)(key >> 64);
    *payload = (guint32)key;
    return TRUE;
}

/* Time of the earliest entry, ZP_TIME_MAX when there is none. */
static inline ZpTime
zp_queue_next_time(ZpQueue *queue)
{
    if (queue->has_hole)
        zp_queue_close_hole(queue);
    if (queue->n == 0)
        return ZP_TIME_MAX;
    ZpQueueKey key = queue->is_heap ? queue->keys[ZP_QUEUE_ROOT] : queue->keys[queue->head];
    return (ZpTime)(guint64)(key >> 64);
}

/* Forgets all entries but keeps the memory. */
static inline void
zp_queue_reset(ZpQueue *queue)
{
    if (queue->is_heap)
        for (guint32 i = 0; i <= queue->n; i++)
            queue->keys[ZP_QUEUE_ROOT + i] = ZP_QUEUE_NEVER;
    queue->n = queue->head = queue->sequence = 0;
    queue->is_heap = queue->has_hole = FALSE;
}
