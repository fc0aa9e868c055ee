#include "reports/summary/parts_internal.h"
#include "reports/text/event.h"
#include "reports/text/format.h"

/* Pools shown: those whose free memory could not serve the request that made the peak. */
#define MAX_POOLS 3

static gint64
unused(const ZpAllocatorPool *pool)
{
    return pool->bytes.reserved_bytes - pool->bytes.active_bytes;
}

static int
most_unused_first(gconstpointer a, gconstpointer b)
{
    const ZpAllocatorPool *x = *(const ZpAllocatorPool *const *)a;
    const ZpAllocatorPool *y = *(const ZpAllocatorPool *const *)b;
    if (unused(x) != unused(y))
        return unused(x) > unused(y) ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void
line(GString *out, const char *label, gint64 bytes)
{
    if (bytes <= 0)
        return;
    g_string_append_printf(out, "  %-34s ", label);
    zp_format_bytes(out, bytes);
    g_string_append_c(out, '\n');
}

static void
pools(const ZpReportRun *run, GString *out)
{
    const ZpAllocatorResult *a = &run->summary->allocator;
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (int p = 0; p < a->n_pools; p++)
        g_ptr_array_add(sorted, (gpointer)&a->pools[p]);
    g_ptr_array_sort(sorted, most_unused_first);
    for (guint p = 0; p < MIN(sorted->len, MAX_POOLS); p++) {
        const ZpAllocatorPool *pool = g_ptr_array_index(sorted, p);
        if (unused(pool) == 0)
            return;
        g_string_append_printf(out,
                               "  free in %s's %s blocks: ", run->tape->streams[pool->stream].name,
                               pool->small ? "small" : "large");
        zp_format_bytes(out, unused(pool));
        g_string_append_printf(out, " of %d segment%s, largest piece ", pool->n_segments,
                               pool->n_segments == 1 ? "" : "s");
        zp_format_bytes(out, pool->largest_free_bytes);
        g_string_append_c(out, '\n');
    }
}

void
zp_summary_allocator(const ZpReportRun *run, GString *out)
{
    const ZpStepSummary *s = run->summary;
    const ZpAllocatorResult *a = &s->allocator;
    if (!s->has_allocator)
        return;
    g_string_append(out, "\nCaching allocator, peaks:");
    g_string_append(out, "\n  allocated ");
    zp_format_bytes(out, a->peak.allocated_bytes);
    g_string_append(out, ", active ");
    zp_format_bytes(out, a->peak.active_bytes);
    g_string_append(out, ", reserved ");
    zp_format_bytes(out, a->peak.reserved_bytes);
    g_string_append_c(out, '\n');
    if (a->instr == ZP_TAPE_NONE)
        return;
    g_autofree char *event = zp_event_text(run->tape, a->instr);
    g_string_append(out, "Reserved peaked at ");
    zp_format_time(out, a->time);
    g_string_append_printf(out, ":\n  %s\n", event);
    line(out, "allocated then", a->at_peak.allocated_bytes);
    line(out, "released, used by another stream", a->waiting_bytes);
    line(out, "free there, in pieces too small", a->fragmented_bytes);
    line(out, "free in pools of other streams", a->other_streams_bytes);
    line(out, "free among blocks of other sizes", a->other_sizes_bytes);
    pools(run, out);
    if (a->n_flushes > 0)
        g_string_append_printf(out, "  the cache was emptied %" G_GINT64_FORMAT " times\n",
                               a->n_flushes);
    if (a->out_of_memory_instr != ZP_TAPE_NONE)
        g_string_append(out, "  and even then a segment did not fit\n");
    g_string_append_c(out, '\n');
}
