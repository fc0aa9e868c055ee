/* What is asked of histories: equality of events, peaks of phases. */
#include <string.h>

#include "fsdp_events.h"

gboolean
fsdp_event_equal(const FsdpEvent *a, const FsdpEvent *b)
{
    return a->collective == b->collective && a->phase == b->phase && a->unit == b->unit &&
           a->micro_batch == b->micro_batch && a->kind == b->kind && a->bytes == b->bytes &&
           strcmp(a->from, b->from) == 0 && strcmp(a->group, b->group) == 0 &&
           a->group_size == b->group_size && a->after_bytes == b->after_bytes &&
           (a->tensors == b->tensors || b->tensors == 0);
}

char *
fsdp_event_text(const FsdpEvent *event)
{
    if (event->collective)
        return g_strdup_printf("%s[mb%d] %s of %s, %" G_GINT64_FORMAT
                               " bytes, %s group of %d, %d tensors",
                               event->phase, event->micro_batch, event->kind, event->unit,
                               event->bytes, event->group, event->group_size, event->tensors);
    return g_strdup_printf("%s[mb%d] %s%s%s of '%s' %+" G_GINT64_FORMAT " -> %" G_GINT64_FORMAT,
                           event->phase, event->micro_batch, event->kind,
                           *event->from ? " from " : "", event->from, event->unit, event->bytes,
                           event->after_bytes);
}

static gint64
peak_of_phase(const FsdpHistory *history, const char *phase)
{
    gint64 bytes = -1;
    for (guint i = 0; i < history->peaks->len; i++) {
        const FsdpPeak *peak = &g_array_index(history->peaks, FsdpPeak, i);
        if (strcmp(peak->phase, phase) == 0)
            bytes = MAX(bytes, MAX(peak->entry_bytes, peak->after_bytes));
    }
    /* A last phase in which nothing happens has the value that is left. */
    return bytes < 0 && strcmp(phase, "zero_grad") == 0 ? history->end_bytes : bytes;
}

gint64
fsdp_history_peak(const FsdpHistory *history, const FsdpHistory *recorded, const char *key)
{
    if (strcmp(key, "all") == 0)
        return history->peak_bytes;
    const char *bracket = strchr(key, '[');
    if (bracket == NULL)
        return peak_of_phase(history, key);
    g_autofree char *phase = g_strndup(key, (gsize)(bracket - key));
    gint32 micro_batch = (gint32)g_ascii_strtoll(bracket + strlen("[mb"), NULL, 10);
    const FsdpPeak *own = fsdp_history_find_peak(history, phase, micro_batch);
    const FsdpPeak *theirs = fsdp_history_find_peak(recorded, phase, micro_batch);
    if (own == NULL)
        return -1;
    gboolean entry_counts = theirs == NULL || theirs->begins_apart;
    return entry_counts ? MAX(own->entry_bytes, own->after_bytes) : own->after_bytes;
}
