/* Checkpointed regions, as torch/utils/checkpoint.py runs them.
 *
 * Non-reentrant: saved tensors are numbered and dropped; the first one asked for runs the region
 * again, which stops before the operator whose saving completes the set (early stop).  The region
 * keeps its input until its last node has run.  Selective: chosen operators' outputs are kept and
 * handed out in the second run; those behind the early stop stay until the region dies.
 * Reentrant: the whole region runs again, output included, and its backward runs inside one node.
 */
#include "models/activation/operators/frame_internal.h"
#include "models/activation/operators/ops.h"

typedef struct {
    ZpTraceProgram program;
    gconstpointer data;
} Reentrant;

static void
reentrant_backward(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads, ZpTensor **results)
{
    const Reentrant *region = node->extra;
    g_autoptr(ZpTensor) input =
        zp_tensor_alias(node->saved[0].tensor, &node->saved[0].tensor->shape);
    trace->part = 0; /* which the region's input belongs to */
    zp_trace_make_leaf(input, FALSE);
    trace->no_grad = FALSE;
    g_autoptr(ZpTensor) output = NULL;
    zp_frame_run_again(trace, region->program, input, region->data, &output);
    trace->no_grad = TRUE;
    guint before = trace->gradients->len;
    zp_trace_backward(trace, zp_node_ref(output->node), output->output, zp_tensor_ref(grads[0]));
    /* The input's gradient is the only one of a leaf that is not a parameter's. */
    for (guint i = before; i < trace->gradients->len; i++) {
        ZpTensor *gradient = trace->gradients->pdata[i];
        if (!results[0] && !gradient->parameter &&
            zp_shape_equal(&gradient->shape, &input->shape) &&
            gradient->storage->class == ZP_TRACE_ACTIVATION)
            results[0] = g_ptr_array_steal_index(trace->gradients, i);
    }
}

static ZpTensor *
checkpoint_reentrant(ZpTrace *trace, ZpTraceProgram program, ZpTensor *input, gconstpointer data)
{
    gboolean no_grad = trace->no_grad;
    trace->no_grad = TRUE;
    ZpTensor *output = program(trace, input, data);
    trace->no_grad = no_grad;
    ZpOperation operation;
    ZpTensor *inputs[] = {input};
    zp_operation_begin(&operation, trace, "checkpoint", reentrant_backward, 1, inputs);
    if (operation.node) {
        Reentrant *region = g_new0(Reentrant, 1);
        *region = (Reentrant){program, data};
        operation.node->extra = region;
    }
    zp_operation_save(&operation, input);
    return zp_operation_end(&operation, zp_operation_output(&operation, output));
}

ZpTensor *
zp_trace_checkpoint(ZpTrace *trace, ZpTraceRecompute policy, ZpTraceProgram program,
                    ZpTensor *input, gconstpointer data)
{
    if (policy == ZP_RECOMPUTE_NONE)
        return program(trace, input, data);
    if (policy == ZP_RECOMPUTE_REENTRANT)
        return checkpoint_reentrant(trace, program, input, data);
    ZpTraceFrame *frame = g_new0(ZpTraceFrame, 1);
    *frame = (ZpTraceFrame){
        .references = 1,
        .policy = policy,
        .program = program,
        .data = data,
        .input = zp_tensor_ref(input),
        .values = g_ptr_array_new(),
    };
    ZpTraceFrame *outer = trace->frame;
    trace->frame = frame;
    ZpTensor *output = program(trace, input, data);
    trace->frame = outer;
    zp_frame_unref(frame);
    return output;
}
