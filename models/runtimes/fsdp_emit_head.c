/* The head's storages one by one.  They are the largest of a step, and which of them fit into what
 * others left decides what the allocator reserves. */
#include "models/runtimes/fsdp_emit.h"

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

void
zp_fsdp_emit_head_forward(ZpFsdpEmit *emit)
{
    const GArray *events = events_of(emit);
    for (guint i = 0; i < events->len && !event_at(events, i)->backward; i++)
        replay(emit, i);
}

/* The gradient of the weight comes before what dies behind the last of these. */
void
zp_fsdp_emit_head_backward(ZpFsdpEmit *emit)
{
    const GArray *events = events_of(emit);
    guint first = 0, end = events->len;
    while (first < events->len && !event_at(events, first)->backward)
        first++;
    while (end > first && event_at(events, end - 1)->frees)
        end--;
    for (guint i = first; i < end; i++)
        replay(emit, i);
}

void
zp_fsdp_emit_head_release(ZpFsdpEmit *emit)
{
    for (gint32 s = 0; s < emit->n_head_storages; s++)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &emit->head_storages[s]);
}
