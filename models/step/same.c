#include "models/step/same.h"

#include <string.h>

static gboolean
same_traffic(const ZpStepSummary *a, const ZpStepSummary *b)
{
    if (a->n_traffic != b->n_traffic)
        return FALSE;
    for (int t = 0; t < a->n_traffic; t++) {
        const ZpStepTraffic *x = &a->traffic[t], *y = &b->traffic[t];
        if (x->kind != y->kind || x->phase != y->phase || x->count != y->count ||
            x->bytes != y->bytes || x->wire_bytes != y->wire_bytes || x->busy_ps != y->busy_ps)
            return FALSE;
    }
    return TRUE;
}

static gboolean
same_memory(const ZpStepSummary *a, const ZpStepSummary *b)
{
    const ZpAllocatorBytes *x = &a->allocator.peak, *y = &b->allocator.peak;
    return memcmp(a->peak_by_class, b->peak_by_class, sizeof a->peak_by_class) == 0 &&
           memcmp(a->persistent_by_class, b->persistent_by_class, sizeof a->persistent_by_class) ==
               0 &&
           a->host_peak_bytes == b->host_peak_bytes && a->has_allocator == b->has_allocator &&
           x->allocated_bytes == y->allocated_bytes && x->active_bytes == y->active_bytes &&
           x->reserved_bytes == y->reserved_bytes && a->capacity_bytes == b->capacity_bytes &&
           a->needed_low_bytes == b->needed_low_bytes &&
           a->needed_high_bytes == b->needed_high_bytes &&
           a->contingency_bytes == b->contingency_bytes;
}

gboolean
zp_step_same(const ZpStepSummary *a, const ZpStepSummary *b)
{
    return a->step_ps == b->step_ps && a->step_low_ps == b->step_low_ps &&
           a->step_high_ps == b->step_high_ps && a->exposed_ps == b->exposed_ps &&
           memcmp(a->busy_ps, b->busy_ps, sizeof a->busy_ps) == 0 &&
           a->host_blocked_ps == b->host_blocked_ps && a->tokens_per_step == b->tokens_per_step &&
           a->tokens_per_rank == b->tokens_per_rank && a->model_flops == b->model_flops &&
           a->mfu == b->mfu && a->n_events == b->n_events &&
           a->slowest_rank_ps == b->slowest_rank_ps && a->fastest_rank_ps == b->fastest_rank_ps &&
           same_memory(a, b) && same_traffic(a, b);
}
