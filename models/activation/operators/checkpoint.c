/* Checkpointed regions, as torch/utils/checkpoint.py runs them.
 *
 * Non-reentrant: saved tensors are numbered and dropped; the first one asked for runs the region
 * again, which stops before the operator whose saving completes the set (early stop).  The region
 * keeps its input until its last node has run.  Selective: chosen operators' outputs are kept and
 * handed out in the second run; those behind the early stop stay until the region dies.
 * Reentrant: the whole region runs again, output included, and its backward runs inside one node.
 */
#include "models/activation/operators/ops.h"

struct _ZpTraceFrame {
    int references;
    ZpTraceRecompute policy;
    ZpTraceProgram program;
    gconstpointer data;
    ZpTensor *input;
    int handles, recomputed_handles;
    gboolean recomputed;
    GPtrArray *values; /* ZpTensor by handle, NULL once handed out */
    GQueue cached[ZP_CACHED_KINDS];
    int products; /* of the running pass */
};

static void
unref_if_any(gpointer tensor)
{
    zp_tensor_unref(tensor);
}

ZpTraceFrame *
zp_frame_ref(ZpTraceFrame *frame)
{
    frame->references++;
    return frame;
}

void
zp_frame_unref(ZpTraceFrame *frame)
{
    if (--frame->references > 0)
        return;
    zp_tensor_unref(frame->input);
    for (guint i = 0; i < frame->values->len; i++)
        unref_if_any(frame->values->pdata[i]);
    g_ptr_array_unref(frame->values);
    for (int i = 0; i < ZP_CACHED_KINDS; i++)
        g_queue_clear_full(&frame->cached[i], unref_if_any);
    g_free(frame);
}

int
zp_frame_pack(ZpTrace *trace, ZpTensor *tensor)
{
    ZpTraceFrame *frame = trace->frame;
    if (!trace->recomputing)
        return frame->handles++;
    g_ptr_array_add(frame->values, zp_tensor_alias(tensor, &tensor->shape));
    if (++frame->recomputed_handles == frame->handles)
        trace->stopped = TRUE;
    return frame->recomputed_handles - 1;
}

/* The region's instants are of its own parts, whoever asked for it; output NULL: dropped. */
static void
run_again(ZpTrace *trace, ZpTraceProgram program, ZpTensor *input, gconstpointer data,
          ZpTensor **output)
{
    int part = trace->part;
    ZpTracePass pass = trace->pass;
    trace->pass = ZP_TRACE_RECOMPUTE;
    ZpTensor *result = program(trace, input, data);
    g_ptr_array_set_size(trace->copies, 0);
    if (output)
        *output = result;
    else
        zp_tensor_unref(result);
    trace->part = part;
    trace->pass = pass;
}

static void
recompute(ZpTrace *trace, ZpTraceFrame *frame)
{
    ZpTraceFrame *outer = trace->frame;
    gboolean no_grad = trace->no_grad, recomputing = trace->recomputing;
    trace->frame = frame;
    trace->recomputing = TRUE;
    trace->no_grad = FALSE;
    frame->products = 0;
    run_again(trace, frame->program, frame->input, frame->data, NULL);
    trace->stopped = FALSE;
    trace->frame = outer;
    trace->recomputing = recomputing;
    trace->no_grad = no_grad;
    frame->recomputed = TRUE;
}

ZpTensor *
zp_frame_unpack(ZpTrace *trace, ZpTraceFrame *frame, int handle)
{
    if (!frame->recomputed)
        recompute(trace, frame);
    return g_steal_pointer(&frame->values->pdata[handle]);
}

static gboolean
keeps(ZpTraceFrame *frame, ZpTraceCached kind)
{
    if (kind == ZP_CACHED_ATTENTION)
        return frame->policy == ZP_RECOMPUTE_SAVE_ATTENTION ||
               frame->policy == ZP_RECOMPUTE_SAVE_BOTH ||
               frame->policy == ZP_RECOMPUTE_SAVE_EVERY_SECOND;
    gboolean odd = frame->products++ % 2 == 0; /* the first, the third, ... */
    return frame->policy == ZP_RECOMPUTE_SAVE_PRODUCTS || frame->policy == ZP_RECOMPUTE_SAVE_BOTH ||
           (frame->policy == ZP_RECOMPUTE_SAVE_EVERY_SECOND && odd);
}

gboolean
zp_frame_cached(ZpTrace *trace, ZpTraceCached kind, ZpTensor **outputs, int count)
{
    if (!trace->frame || !trace->recomputing || trace->stopped || !keeps(trace->frame, kind))
        return FALSE;
    for (int i = 0; i < count; i++)
        outputs[i] = g_queue_pop_head(&trace->frame->cached[kind]);
    return TRUE;
}

void
zp_frame_cache(ZpTrace *trace, ZpTraceCached kind, ZpTensor *const *outputs, int count)
{
    if (!trace->frame || trace->recomputing || trace->stopped || !keeps(trace->frame, kind) ||
        trace->unread)
        return;
    for (int i = 0; i < count; i++)
        g_queue_push_tail(&trace->frame->cached[kind],
                          zp_tensor_alias(outputs[i], &outputs[i]->shape));
}

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
    run_again(trace, region->program, input, region->data, &output);
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
