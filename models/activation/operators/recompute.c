/* Running a checkpointed region again, for the tensors it saved and for what its policy kept. */
#include "models/activation/operators/frame_internal.h"

void
zp_frame_run_again(ZpTrace *trace, ZpTraceProgram program, ZpTensor *input, gconstpointer data,
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
    zp_frame_run_again(trace, frame->program, frame->input, frame->data, NULL);
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
