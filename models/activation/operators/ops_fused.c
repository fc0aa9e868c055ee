#include "models/activation/operators/ops.h"

enum { STATISTIC_BYTES = 4, LOGSUMEXP_BYTES = 4, RANDOM_BYTES = 8 };

static ZpTensor *
like(ZpOperation *operation, ZpTensor *tensor)
{
    ZpTraceShape shape = zp_shape_elementwise(&tensor, 1);
    return zp_operation_allocate(operation, &shape, tensor->element_bytes);
}

/* Gradients of the input and of each parameter, in this order. */
static void
norm_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    for (int i = 0; i < node->inputs; i++) {
        if (!node->next[i])
            continue;
        ZpOperation operation;
        zp_trace_gradient_of(trace, node, i);
        zp_operation_begin(&operation, trace, "empty_like", NULL, 1, grads);
        ZpTraceShape shape = zp_shape(node->input_shape[i].rank, node->input_shape[i].size);
        results[i] = zp_operation_end(
            &operation, zp_operation_allocate(&operation, &shape, node->input_bytes[i]));
    }
}

static ZpTensor *
norm(ZpTrace *trace, const char *name, ZpTensor **inputs, int count, int statistics,
     int statistic_bytes)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, name, norm_backward, count, inputs))
        return zp_operation_end(&operation, NULL);
    ZpTraceShape shape = inputs[0]->shape;
    shape.size[shape.rank - 1] = 1;
    shape = zp_shape(shape.rank, shape.size);
    gboolean kernel_saves_first = statistic_bytes == 0;
    if (kernel_saves_first)
        for (int i = 0; i < count; i++)
            zp_operation_save(&operation, inputs[i]);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = like(&operation, inputs[0]);
    ZpTensor *kept[2] = {NULL};
    for (int i = 0; i < statistics; i++)
        kept[i] = zp_operation_allocate(
            &operation, &shape, statistic_bytes ? statistic_bytes : inputs[0]->element_bytes);
    zp_operation_output(&operation, result);
    if (!kernel_saves_first)
        for (int i = 0; i < count; i++)
            zp_operation_save(&operation, inputs[i]);
    for (int i = 0; i < statistics; i++) {
        zp_operation_save(&operation, kept[i]);
        zp_tensor_unref(kept[i]);
    }
    return zp_operation_end(&operation, result);
}

ZpTensor *
zp_rms_norm(ZpTrace *trace, ZpTensor *a, ZpTensor *weight)
{
    ZpTensor *inputs[] = {a, weight};
    return norm(trace, "empty_like", inputs, 2, 1, STATISTIC_BYTES);
}

ZpTensor *
zp_layer_norm(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias)
{
    ZpTensor *inputs[] = {a, weight, bias};
    return norm(trace, "empty_like", inputs, 3, 2, STATISTIC_BYTES);
}

ZpTensor *
zp_layer_norm_cpu(ZpTrace *trace, ZpTensor *a, ZpTensor *weight, ZpTensor *bias)
{
    ZpTensor *inputs[] = {a, weight, bias};
    return norm(trace, "native_layer_norm", inputs, 3, 2, 0);
}

static void
softmax_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {grads[0], node->saved[0].tensor};
    zp_operation_begin(&operation, trace, "_softmax_backward_data", NULL, 2, inputs);
    ZpTraceShape shape = zp_shape_elementwise(inputs, 2);
    results[0] = zp_operation_end(&operation,
                                  zp_operation_allocate(&operation, &shape, node->input_bytes[0]));
}

ZpTensor *
zp_softmax(ZpTrace *trace, ZpTensor *a)
{
    ZpOperation operation;
    if (!zp_operation_begin(&operation, trace, "_softmax", softmax_backward, 1, &a))
        return zp_operation_end(&operation, NULL);
    ZpTensor *result = zp_operation_output(&operation, like(&operation, a));
    zp_operation_save(&operation, result);
    return zp_operation_end(&operation, result);
}

/* The kernels write [b, s, heads, d] and hand out its transpose. */
static ZpTensor *
heads_inside(ZpOperation *operation, const ZpTraceShape *shape, int element_bytes)
{
    gint64 sizes[] = {shape->size[0], shape->size[2], shape->size[1], shape->size[3]};
    ZpTraceShape stored = zp_shape(4, sizes);
    ZpTensor *tensor = zp_operation_allocate(operation, &stored, element_bytes);
    ZpTraceShape turned = *shape;
    turned.stride[0] = stored.stride[0];
    turned.stride[1] = stored.stride[2];
    turned.stride[2] = stored.stride[1];
    turned.stride[3] = stored.stride[3];
    tensor->shape = turned;
    return tensor;
}

/* What flash attention's backward allocates inside the kernel on CUDA (flash_api.cpp, mha_bwd):
 * softmax_d and dq_accum in fp32 over rounded tokens and head size, and gradients of keys and
 * values for all query heads where there are fewer key heads. */
static gint64
flash_workspace(const ZpTraceShape *query, const ZpTraceShape *key, int element_bytes)
{
    gint64 d = query->size[3], tokens = (query->size[2] + 127) / 128 * 128;
    gint64 rounded = d <= 128 ? (d + 31) / 32 * 32 : (d + 63) / 64 * 64;
    gint64 bytes = 4 * query->size[0] * query->size[1] * tokens * (1 + rounded);
    if (key->size[1] < query->size[1])
        bytes += 2 * zp_shape_elements(query) * element_bytes;
    return bytes;
}

static void
attention_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    ZpOperation operation;
    zp_operation_begin(&operation, trace, "_scaled_dot_product_attention_backward", NULL, 1, grads);
    for (int i = 0; i < 3; i++)
        results[i] = node->number[0] == ZP_KERNEL_EFFICIENT
                         ? heads_inside(&operation, &node->input_shape[i], node->input_bytes[i])
                         : like(&operation, node->saved[i].tensor);
    if (node->number[1]) { /* of the bias, over all sequences, then summed */
        const ZpTraceShape *query = &node->input_shape[0];
        gint64 sizes[] = {query->size[0], query->size[1], query->size[2],
                          node->input_shape[1].size[2]};
        gint64 once[] = {1, sizes[1], sizes[2], sizes[3]};
        ZpTraceShape all = zp_shape(4, sizes), one = zp_shape(4, once);
        g_autoptr(ZpTensor) wide = zp_operation_allocate(&operation, &all, node->input_bytes[0]);
        g_autoptr(ZpTensor) sum = zp_operation_allocate(&operation, &one, node->input_bytes[0]);
        (void)wide;
        (void)sum;
    }
    if (node->number[0] == ZP_KERNEL_FLASH) {
        gint64 workspace =
            flash_workspace(&node->input_shape[0], &node->input_shape[1], node->input_bytes[0]);
        trace->workspace = MAX(trace->workspace, workspace);
        trace->workspace_peak =
            MAX(trace->workspace_peak, trace->live[ZP_TRACE_ACTIVATION] + workspace);
    }
    zp_operation_end(&operation, NULL);
}

/* 64-bit numbers of the states of the random generator that a kernel returns (0, 0: none). */
static void
random_state(ZpAttentionKernel kernel, gint64 *first, gint64 *second)
{
    *first = kernel == ZP_KERNEL_FLASH ? 2 : kernel == ZP_KERNEL_CPU ? 0 : 1;
    *second = kernel == ZP_KERNEL_CPU ? 0 : 1;
}

enum { KERNEL_OUTPUTS = 4 };

static void
run_kernel(ZpOperation *operation, ZpAttentionKernel kernel, ZpTensor **outputs)
{
    const ZpTraceShape *query = &operation->input[0]->shape;
    gint64 tokens = query->size[2], random[2];
    if (kernel == ZP_KERNEL_EFFICIENT)
        tokens = (tokens + 31) / 32 * 32;
    ZpTraceShape logsumexp = zp_shape(3, (gint64[]){query->size[0], query->size[1], tokens});
    random_state(kernel, &random[0], &random[1]);
    /* flash: empty_like(query); the others write [b, s, heads, d]. */
    outputs[0] = kernel == ZP_KERNEL_FLASH
                     ? like(operation, operation->input[0])
                     : heads_inside(operation, query, operation->input[0]->element_bytes);
    outputs[1] = zp_operation_allocate(operation, &logsumexp, LOGSUMEXP_BYTES);
    for (int i = 0; i < 2; i++) {
        ZpTraceShape state = zp_shape(1, &random[i]);
        outputs[2 + i] = zp_operation_allocate(operation, &state, RANDOM_BYTES);
    }
}

ZpTensor *
zp_attention_kernel(ZpTrace *trace, ZpAttentionKernel kernel, ZpTensor *query, ZpTensor *key,
                    ZpTensor *value, ZpTensor *mask)
{
    ZpOperation operation;
    ZpTensor *inputs[] = {query, key, value, mask}, *outputs[KERNEL_OUTPUTS];
    if (!zp_operation_begin(&operation, trace, "_scaled_dot_product_attention", attention_backward,
                            mask ? 4 : 3, inputs))
        return zp_operation_end(&operation, NULL);
    if (operation.node) {
        operation.node->number[0] = kernel;
        operation.node->number[1] = mask && mask->parameter; /* has a gradient */
    }
    for (int i = 0; i < operation.count; i++)
        zp_operation_save(&operation, inputs[i]);
    if (trace->stopped)
        return zp_operation_end(&operation, NULL);
    if (!zp_frame_cached(trace, ZP_CACHED_ATTENTION, outputs, KERNEL_OUTPUTS))
        run_kernel(&operation, kernel, outputs);
    zp_frame_cache(trace, ZP_CACHED_ATTENTION, outputs, KERNEL_OUTPUTS);
    for (int i = 0; i < KERNEL_OUTPUTS; i++) {
        zp_operation_save(&operation, outputs[i]);
        if (i > 0)
            zp_tensor_unref(outputs[i]);
    }
    return zp_operation_end(&operation, zp_operation_output(&operation, outputs[0]));
}
