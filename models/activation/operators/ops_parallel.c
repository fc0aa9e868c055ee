/* Megatron's sequence parallelism (Korthikanti et al., arXiv 2205.05198, section 4.2.2): outside of
 * the split products a rank holds 1/ways of the tokens.  megatron/core/tensor_parallel/layers.py,
 * LinearWithGradAccumulationAndAsyncCommunication, and mappings.py. */
#include "models/activation/operators/ops.h"

static ZpTraceShape
with_tokens(const ZpTraceShape *shape, gint64 tokens)
{
    gint64 sizes[ZP_TRACE_RANK];
    memcpy(sizes, shape->size, sizeof sizes);
    sizes[1] = tokens;
    return zp_shape(shape->rank, sizes);
}

static ZpTensor *
allocate(ZpTrace *trace, const char *name, const ZpTraceShape *shape, int element_bytes)
{
    ZpOperation operation;
    zp_operation_begin(&operation, trace, name, NULL, 0, NULL);
    return zp_operation_end(&operation, zp_operation_allocate(&operation, shape, element_bytes));
}

/* The input is gathered again; its gradient is whole before the reduce-scatter. */
static void
gathered_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    int bytes = grads[0]->element_bytes;
    ZpTraceShape whole = with_tokens(&node->input_shape[0], node->first.shape.size[1]);
    g_autoptr(ZpTensor) gathered = allocate(trace, "all_gather", &whole, bytes);
    (void)gathered; /* alive until the end */
    ZpTensor *gradient = NULL;
    if (node->next[0]) {
        gradient = allocate(trace, "mm", &whole, bytes);
        results[0] = allocate(trace, "reduce_scatter", &node->input_shape[0], bytes);
    }
    for (int i = 1; i < node->inputs; i++) {
        if (!node->next[i])
            continue;
        zp_trace_gradient_of(trace, node, i);
        results[i] = allocate(trace, i == 1 ? "mm" : "sum", &node->input_shape[i], bytes);
        trace->gradient_elements = 0;
    }
    zp_tensor_unref(gradient);
}

ZpTensor *
zp_gathered_linear(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias, gint64 ways)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, weight, bias};
    if (!zp_operation_begin(&operation, trace, "all_gather", gathered_backward, bias ? 3 : 2,
                            inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, a);
    zp_operation_save(&operation, weight);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = NULL;
    ZpTraceShape whole = with_tokens(&a->shape, a->shape.size[1] * ways);
    g_autoptr(ZpTensor) gathered = allocate(trace, "all_gather", &whole, a->element_bytes);
    (void)gathered; /* alive until the end */
    if (!zp_frame_cached(trace, ZP_CACHED_PRODUCT, &result, 1)) {
        whole.size[2] = weight->shape.size[0];
        whole = zp_shape(3, whole.size);
        result = zp_operation_allocate(&operation, &whole, a->element_bytes);
    }
    zp_operation_output(&operation, result);
    zp_frame_cache(trace, ZP_CACHED_PRODUCT, &result, 1);
    return zp_operation_end(&operation, result);
}

static void
scattered_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    results[0] = allocate(trace, "all_gather", &node->input_shape[0], grads[0]->element_bytes);
}

ZpTensor *
zp_reduce_scatter(ZpTrace *trace, ZpTensor *a, gint64 ways)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "reduce_scatter", scattered_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape part = with_tokens(&a->shape, a->shape.size[1] / ways);
    ZpTensor *result = zp_operation_allocate(&operation, &part, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}
