#include "models/activation/operators/ops.h"

static ZpTensor *
clone_backward_result(ZpTrace *trace, ZpTensor *grad, const ZpTraceShape *shape)
{
    return zp_reshape(trace, grad, shape->rank, shape->size);
}

static void
reshape_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    zp_trace_gradient_of(trace, node, 0);
    results[0] = clone_backward_result(trace, grads[0], &node->input_shape[0]);
}

/* A result that shares its input's storage. */
static ZpTensor *
view(ZpTrace *trace, const char *name, ZpTraceBackward backward, ZpTensor *a,
     const ZpTraceShape *shape, const gint64 *numbers, int count)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, name, backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    for (int i = 0; i < count && operation.node; i++)
        operation.node->number[i] = numbers[i];
    ZpTensor *result = zp_operation_output(&operation, zp_tensor_alias(a, shape));
    return zp_operation_end(&operation, result);
}

static void
pass_one_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    (void)trace;
    (void)node;
    results[0] = zp_tensor_alias(grads[0], &grads[0]->shape);
}

static ZpTensor *
copy_contiguous(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "clone", pass_one_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape(a->shape.rank, a->shape.size);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

ZpTensor *
zp_contiguous(ZpTrace *trace, ZpTensor *a)
{
    if (!a || trace->stopped || !zp_shape_contiguous(&a->shape))
        return copy_contiguous(trace, a);
    return zp_tensor_again(a);
}

ZpTensor *
zp_reshape(ZpTrace *trace, ZpTensor *a, int rank, const gint64 *sizes)
{
    ZpTraceShape shape;
    if (a && !trace->stopped && !zp_shape_view(&a->shape, rank, sizes, &shape)) {
        a = zp_take(copy_contiguous(trace, a));
        shape = zp_shape(rank, sizes);
    }
    return view(trace, "view", reshape_backward, a, &shape, NULL, 0);
}

static void
transpose_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    results[0] = zp_transpose(trace, grads[0], (int)node->number[0], (int)node->number[1]);
}

ZpTensor *
zp_transpose(ZpTrace *trace, ZpTensor *a, int first, int second)
{
    ZpTraceShape shape = {0};
    if (a) {
        shape = a->shape;
        shape.size[first] = a->shape.size[second];
        shape.size[second] = a->shape.size[first];
        shape.stride[first] = a->shape.stride[second];
        shape.stride[second] = a->shape.stride[first];
    }
    gint64 numbers[] = {first, second};
    return view(trace, "transpose", transpose_backward, a, &shape, numbers, 2);
}

static void
expand_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    zp_trace_gradient_of(trace, node, 0);
    results[0] = zp_sum_to(trace, grads[0], &node->input_shape[0]);
}

ZpTensor *
zp_expand(ZpTrace *trace, ZpTensor *a, int rank, const gint64 *sizes)
{
    ZpTraceShape shape = {.rank = rank};
    for (int i = 0; a && i < rank; i++) {
        int own = i - (rank - a->shape.rank);
        shape.size[i] = sizes[i];
        shape.stride[i] = own >= 0 && a->shape.size[own] == sizes[i] ? a->shape.stride[own] : 0;
    }
    return view(trace, "expand", expand_backward, a, &shape, NULL, 0);
}

/* slice_backward: zeros of the input's sizes, the gradient copied into them. */
static void
slice_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    zp_trace_gradient_of(trace, node, 0);
    zp_operation_begin(&operation, trace, "slice_backward", NULL, 1, grads);
    ZpTraceShape shape = zp_shape(node->input_shape[0].rank, node->input_shape[0].size);
    results[0] = zp_operation_end(
        &operation, zp_operation_allocate(&operation, &shape, grads[0]->element_bytes));
}

ZpTensor *
zp_slice(ZpTrace *trace, ZpTensor *a, int dimension, gint64 start, gint64 length)
{
    if (a && !trace->stopped && start == 0 && length == a->shape.size[dimension])
        return zp_tensor_again(a);
    ZpTraceShape shape = {0};
    if (a) {
        shape = a->shape;
        shape.size[dimension] = length;
    }
    return view(trace, "slice", slice_backward, a, &shape, NULL, 0);
}

/* split: the gradients of all parts are joined (cat). */
static void
split_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    zp_operation_begin(&operation, trace, "cat", NULL, 1, grads);
    ZpTraceShape shape = zp_shape(node->input_shape[0].rank, node->input_shape[0].size);
    results[0] = zp_operation_end(&operation,
                                  zp_operation_allocate(&operation, &shape, node->input_bytes[0]));
}

int
zp_split(ZpTrace *trace, ZpTensor *a, int dimension, gint64 length, ZpTensor **parts)
{
    ZpOperation operation;
    int count = 0;
    if (zp_operation_begin(&operation, trace, "split", split_backward, 1, &a)) {
        gint64 left = a->shape.size[dimension];
        for (; left > 0 && count < ZP_TRACE_OUTPUTS; left -= length) {
            ZpTraceShape shape = a->shape;
            shape.size[dimension] = MIN(length, left);
            parts[count++] = zp_operation_output(&operation, zp_tensor_alias(a, &shape));
        }
    }
    zp_operation_end(&operation, NULL);
    return count;
}

static void
cat_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    (void)trace;
    for (int i = 0; i < node->inputs; i++) {
        ZpTraceShape shape = grads[0]->shape;
        memcpy(shape.size, node->input_shape[i].size, sizeof shape.size);
        results[i] = zp_tensor_alias(grads[0], &shape);
    }
}

ZpTensor *
zp_cat_last(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "cat", cat_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = a->shape;
    int last = shape.rank - 1;
    shape.size[last] += b->shape.size[last];
    shape = zp_shape(shape.rank, shape.size);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

static ZpTensor *
reduce(ZpTrace *trace, const char *name, ZpTraceBackward backward, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, name, backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = a->shape;
    shape.size[shape.rank - 1] = 1;
    shape = zp_shape(shape.rank, shape.size);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

static void
sum_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    results[0] = zp_expand(trace, grads[0], node->input_shape[0].rank, node->input_shape[0].size);
}

/* mean_backward: the expanded gradient divided by the count, a whole tensor. */
static void
mean_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    g_autoptr(ZpTensor) expanded =
        zp_expand(trace, grads[0], node->input_shape[0].rank, node->input_shape[0].size);
    results[0] = zp_scale(trace, expanded);
}

ZpTensor *
zp_mean_last(ZpTrace *trace, ZpTensor *a)
{
    return reduce(trace, "mean", mean_backward, a);
}

ZpTensor *
zp_sum_last(ZpTrace *trace, ZpTensor *a)
{
    return reduce(trace, "sum", sum_backward, a);
}

/* The gradient is expanded over what was summed: a view. */
static void
sum_middle_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    gint64 apart[] = {grads[0]->shape.size[0], 1, grads[0]->shape.size[1]};
    ZpTensor *rows = zp_take(zp_reshape(trace, grads[0], 3, apart));
    results[0] = zp_expand(trace, rows, 3, node->input_shape[0].size);
}

ZpTensor *
zp_sum_middle(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "sum", sum_middle_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    gint64 sizes[] = {a->shape.size[0], a->shape.size[2]};
    ZpTraceShape shape = zp_shape(2, sizes);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

ZpTensor *
zp_sum_to(ZpTrace *trace, ZpTensor *a, const ZpTraceShape *shape)
{
    if (a && !trace->stopped && zp_shape_equal(&a->shape, shape))
        return zp_tensor_again(a);
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "sum", NULL, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape reduced = zp_shape(shape->rank, shape->size);
    return zp_operation_end(&operation,
                            zp_operation_allocate(&operation, &reduced, a->element_bytes));
}
