/* The rare turns of the event queue. */
#include "sim/events/queue.h"

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
    *queue = (ZpQueue){.keys = allocate_keys(ZP_QUEUE_WINDOW), .capacity = ZP_QUEUE_WINDOW};
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

void
zp_queue_slide_back(ZpQueue *queue)
{
    memmove(queue->keys, queue->keys + queue->head, queue->n * sizeof *queue->keys);
    queue->head = 0;
}

/* An ascending array is a heap. */
void
zp_queue_become_heap(ZpQueue *queue)
{
    memmove(queue->keys + ZP_QUEUE_ROOT, queue->keys + queue->head, queue->n * sizeof *queue->keys);
    for (guint32 i = ZP_QUEUE_ROOT + queue->n; i < ZP_QUEUE_WINDOW; i++)
        queue->keys[i] = ZP_QUEUE_NEVER;
    queue->is_heap = TRUE;
}

static int
compare_keys(const void *a, const void *b)
{
    const ZpQueueKey *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void
zp_queue_become_small(ZpQueue *queue)
{
    qsort(queue->keys + ZP_QUEUE_ROOT, queue->n, sizeof *queue->keys, compare_keys);
    queue->head = ZP_QUEUE_ROOT;
    queue->is_heap = FALSE;
}

void
zp_queue_renumber(ZpQueue *queue)
{
    if (queue->has_hole)
        zp_queue_close_hole(queue);
    const ZpQueueKey sequence_bits = (ZpQueueKey)G_MAXUINT32 << 32;
    ZpQueueKey *keys = queue->keys + (queue->is_heap ? ZP_QUEUE_ROOT : queue->head);
    if (queue->is_heap)
        qsort(keys, queue->n, sizeof *keys, compare_keys);
    for (guint32 i = 0; i < queue->n; i++)
        keys[i] = (keys[i] & ~sequence_bits) | (ZpQueueKey)i << 32;
    queue->sequence = queue->n;
}
