/* A step's caching allocator, beside whatever else observes the play. */
#pragma once

#include "models/job/job.h"
#include "sim/allocator/allocator.h"

typedef struct _ZpStepAllocator ZpStepAllocator;

/* NULL where the job has no allocator.  `tape` and `other` (or NULL) are borrowed; `other` is told
 * what it would see alone, and what the allocator holds where it asks for it.  Runtime overhead
 * does not come from the allocator, which may reserve what the capacity leaves beside overhead and
 * contingency. */
ZpStepAllocator *zp_step_allocator_new(const ZpJob *job, const ZpTape *tape,
                                       const ZpObserver *other);
void zp_step_allocator_free(ZpStepAllocator *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpStepAllocator, zp_step_allocator_free)

/* Both owned by `self`. */
const ZpObserver *zp_step_allocator_observer(const ZpStepAllocator *self);
const ZpAllocatorResult *zp_step_allocator_result(const ZpStepAllocator *self);
