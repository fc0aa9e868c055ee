#include "models/activation/operators/ops.h"

enum { INDEX_BYTES = 8 };

static ZpTensor *
backward_result(ZpTrace *trace, const ZpTraceNode *node, const char *name, ZpTensor *grad,
                const ZpTraceShape *shape)
{
    ZpOperation operation;
    ZpTraceShape plain = zp_shape(shape->rank, shape->size);
    (void)node;
    zp_operation_begin(&operation, trace, name, NULL, 1, &grad);
    return zp_operation_end(&operation,
                            zp_operation_allocate(&operation, &plain, grad->element_bytes));
}

/* index_backward: zeros of the input's sizes, then index_put makes another tensor (it adds in place
 * only outside of dispatch modes).  The same holds for the scatter of topk's backward. */
static void
scatter_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    zp_trace_gradient_of(trace, node, 0);
    g_autoptr(ZpTensor) zeros =
        backward_result(trace, node, "new_zeros", grads[0], &node->input_shape[0]);
    (void)zeros; /* alive until the end */
    results[0] = backward_result(trace, node, "index_put", grads[0], &node->input_shape[0]);
}

/* Rows of the first dimensions: as many index tensors as dimensions they replace. */
ZpTensor *
zp_index(ZpTrace *trace, ZpTensor *a, ZpTensor *first, ZpTensor *second)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, first, second};
    if (!zp_operation_begin(&operation, trace, "index", scatter_backward, second ? 3 : 2, inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, first);
    if (second)
        zp_operation_save(&operation, second);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    int replaced = second ? 2 : 1;
    gint64 sizes[ZP_TRACE_RANK] = {first->shape.size[0]};
    for (int i = replaced; i < a->shape.rank; i++)
        sizes[i - replaced + 1] = a->shape.size[i];
    ZpTraceShape shape = zp_shape(a->shape.rank - replaced + 1, sizes);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

static void
index_add_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    if (node->next[0])
        results[0] = zp_tensor_alias(grads[0], &grads[0]->shape);
    if (node->next[2])
        results[2] = backward_result(trace, node, "index_select", grads[0], &node->input_shape[2]);
}

ZpTensor *
zp_index_add_in_place(ZpTrace *trace, ZpTensor *a, ZpTensor *index, ZpTensor *source)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, index, source};
    if (!zp_operation_begin(&operation, trace, "index_add", index_add_backward, 3, inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, index);
    zp_operation_save(&operation, source);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = zp_operation_output(&operation, zp_tensor_alias(a, &a->shape));
    return zp_operation_end(&operation, result);
}

ZpTensor *
zp_topk(ZpTrace *trace, ZpTensor *a, gint64 count, ZpTensor **indices)
{
    ZpOperation operation;
    *indices = NULL;
    if (!zp_operation_begin(&operation, trace, "topk", scatter_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = a->shape;
    shape.size[shape.rank - 1] = count;
    shape = zp_shape(shape.rank, shape.size);
    ZpTensor *values = zp_operation_allocate(&operation, &shape, a->element_bytes);
    *indices = zp_operation_allocate(&operation, &shape, INDEX_BYTES);
    zp_operation_output(&operation, values);
    zp_operation_save(&operation, *indices);
    if (trace->stopped)
        g_clear_pointer(indices, zp_tensor_unref);
    return zp_operation_end(&operation, values);
}

/* self: grad / other; other: -grad * ((self / other) / other), one expression. */
static void
quotient_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpTensor *self = node->saved[0].tensor;
    results[0] = backward_result(trace, node, "div", grads[0], &node->input_shape[0]);
    g_autoptr(ZpTensor) negative = zp_neg(trace, grads[0]);
    g_autoptr(ZpTensor) once = backward_result(trace, node, "div", self, &self->shape);
    g_autoptr(ZpTensor) twice = backward_result(trace, node, "div", once, &self->shape);
    results[1] = zp_mul(trace, negative, twice);
}

ZpTensor *
zp_quotient(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "div", quotient_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, a);
    zp_operation_save(&operation, b);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape_elementwise(inputs, 2);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}
