/* Blocks that are known tensor by tensor: kept tensors die and gradients are born where the
 * operators of forward, recomputation and backward make them so. */
#include "models/runtimes/fsdp/emit.h"

/* Events of a part in a pass; worst: behind the one with which the most lives. */
typedef struct {
    guint first, worst, end;
} Range;

/* A script at this job's sizes. */
typedef struct {
    const ZpModelScript *script;
    gint64 *bytes;       /* by event */
    Range *ranges;       /* by pass and part */
    gboolean *temporary; /* by storage: dies in the pass it was born in */
} Sized;

struct _ZpFsdpScripts {
    GArray *sized;      /* Sized, by index of the model's scripts; script NULL: not yet read */
    gint32 *first;      /* by layer: its block's buffers in `buffers` */
    gint32 *buffers;    /* by storage of each block */
    guint *played;      /* by layer: events of its backward so far */
    gboolean *launched; /* by layer: the kernels of its backward run */
    gboolean *began;    /* by first layer: the block's backward has what comes in */
    GArray *cached;     /* gint32: copies of parameters to the end of forward */
    gint32 stream;      /* the residual stream between blocks, or its gradient */
    gint32 n_buffers;
};

static void
clear_sized(gpointer data)
{
    Sized *sized = data;
    g_free(sized->bytes);
    g_free(sized->ranges);
    g_free(sized->temporary);
}

/* Behind the event with which the most lives, of a range. */
static guint
worst_of(const Sized *sized, guint first, guint end)
{
    gint64 live = 0, most = 0;
    guint worst = first;
    for (guint i = first; i < end; i++) {
        const ZpModelScriptEvent *event = zp_model_script_event(sized->script, i);
        if (event->kind == ZP_MODEL_GRADIENT)
            continue;
        live += event->frees ? -sized->bytes[i] : sized->bytes[i];
        if (live > most) {
            most = live;
            worst = i + 1;
        }
    }
    return worst;
}

static guint
begin_of(const ZpModelScript *script, ZpModelPass pass, int part)
{
    if (pass == ZP_MODEL_BACKWARD)
        return part + 1 < script->n_parts ? zp_model_script_end(script, pass, part + 1)
                                          : zp_model_script_end(script, ZP_MODEL_RECOMPUTE, part);
    if (part > 0)
        return zp_model_script_end(script, pass, part - 1);
    return pass == ZP_MODEL_FORWARD
               ? 0
               : zp_model_script_end(script, ZP_MODEL_FORWARD, script->n_parts - 1);
}

static void
find_ranges(Sized *sized)
{
    const ZpModelScript *script = sized->script;
    sized->ranges = g_new0(Range, (gsize)ZP_MODEL_PASSES * (gsize)script->n_parts);
    for (int pass = 0; pass < ZP_MODEL_PASSES; pass++)
        for (int part = 0; part < script->n_parts; part++) {
            guint first = begin_of(script, (ZpModelPass)pass, part);
            guint end = zp_model_script_end(script, (ZpModelPass)pass, part);
            sized->ranges[pass * script->n_parts + part] =
                (Range){first, worst_of(sized, first, end), end};
        }
}

static const Range *
range_of(const Sized *sized, ZpModelPass pass, int part)
{
    return &sized->ranges[(int)pass * sized->script->n_parts + part];
}

static Sized
read_script(const ZpModelScript *script, const ZpTraining *training)
{
    Sized sized = {.script = script,
                   .bytes = g_new0(gint64, script->events->len + 1),
                   .temporary = g_new0(gboolean, (gsize)script->n_storages + 1)};
    g_autofree gint8 *born = g_new(gint8, (gsize)script->n_storages + 1);
    memset(born, ZP_MODEL_PASSES, (gsize)script->n_storages);
    for (guint i = 0; i < script->events->len; i++) {
        const ZpModelScriptEvent *event = zp_model_script_event(script, i);
        sized.bytes[i] =
            zp_layer_bytes_weigh(&event->bytes, training->micro_batch, training->sequence);
        if (event->frees)
            sized.temporary[event->storage] = born[event->storage] == (gint8)event->pass;
        else
            born[event->storage] = (gint8)event->pass;
    }
    find_ranges(&sized);
    return sized;
}

static const ZpModelScript *
script_of(const ZpFsdpEmit *emit, gint32 layer)
{
    const ZpTraining *training = &emit->job->training;
    return zp_model_script(emit->job->model, zp_model_layer(emit->job->model, layer),
                           (int)training->checkpointing, training->micro_batch);
}

static const Sized *
sized_of(const ZpFsdpEmit *emit, gint32 layer)
{
    gint32 script = zp_model_layer(emit->job->model, layer)->script;
    return &g_array_index(emit->scripts->sized, Sized, (guint)script - 1);
}

void
zp_fsdp_emit_script_init(ZpFsdpEmit *emit)
{
    const ZpModel *model = emit->job->model;
    gsize n_layers = model->layers->len;
    ZpFsdpScripts *scripts = g_new0(ZpFsdpScripts, 1);
    emit->scripts = scripts;
    scripts->sized = g_array_new(FALSE, TRUE, sizeof(Sized));
    g_array_set_clear_func(scripts->sized, clear_sized);
    g_array_set_size(scripts->sized, model->scripts->len);
    scripts->first = g_new0(gint32, n_layers + 1);
    scripts->played = g_new0(guint, n_layers + 1);
    scripts->launched = g_new0(gboolean, n_layers + 1);
    scripts->began = g_new0(gboolean, n_layers + 1);
    scripts->cached = g_array_new(FALSE, FALSE, sizeof(gint32));
    scripts->stream = ZP_TAPE_NONE;
    for (gint32 l = 0; l < (gint32)n_layers; l++) {
        const ZpModelScript *script = script_of(emit, l);
        const ZpModelLayer *layer = zp_model_layer(model, l);
        if (script == NULL)
            continue;
        Sized *sized = &g_array_index(scripts->sized, Sized, (guint)layer->script - 1);
        if (sized->script == NULL)
            *sized = read_script(script, &emit->job->training);
        if (layer->part == 0) {
            scripts->first[l] = scripts->n_buffers;
            scripts->n_buffers += script->n_storages;
        } else {
            scripts->first[l] = scripts->first[l - 1];
        }
    }
    scripts->buffers = g_new(gint32, (gsize)scripts->n_buffers + 1);
    for (gint32 b = 0; b < scripts->n_buffers; b++)
        scripts->buffers[b] = ZP_TAPE_NONE;
}

void
zp_fsdp_emit_script_clear(ZpFsdpEmit *emit)
{
    ZpFsdpScripts *scripts = g_steal_pointer(&emit->scripts);
    if (scripts == NULL)
        return;
    g_array_unref(scripts->sized);
    g_array_unref(scripts->cached);
    g_free(scripts->first);
    g_free(scripts->buffers);
    g_free(scripts->played);
    g_free(scripts->launched);
    g_free(scripts->began);
    g_free(scripts);
}

gboolean
zp_fsdp_emit_is_scripted(const ZpFsdpEmit *emit, gint32 layer)
{
    return emit->job != NULL && script_of(emit, layer) != NULL;
}

static gint32 *
buffer_of(ZpFsdpEmit *emit, gint32 layer, gint32 storage)
{
    return &emit->scripts->buffers[emit->scripts->first[layer] + storage];
}

static void
play_event(ZpFsdpEmit *emit, gint32 layer, const Sized *sized, guint index)
{
    const ZpModelScriptEvent *event = zp_model_script_event(sized->script, index);
    gint32 *buffer = buffer_of(emit, layer, event->storage);
    if (event->kind == ZP_MODEL_GRADIENT)
        return; /* the runtime's */
    if (event->frees) {
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, buffer);
        return;
    }
    gboolean gradient = event->kind == ZP_MODEL_GRADIENT_TEMPORARY;
    ZpRole role = gradient                           ? ZP_ROLE_GRADIENT_TEMPORARY
                  : sized->temporary[event->storage] ? ZP_ROLE_TEMPORARY
                                                     : ZP_ROLE_NONE;
    *buffer = zp_fsdp_emit_make(emit, ZP_FSDP_STREAM_DEFAULT,
                                gradient ? ZP_CLASS_GRADIENT : ZP_CLASS_ACTIVATION, role,
                                sized->bytes[index], ZP_FSDP_NONE);
    if (event->kind != ZP_MODEL_CACHED_COPY)
        return;
    g_array_append_val(emit->scripts->cached, *buffer);
    *buffer = ZP_TAPE_NONE;
}

static void
play(ZpFsdpEmit *emit, gint32 layer, guint first, guint end)
{
    const Sized *sized = sized_of(emit, layer);
    for (guint i = first; i < end; i++)
        play_event(emit, layer, sized, i);
}

/* What comes in from the neighbour: its buffer, or one of its own where it is not known so. */
static void
take_stream(ZpFsdpEmit *emit, gint32 layer, gint32 storage, const ZpModelBytes *form)
{
    gint32 *buffer = buffer_of(emit, layer, storage);
    const ZpTraining *training = &emit->job->training;
    *buffer = emit->scripts->stream;
    emit->scripts->stream = ZP_TAPE_NONE;
    if (*buffer == ZP_TAPE_NONE)
        *buffer = zp_fsdp_emit_make(
            emit, ZP_FSDP_STREAM_DEFAULT, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE,
            zp_layer_bytes_weigh(form, training->micro_batch, training->sequence), ZP_FSDP_NONE);
}

static void
hand_on(ZpFsdpEmit *emit, gint32 layer, gint32 storage)
{
    gint32 *buffer = buffer_of(emit, layer, storage);
    zp_fsdp_emit_script_leave(emit);
    emit->scripts->stream = *buffer;
    *buffer = ZP_TAPE_NONE;
}

void
zp_fsdp_emit_script_leave(ZpFsdpEmit *emit)
{
    if (emit->scripts != NULL)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &emit->scripts->stream);
}

void
zp_fsdp_emit_script_begin_backward(ZpFsdpEmit *emit)
{
    if (emit->scripts == NULL)
        return;
    GArray *cached = emit->scripts->cached;
    for (guint i = 0; i < cached->len; i++)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &g_array_index(cached, gint32, i));
    g_array_set_size(cached, 0);
    zp_fsdp_emit_script_leave(emit);
}

/* The gradient of the block's output: the neighbour's, when the block's backward or what it asks
 * for begins. */
static void
take_gradient(ZpFsdpEmit *emit, gint32 layer, const ZpModelScript *script)
{
    gboolean *began = &emit->scripts->began[layer - zp_model_layer(emit->job->model, layer)->part];
    if (!*began)
        take_stream(emit, layer, script->output_gradient, &script->output_gradient_bytes);
    *began = TRUE;
}

void
zp_fsdp_emit_script_pass(ZpFsdpEmit *emit, gint32 layer, ZpModelPass pass)
{
    const Sized *sized = sized_of(emit, layer);
    const ZpModelScript *script = sized->script;
    int part = zp_model_layer(emit->job->model, layer)->part;
    const Range range = *range_of(sized, pass, part);
    guint first = range.first, worst = range.worst, end = range.end;
    if (part == 0 && pass == ZP_MODEL_FORWARD)
        take_stream(emit, layer, script->input, &script->input_bytes);
    else if (part == 0)
        take_gradient(emit, layer, script);
    play(emit, layer, first, worst);
    if (pass == ZP_MODEL_FORWARD || end > first)
        zp_fsdp_emit_kernel(emit, layer,
                            pass == ZP_MODEL_FORWARD ? ZP_KIND_FORWARD : ZP_KIND_RECOMPUTE);
    play(emit, layer, worst, end);
    if (part == script->n_parts - 1 && pass == ZP_MODEL_FORWARD)
        hand_on(emit, layer, script->output);
}

void
zp_fsdp_emit_script_backward(ZpFsdpEmit *emit, gint32 layer, gint32 until)
{
    const Sized *sized = sized_of(emit, layer);
    const ZpModelScript *script = sized->script;
    int part = zp_model_layer(emit->job->model, layer)->part;
    const Range range = *range_of(sized, ZP_MODEL_BACKWARD, part);
    guint first = range.first, worst = range.worst, end = range.end;
    guint from = MAX(emit->scripts->played[layer], first);
    guint to = until == ZP_FSDP_NONE ? end : CLAMP((guint)until, from, end);
    if (part == script->n_parts - 1)
        take_gradient(emit, layer, script);
    gboolean now = !emit->scripts->launched[layer] && (worst <= to || until == ZP_FSDP_NONE);
    guint middle = now ? CLAMP(worst, from, to) : to;
    play(emit, layer, from, middle);
    if (now)
        zp_fsdp_emit_kernel(emit, layer, ZP_KIND_BACKWARD);
    play(emit, layer, middle, to);
    emit->scripts->launched[layer] |= now;
    emit->scripts->played[layer] = to;
    if (until != ZP_FSDP_NONE)
        return;
    emit->scripts->launched[layer] = FALSE;
    emit->scripts->played[layer] = 0;
    if (part > 0)
        return;
    emit->scripts->began[layer] = FALSE;
    if (script->input_gradient != ZP_MODEL_SCRIPT_NONE)
        hand_on(emit, layer, script->input_gradient);
}

/* What is left of a block whose backward does not come. */
void
zp_fsdp_emit_script_release(ZpFsdpEmit *emit, gint32 layer)
{
    const ZpModelScript *script = sized_of(emit, layer)->script;
    if (zp_model_layer(emit->job->model, layer)->part > 0)
        return;
    for (gint32 s = 0; s < script->n_storages; s++)
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, buffer_of(emit, layer, s));
}
