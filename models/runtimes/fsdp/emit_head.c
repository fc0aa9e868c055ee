/* The head's storages one by one.  They are the largest of a step, and which of them fit into what
 * others left decides what the allocator reserves. */
#include "models/runtimes/fsdp/emit.h"

static const GArray *
events_of(const ZpFsdpEmit *emit)
{
    return zp_model_head_events(emit->job->model, emit->job->training.micro_batch == 1);
}

static const ZpModelEvent *
event_at(const GArray *events, guint index)
{
    return &g_array_index(events, ZpModelEvent, index);
}

void
zp_fsdp_emit_head_init(ZpFsdpEmit *emit)
{
    const GArray *events = events_of(emit);
    for (guint i = 0; i < events->len; i++)
        emit->n_head_storages = MAX(emit->n_head_storages, event_at(events, i)->storage + 1);
    emit->head_storages = g_new(gint32, (gsize)emit->n_head_storages + 1);
    for (gint32 s = 0; s < emit->n_head_storages; s++)
        emit->head_storages[s] = ZP_TAPE_NONE;
}

/* Does what begins here end in the same pass? */
static gboolean
is_temporary(const GArray *events, guint index)
{
    const ZpModelEvent *born = event_at(events, index);
    for (guint i = index + 1; i < events->len; i++) {
        const ZpModelEvent *event = event_at(events, i);
        if (event->storage == born->storage)
            return event->backward == born->backward;
    }
    return FALSE;
}

static void
replay(ZpFsdpEmit *emit, guint index)
{
    const GArray *events = events_of(emit);
    const ZpModelEvent *event = event_at(events, index);
    gint32 *buffer = &emit->head_storages[event->storage];
    if (event->frees) {
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, buffer);
        return;
    }
    const ZpTraining *training = &emit->job->training;
    gint64 bytes = zp_layer_bytes_weigh(&event->bytes, training->micro_batch, training->sequence);
    ZpRole role = is_temporary(events, index) ? ZP_ROLE_TEMPORARY : ZP_ROLE_NONE;
    *buffer =
        zp_fsdp_emit_make(emit, ZP_FSDP_STREAM_DEFAULT, ZP_CLASS_LOGITS, role, bytes, ZP_FSDP_NONE);
}

typedef struct {
    guint first, worst, end; /* worst: behind the event with which the most lives */
} Span;

/* The gradient of the weight comes before what dies behind the last of backward's events. */
static Span
span_of(const ZpFsdpEmit *emit, gboolean backward)
{
    const GArray *events = events_of(emit);
    const ZpTraining *training = &emit->job->training;
    Span span = {.end = events->len};
    while (backward && span.first < events->len && !event_at(events, span.first)->backward)
        span.first++;
    while (!backward && span.end > 0 && event_at(events, span.end - 1)->backward)
        span.end--;
    while (backward && span.end > span.first && event_at(events, span.end - 1)->frees)
        span.end--;
    gint64 live = 0, most = 0;
    span.worst = span.first;
    for (guint i = span.first; i < span.end; i++) {
        const ZpModelEvent *event = event_at(events, i);
        gint64 bytes =
            zp_layer_bytes_weigh(&event->bytes, training->micro_batch, training->sequence);
        live += event->frees ? -bytes : bytes;
        if (live > most) {
            most = live;
            span.worst = i + 1;
        }
    }
    return span;
}

void
zp_fsdp_emit_head_begin(ZpFsdpEmit *emit, gboolean backward)
{
    Span span = span_of(emit, backward);
    for (guint i = span.first; i < span.worst; i++)
        replay(emit, i);
}

void
zp_fsdp_emit_head_end(ZpFsdpEmit *emit, gboolean backward)
{
    Span span = span_of(emit, backward);
    for (guint i = span.worst; i < span.end; i++)
        replay(emit, i);
}

void
zp_fsdp_emit_head_release(ZpFsdpEmit *emit)
{
    for (gint32 s = 0; s < emit->n_head_storages; s++)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &emit->head_storages[s]);
}
