#include "models/step/allocator_internal.h"

#include <math.h>

#include "models/words/vocabulary.h"

struct _ZpStepAllocator {
    ZpAllocator *allocator;
    ZpObserver own, observer;
    const ZpObserver *other;
    const ZpTape *tape;
};

static gboolean
wants(const ZpObserver *observer, gint32 rank)
{
    return observer != NULL && (observer->rank == ZP_TAPE_NONE || observer->rank == rank);
}

static void
on_span(const ZpTape *tape, const ZpObserverSpan *span, gpointer data)
{
    const ZpStepAllocator *self = data;
    if (wants(&self->own, span->rank))
        self->own.span(tape, span, self->own.data);
    if (wants(self->other, span->rank) && self->other->span != NULL)
        self->other->span(tape, span, self->other->data);
}

static void
on_change(const ZpTape *tape, const ZpObserverChange *change, gpointer data)
{
    const ZpStepAllocator *self = data;
    if (wants(&self->own, change->rank))
        self->own.change(tape, change, self->own.data);
    if (wants(self->other, change->rank) && self->other->change != NULL)
        self->other->change(tape, change, self->other->data);
}

static void
on_figures(ZpTime time, gint32 instr, const ZpAllocatorBytes *now, gpointer data)
{
    const ZpStepAllocator *self = data;
    ZpObserverPools pools = {.time = time,
                             .allocated_bytes = now->allocated_bytes,
                             .active_bytes = now->active_bytes,
                             .reserved_bytes = now->reserved_bytes,
                             .instr = instr};
    self->other->pools(self->tape, &pools, self->other->data);
}

/* So that segments, overhead and contingency together never exceed the capacity while the cache
 * can still be emptied. */
static gint64
allocator_capacity(const ZpDevice *device)
{
    if (device->capacity_bytes == 0)
        return 0;
    double usable = floor((double)device->capacity_bytes / (1.0 + device->contingency));
    return MAX(1, (gint64)usable - device->overhead_bytes);
}

ZpStepAllocator *
zp_step_allocator_new(const ZpJob *job, const ZpTape *tape, const ZpObserver *other)
{
    if (job->device.allocator == ZP_ALLOCATOR_NONE)
        return NULL;
    ZpAllocatorConfig config = {
        .expandable_segments = job->device.allocator == ZP_ALLOCATOR_EXPANDABLE,
        .capacity_bytes = allocator_capacity(&job->device),
        .outside_classes = 1u << ZP_CLASS_RUNTIME,
    };
    ZpStepAllocator *self = g_new0(ZpStepAllocator, 1);
    self->allocator = zp_allocator_new(tape, &config);
    self->own = zp_allocator_observer(self->allocator);
    self->other = other;
    self->tape = tape;
    if (wants(other, 0) && other->pools != NULL)
        zp_allocator_set_func(self->allocator, on_figures, self);
    gboolean alone = other == NULL || other->rank == self->own.rank;
    self->observer = (ZpObserver){
        .span = on_span,
        .change = on_change,
        .data = self,
        .rank = alone ? self->own.rank : ZP_TAPE_NONE,
    };
    return self;
}

void
zp_step_allocator_free(ZpStepAllocator *self)
{
    if (self == NULL)
        return;
    zp_allocator_free(self->allocator);
    g_free(self);
}

const ZpObserver *
zp_step_allocator_observer(const ZpStepAllocator *self)
{
    return &self->observer;
}

const ZpAllocatorResult *
zp_step_allocator_result(const ZpStepAllocator *self)
{
    return zp_allocator_result(self->allocator);
}
