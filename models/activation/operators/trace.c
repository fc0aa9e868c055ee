#include "models/activation/operators/trace.h"

#include <string.h>

/* The engine hands a leaf its gradient here; it stays until the trace ends.  One that is laid out
 * differently is copied into the leaf's layout (accumulate_grad.h). */
static void
accumulate_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    const ZpTraceShape *shape = &node->first.shape;
    (void)results;
    if (!grads[0])
        return;
    gboolean same = zp_shape_contiguous(&grads[0]->shape) || !zp_shape_contiguous(shape);
    ZpTraceClass class = node->parameter ? ZP_TRACE_PARAMETER_GRAD : ZP_TRACE_ACTIVATION;
    ZpTensor *gradient = same ? zp_tensor_ref(grads[0])
                              : zp_tensor_new(trace, class, shape, grads[0]->element_bytes);
    g_ptr_array_add(trace->gradients, gradient);
    if (!trace->events || !node->parameter)
        return;
    ZpTraceEvent event = {.storage = gradient->storage->number,
                          .part = (gint16)node->part,
                          .pass = (gint16)trace->pass,
                          .class = (gint16)gradient->storage->class,
                          .parameter = (gint16)node->number[0],
                          .bytes = zp_shape_elements(shape)};
    g_array_append_val(trace->events, event);
}

void
zp_trace_make_leaf(ZpTensor *tensor, gboolean parameter)
{
    ZpTraceNode *node = g_new0(ZpTraceNode, 1);
    node->references = 1;
    node->sequence = G_MAXUINT64;
    node->backward = accumulate_backward;
    node->outputs = 1;
    node->first = (ZpTraceOutput){tensor->shape, tensor->element_bytes, NULL};
    node->parameter = parameter;
    node->part = tensor->storage->trace->part;
    if (parameter)
        node->number[0] = ++tensor->storage->trace->parameters;
    tensor->node = node;
    tensor->needs_grad = TRUE;
    tensor->parameter = parameter;
}

/* --- operations --- */

gboolean
zp_operation_begin(ZpOperation *operation, ZpTrace *trace, const char *name,
                   ZpTraceBackward backward, int count, ZpTensor *const *inputs)
{
    *operation = (ZpOperation){.trace = trace, .count = count, .parameter = TRUE};
    gboolean complete = !trace->stopped, needed = FALSE;
    for (int i = 0; i < count; i++) {
        operation->input[i] = inputs[i];
        if (!inputs[i]) {
            complete = FALSE;
            continue;
        }
        operation->parameter = operation->parameter && inputs[i]->parameter;
        needed = needed || inputs[i]->needs_grad;
    }
    trace->operator_name = name;
    if (!complete || trace->no_grad || !needed || !backward)
        return complete;
    ZpTraceNode *node = g_new0(ZpTraceNode, 1);
    node->references = 1;
    node->sequence = trace->sequence++;
    node->backward = backward;
    node->inputs = count;
    node->parameter = operation->parameter;
    node->part = trace->part;
    for (int i = 0; i < count; i++) {
        node->input_shape[i] = inputs[i]->shape;
        node->input_bytes[i] = inputs[i]->element_bytes;
        if (inputs[i]->needs_grad) {
            node->next[i] = zp_node_ref(inputs[i]->node);
            node->next_output[i] = inputs[i]->output;
        }
    }
    operation->node = node;
    return TRUE;
}

gboolean
zp_operation_needs(const ZpOperation *operation, int input)
{
    return operation->node && operation->node->next[input];
}

void
zp_operation_save(ZpOperation *operation, ZpTensor *tensor)
{
    ZpTraceNode *node = operation->node;
    ZpTrace *trace = operation->trace;
    if (!node || trace->stopped)
        return;
    g_assert(node->saved_count < ZP_TRACE_SAVED);
    ZpTraceSaved *saved = &node->saved[node->saved_count++];
    if (trace->frame) {
        saved->handle = zp_frame_pack(trace, tensor);
        if (!trace->recomputing) {
            if (!node->frame)
                node->frame = zp_frame_ref(trace->frame);
            return;
        }
    }
    saved->tensor = zp_tensor_alias(tensor, &tensor->shape);
}

void
zp_trace_gradient_of(ZpTrace *trace, const ZpTraceNode *node, int input)
{
    const ZpTraceNode *next = node->next[input];
    trace->gradient_elements =
        next && next->parameter ? zp_shape_elements(&node->input_shape[input]) : 0;
}

/* What is made of parameters alone while a backward runs is neither kept nor an activation. */
static ZpTraceClass
class_of_result(const ZpOperation *operation, const ZpTraceShape *shape)
{
    const ZpTrace *trace = operation->trace;
    if (operation->parameter && operation->count > 0 && trace->in_backward)
        return ZP_TRACE_PARAMETER_GRAD;
    for (guint i = 0;
         trace->in_backward && trace->parameter_shapes && i < trace->parameter_shapes->len; i++)
        if (zp_shape_equal(shape, &g_array_index(trace->parameter_shapes, ZpTraceShape, i)))
            return ZP_TRACE_PARAMETER_GRAD;
    if (trace->gradient_elements > 0 && zp_shape_elements(shape) == trace->gradient_elements)
        return ZP_TRACE_PARAMETER_GRAD;
    return ZP_TRACE_ACTIVATION;
}

ZpTensor *
zp_operation_allocate(ZpOperation *operation, const ZpTraceShape *shape, int element_bytes)
{
    return zp_tensor_new(operation->trace, class_of_result(operation, shape), shape, element_bytes);
}

ZpTensor *
zp_operation_output(ZpOperation *operation, ZpTensor *result)
{
    result->parameter = operation->parameter;
    ZpTraceNode *node = operation->node;
    if (!node)
        return result;
    g_assert(node->outputs < ZP_TRACE_OUTPUTS);
    if (node->outputs > 0)
        node->others = g_renew(ZpTraceOutput, node->others, (gsize)node->outputs);
    *zp_node_output(node, node->outputs) =
        (ZpTraceOutput){result->shape, result->element_bytes, NULL};
    result->node = zp_node_ref(node);
    result->output = node->outputs++;
    result->needs_grad = TRUE;
    return result;
}

ZpTensor *
zp_operation_end(ZpOperation *operation, ZpTensor *result)
{
    zp_node_unref(operation->node);
    for (int i = 0; i < operation->count; i++) {
        ZpTensor *input = operation->input[i];
        for (int j = 0; j < i && input; j++)
            if (operation->input[j] == input)
                input = NULL; /* given twice, dropped once */
        if (input && input->temporary)
            zp_tensor_unref(input);
    }
    if (operation->trace->stopped)
        g_clear_pointer(&result, zp_tensor_unref);
    return result;
}
