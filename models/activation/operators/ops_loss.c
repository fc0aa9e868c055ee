#include "models/activation/operators/ops.h"

ZpTensor *
zp_plain(ZpTrace *trace, const char *name, const ZpTraceShape *shape, int element_bytes)
{
    if (trace->stopped)
        return NULL;
    trace->operator_name = name;
    return zp_tensor_new(trace, ZP_TRACE_ACTIVATION, shape, element_bytes);
}

static void
like_input_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    zp_operation_begin(&operation, trace, "_log_softmax_backward_data", NULL, 1, grads);
    ZpTraceShape shape = zp_shape(node->input_shape[0].rank, node->input_shape[0].size);
    results[0] = zp_operation_end(&operation,
                                  zp_operation_allocate(&operation, &shape, node->input_bytes[0]));
}

ZpTensor *
zp_log_softmax(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "_log_softmax", like_input_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape(a->shape.rank, a->shape.size);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    zp_operation_output(&operation, result);
    zp_operation_save(&operation, result);
    return zp_operation_end(&operation, result);
}

ZpTensor *
zp_nll_loss(ZpTrace *trace, ZpTensor *a, ZpTensor *target)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, target};
    if (!zp_operation_begin(&operation, trace, "nll_loss_forward", like_input_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, a);
    zp_operation_save(&operation, target);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTraceShape scalar = zp_shape(0, NULL);
    ZpTensor *result = zp_operation_allocate(&operation, &scalar, a->element_bytes);
    g_autoptr(ZpTensor) weight = zp_operation_allocate(&operation, &scalar, a->element_bytes);
    zp_operation_output(&operation, result);
    zp_operation_save(&operation, weight);
    return zp_operation_end(&operation, result);
}

/* The gradient seen at the input's sizes, no copy. */
static void
sum_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpTraceShape shape = node->input_shape[0];
    (void)trace;
    for (int i = 0; i < shape.rank; i++)
        shape.stride[i] = i < grads[0]->shape.rank ? grads[0]->shape.stride[i] : 0;
    results[0] = zp_tensor_alias(grads[0], &shape);
}

static ZpTensor *
sum(ZpTrace *trace, ZpTensor *a, int rank)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "sum", sum_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape(rank, a->shape.size);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

ZpTensor *
zp_sum_rows(ZpTrace *trace, ZpTensor *a)
{
    return sum(trace, a, a ? a->shape.rank - 1 : 0);
}

ZpTensor *
zp_sum_all(ZpTrace *trace, ZpTensor *a)
{
    return sum(trace, a, 0);
}

ZpTensor *
zp_masked_fill_in_place(ZpTrace *trace, ZpTensor *a, ZpTensor *mask)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, mask};
    if (!zp_operation_begin(&operation, trace, "masked_fill", like_input_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, mask);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = zp_operation_output(&operation, zp_tensor_alias(a, &a->shape));
    return zp_operation_end(&operation, result);
}

ZpTensor *
zp_divide(ZpTrace *trace, ZpTensor *a, ZpTensor *divisor)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, divisor};
    if (!zp_operation_begin(&operation, trace, "div", like_input_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, divisor);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape(a->shape.rank, a->shape.size);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}
