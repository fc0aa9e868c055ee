#include "models/activation/program_internal.h"

enum { SCALAR_BYTES = 4 };

ZpTensor *
zp_program_entry(ZpTrace *trace, ZpBlockRegime regime, gint64 batch, gint64 tokens, gint64 hidden,
                 gboolean needs_gradient)
{
    ZpTraceShape shape = zp_shape(3, (gint64[]){batch, tokens, hidden});
    int bytes = zp_program(trace, regime).residual_bytes;
    ZpTensor *input = zp_tensor_new(trace, ZP_TRACE_ACTIVATION, &shape, bytes);
    if (needs_gradient)
        zp_trace_make_leaf(input, FALSE);
    zp_trace_reset_peak(trace);
    return input;
}

static gint64
live_with_parameters(const ZpTrace *trace)
{
    return trace->live[ZP_TRACE_ACTIVATION] + trace->live[ZP_TRACE_PARAMETER_COPY] +
           trace->live[ZP_TRACE_PARAMETER_GRAD];
}

void
zp_program_note_forward(ZpActivationBytes *bytes, ZpTrace *trace, ZpTensor *input)
{
    bytes->input_bytes = input->storage->bytes;
    bytes->forward_peak_bytes = trace->peak - bytes->input_bytes;
    bytes->forward_peak_with_copies_bytes = trace->peak_all - bytes->input_bytes;
    bytes->forward_peak_at = trace->peak_at;
    g_ptr_array_set_size(trace->copies, 0);
    gint64 before = trace->live[ZP_TRACE_ACTIVATION];
    zp_tensor_unref(input);
    bytes->input_kept = trace->live[ZP_TRACE_ACTIVATION] == before;
}

void
zp_program_note_backward(ZpActivationBytes *bytes, ZpTrace *trace, ZpTraceNode *root,
                         ZpTensor *grad)
{
    zp_trace_backward(trace, root, 0, grad);
    bytes->backward_peak_bytes = trace->peak;
    bytes->backward_peak_with_gradients_bytes = trace->peak_all;
    bytes->backward_peak_at = trace->peak_at;
    bytes->flash_workspace_bytes = trace->workspace;
    bytes->backward_peak_with_workspace_bytes = MAX(trace->peak, trace->workspace_peak);
    for (guint i = 0; i < trace->gradients->len; i++) {
        const ZpTensor *gradient = trace->gradients->pdata[i];
        if (gradient->storage->class == ZP_TRACE_PARAMETER_GRAD)
            bytes->parameter_gradient_bytes += gradient->storage->bytes;
    }
}

/* What one rank holds of the block. */
static ZpActivationBlock
cut_block(const ZpActivationBlock *whole)
{
    ZpActivationBlock block = *whole;
    gint64 ways = MAX(block.tensor_parallel, 1);
    block.heads /= ways;
    block.kv_heads = MAX(block.kv_heads / ways, 1);
    block.ffn /= ways;
    block.shared /= ways;
    return block;
}

ZpActivationBytes
zp_program_measure_block(const ZpActivationBlock *whole, ZpTraceProgram program, GArray *events)
{
    static const ZpTraceRecompute policies[] = {
        [ZP_KEEP_ALL] = ZP_RECOMPUTE_NONE,
        [ZP_KEEP_INPUT_REENTRANT] = ZP_RECOMPUTE_REENTRANT,
        [ZP_KEEP_INPUT] = ZP_RECOMPUTE_NON_REENTRANT,
        [ZP_KEEP_ATTENTION] = ZP_RECOMPUTE_SAVE_ATTENTION,
        [ZP_KEEP_PRODUCTS] = ZP_RECOMPUTE_SAVE_PRODUCTS,
        [ZP_KEEP_PRODUCTS_AND_ATTENTION] = ZP_RECOMPUTE_SAVE_BOTH,
        [ZP_KEEP_EVERY_SECOND_PRODUCT] = ZP_RECOMPUTE_SAVE_EVERY_SECOND,
    };
    ZpTrace trace;
    ZpActivationBytes bytes = {0};
    ZpActivationBlock cut = cut_block(whole), *block = &cut;
    gint64 ways = block->sequence_parallel ? MAX(block->tensor_parallel, 1) : 1;
    zp_trace_init(&trace);
    trace.events = events;
    if (block->gradients_by_shape)
        trace.parameter_shapes = g_array_new(FALSE, FALSE, sizeof(ZpTraceShape));
    ZpTensor *input =
        zp_program_entry(&trace, block->regime, block->batch, block->tokens / ways, block->hidden,
                         !block->input_frozen || block->policy != ZP_KEEP_ALL);
    ZpTensor *output = zp_trace_checkpoint(&trace, policies[block->policy], program, input, block);
    zp_program_note_forward(&bytes, &trace, input);
    ZpTraceShape shape = zp_shape(output->shape.rank, output->shape.size);
    int element_bytes = output->element_bytes;
    bytes.output_bytes = zp_shape_elements(&shape) * element_bytes;
    ZpTraceNode *root = zp_node_ref(output->node);
    zp_tensor_unref(output);
    bytes.kept_bytes = trace.live[ZP_TRACE_ACTIVATION];
    bytes.kept_copy_bytes = trace.live[ZP_TRACE_PARAMETER_COPY];
    /* The scalar that the backward starts from stays to the end. */
    zp_trace_grow(&trace, ZP_TRACE_ACTIVATION, SCALAR_BYTES);
    trace.pass = ZP_TRACE_BACKWARD;
    ZpTensor *grad = zp_tensor_new(&trace, ZP_TRACE_ACTIVATION, &shape, element_bytes);
    zp_trace_reset_peak(&trace);
    bytes.backward_entry_bytes = trace.live[ZP_TRACE_ACTIVATION];
    if (root)
        zp_program_note_backward(&bytes, &trace, root, grad);
    else /* frozen to its end */
        zp_tensor_unref(grad);
    trace.events = NULL;
    zp_trace_grow(&trace, ZP_TRACE_ACTIVATION, -SCALAR_BYTES);
    zp_trace_clear(&trace);
    g_assert_cmpint(live_with_parameters(&trace), ==, 0);
    return bytes;
}

ZpActivationBytes
zp_activation_measure_block(const ZpActivationBlock *block)
{
    return zp_program_measure_block(block, zp_program_block, NULL);
}
