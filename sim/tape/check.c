/* The tape as text, and the rules every tape must keep. */
#include "sim/tape/tape.h"

G_DEFINE_QUARK(zp_tape_error_quark, zp_tape_error)

static const char *const op_names[] = {
    "alloc", "free", "retag", "use", "launch", "record", "wait", "sync",
};

/* What is known of buffers and events while walking. */
typedef struct {
    const ZpTape *tape;
    guint8 *live;        /* buffer: 0 never allocated, 1 live, 2 freed */
    guint8 *recorded;    /* event */
    gint32 *alloc_instr; /* buffer: its ALLOC */
    guint8 *class_now;   /* buffer: class after retags */
    gint64 all_bytes;    /* of all allocations so far: no sum of live ones can overflow */
} Walk;

static gboolean
fail(GError **error, ZpTapeError code, gint32 instr, const char *what, gint32 index)
{
    g_set_error(error, ZP_TAPE_ERROR, (gint)code, "instruction %d: %s %d", instr, what, index);
    return FALSE;
}

static gboolean
check_new_buffer(Walk *walk, gint32 i, GError **error)
{
    const ZpTape *tape = walk->tape;
    gint32 index = tape->instrs[i].a;
    const ZpTapeBuffer *buffer = &tape->buffers[index];
    if (buffer->bytes < 0)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "negative bytes in buffer", index);
    if (buffer->class_id >= tape->vocabulary->n_classes ||
        buffer->role >= tape->vocabulary->n_roles || buffer->space >= ZP_TAPE_N_SPACES)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "class, role or space of buffer", index);
    if (buffer->bytes > G_MAXINT64 - walk->all_bytes)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "all bytes together pass int64 with buffer",
                    index);
    walk->all_bytes += buffer->bytes;
    return TRUE;
}

static gboolean
check_buffer(Walk *walk, gint32 i, GError **error)
{
    const ZpTape *tape = walk->tape;
    const ZpTapeInstr *instr = &tape->instrs[i];
    gint32 buffer = instr->a;
    if (buffer < 0 || buffer >= tape->n_buffers)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such buffer", buffer);
    if (instr->clock > ZP_TAPE_CLOCK_DEVICE)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such clock", instr->clock);
    if (instr->op == ZP_TAPE_ALLOC) {
        if (walk->live[buffer] != 0)
            return fail(error, ZP_TAPE_ERROR_BUFFER, i, "second allocation of buffer", buffer);
        if (!check_new_buffer(walk, i, error))
            return FALSE;
        walk->live[buffer] = 1;
        walk->alloc_instr[buffer] = i;
        walk->class_now[buffer] = tape->buffers[buffer].class_id;
        return TRUE;
    }
    if (walk->live[buffer] == 0)
        return fail(error, ZP_TAPE_ERROR_BUFFER, i, "not allocated yet: buffer", buffer);
    if (walk->live[buffer] == 2)
        return fail(error, ZP_TAPE_ERROR_BUFFER, i, "already freed: buffer", buffer);
    if (instr->op == ZP_TAPE_FREE)
        walk->live[buffer] = 2;
    if (instr->op == ZP_TAPE_RETAG) {
        walk->class_now[buffer] = (guint8)(instr->b & 0xff);
        if (walk->class_now[buffer] >= tape->vocabulary->n_classes)
            return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such class", instr->b & 0xff);
        if ((instr->b >> 8 & 0xff) >= tape->vocabulary->n_roles)
            return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such role", instr->b >> 8 & 0xff);
    }
    return TRUE;
}

static gboolean
check_event(Walk *walk, gint32 i, GError **error)
{
    const ZpTapeInstr *instr = &walk->tape->instrs[i];
    gint32 event = instr->a;
    if (event < 0 || event >= walk->tape->n_events)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such event", event);
    if (instr->op == ZP_TAPE_RECORD) {
        if (walk->recorded[event])
            return fail(error, ZP_TAPE_ERROR_EVENT, i, "second record of event", event);
        walk->recorded[event] = 1;
        return TRUE;
    }
    if (!walk->recorded[event])
        return fail(error, ZP_TAPE_ERROR_EVENT, i, "wait for an event not recorded yet:", event);
    return TRUE;
}

static gboolean
check_work(const ZpTape *tape, gint32 i, GError **error)
{
    gint32 index = tape->instrs[i].a;
    if (index < 0 || index >= tape->n_works)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such work", index);
    const ZpTapeWork *work = &tape->works[index];
    if (work->fixed_ps < 0 || work->solo_ps < 0 || work->bytes < 0 || work->wire_bytes < 0)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "negative time or bytes in work", index);
    if (work->link < ZP_TAPE_NONE || work->link >= tape->n_links || work->group < ZP_TAPE_NONE ||
        work->group >= tape->n_groups || work->label < ZP_TAPE_NONE ||
        work->label >= (gint32)tape->labels->len || work->rule > tape->rules->len ||
        work->category >= ZP_TAPE_N_CATEGORIES || work->kind < 0 ||
        work->kind >= tape->vocabulary->n_kinds)
        return fail(error, ZP_TAPE_ERROR_RANGE, i,
                    "link, group, label, rule, category or kind of work", index);
    return TRUE;
}

static gboolean
check_instr(Walk *walk, gint32 i, GError **error)
{
    const ZpTape *tape = walk->tape;
    const ZpTapeInstr *instr = &tape->instrs[i];
    if (instr->stream >= tape->n_streams)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such stream", instr->stream);
    if (instr->phase >= tape->vocabulary->n_phases)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such phase", instr->phase);
    if (instr->unit < ZP_TAPE_NONE || instr->unit >= (gint32)tape->unit_names->len)
        return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such unit", instr->unit);
    switch ((ZpTapeOp)instr->op) {
    case ZP_TAPE_ALLOC:
    case ZP_TAPE_FREE:
    case ZP_TAPE_RETAG:
    case ZP_TAPE_USE:
        return check_buffer(walk, i, error);
    case ZP_TAPE_RECORD:
    case ZP_TAPE_WAIT:
    case ZP_TAPE_SYNC:
        return check_event(walk, i, error);
    case ZP_TAPE_LAUNCH:
        return check_work(tape, i, error);
    }
    return fail(error, ZP_TAPE_ERROR_RANGE, i, "no such operation", instr->op);
}

/* Buffers allocated in the step that ends before instruction `end` must be dead or persistent. */
static gboolean
check_step_end(const Walk *walk, gint32 begin, gint32 end, guint32 persistent_classes,
               GError **error)
{
    for (gint32 b = 0; b < walk->tape->n_buffers; b++) {
        if (walk->live[b] != 1 || walk->alloc_instr[b] < begin)
            continue;
        if ((persistent_classes >> walk->class_now[b] & 1u) == 0)
            return fail(error, ZP_TAPE_ERROR_LEAK, end, "outlives its step: buffer", b);
    }
    return TRUE;
}

static gboolean
check_steps(const ZpTape *tape, GError **error)
{
    for (gint32 k = 0; k < tape->n_steps; k++) {
        gint32 least = k > 0 ? tape->step_begin[k - 1] : 0;
        if (tape->step_begin[k] < least || tape->step_begin[k] > tape->n_instrs)
            return fail(error, ZP_TAPE_ERROR_RANGE, tape->step_begin[k], "no beginning of step", k);
    }
    return TRUE;
}

gboolean
zp_tape_check(const ZpTape *tape, gboolean check_leaks, guint32 persistent_classes, GError **error)
{
    g_autofree guint8 *live = g_new0(guint8, (gsize)tape->n_buffers + 1);
    g_autofree guint8 *recorded = g_new0(guint8, (gsize)tape->n_events + 1);
    g_autofree gint32 *alloc_instr = g_new0(gint32, (gsize)tape->n_buffers + 1);
    g_autofree guint8 *class_now = g_new0(guint8, (gsize)tape->n_buffers + 1);
    Walk walk = {tape, live, recorded, alloc_instr, class_now, 0};

    if (!check_steps(tape, error))
        return FALSE;
    gint32 step = 0; /* the next to begin */
    for (gint32 i = 0; i <= tape->n_instrs; i++) {
        while (step < tape->n_steps && tape->step_begin[step] == i) {
            gint32 begin = step > 0 ? tape->step_begin[step - 1] : i; /* the prologue may keep */
            if (check_leaks && !check_step_end(&walk, begin, i, persistent_classes, error))
                return FALSE;
            step++;
        }
        if (i < tape->n_instrs && !check_instr(&walk, i, error))
            return FALSE;
    }
    return !check_leaks || step == 0 ||
           check_step_end(&walk, tape->step_begin[step - 1], tape->n_instrs, persistent_classes,
                          error);
}

static void
dump_target(const ZpTape *tape, const ZpTapeInstr *instr, GString *out)
{
    const ZpTapeVocabulary *words = tape->vocabulary;
    switch ((ZpTapeOp)instr->op) {
    case ZP_TAPE_ALLOC:
    case ZP_TAPE_FREE:
    case ZP_TAPE_USE:
    case ZP_TAPE_RETAG: {
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        g_string_append_printf(out, " b%d", instr->a);
        if (instr->op == ZP_TAPE_ALLOC)
            g_string_append_printf(out, " %" G_GINT64_FORMAT " %s%s", buffer->bytes,
                                   words->classes[buffer->class_id],
                                   buffer->space == ZP_TAPE_SPACE_HOST ? " host" : "");
        else if (instr->op == ZP_TAPE_RETAG)
            g_string_append_printf(out, " %s", words->classes[instr->b & 0xff]);
        break;
    }
    case ZP_TAPE_LAUNCH: {
        const ZpTapeWork *work = &tape->works[instr->a];
        g_string_append_printf(out, " %s", words->kinds[work->kind]);
        if (work->bytes > 0)
            g_string_append_printf(out, " %" G_GINT64_FORMAT, work->bytes);
        if (work->group != ZP_TAPE_NONE)
            g_string_append_printf(out, " group=%dx%d", tape->groups[work->group].size,
                                   tape->groups[work->group].stride);
        break;
    }
    case ZP_TAPE_RECORD:
    case ZP_TAPE_WAIT:
    case ZP_TAPE_SYNC:
        g_string_append_printf(out, " e%d", instr->a);
        break;
    }
}

void
zp_tape_dump(const ZpTape *tape, GString *out)
{
    gint32 step = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        while (step < tape->n_steps && tape->step_begin[step] == i)
            g_string_append_printf(out, "step %d\n", step++);
        const char *unit =
            instr->unit >= 0 ? g_ptr_array_index(tape->unit_names, (guint)instr->unit) : "-";
        g_string_append_printf(out, "%-9s %-18s ", tape->vocabulary->phases[instr->phase], unit);
        if (instr->micro_batch >= 0)
            g_string_append_printf(out, "mb%d ", instr->micro_batch);
        g_string_append_printf(out, "%s %s", op_names[instr->op],
                               instr->op == ZP_TAPE_SYNC ? "host"
                                                         : tape->streams[instr->stream].name);
        if (instr->op <= ZP_TAPE_RETAG && instr->clock == ZP_TAPE_CLOCK_HOST)
            g_string_append(out, " (host)");
        dump_target(tape, instr, out);
        g_string_append_c(out, '\n');
    }
}
