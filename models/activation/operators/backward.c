/* The walk of the backward engine: nodes in falling order of their number once all their gradients
 * are in; gradients of a node die when its rule returns, then what it saved, and only then are its
 * results added to those that wait elsewhere (engine.cpp: call_function, evaluate_function).
 * Additions make a new tensor: the engine adds in place only outside of dispatch modes. */
#include "models/activation/operators/ops.h"

static void
count_waiting(ZpTraceNode *node, GPtrArray *visited)
{
    node->waiting++;
    if (node->waiting > 1)
        return;
    g_ptr_array_add(visited, zp_node_ref(node));
    for (int i = 0; i < node->inputs; i++)
        if (node->next[i])
            count_waiting(node->next[i], visited);
}

/* engine.cpp, validate_outputs: a gradient takes the sizes and the dtype of what it belongs to. */
static void
fit_results(ZpTrace *trace, ZpTraceNode *node, ZpTensor **results)
{
    for (int i = 0; i < node->inputs; i++) {
        if (!results[i] || !node->next[i])
            continue;
        zp_trace_gradient_of(trace, node, i);
        const ZpTraceOutput *output = zp_node_output(node->next[i], node->next_output[i]);
        if (!zp_shape_equal(&results[i]->shape, &output->shape))
            results[i] = zp_sum_to(trace, zp_take(results[i]), &output->shape);
        if (results[i]->element_bytes != output->element_bytes)
            results[i] = zp_to(trace, zp_take(results[i]), output->element_bytes);
        trace->gradient_elements = 0;
    }
}

static void
run_node(ZpTrace *trace, ZpTraceNode *node, ZpTensor **results)
{
    ZpTensor *grads[ZP_TRACE_OUTPUTS];
    gboolean any = FALSE;
    trace->part = node->part;
    for (int i = 0; i < node->outputs; i++) {
        grads[i] = g_steal_pointer(&zp_node_output(node, i)->gradient);
        any = any || grads[i];
    }
    for (int i = 0; any && node->frame && i < node->saved_count; i++)
        node->saved[i].tensor = zp_frame_unpack(trace, node->frame, node->saved[i].handle);
    if (any) {
        gboolean no_grad = trace->no_grad;
        trace->no_grad = TRUE;
        node->backward(trace, node, grads, results);
        trace->gradient_elements = 0;
        /* Recomputed tensors are the rule's own and die with it, before the results are fitted. */
        for (int i = 0; node->frame && i < node->saved_count; i++)
            g_clear_pointer(&node->saved[i].tensor, zp_tensor_unref);
        fit_results(trace, node, results);
        trace->no_grad = no_grad;
    }
    for (int i = 0; i < node->outputs; i++)
        zp_tensor_unref(grads[i]);
    zp_node_release_saved(node);
}

static void
deliver(ZpTrace *trace, ZpTraceNode *next, int index, ZpTensor *grad)
{
    ZpTraceOutput *output = zp_node_output(next, index);
    if (!grad)
        return;
    if (!output->gradient) {
        output->gradient = grad;
        return;
    }
    gboolean no_grad = trace->no_grad;
    trace->no_grad = TRUE;
    if (next->parameter)
        trace->gradient_elements = zp_shape_elements(&output->shape);
    output->gradient = zp_add(trace, zp_take(output->gradient), zp_take(grad));
    trace->gradient_elements = 0;
    trace->no_grad = no_grad;
}

static ZpTraceNode *
next_ready(GPtrArray *ready)
{
    guint best = 0;
    for (guint i = 1; i < ready->len; i++)
        if (((ZpTraceNode *)ready->pdata[i])->sequence >
            ((ZpTraceNode *)ready->pdata[best])->sequence)
            best = i;
    return g_ptr_array_steal_index(ready, best);
}

void
zp_trace_backward(ZpTrace *trace, ZpTraceNode *root, int output, ZpTensor *grad)
{
    g_autoptr(GPtrArray) visited = g_ptr_array_new_with_free_func((GDestroyNotify)zp_node_unref);
    g_autoptr(GPtrArray) ready = g_ptr_array_new();
    gboolean outer = trace->in_backward;
    trace->in_backward = TRUE;
    count_waiting(root, visited);
    zp_node_output(root, output)->gradient = grad;
    g_ptr_array_add(ready, root);
    while (ready->len > 0) {
        ZpTraceNode *node = next_ready(ready);
        ZpTensor *results[ZP_TRACE_INPUTS] = {NULL};
        run_node(trace, node, results);
        for (int i = 0; i < node->inputs; i++) {
            ZpTraceNode *next = node->next[i];
            if (!next) {
                zp_tensor_unref(results[i]);
                continue;
            }
            deliver(trace, next, node->next_output[i], results[i]);
            if (--next->waiting == 0)
                g_ptr_array_add(ready, next);
        }
        node->waiting = 0;
    }
    trace->in_backward = outer;
    zp_node_unref(root);
}
