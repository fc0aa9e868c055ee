#include "reports/text/event.h"

static const char *const op_names[] = {
    [ZP_TAPE_ALLOC] = "alloc", [ZP_TAPE_FREE] = "free",     [ZP_TAPE_RETAG] = "retag",
    [ZP_TAPE_USE] = "use",     [ZP_TAPE_LAUNCH] = "launch", [ZP_TAPE_RECORD] = "record",
    [ZP_TAPE_WAIT] = "wait",   [ZP_TAPE_SYNC] = "sync",
};

/* The work queued on the same stream at or after an instruction, or ZP_TAPE_NONE. */
static gint32
next_work(const ZpTape *tape, gint32 instr)
{
    guint8 stream = tape->instrs[instr].stream;
    for (gint32 i = instr; i < tape->n_instrs; i++) {
        const ZpTapeInstr *next = &tape->instrs[i];
        if (next->op == ZP_TAPE_LAUNCH && next->stream == stream)
            return next->a;
    }
    return ZP_TAPE_NONE;
}

static void
fill_buffer(const ZpTape *tape, const ZpTapeInstr *instr, ZpEvent *event)
{
    const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
    guint class_id = buffer->class_id, role = buffer->role;
    if (instr->op == ZP_TAPE_RETAG) {
        class_id = (guint)instr->b & 0xff;
        role = ((guint)instr->b >> 8) & 0xff;
    }
    event->class_name = tape->vocabulary->classes[class_id];
    event->role = tape->vocabulary->roles[role];
    event->bytes = buffer->bytes;
}

void
zp_event_fill(const ZpTape *tape, gint32 index, ZpEvent *event)
{
    g_assert(index >= 0 && index < tape->n_instrs);
    const ZpTapeInstr *instr = &tape->instrs[index];
    *event = (ZpEvent){
        .op = op_names[instr->op],
        .stream = tape->streams[instr->stream].name,
        .phase = tape->vocabulary->phases[instr->phase],
        .unit = instr->unit == ZP_TAPE_NONE
                    ? NULL
                    : g_ptr_array_index(tape->unit_names, (guint)instr->unit),
        .micro_batch = instr->micro_batch,
    };
    gint32 work = next_work(tape, index);
    if (work != ZP_TAPE_NONE)
        event->kind = tape->vocabulary->kinds[tape->works[work].kind];
    if (instr->op <= ZP_TAPE_USE)
        fill_buffer(tape, instr, event);
    else if (instr->op == ZP_TAPE_LAUNCH)
        event->bytes = tape->works[instr->a].bytes;
}

char *
zp_event_text(const ZpTape *tape, gint32 instr)
{
    if (instr == ZP_TAPE_NONE)
        return g_strdup("nothing allocated");
    ZpEvent event;
    zp_event_fill(tape, instr, &event);
    GString *text = g_string_new(event.op);
    if (event.class_name != NULL) {
        g_string_append_printf(text, " of %" G_GINT64_FORMAT " bytes, %s", event.bytes,
                               event.class_name);
        if (event.role[0] != '\0')
            g_string_append_printf(text, " (%s)", event.role);
        g_string_append(text, ",");
    }
    if (event.kind != NULL)
        g_string_append_printf(text, " for %s", event.kind);
    g_string_append_printf(text, " on stream %s", event.stream);
    return g_string_free(text, FALSE);
}
