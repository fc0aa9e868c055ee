#include "sim/tape/tape.h"

#include <string.h>

ZpTape *
zp_tape_new(const ZpTapeVocabulary *vocabulary)
{
    g_assert(vocabulary->n_classes <= ZP_TAPE_MAX_CLASSES);
    ZpTape *tape = g_new0(ZpTape, 1);
    tape->vocabulary = vocabulary;
    tape->unit_names = g_ptr_array_new();
    tape->labels = g_ptr_array_new();
    tape->rules = g_ptr_array_new();
    zp_tape_clear(tape);
    return tape;
}

void
zp_tape_free(ZpTape *tape)
{
    if (tape == NULL)
        return;
    g_free(tape->instrs);
    g_free(tape->buffers);
    g_free(tape->works);
    g_free(tape->step_begin);
    g_ptr_array_unref(tape->unit_names);
    g_ptr_array_unref(tape->labels);
    g_ptr_array_unref(tape->rules);
    g_free(tape);
}

void
zp_tape_clear(ZpTape *tape)
{
    tape->n_instrs = tape->n_buffers = tape->n_works = tape->n_events = tape->n_steps = 0;
    tape->n_streams = tape->n_links = tape->n_groups = 0;
    g_ptr_array_set_size(tape->unit_names, 0);
    g_ptr_array_set_size(tape->labels, 0);
    g_ptr_array_set_size(tape->rules, 0);
    zp_tape_tag(tape, 0, ZP_TAPE_NONE, ZP_TAPE_NONE);
}

/* Makes room for one more element; `array` is a gpointer * to the table. */
static inline void
reserve(gpointer array, gint32 n, gint32 *capacity, gsize element_size)
{
    if (G_LIKELY(n < *capacity))
        return;
    g_assert(*capacity < G_MAXINT32 / 2);
    *capacity = MAX(64, *capacity * 2);
    gpointer *table = array;
    *table = g_realloc_n(*table, (gsize)*capacity, element_size);
}

guint8
zp_tape_add_stream(ZpTape *tape, const char *name, ZpTapeCategory category)
{
    g_assert(tape->n_streams < ZP_TAPE_MAX_STREAMS);
    tape->streams[tape->n_streams] = (ZpTapeStream){.name = name, .category = (guint8)category};
    return (guint8)tape->n_streams++;
}

gint8
zp_tape_add_link(ZpTape *tape, const char *name)
{
    g_assert(tape->n_links < ZP_TAPE_MAX_LINKS);
    tape->links[tape->n_links] = name;
    return (gint8)tape->n_links++;
}

gint8
zp_tape_add_group(ZpTape *tape, gint32 size, gint32 stride)
{
    g_assert(tape->n_groups < ZP_TAPE_MAX_GROUPS && size > 0 && stride > 0);
    tape->groups[tape->n_groups] = (ZpTapeGroup){.size = size, .stride = stride};
    return (gint8)tape->n_groups++;
}

gint32
zp_tape_add_unit(ZpTape *tape, const char *name)
{
    g_ptr_array_add(tape->unit_names, (gpointer)name);
    return (gint32)tape->unit_names->len - 1;
}

gint32
zp_tape_add_label(ZpTape *tape, const char *label)
{
    g_ptr_array_add(tape->labels, (gpointer)label);
    return (gint32)tape->labels->len - 1;
}

guint16
zp_tape_add_rule(ZpTape *tape, const char *rule)
{
    if (rule == NULL)
        return 0;
    /* Few rules price many works: the list stays short. */
    for (guint i = 0; i < tape->rules->len; i++) {
        const char *known = g_ptr_array_index(tape->rules, i);
        if (known == rule || strcmp(known, rule) == 0)
            return (guint16)(i + 1);
    }
    g_assert(tape->rules->len < G_MAXUINT16);
    g_ptr_array_add(tape->rules, (gpointer)rule);
    return (guint16)tape->rules->len;
}

const char *
zp_tape_rule(const ZpTape *tape, const ZpTapeWork *work)
{
    return work->rule == 0 ? NULL : g_ptr_array_index(tape->rules, work->rule - 1U);
}

gint32
zp_tape_add_buffer(ZpTape *tape, guint8 class_id, guint8 role, gint64 bytes)
{
    reserve(&tape->buffers, tape->n_buffers, &tape->cap_buffers, sizeof *tape->buffers);
    tape->buffers[tape->n_buffers] = (ZpTapeBuffer){
        .bytes = bytes,
        .unit = tape->unit,
        .class_id = class_id,
        .role = role,
        .space = ZP_TAPE_SPACE_DEVICE,
        .parameter = ZP_TAPE_NONE,
    };
    return tape->n_buffers++;
}

gint32
zp_tape_add_work(ZpTape *tape, const ZpTapeWork *work)
{
    reserve(&tape->works, tape->n_works, &tape->cap_works, sizeof *tape->works);
    tape->works[tape->n_works] = *work;
    return tape->n_works++;
}

gint32
zp_tape_add_event(ZpTape *tape)
{
    return tape->n_events++;
}

void
zp_tape_tag(ZpTape *tape, guint8 phase, gint16 micro_batch, gint32 unit)
{
    tape->phase = phase;
    tape->micro_batch = micro_batch;
    tape->unit = unit;
}

void
zp_tape_begin_step(ZpTape *tape)
{
    reserve(&tape->step_begin, tape->n_steps, &tape->cap_steps, sizeof *tape->step_begin);
    tape->step_begin[tape->n_steps++] = tape->n_instrs;
}

static inline void
push(ZpTape *tape, ZpTapeOp op, ZpTapeClock clock, guint8 stream, gint32 a, gint16 b)
{
    reserve(&tape->instrs, tape->n_instrs, &tape->cap_instrs, sizeof *tape->instrs);
    tape->instrs[tape->n_instrs++] = (ZpTapeInstr){
        .op = (guint8)op,
        .clock = (guint8)clock,
        .stream = stream,
        .phase = tape->phase,
        .micro_batch = tape->micro_batch,
        .b = b,
        .unit = tape->unit,
        .a = a,
    };
}

void
zp_tape_alloc(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer)
{
    push(tape, ZP_TAPE_ALLOC, clock, stream, buffer, 0);
}

void
zp_tape_free_buffer(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer)
{
    push(tape, ZP_TAPE_FREE, clock, stream, buffer, 0);
}

void
zp_tape_retag(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer, guint8 class_id,
              guint8 role)
{
    push(tape, ZP_TAPE_RETAG, clock, stream, buffer, (gint16)(class_id | role << 8));
}

void
zp_tape_use(ZpTape *tape, guint8 stream, gint32 buffer)
{
    push(tape, ZP_TAPE_USE, ZP_TAPE_CLOCK_HOST, stream, buffer, 0);
}

void
zp_tape_launch(ZpTape *tape, guint8 stream, gint32 work)
{
    push(tape, ZP_TAPE_LAUNCH, ZP_TAPE_CLOCK_HOST, stream, work, 0);
}

gint32
zp_tape_record(ZpTape *tape, guint8 stream)
{
    gint32 event = zp_tape_add_event(tape);
    push(tape, ZP_TAPE_RECORD, ZP_TAPE_CLOCK_HOST, stream, event, 0);
    return event;
}

void
zp_tape_wait(ZpTape *tape, guint8 stream, gint32 event)
{
    push(tape, ZP_TAPE_WAIT, ZP_TAPE_CLOCK_HOST, stream, event, 0);
}

void
zp_tape_sync(ZpTape *tape, gint32 event)
{
    push(tape, ZP_TAPE_SYNC, ZP_TAPE_CLOCK_HOST, 0, event, 0);
}

gint32
zp_tape_make(ZpTape *tape, ZpTapeClock clock, guint8 stream, guint8 class_id, guint8 role,
             gint64 bytes)
{
    if (bytes == 0)
        return ZP_TAPE_NONE;
    gint32 buffer = zp_tape_add_buffer(tape, class_id, role, bytes);
    zp_tape_alloc(tape, clock, stream, buffer);
    return buffer;
}

void
zp_tape_drop(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer)
{
    if (buffer != ZP_TAPE_NONE)
        zp_tape_free_buffer(tape, clock, stream, buffer);
}
