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

/* Events of a pass, those of the loss apart from those of the product. */
typedef struct {
    guint first, middle, end;
} Span;

/* The gradient of the weight comes before what dies behind the last of backward's events. */
static Span
span_of(const ZpFsdpEmit *emit, gboolean backward)
{
    const GArray *events = events_of(emit);
    Span span = {.end = events->len};
    while (backward && span.first < events->len && !event_at(events, span.first)->backward)
        span.first++;
    while (!backward && span.end > 0 && event_at(events, span.end - 1)->backward)
        span.end--;
    while (backward && span.end > span.first && event_at(events, span.end - 1)->frees)
        span.end--;
    span.middle = span.first;
    while (span.middle < span.end && event_at(events, span.middle)->behind == backward)
        span.middle++;
    return span;
}

/* Behind the event with which the most lives. */
static guint
worst_of(const ZpFsdpEmit *emit, guint first, guint end)
{
    const GArray *events = events_of(emit);
    const ZpTraining *training = &emit->job->training;
    gint64 live = 0, most = 0;
    guint worst = first;
    for (guint i = first; i < end; i++) {
        const ZpModelEvent *event = event_at(events, i);
        gint64 bytes =
            zp_layer_bytes_weigh(&event->bytes, training->micro_batch, training->sequence);
        live += event->frees ? -bytes : bytes;
        if (live > most) {
            most = live;
            worst = i + 1;
        }
    }
    return worst;
}

static void
play(ZpFsdpEmit *emit, gint32 layer, gboolean backward, gboolean launches, guint first, guint end)
{
    guint worst = launches ? worst_of(emit, first, end) : end;
    for (guint i = first; i < worst; i++)
        replay(emit, i);
    if (launches)
        zp_fsdp_emit_kernel(emit, layer, backward ? ZP_KIND_BACKWARD : ZP_KIND_FORWARD);
    for (guint i = worst; i < end; i++)
        replay(emit, i);
}

void
zp_fsdp_emit_head_product(ZpFsdpEmit *emit, gint32 layer, gboolean backward)
{
    Span span = span_of(emit, backward);
    gboolean all = span.middle == (backward ? span.first : span.end); /* no loss apart */
    if (backward)
        play(emit, layer, TRUE, all, span.middle, span.end);
    else
        play(emit, layer, FALSE, all, span.first, span.middle);
}

void
zp_fsdp_emit_head_loss(ZpFsdpEmit *emit, gint32 layer, gboolean backward)
{
    Span span = span_of(emit, backward);
    guint first = backward ? span.first : span.middle, end = backward ? span.middle : span.end;
    if (end > first)
        play(emit, layer, backward, TRUE, first, end);
}

void
zp_fsdp_emit_head_release(ZpFsdpEmit *emit)
{
    for (gint32 s = 0; s < emit->n_head_storages; s++)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &emit->head_storages[s]);
}
