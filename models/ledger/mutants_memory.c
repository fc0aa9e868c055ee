/* Mutants of bytes on a tape. */
#include "models/ledger/mutants_internal.h"

#define NO_CLASS 255

/* By buffer: its class when instruction `end` comes, NO_CLASS where it does not live. */
static guint8 *
classes_at(const ZpTape *tape, gint32 end)
{
    guint8 *classes = g_new(guint8, (gsize)tape->n_buffers + 1);
    for (gint32 b = 0; b < tape->n_buffers; b++)
        classes[b] = NO_CLASS;
    for (gint32 i = 0; i < end; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_ALLOC)
            classes[instr->a] = tape->buffers[instr->a].class_id;
        else if (instr->op == ZP_TAPE_FREE)
            classes[instr->a] = NO_CLASS;
        else if (instr->op == ZP_TAPE_RETAG)
            classes[instr->a] = (guint8)(instr->b & 0xff);
    }
    return classes;
}

/* Where the optimizer of the last step begins. */
static gint32
optimizer_begin(const ZpTape *tape)
{
    gint32 i = tape->n_steps > 0 ? tape->step_begin[tape->n_steps - 1] : 0;
    while (i < tape->n_instrs && tape->instrs[i].phase != ZP_PHASE_OPTIMIZER)
        i++;
    return i;
}

static int
stored_of(ZpClass class_id)
{
    return class_id == ZP_CLASS_PARAMETER  ? CHECKS_PARAMETERS
           : class_id == ZP_CLASS_GRADIENT ? CHECKS_GRADIENTS
           : class_id == ZP_CLASS_MASTER   ? CHECKS_MASTER
           : class_id == ZP_CLASS_MOMENTUM ? CHECKS_MOMENTUM
                                           : CHECKS_VARIANCE;
}

/* Bytes of padding in a class that is divided by units. */
static gint64
padding_bytes(const ChecksFacts *facts, const ChecksStored *stored, gboolean parameters)
{
    gint64 sum = 0;
    for (gint32 u = 0; u < facts->units->n_units; u++) {
        const ZpUnit *unit = &facts->units->units[u];
        sum += (parameters ? unit->elements : unit->trainable_elements) / stored->owners;
    }
    gint64 padded = parameters ? facts->shard_elements : facts->shard_trainable;
    return checks_bytes(stored->dtype, padded) - checks_bytes(stored->dtype, sum);
}

gint64
mutants_change(const ChecksFacts *facts, MutantsChange change, ZpClass class_id, gint64 bytes)
{
    const ChecksStored *stored = &facts->stored[stored_of(class_id)];
    gint64 low = stored->bounds.low, high = stored->bounds.high;
    gint64 group = facts->runtime == CHECKS_DEEPSPEED ? facts->job->world.ranks
                                                      : facts->job->world.shard_group;
    if (class_id == ZP_CLASS_RUNTIME)
        return 0;
    if (low == 0)
        return bytes;
    switch (change) {
    case MUTANTS_WHOLE: /* a rank of ZeroRedundancyOptimizer owns no fixed share */
        return stored->owners > 1 && facts->runtime != CHECKS_DDP && high > 0 &&
                       stored->whole_bytes > high
                   ? bytes * stored->owners
                   : bytes;
    case MUTANTS_DIVIDED:
        return stored->owners == 1 && group > 1 && low > stored->whole_bytes / group + group
                   ? bytes / group
                   : bytes;
    case MUTANTS_DOUBLE: /* of two owners that is the whole */
        return high > 0 && 2 * low > high && (stored->owners == 1 || 2 * high < stored->whole_bytes)
                   ? 2 * bytes
                   : bytes;
    case MUTANTS_HALF: /* of two ranks that is a share */
        return checks_bits(stored->dtype) >= 8 && group != 2 && high / 2 < low ? bytes / 2 : bytes;
    case MUTANTS_ZERO:
        return 0;
    case MUTANTS_NO_SCALES:
        return bytes - stored->scale_bytes;
    case MUTANTS_NO_PADDING:
        return facts->runtime == CHECKS_IDEAL && stored->owners > 1 && stored->scale_bytes == 0 &&
                       !(class_id == ZP_CLASS_VARIANCE && facts->job->optimizer->factored)
                   ? bytes - padding_bytes(facts, stored, class_id == ZP_CLASS_PARAMETER)
                   : bytes;
    case MUTANTS_KEEP:
        break;
    }
    return bytes;
}

gboolean
mutants_break_state(const ChecksFacts *facts, const MutantsState *state, ZpTape *tape)
{
    g_autofree guint8 *at_end = classes_at(tape, tape->n_instrs);
    g_autofree guint8 *at_step = classes_at(tape, optimizer_begin(tape));
    gboolean broken = FALSE;
    for (gint32 b = 0; b < tape->n_buffers; b++) {
        ZpTapeBuffer *buffer = &tape->buffers[b];
        int class_id = at_end[b];
        if (facts->runtime != CHECKS_IDEAL && at_step[b] == ZP_CLASS_GRADIENT)
            class_id = ZP_CLASS_GRADIENT;
        if (class_id == NO_CLASS || !(state->classes & 1u << class_id))
            continue;
        gint64 bytes = mutants_change(facts, state->change, (ZpClass)class_id, buffer->bytes);
        broken = broken || bytes != buffer->bytes;
        buffer->bytes = bytes;
    }
    return broken;
}

/* bytes * numerator / denominator of all buffers that are ever of the class. */
static gboolean
scale_class(ZpTape *tape, ZpClass class_id, gint64 numerator, gint64 denominator)
{
    gboolean broken = FALSE;
    for (gint32 b = 0; b < tape->n_buffers; b++) {
        ZpTapeBuffer *buffer = &tape->buffers[b];
        gint64 bytes = buffer->bytes * numerator / denominator;
        if (buffer->class_id != class_id || bytes == buffer->bytes)
            continue;
        buffer->bytes = bytes;
        broken = TRUE;
    }
    return broken;
}

gboolean
mutants_divide_activations(const ChecksFacts *facts, ZpTape *tape)
{
    return scale_class(tape, ZP_CLASS_ACTIVATION, 1, facts->job->world.ranks);
}

gboolean
mutants_triple_activations(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    return scale_class(tape, ZP_CLASS_ACTIVATION, 3, 1);
}

gboolean
mutants_omit_logits(const ChecksFacts *facts, ZpTape *tape)
{
    return checks_least_logits_bytes(facts) > 0 && scale_class(tape, ZP_CLASS_LOGITS, 0, 1);
}

gboolean
mutants_shorten_logits(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    return scale_class(tape, ZP_CLASS_LOGITS, 15, 16);
}

gboolean
mutants_omit_gathered(const ChecksFacts *facts, ZpTape *tape)
{
    return checks_parameter_owners(facts) > 1 && !checks_quantises(facts) &&
           scale_class(tape, ZP_CLASS_GATHERED, 0, 1);
}

gboolean
mutants_omit_buckets(const ChecksFacts *facts, ZpTape *tape)
{
    gboolean broken = FALSE;
    /* FSDP1 reduces from the flat gradient; of others what becomes a gradient stays. */
    if (facts->runtime == CHECKS_FSDP1 || checks_least_bucket_bytes(facts) == 0)
        return FALSE;
    g_autofree gboolean *kept = g_new0(gboolean, (gsize)tape->n_buffers + 1);
    for (gint32 i = 0; i < tape->n_instrs; i++)
        if (tape->instrs[i].op == ZP_TAPE_RETAG)
            kept[tape->instrs[i].a] = TRUE;
    for (gint32 b = 0; b < tape->n_buffers; b++) {
        if (tape->buffers[b].class_id != ZP_CLASS_COMMUNICATION || kept[b])
            continue;
        broken = broken || tape->buffers[b].bytes > 0;
        tape->buffers[b].bytes = 0;
    }
    return broken;
}

gboolean
mutants_omit_temporaries(const ChecksFacts *facts, ZpTape *tape)
{
    return (facts->runtime & (CHECKS_IDEAL | CHECKS_TORCH)) != 0 &&
           checks_least_temporary_bytes(facts) > 0 &&
           scale_class(tape, ZP_CLASS_OPTIMIZER_TEMPORARY, 0, 1);
}

/* Only one of the largest gathered buffers takes memory: nothing is ever beside it. */
gboolean
mutants_omit_prefetched(const ChecksFacts *facts, ZpTape *tape)
{
    const ZpZero *zero = &facts->job->zero;
    gint32 largest = ZP_TAPE_NONE;
    if (facts->runtime != CHECKS_IDEAL || checks_parameter_owners(facts) == 1 ||
        zero->prefetch_forward == 0)
        return FALSE;
    for (gint32 b = 0; b < tape->n_buffers; b++)
        if (tape->buffers[b].class_id == ZP_CLASS_GATHERED &&
            (largest == ZP_TAPE_NONE || tape->buffers[b].bytes > tape->buffers[largest].bytes))
            largest = b;
    gboolean broken = FALSE;
    for (gint32 b = 0; b < tape->n_buffers && largest != ZP_TAPE_NONE; b++) {
        ZpTapeBuffer *buffer = &tape->buffers[b];
        if (buffer->class_id != ZP_CLASS_GATHERED || buffer->unit == tape->buffers[largest].unit)
            continue;
        broken = broken || buffer->bytes > 0;
        buffer->bytes = 0;
    }
    return broken;
}

/* A release becomes a use, which releases nothing. */
static gboolean
drop_free(ZpTape *tape, ZpTapeInstr *instr, ZpClass class_id)
{
    if (instr->op != ZP_TAPE_FREE || tape->buffers[instr->a].class_id != class_id ||
        tape->buffers[instr->a].bytes == 0)
        return FALSE;
    instr->op = ZP_TAPE_USE;
    return TRUE;
}

gboolean
mutants_keep_activation(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    for (gint32 i = tape->n_instrs - 1; i >= 0; i--)
        if (drop_free(tape, &tape->instrs[i], ZP_CLASS_ACTIVATION))
            return TRUE;
    return FALSE;
}

gboolean
mutants_keep_gathered(const ChecksFacts *facts, ZpTape *tape)
{
    gboolean broken = FALSE;
    for (gint32 i = 0; i < tape->n_instrs && facts->runtime == CHECKS_IDEAL; i++)
        broken = drop_free(tape, &tape->instrs[i], ZP_CLASS_GATHERED) || broken;
    return broken;
}
