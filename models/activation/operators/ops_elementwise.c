#include "models/activation/operators/ops.h"

static ZpTensor *
map(ZpOperation *operation, int count, int element_bytes)
{
    if (operation->trace->stopped)
        return zp_operation_end(operation, NULL);
    ZpTraceShape shape = zp_shape_elementwise(operation->input, count);
    ZpTensor *result = zp_operation_allocate(operation, &shape, element_bytes);
    return zp_operation_end(operation, zp_operation_output(operation, result));
}

/* A unary operator whose backward is one kernel over the gradient and what is saved. */
static ZpTensor *
unary(ZpTrace *trace, const char *name, ZpTraceBackward backward, ZpTensor *a, gboolean save_input,
      gboolean save_result)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, name, backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    if (save_input)
        zp_operation_save(&operation, a);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape_elementwise(&a, 1);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    zp_operation_output(&operation, result);
    if (save_result)
        zp_operation_save(&operation, result);
    return zp_operation_end(&operation, result);
}

static void
pass_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    (void)trace;
    for (int i = 0; i < node->inputs; i++)
        if (node->next[i])
            results[i] = zp_tensor_alias(grads[0], &grads[0]->shape);
}

/* One kernel that reads the gradient and the saved tensors. */
static void
kernel_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {grads[0], node->saved_count > 0 ? node->saved[0].tensor : grads[0]};
    zp_trace_gradient_of(trace, node, 0);
    zp_operation_begin(&operation, trace, "backward", NULL, 2, inputs);
    results[0] = map(&operation, 2, grads[0]->element_bytes);
}

ZpTensor *
zp_add(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "add", pass_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    g_assert(a && b);
    return map(&operation, 2, MAX(a->element_bytes, b->element_bytes));
}

static void
mul_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    int saved = 0;
    ZpTensor *self = node->next[1] ? node->saved[saved++].tensor : NULL;
    ZpTensor *other = node->next[0] ? node->saved[saved++].tensor : NULL;
    if (node->next[0]) {
        zp_trace_gradient_of(trace, node, 0);
        results[0] = zp_mul(trace, grads[0], other);
    }
    if (node->next[1]) {
        zp_trace_gradient_of(trace, node, 1);
        results[1] = zp_mul(trace, grads[0], self);
    }
}

ZpTensor *
zp_mul(ZpTrace *trace, ZpTensor *a, ZpTensor *b)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {a, b};
    if (!zp_operation_begin(&operation, trace, "mul", mul_backward, 2, inputs))
        return zp_operation_end(&operation, NULL);
    if (zp_operation_needs(&operation, 1))
        zp_operation_save(&operation, a);
    if (zp_operation_needs(&operation, 0))
        zp_operation_save(&operation, b);
    g_assert(a && b);
    return map(&operation, 2, MAX(a->element_bytes, b->element_bytes));
}

ZpTensor *
zp_scale(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "mul", kernel_backward, a, FALSE, FALSE);
}

ZpTensor *
zp_offset(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "add", pass_backward, a, FALSE, FALSE);
}

ZpTensor *
zp_neg(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "neg", kernel_backward, a, FALSE, FALSE);
}

/* FunctionsManual.cpp, pow_backward: grad * (exponent * self.pow(exponent - 1)), one expression. */
static void
pow_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    g_autoptr(ZpTensor) power = unary(trace, "pow", NULL, node->saved[0].tensor, FALSE, FALSE);
    g_autoptr(ZpTensor) scaled = zp_scale(trace, power);
    results[0] = zp_mul(trace, grads[0], scaled);
}

ZpTensor *
zp_pow(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "pow", pow_backward, a, TRUE, FALSE);
}

/* rsqrt: -0.5 * grad * result.pow(3), one expression. */
static void
rsqrt_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    g_autoptr(ZpTensor) half = zp_scale(trace, grads[0]);
    g_autoptr(ZpTensor) power = unary(trace, "pow", NULL, node->saved[0].tensor, FALSE, FALSE);
    results[0] = zp_mul(trace, half, power);
}

ZpTensor *
zp_rsqrt(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "rsqrt", rsqrt_backward, a, FALSE, TRUE);
}

ZpTensor *
zp_tanh(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "tanh", kernel_backward, a, FALSE, TRUE);
}

ZpTensor *
zp_silu(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "silu", kernel_backward, a, TRUE, FALSE);
}

ZpTensor *
zp_gelu(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "gelu", kernel_backward, a, TRUE, FALSE);
}

ZpTensor *
zp_relu(ZpTrace *trace, ZpTensor *a)
{
    return unary(trace, "relu", kernel_backward, a, FALSE, TRUE);
}

static void
to_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    zp_trace_gradient_of(trace, node, 0);
    results[0] = zp_to(trace, grads[0], node->input_bytes[0]);
}

ZpTensor *
zp_to(ZpTrace *trace, ZpTensor *a, int element_bytes)
{
    if (a && !trace->stopped && a->element_bytes == element_bytes)
        return zp_tensor_again(a);
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "_to_copy", to_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape_elementwise(&a, 1);
    ZpTraceClass class = a->parameter && !trace->in_backward ? ZP_TRACE_PARAMETER_COPY : 0;
    ZpTensor *result = class ? zp_tensor_new(trace, class, &shape, element_bytes)
                             : zp_operation_allocate(&operation, &shape, element_bytes);
    return zp_operation_end(&operation, zp_operation_output(&operation, result));
}

ZpTensor *
zp_native_dropout(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "native_dropout", kernel_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = zp_shape_elementwise(&a, 1);
    ZpTensor *result = zp_operation_allocate(&operation, &shape, a->element_bytes);
    g_autoptr(ZpTensor) mask = zp_operation_allocate(&operation, &shape, 1);
    zp_operation_output(&operation, result);
    zp_operation_save(&operation, mask);
    return zp_operation_end(&operation, result);
}

/* Dropout.cpp: noise = empty_like(input).bernoulli_(1 - p); noise.div_(1 - p); input * noise. */
ZpTensor *
zp_noise_dropout(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "empty_like", NULL, 1, &a)) {
        return zp_operation_end(&operation, NULL);
    }
    ZpTraceShape shape = zp_shape_elementwise(&a, 1);
    g_autoptr(ZpTensor) noise = zp_operation_allocate(&operation, &shape, a->element_bytes);
    return zp_mul(trace, a, noise);
}
