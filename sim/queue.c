/* The rare turns of the event queue. */
#include "sim/queue.h"

#define FIRST_CAPACITY 64u

static ZpQueueKey *
allocate_keys(guint32 capacity)
{
    ZpQueueKey *keys = aligned_alloc(64, (gsize)capacity * sizeof *keys);
    if (keys == NULL)
        g_error("out of memory: %u queue entries", capacity);
    for (guint32 i = 0; i < capacity; i++)
        keys[i] = ZP_QUEUE_NEVER;
    return keys;
}

void
zp_queue_init(ZpQueue *queue)
{
    *queue = (ZpQueue){.keys = allocate_keys(FIRST_CAPACITY), .capacity = FIRST_CAPACITY};
}

void
zp_queue_clear(ZpQueue *queue)
{
    free(queue->keys);
    *queue = (ZpQueue){0};
}

void
zp_queue_grow(ZpQueue *queue)
{
    g_assert(queue->capacity <= G_MAXUINT32 / 4);
    ZpQueueKey *keys = allocate_keys(queue->capacity * 2);
    memcpy(keys, queue->keys, queue->capacity * sizeof *keys);
    free(queue->keys);
    queue->keys = keys;
    queue->capacity *= 2;
}

/* An ascending array is a heap. */
void
zp_queue_become_heap(ZpQueue *queue)
{
    ZpQueueKey sorted[ZP_QUEUE_SMALL];
    memcpy(sorted, queue->keys, queue->n * sizeof *sorted);
    for (guint32 i = 0; i < queue->n; i++)
        queue->keys[ZP_QUEUE_ROOT + i] = sorted[queue->n - 1 - i];
    for (guint32 i = ZP_QUEUE_ROOT + queue->n; i < queue->capacity && i < FIRST_CAPACITY; i++)
        queue->keys[i] = ZP_QUEUE_NEVER;
    queue->is_heap = TRUE;
}

void
zp_queue_become_small(ZpQueue *queue)
{
    ZpQueueKey sorted[ZP_QUEUE_SMALL];
    for (guint32 i = 0; i < queue->n; i++) {
        ZpQueueKey key = queue->keys[ZP_QUEUE_ROOT + i];
        guint32 place = i;
        for (; place > 0 && sorted[place - 1] < key; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = key;
    }
    memcpy(queue->keys, sorted, queue->n * sizeof *sorted);
    queue->is_heap = FALSE;
}

static int
compare_keys(const void *a, const void *b)
{
    const ZpQueueKey *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void
zp_queue_renumber(ZpQueue *queue)
{
    if (queue->has_hole)
        zp_queue_close_hole(queue);
    const ZpQueueKey sequence_bits = (ZpQueueKey)G_MAXUINT32 << 32;
    ZpQueueKey *keys = queue->keys + (queue->is_heap ? ZP_QUEUE_ROOT : 0);
    if (queue->is_heap)
        qsort(keys, queue->n, sizeof *keys, compare_keys);
    for (guint32 i = 0; i < queue->n; i++) {
        guint32 rank = queue->is_heap ? i : queue->n - 1 - i;
        keys[i] = (keys[i] & ~sequence_bits) | (ZpQueueKey)rank << 32;
    }
    queue->sequence = queue->n;
}
