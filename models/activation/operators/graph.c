/* What lives in a trace: storages, tensors, nodes and checkpointed regions own one another by
 * counted references, and die together. */
#include "models/activation/operators/frame_internal.h"

void
zp_trace_init(ZpTrace *trace)
{
    *trace = (ZpTrace){
        .peak_at = "",
        .operator_name = "",
        .copies = g_ptr_array_new_with_free_func((GDestroyNotify)zp_tensor_unref),
        .gradients = g_ptr_array_new_with_free_func((GDestroyNotify)zp_tensor_unref),
    };
}

void
zp_trace_clear(ZpTrace *trace)
{
    g_clear_pointer(&trace->copies, g_ptr_array_unref);
    g_clear_pointer(&trace->parameter_shapes, g_array_unref);
    g_clear_pointer(&trace->gradients, g_ptr_array_unref);
}

static gint64
live_of_all(const ZpTrace *trace)
{
    return trace->live[ZP_TRACE_ACTIVATION] + trace->live[ZP_TRACE_PARAMETER_COPY] +
           trace->live[ZP_TRACE_PARAMETER_GRAD];
}

void
zp_trace_reset_peak(ZpTrace *trace)
{
    trace->peak = trace->live[ZP_TRACE_ACTIVATION];
    trace->peak_all = live_of_all(trace);
}

void
zp_trace_grow(ZpTrace *trace, ZpTraceClass class, gint64 bytes)
{
    trace->live[class] += bytes;
    if (trace->live[ZP_TRACE_ACTIVATION] > trace->peak) {
        trace->peak = trace->live[ZP_TRACE_ACTIVATION];
        trace->peak_at = trace->operator_name;
    }
    trace->peak_all = MAX(trace->peak_all, live_of_all(trace));
}

void
zp_trace_count(ZpTrace *trace, const ZpTraceStorage *storage, gboolean dies)
{
    gint64 bytes = dies ? -storage->bytes : storage->bytes;
    if (trace->events && storage->class != ZP_TRACE_CONSTANT && bytes != 0) {
        ZpTraceEvent event = {.storage = storage->number,
                              .part = (gint16)trace->part,
                              .pass = (gint16)trace->pass,
                              .class = (gint16)storage->class,
                              .bytes = bytes};
        g_array_append_val(trace->events, event);
    }
    zp_trace_grow(trace, storage->class, bytes);
}

static void
storage_unref(ZpTraceStorage *storage)
{
    if (--storage->references > 0)
        return;
    zp_trace_count(storage->trace, storage, TRUE);
    g_free(storage);
}

ZpTensor *
zp_tensor_new(ZpTrace *trace, ZpTraceClass class, const ZpTraceShape *shape, int element_bytes)
{
    ZpTraceStorage *storage = g_new0(ZpTraceStorage, 1);
    *storage = (ZpTraceStorage){
        .references = 1,
        .class = class,
        .bytes = zp_shape_elements(shape) * element_bytes,
        .trace = trace,
        .number = trace->storages++,
    };
    zp_trace_count(trace, storage, FALSE);
    ZpTensor *tensor = g_new0(ZpTensor, 1);
    tensor->references = 1;
    tensor->storage = storage;
    tensor->shape = *shape;
    tensor->element_bytes = element_bytes;
    return tensor;
}

ZpTensor *
zp_tensor_ref(ZpTensor *tensor)
{
    if (tensor)
        tensor->references++;
    return tensor;
}

void
zp_tensor_unref(ZpTensor *tensor)
{
    if (!tensor || --tensor->references > 0)
        return;
    storage_unref(tensor->storage);
    zp_node_unref(tensor->node);
    g_free(tensor);
}

ZpTensor *
zp_tensor_alias(ZpTensor *tensor, const ZpTraceShape *shape)
{
    ZpTensor *alias = g_new0(ZpTensor, 1);
    alias->references = 1;
    alias->storage = tensor->storage;
    alias->storage->references++;
    alias->shape = *shape;
    alias->element_bytes = tensor->element_bytes;
    alias->parameter = tensor->parameter;
    return alias;
}

ZpTensor *
zp_tensor_again(ZpTensor *tensor)
{
    if (tensor->temporary) {
        tensor->temporary = FALSE;
        return tensor;
    }
    ZpTensor *again = zp_tensor_alias(tensor, &tensor->shape);
    again->needs_grad = tensor->needs_grad;
    again->node = zp_node_ref(tensor->node);
    again->output = tensor->output;
    return again;
}

ZpTensor *
zp_take(ZpTensor *tensor)
{
    if (tensor)
        tensor->temporary = TRUE;
    return tensor;
}

static void
unref_if_any(gpointer tensor)
{
    zp_tensor_unref(tensor);
}

ZpTraceFrame *
zp_frame_ref(ZpTraceFrame *frame)
{
    frame->references++;
    return frame;
}

void
zp_frame_unref(ZpTraceFrame *frame)
{
    if (--frame->references > 0)
        return;
    zp_tensor_unref(frame->input);
    for (guint i = 0; i < frame->values->len; i++)
        unref_if_any(frame->values->pdata[i]);
    g_ptr_array_unref(frame->values);
    for (int i = 0; i < ZP_CACHED_KINDS; i++)
        g_queue_clear_full(&frame->cached[i], unref_if_any);
    g_free(frame);
}

int
zp_frame_pack(ZpTrace *trace, ZpTensor *tensor)
{
    ZpTraceFrame *frame = trace->frame;
    if (!trace->recomputing)
        return frame->handles++;
    g_ptr_array_add(frame->values, zp_tensor_alias(tensor, &tensor->shape));
    if (++frame->recomputed_handles == frame->handles)
        trace->stopped = TRUE;
    return frame->recomputed_handles - 1;
}

ZpTraceNode *
zp_node_ref(ZpTraceNode *node)
{
    if (node)
        node->references++;
    return node;
}

void
zp_node_release_saved(ZpTraceNode *node)
{
    for (int i = 0; i < node->saved_count; i++)
        g_clear_pointer(&node->saved[i].tensor, zp_tensor_unref);
    node->saved_count = 0;
    g_clear_pointer(&node->frame, zp_frame_unref);
}

void
zp_node_unref(ZpTraceNode *node)
{
    if (!node || --node->references > 0)
        return;
    zp_node_release_saved(node);
    for (int i = 0; i < node->inputs; i++)
        zp_node_unref(node->next[i]);
    g_free(node->others);
    g_free(node->extra);
    g_free(node);
}
