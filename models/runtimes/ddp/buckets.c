/* Buckets as the reducer forms them (compute_bucket_assignment_by_size, rebuild_buckets,
 * initialize_buckets in torch/csrc/distributed/c10d/reducer.cpp). */
#include "models/runtimes/ddp/ddp_internal.h"

#define DEFAULT_CAP_BYTES (G_GINT64_CONSTANT(25) << 20)
#define DEFAULT_FIRST_BYTES (G_GINT64_CONSTANT(1) << 20)

static const char *
bucket_name(gint32 index)
{
    g_autofree char *name = g_strdup_printf("bucket%d", index);
    return g_intern_string(name);
}

/* Names stay on the tape from one set of buckets to the next. */
static gint32
bucket_unit(Ddp *ddp, gint32 index)
{
    gint32 unit = (gint32)ddp->plan->units->len + index;
    while ((gint32)ddp->tape->unit_names->len <= unit)
        zp_tape_add_unit(ddp->tape, bucket_name((gint32)ddp->tape->unit_names->len -
                                                (gint32)ddp->plan->units->len));
    return unit;
}

static void
find_unused(Ddp *ddp)
{
    const ZpFsdpPlan *plan = ddp->plan;
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        if (zp_fsdp_plan_parameter(plan, p)->trainable && plan->n_uses[p] == 0)
            g_array_append_val(ddp->unused, p);
    }
}

void
ddp_find_ready_order(Ddp *ddp)
{
    const ZpFsdpPlan *plan = ddp->plan;
    g_autofree gint32 *left = g_memdup2(plan->n_uses, plan->parameters->len * sizeof(gint32));
    g_autofree gint32 *order = g_new(gint32, plan->parameters->len + 1);
    for (gint32 s = (gint32)plan->steps->len - 1; s >= 0; s--) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(plan, s);
        if (step->kind != ZP_FSDP_CALL || !step->requires_grad)
            continue;
        gint32 n = ddp_accumulation_order(plan, step, order);
        for (gint32 i = 0; i < n; i++) {
            if (--left[order[i]] == 0)
                g_array_append_val(ddp->ready_order, order[i]);
        }
    }
    find_unused(ddp);
}

/* Bucket number `index` takes parameters `first` to `end` of `order`. */
static void
add_bucket(Ddp *ddp, guint index, const GArray *order, guint first, guint end)
{
    DdpBucket bucket = {.n = (gint32)(end - first), .buffer = ZP_TAPE_NONE};
    for (guint i = first; i < end; i++) {
        gint32 p = g_array_index(order, gint32, i);
        bucket.bytes += ddp_parameter_bytes(ddp, p);
        ddp->params[p].bucket = (gint32)index;
    }
    bucket.unit = bucket_unit(ddp, (gint32)index);
    bucket.copy = zp_fsdp_emit_memory_work(&ddp->emit, 2 * bucket.bytes);
    bucket.all_reduce =
        zp_fsdp_emit_collective_work(&ddp->emit, ZP_KIND_ALL_REDUCE, bucket.bytes, DDP_GROUP_WORLD);
    g_array_index(ddp->buckets, DdpBucket, index) = bucket;
}

static void
drop_old(Ddp *ddp, GArray *old)
{
    for (guint b = 0; b < old->len; b++)
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &g_array_index(old, gint32, b));
}

/* Gradients that are views of old buckets, among those of bucket `b` or (-1) of all. */
static gint32
count_views(const Ddp *ddp, gint32 b)
{
    gint32 n = 0;
    for (guint p = 0; p < ddp->plan->parameters->len; p++)
        n += ddp->params[p].view && (b < 0 || ddp->params[p].bucket == b);
    return n;
}

/* initialize_buckets: a bucket that is allocated takes its gradients' views over.  The old ones die
 * with their last view. */
static void
allocate(Ddp *ddp, GArray *old)
{
    gint32 n_views = count_views(ddp, -1);
    if (n_views == 0)
        drop_old(ddp, old);
    for (guint b = 0; b < ddp->buckets->len; b++) {
        DdpBucket *bucket = &g_array_index(ddp->buckets, DdpBucket, b);
        zp_fsdp_emit_tag(&ddp->emit, bucket->unit);
        bucket->buffer = zp_fsdp_emit_make(&ddp->emit, DDP_DEFAULT, ZP_CLASS_COMMUNICATION,
                                           ZP_ROLE_BUCKET, bucket->bytes, ZP_FSDP_NONE);
        gint32 n_moved = count_views(ddp, (gint32)b);
        n_views -= n_moved;
        if (n_moved > 0 && n_views == 0)
            drop_old(ddp, old);
    }
}

/* Ends of the buckets in `order` (compute_bucket_assignment_by_size).  A bucket closes when it
 * reaches its limit, so it may be larger by a tensor. */
static GArray *
cut(const Ddp *ddp, const GArray *order, gint64 first_limit, gint64 next_limit)
{
    GArray *ends = g_array_new(FALSE, FALSE, sizeof(guint));
    gint64 bytes = 0, limit = first_limit;
    for (guint i = 0; i < order->len; i++) {
        bytes += ddp_parameter_bytes(ddp, g_array_index(order, gint32, i));
        if (bytes < limit && i + 1 < order->len)
            continue;
        guint end = i + 1;
        g_array_append_val(ends, end);
        bytes = 0;
        limit = next_limit;
    }
    return ends;
}

/* `reversed`: the last bucket of `order` is reduced first. */
static void
form_buckets(Ddp *ddp, const GArray *order, gboolean unlimited, gboolean reversed)
{
    gint64 cap = ddp->plan->settings.bucket_cap_bytes;
    g_autoptr(GArray) ends = cut(ddp, order,
                                 unlimited ? G_MAXINT64
                                 : cap     ? cap
                                           : DEFAULT_FIRST_BYTES,
                                 cap ? cap : DEFAULT_CAP_BYTES);
    g_array_set_size(ddp->buckets, ends->len);
    for (guint b = 0; b < ends->len; b++) {
        guint first = b > 0 ? g_array_index(ends, guint, b - 1) : 0;
        add_bucket(ddp, reversed ? ends->len - 1 - b : b, order, first,
                   g_array_index(ends, guint, b));
    }
}

/* BucketCapacityConfig.compute_bucket_size_limits in torch/nn/parallel/distributed.py: one bucket
 * for all where the order is still to be learnt; else buckets in the order of the parameters, of
 * which the last is expected first. */
void
ddp_make_first_buckets(Ddp *ddp)
{
    const ZpFsdpPlan *plan = ddp->plan;
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (guint i = 0; i < plan->optimizer_order->len; i++) {
        gint32 p = g_array_index(plan->optimizer_order, gint32, i);
        if (zp_fsdp_plan_parameter(plan, p)->trainable)
            g_array_append_val(order, p);
    }
    form_buckets(ddp, order, !ddp_finds_unused(ddp), TRUE);
    ddp->rebuilt = ddp_finds_unused(ddp);
    g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(gint32));
    allocate(ddp, none);
}

void
ddp_rebuild_buckets(Ddp *ddp)
{
    g_autoptr(GArray) old = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (guint b = 0; b < ddp->buckets->len; b++)
        g_array_append_val(old, g_array_index(ddp->buckets, DdpBucket, b).buffer);
    g_autoptr(GArray) order = g_array_copy(ddp->ready_order);
    if (ddp->unused->len > 0) /* static_graph: parameters without a gradient close the list */
        g_array_append_vals(order, ddp->unused->data, ddp->unused->len);
    form_buckets(ddp, order, FALSE, FALSE);
    allocate(ddp, old);
    ddp->rebuilt = TRUE;
}
