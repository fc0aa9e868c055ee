#include "models/activation/operators/ops.h"

static ZpTensor *
product(ZpOperation *operation, ZpTensor *a, ZpTensor *b)
{
    g_assert(a && b);
    gint64 sizes[ZP_TRACE_RANK];
    memcpy(sizes, a->shape.size, sizeof sizes);
    int rank = a->shape.rank;
    sizes[rank - 1] = b->shape.size[rank - 1];
    ZpTraceShape shape = zp_shape(rank, sizes);
    return zp_operation_allocate(operation, &shape, a->element_bytes);
}

static ZpTensor *
plain_product(ZpTrace *trace, const char *name, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, name, NULL, 2, inputs))
        return zp_operation_end(&operation, NULL);
    return zp_operation_end(&operation, product(&operation, a, b));
}

/* Gradients of a product of the last two dimensions; a matrix stored by columns gets a gradient
 * stored by columns (FunctionsManual.cpp, mm_mat1_backward and mm_mat2_backward). */
static void
product_gradients(ZpTrace *trace, ZpTraceNode *node, int first, ZpTensor *grad, ZpTensor **results,
                  const char *name)
{
    int saved = 0, rank = node->input_shape[first].rank;
    ZpTensor *self = node->next[first + 1] ? node->saved[saved++].tensor : NULL;
    ZpTensor *other = node->next[first] ? node->saved[saved++].tensor : NULL;
    if (node->next[first]) {
        zp_trace_gradient_of(trace, node, first);
        results[first] = plain_product(trace, name, grad,
                                       zp_take(zp_transpose(trace, other, rank - 2, rank - 1)));
    }
    if (!node->next[first + 1])
        return;
    zp_trace_gradient_of(trace, node, first + 1);
    const ZpTraceShape *shape = &node->input_shape[first + 1];
    gboolean by_columns = rank == 2 && shape->stride[0] == 1 && shape->stride[1] == shape->size[0];
    if (by_columns) {
        ZpTensor *turned =
            plain_product(trace, name, zp_take(zp_transpose(trace, grad, 0, 1)), self);
        results[first + 1] = zp_transpose(trace, zp_take(turned), 0, 1);
    } else {
        results[first + 1] = plain_product(
            trace, name, zp_take(zp_transpose(trace, self, rank - 2, rank - 1)), grad);
    }
}

static void
mm_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    product_gradients(trace, node, 0, grads[0], results, "mm");
}

static void
bmm_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    product_gradients(trace, node, 0, grads[0], results, "bmm");
}

static void
addmm_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    if (node->next[0])
        results[0] = zp_tensor_alias(grads[0], &grads[0]->shape);
    product_gradients(trace, node, 1, grads[0], results, "mm");
}

/* Saves the factors and makes the result, or hands out the one that a selective policy kept. */
static ZpTensor *
save_and_multiply(ZpOperation *operation, int first, gboolean selectable)
{
    ZpTrace *trace = operation->trace;
    ZpTensor *a = operation->input[first], *b = operation->input[first + 1], *result = NULL;
    if (zp_operation_needs(operation, first + 1))
        zp_operation_save(operation, a);
    if (zp_operation_needs(operation, first))
        zp_operation_save(operation, b);
    if (trace->stopped)
        return zp_operation_end(operation, NULL);
    if (!selectable || !zp_frame_cached(trace, ZP_CACHED_PRODUCT, &result, 1))
        result = product(operation, a, b);
    zp_operation_output(operation, result);
    if (selectable)
        zp_frame_cache(trace, ZP_CACHED_PRODUCT, &result, 1);
    return zp_operation_end(operation, result);
}

ZpTensor *
zp_mm(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "mm", mm_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    return save_and_multiply(&operation, 0, TRUE);
}

ZpTensor *
zp_bmm(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "bmm", bmm_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    return save_and_multiply(&operation, 0, FALSE);
}

static ZpTensor *
grouped_product(ZpTrace *trace, ZpTensor *a, ZpTensor *like, const ZpTraceShape *shape)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, like};
    if (!zp_operation_begin(&operation, trace, "_grouped_mm", NULL, 2, inputs))
        return zp_operation_end(&operation, NULL);
    return zp_operation_end(&operation, zp_operation_allocate(&operation, shape, a->element_bytes));
}

/* FunctionsManual.cpp, _grouped_mm_mat1_backward and _mat2_backward: laid out as the factors. */
static void
grouped_mm_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    int saved = 0;
    ZpTensor *self = node->next[1] ? node->saved[saved++].tensor : NULL;
    ZpTensor *other = node->next[0] ? node->saved[saved++].tensor : NULL;
    if (node->next[0]) {
        zp_trace_gradient_of(trace, node, 0);
        results[0] = grouped_product(trace, grads[0], other, &node->input_shape[0]);
    }
    if (node->next[1]) {
        zp_trace_gradient_of(trace, node, 1);
        results[1] = grouped_product(trace, grads[0], self, &node->input_shape[1]);
    }
}

ZpTensor *
zp_grouped_mm(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "_grouped_mm", grouped_mm_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    if (zp_operation_needs(&operation, 1))
        zp_operation_save(&operation, a);
    if (zp_operation_needs(&operation, 0))
        zp_operation_save(&operation, b);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    gint64 sizes[] = {a->shape.size[0], b->shape.size[2]};
    ZpTraceShape shape = zp_shape(2, sizes);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

static ZpTensor *
addmm(ZpTrace *trace, ZpTensor *bias, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {bias, a, b};
    if (!zp_operation_begin(&operation, trace, "addmm", addmm_backward, 3, inputs))
        return zp_operation_end(&operation, NULL);
    return save_and_multiply(&operation, 1, TRUE);
}

ZpTensor *
zp_linear(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias)
{
    if (!a || !weight || trace->stopped) {
        ZpOperation operation;
        ZpTensor *inputs[] = {a, weight, bias};
        zp_operation_begin(&operation, trace, "linear", NULL, 3, inputs);
        return zp_operation_end(&operation, NULL);
    }
    int rank = a->shape.rank;
    gint64 sizes[ZP_TRACE_RANK], in = a->shape.size[rank - 1];
    gint64 flat[] = {zp_shape_elements(&a->shape) / in, in};
    memcpy(sizes, a->shape.size, sizeof sizes);
    sizes[rank - 1] = weight->shape.size[0];
    ZpTensor *turned = zp_take(zp_transpose(trace, weight, 0, 1));
    ZpTensor *rows = zp_take(zp_reshape(trace, a, 2, flat));
    ZpTensor *result = bias ? addmm(trace, bias, rows, turned) : zp_mm(trace, rows, turned);
    return zp_reshape(trace, zp_take(result), rank, sizes);
}

/* LinearAlgebra.cpp, _matmul_impl: batched factors are folded into one batch dimension, with a copy
 * where the strides forbid a view. */
ZpTensor *
zp_matmul(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpTraceShape shape = a && b ? a->shape : (ZpTraceShape){.rank = 2};
    int rank = shape.rank;
    gint64 batch = 1;
    for (int i = 0; i < rank - 2; i++)
        batch *= shape.size[i];
    gint64 left[] = {batch, shape.size[rank - 2], shape.size[rank - 1]};
    gint64 right[] = {batch, shape.size[rank - 1], b ? b->shape.size[rank - 1] : 0};
    ZpTensor *first = zp_take(zp_reshape(trace, a, 3, left));
    ZpTensor *second = zp_take(zp_reshape(trace, b, 3, right));
    ZpTensor *result = zp_take(zp_bmm(trace, first, second));
    shape.size[rank - 1] = right[2];
    return zp_reshape(trace, result, rank, shape.size);
}
