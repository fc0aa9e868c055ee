/* Buckets as the reducer forms them (compute_bucket_assignment_by_size, rebuild_buckets,
 * initialize_buckets in torch/csrc/distributed/c10d/reducer.cpp). */
#include "models/runtimes/ddp_internal.h"

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
}

static void
add_bucket(Ddp *ddp, gint32 first, gint32 end)
{
    DdpBucket bucket = {.first = first, .n = end - first, .buffer = ZP_TAPE_NONE};
    for (gint32 i = first; i < end; i++) {
        gint32 p = g_array_index(ddp->ready_order, gint32, (guint)i);
        bucket.bytes += ddp_parameter_bytes(ddp, p);
        ddp->params[p].bucket = (gint32)ddp->buckets->len;
    }
    bucket.unit = bucket_unit(ddp, (gint32)ddp->buckets->len);
    bucket.copy = zp_fsdp_emit_memory_work(&ddp->emit, 2 * bucket.bytes);
    bucket.all_reduce =
        zp_fsdp_emit_collective_work(&ddp->emit, ZP_KIND_ALL_REDUCE, bucket.bytes, DDP_GROUP_WORLD);
    g_array_append_val(ddp->buckets, bucket);
}

static void
allocate(Ddp *ddp)
{
    for (guint b = 0; b < ddp->buckets->len; b++) {
        DdpBucket *bucket = &g_array_index(ddp->buckets, DdpBucket, b);
        zp_fsdp_emit_tag(&ddp->emit, bucket->unit);
        bucket->buffer = zp_fsdp_emit_make(&ddp->emit, DDP_DEFAULT, ZP_CLASS_COMMUNICATION,
                                           ZP_ROLE_BUCKET, bucket->bytes, ZP_FSDP_NONE);
    }
}

void
ddp_make_first_bucket(Ddp *ddp)
{
    add_bucket(ddp, 0, (gint32)ddp->ready_order->len);
    allocate(ddp);
}

/* A bucket closes when it reaches its limit, so it may be larger by a tensor. */
static void
cut_buckets(Ddp *ddp)
{
    gint64 cap = ddp->plan->settings.bucket_cap_bytes;
    gint64 limit = cap ? cap : DEFAULT_FIRST_BYTES;
    gint64 bytes = 0;
    gint32 first = 0, n = (gint32)ddp->ready_order->len;
    g_array_set_size(ddp->buckets, 0);
    for (gint32 i = 0; i < n; i++) {
        bytes += ddp_parameter_bytes(ddp, g_array_index(ddp->ready_order, gint32, (guint)i));
        if (bytes < limit)
            continue;
        add_bucket(ddp, first, i + 1);
        first = i + 1;
        bytes = 0;
        limit = cap ? cap : DEFAULT_CAP_BYTES;
    }
    if (first < n)
        add_bucket(ddp, first, n);
}

/* The old buckets die first, unless gradients that are views of them keep them until they are made
 * views of the new ones. */
void
ddp_rebuild_buckets(Ddp *ddp)
{
    g_autoptr(GArray) old = g_array_new(FALSE, FALSE, sizeof(gint32));
    gboolean held = FALSE;
    for (guint b = 0; b < ddp->buckets->len; b++)
        g_array_append_val(old, g_array_index(ddp->buckets, DdpBucket, b).buffer);
    for (guint p = 0; p < ddp->plan->parameters->len; p++)
        held |= ddp->params[p].view;
    for (guint b = 0; b < old->len && !held; b++)
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &g_array_index(old, gint32, b));
    cut_buckets(ddp);
    allocate(ddp);
    for (guint b = 0; b < old->len; b++)
        zp_fsdp_emit_drop(&ddp->emit, DDP_DEFAULT, &g_array_index(old, gint32, b));
    ddp->rebuilt = TRUE;
}
