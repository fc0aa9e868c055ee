/* Kernels that a compiler makes of chains of elementwise operators and reductions.
 *
 * torch/_functorch/partitioners.py (min_cut_rematerialization_partition) keeps the outputs of
 * products and attention and what their backward reads, and makes the elementwise rest again from
 * them; torch/_inductor/scheduler.py fuses a chain into one kernel, so that its ends alone are
 * allocated, and lets a result overwrite an input that nothing else holds. */
#include "models/activation/operators/ops.h"

enum { STATISTIC_BYTES = 4, STATISTICS = 2 };

/* The result of a kernel over an input, in its place where that input ends here. */
static ZpTensor *
over_or_beside(ZpOperation *operation, ZpTensor *input)
{
    if (input->temporary && input->references == 1 && input->storage->references == 1 &&
        input->storage->class == ZP_TRACE_ACTIVATION)
        return zp_tensor_alias(input, &input->shape);
    ZpTraceShape shape = zp_shape_elementwise(&input, 1);
    return zp_operation_allocate(operation, &shape, input->element_bytes);
}

static ZpTensor *
gradient_like_input(ZpOperation *operation, const ZpTraceNode *node, int input)
{
    const ZpTraceShape *shape = &node->input_shape[input];
    ZpTraceShape own = zp_shape(shape->rank, shape->size);
    return zp_operation_allocate(operation, &own, node->input_bytes[input]);
}

static void
rotate_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    (void)node;
    zp_operation_begin(&operation, trace, "fused_rotate_backward", NULL, 1, grads);
    ZpTraceShape shape = zp_shape_elementwise(grads, 1);
    results[0] = zp_operation_end(
        &operation, zp_operation_allocate(&operation, &shape, grads[0]->element_bytes));
}

ZpTensor *
zp_fused_rotate(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "fused_rotate", rotate_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = over_or_beside(&operation, a);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

enum { PRODUCT_COMES_AGAIN };

/* Both gradients come from one kernel; in a checkpointed region the product that the next weight's
 * gradient needs is made again by it as well. */
static void
gate_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    zp_operation_begin(&operation, trace, "fused_gate_backward", NULL, 1, grads);
    ZpTensor *product =
        node->number[PRODUCT_COMES_AGAIN] ? gradient_like_input(&operation, node, 0) : NULL;
    for (int i = 0; i < 2; i++)
        results[i] = gradient_like_input(&operation, node, i);
    zp_tensor_unref(product);
    zp_operation_end(&operation, NULL);
}

ZpTensor *
zp_fused_gate(ZpTrace *trace, ZpTensor *gate, ZpTensor *up)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {gate, up};
    if (!zp_operation_begin(&operation, trace, "fused_gate", gate_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    g_assert(gate && up);
    if (operation.node)
        operation.node->number[PRODUCT_COMES_AGAIN] = trace->frame != NULL;
    zp_operation_save(&operation, gate);
    zp_operation_save(&operation, up);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = over_or_beside(&operation, gate);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

static void
sum_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    (void)trace;
    for (int i = 0; i < node->inputs; i++)
        results[i] = zp_tensor_alias(grads[0], &grads[0]->shape);
}

ZpTensor *
zp_fused_sum(ZpTrace *trace, ZpTensor *stream, ZpTensor *branch)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {stream, branch};
    if (!zp_operation_begin(&operation, trace, "fused_sum", sum_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = zp_operation_output(&operation, zp_tensor_alias(branch, &branch->shape));
    return zp_operation_end(&operation, result);
}

static void
cross_entropy_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    zp_operation_begin(&operation, trace, "fused_cross_entropy_backward", NULL, 1, grads);
    results[0] = zp_operation_end(&operation, gradient_like_input(&operation, node, 0));
}

/* The rows' largest logits and the logarithms of their sums stay, the logarithms of probabilities
 * are made again. */
ZpTensor *
zp_fused_cross_entropy(ZpTrace *trace, ZpTensor *logits, ZpTensor *target)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {logits, target};
    if (!zp_operation_begin(&operation, trace, "fused_cross_entropy", cross_entropy_backward, 2,
                            inputs))
        return zp_operation_end(&operation, NULL);
    zp_operation_save(&operation, logits);
    zp_operation_save(&operation, target);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    gint64 rows = zp_shape_elements(&target->shape);
    ZpTraceShape scalar = zp_shape(0, NULL), column = zp_shape(1, &rows);
    ZpTensor *result = zp_operation_allocate(&operation, &scalar, STATISTIC_BYTES);
    zp_operation_output(&operation, result);
    for (int i = 0; i <= STATISTICS; i++) {
        const ZpTraceShape *shape = i < STATISTICS ? &column : &scalar;
        g_autoptr(ZpTensor) kept = zp_operation_allocate(&operation, shape, STATISTIC_BYTES);
        zp_operation_save(&operation, kept);
    }
    return zp_operation_end(&operation, result);
}
