/* Final norm, head and cross-entropy, in the forms that training programs write them. */
#include "models/activation/program_internal.h"

enum { LABEL_BYTES = 8, COUNT_BYTES = 8 };

/* What the chunks of one loss share; lives as long as their graphs. */
typedef struct {
    const ZpActivationLoss *loss;
    ZpTensor *matrix; /* of the head, in the dtype of products */
} Head;

/* LossNLL.cpp, cross_entropy_loss_label_smoothing, from the log-probabilities on. */
static ZpTensor *
smooth(ZpTrace *trace, gboolean summed, ZpTensor *logs, ZpTensor *target)
{
    g_autoptr(ZpTensor) nll = zp_nll_loss(trace, logs, target);
    g_autoptr(ZpTensor) spread = zp_neg(trace, zp_take(zp_sum_rows(trace, logs)));
    g_autoptr(ZpTensor) mask = zp_plain(trace, "eq", &target->shape, 1);
    g_autoptr(ZpTensor) filled = zp_masked_fill_in_place(trace, spread, mask);
    g_clear_pointer(&spread, zp_tensor_unref);
    g_autoptr(ZpTensor) spread_loss = zp_sum_all(trace, filled);
    if (!summed) {
        ZpTraceShape scalar = zp_shape(0, NULL);
        g_autoptr(ZpTensor) total = g_steal_pointer(&spread_loss);
        g_autoptr(ZpTensor) counted = zp_plain(trace, "logical_not", &target->shape, 1);
        (void)counted; /* alive beside the count */
        g_autoptr(ZpTensor) count = zp_plain(trace, "sum", &scalar, COUNT_BYTES);
        spread_loss = zp_divide(trace, total, count);
    }
    g_autoptr(ZpTensor) left = zp_scale(trace, nll);
    g_autoptr(ZpTensor) right = zp_scale(trace, spread_loss);
    return zp_add(trace, left, right);
}

/* F.cross_entropy of rows of logits. */
static ZpTensor *
cross_entropy(const ZpProgram *program, const ZpActivationLoss *loss, ZpTensor *logits,
              ZpTensor *target)
{
    ZpTrace *trace = program->trace;
    if (loss->compiled)
        return zp_fused_cross_entropy(trace, logits, target);
    gint64 width = loss->vocabulary;
    gint64 count = logits && !trace->stopped ? zp_shape_elements(&logits->shape) / width : 1;
    g_autoptr(ZpTensor) rows = zp_reshape(trace, logits, 2, (gint64[]){count, width});
    /* Inside of the composite autocast casts for nll_loss alone. */
    g_autoptr(ZpTensor) narrow = zp_log_softmax(trace, rows);
    g_autoptr(ZpTensor) logs = zp_program_cast32(program, narrow);
    g_clear_pointer(&narrow, zp_tensor_unref);
    return loss->label_smoothing ? smooth(trace, loss->kind >= ZP_LOSS_CHUNKS, logs, target)
                                 : zp_nll_loss(trace, logs, target);
}

static ZpTensor *
labels(const ZpProgram *program, const ZpActivationLoss *loss)
{
    gint64 count = loss->batch * loss->tokens;
    return zp_program_constant(program, LABEL_BYTES, 1, &count);
}

/* F.pad(labels, (0, 1))[..., 1:].contiguous(): with one sequence the slice is contiguous, and the
 * padded tensor stays. */
static ZpTensor *
padded_labels(const ZpProgram *program, const ZpActivationLoss *loss)
{
    gint64 sizes[] = {loss->batch, loss->tokens + 1}, flat = loss->batch * loss->tokens;
    ZpTraceShape shape = zp_shape(2, sizes);
    ZpTensor *padded = zp_plain(program->trace, "constant_pad_nd", &shape, LABEL_BYTES);
    ZpTensor *cut = zp_take(zp_slice(program->trace, zp_take(padded), 1, 1, loss->tokens));
    ZpTensor *packed = zp_take(zp_contiguous(program->trace, cut));
    return zp_reshape(program->trace, packed, 1, &flat);
}

/* labels[..., 1:].contiguous() */
static ZpTensor *
shifted_labels(const ZpProgram *program, const ZpActivationLoss *loss)
{
    gint64 sizes[] = {loss->batch, loss->tokens}, flat = loss->batch * (loss->tokens - 1);
    ZpTensor *all = zp_take(zp_program_constant(program, LABEL_BYTES, 2, sizes));
    ZpTensor *cut = zp_take(zp_slice(program->trace, all, 1, 1, loss->tokens - 1));
    ZpTensor *packed = zp_take(zp_contiguous(program->trace, cut));
    return zp_reshape(program->trace, packed, 1, &flat);
}

static void
rebind(ZpTensor **name, ZpTensor *value)
{
    zp_tensor_unref(*name);
    *name = value;
}

static ZpTensor *
loss_of_shifted(const ZpProgram *program, const ZpActivationLoss *loss, ZpTensor **logits)
{
    ZpTrace *trace = program->trace;
    gboolean late = loss->kind == ZP_LOSS_SHIFT_16;
    ZpTensor *cut = zp_take(zp_slice(trace, *logits, 1, 0, loss->tokens - 1));
    g_autoptr(ZpTensor) shifted = zp_contiguous(trace, cut);
    g_autoptr(ZpTensor) target = shifted_labels(program, loss);
    if (late)
        rebind(&shifted, zp_to(trace, shifted, 4));
    return cross_entropy(program, loss, shifted, target);
}

static ZpTensor *
loss_of_whole(const ZpProgram *program, const ZpActivationLoss *loss, ZpTensor **logits)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) wide = NULL;
    switch (loss->compiled ? ZP_LOSS_RAW : loss->kind) {
    case ZP_LOSS_FLOAT: {
        wide = zp_to(trace, *logits, 4);
        g_autoptr(ZpTensor) target = padded_labels(program, loss);
        return cross_entropy(program, loss, wide, target);
    }
    case ZP_LOSS_SHIFT_FLOAT:
    case ZP_LOSS_SHIFT_16:
        return loss_of_shifted(program, loss, logits);
    case ZP_LOSS_FLOAT_REBIND:
    case ZP_LOSS_RAW:
    case ZP_LOSS_CHUNKS:
    case ZP_LOSS_CHUNKS_CHECKPOINTED:
    default:
        break;
    }
    g_autoptr(ZpTensor) target = labels(program, loss);
    return cross_entropy(program, loss, *logits, target);
}

static ZpTensor *
loss_of_chunk(ZpTrace *trace, ZpTensor *chunk, gconstpointer data)
{
    const Head *head = data;
    ZpProgram program = zp_program(trace, head->loss->regime);
    gint64 count = chunk ? chunk->shape.size[0] : 1;
    g_autoptr(ZpTensor) target = zp_program_constant(&program, LABEL_BYTES, 1, &count);
    g_autoptr(ZpTensor) logits = NULL;
    {
        g_autoptr(ZpTensor) input = zp_program_cast(&program, chunk);
        logits = zp_linear(trace, input, head->matrix, NULL);
    }
    if (!head->loss->compiled)
        rebind(&logits, zp_to(trace, logits, 4));
    return cross_entropy(&program, head->loss, logits, target);
}

static ZpTensor *
loss_of_chunks(const ZpProgram *program, const ZpActivationLoss *loss, ZpTensor *a, Head *head)
{
    ZpTrace *trace = program->trace;
    gint64 count = loss->batch * loss->tokens;
    gint64 length = (count + loss->chunks - 1) / loss->chunks;
    ZpTensor *parts[ZP_TRACE_OUTPUTS] = {NULL};
    g_autoptr(ZpTensor) rows = zp_reshape(trace, a, 2, (gint64[]){count, loss->hidden});
    int chunks = zp_split(trace, rows, 0, length, parts);
    g_autoptr(ZpTensor) total = NULL;
    ZpTraceRecompute policy =
        loss->kind == ZP_LOSS_CHUNKS_CHECKPOINTED ? ZP_RECOMPUTE_NON_REENTRANT : ZP_RECOMPUTE_NONE;
    for (int i = 0; i < chunks; i++) {
        g_autoptr(ZpTensor) part =
            zp_trace_checkpoint(trace, policy, loss_of_chunk, parts[i], head);
        rebind(&total, total ? zp_add(trace, total, part) : zp_offset(trace, part));
    }
    for (int i = 0; i < chunks; i++)
        zp_tensor_unref(parts[i]);
    return zp_scale(trace, total);
}

static ZpTensor *
run(ZpTrace *trace, ZpTensor *input, const ZpActivationLoss *loss, Head *head, ZpTensor **held)
{
    ZpProgram program = zp_program(trace, loss->regime);
    gint64 sizes[] = {loss->vocabulary, loss->hidden};
    program.frozen = loss->frozen;
    g_autoptr(ZpTensor) normed =
        loss->without_norm ? zp_tensor_again(input)
                           : zp_program_norm(&program, ZP_NORM_EAGER, input, loss->hidden);
    if (loss->kind >= ZP_LOSS_CHUNKS) {
        g_autoptr(ZpTensor) weight = zp_program_parameter(&program, 2, sizes);
        head->matrix = zp_program_cast(&program, weight);
        return loss_of_chunks(&program, loss, normed, head);
    }
    g_autoptr(ZpTensor) logits =
        zp_program_linear(&program, ZP_LINEAR_WHOLE, normed, loss->vocabulary, FALSE);
    trace->part = 1; /* the loss, behind the product */
    if (loss->soft_cap) {
        rebind(&logits, zp_scale(trace, logits));
        rebind(&logits, zp_tanh(trace, logits));
        rebind(&logits, zp_scale(trace, logits));
    }
    /* Where the cast is the model's, what it returns is fp32. */
    if (loss->kind == ZP_LOSS_FLOAT_REBIND || loss->kind == ZP_LOSS_SHIFT_FLOAT)
        rebind(&logits, zp_to(trace, logits, 4));
    if (loss->keep_logits)
        *held = zp_tensor_again(logits);
    return loss_of_whole(&program, loss, &logits);
}

ZpActivationBytes
zp_program_measure_loss(const ZpActivationLoss *loss, GArray *events)
{
    ZpTrace trace;
    ZpActivationBytes bytes = {0};
    Head head = {.loss = loss};
    zp_trace_init(&trace);
    trace.events = events;
    ZpTensor *held = NULL;
    ZpTensor *input =
        zp_program_entry(&trace, loss->regime, loss->batch, loss->tokens, loss->hidden, TRUE);
    g_autoptr(ZpTensor) result = run(&trace, input, loss, &head, &held);
    if (head.matrix && loss->kind == ZP_LOSS_CHUNKS)
        g_clear_pointer(&head.matrix, zp_tensor_unref);
    zp_program_note_forward(&bytes, &trace, input);
    bytes.output_bytes = result->storage->bytes;
    bytes.kept_bytes = trace.live[ZP_TRACE_ACTIVATION];
    bytes.kept_copy_bytes = trace.live[ZP_TRACE_PARAMETER_COPY];
    trace.pass = ZP_TRACE_BACKWARD;
    zp_trace_reset_peak(&trace);
    bytes.backward_entry_bytes = trace.live[ZP_TRACE_ACTIVATION];
    g_autoptr(ZpTensor) one =
        zp_tensor_new(&trace, ZP_TRACE_ACTIVATION, &result->shape, result->element_bytes);
    zp_program_note_backward(&bytes, &trace, zp_node_ref(result->node),
                             zp_tensor_alias(one, &one->shape));
    trace.events = NULL;
    zp_tensor_unref(head.matrix);
    zp_tensor_unref(held);
    zp_trace_clear(&trace);
    return bytes;
}

ZpActivationBytes
zp_activation_measure_loss(const ZpActivationLoss *loss)
{
    return zp_program_measure_loss(loss, NULL);
}
