/* One pass over the tape: what it launches, moves and holds. */
#include <string.h>

#include "models/ledger/checks_internal.h"

typedef struct {
    const ZpTape *tape;
    ChecksScan *scan;
    guint8 *class_now; /* by buffer */
    gint64 live[ZP_N_CLASSES];
    int phase, direction; /* of the two passes, the last that began */
    gboolean stepped;     /* the optimizer of the last step has begun */
} Pass;

static void
count_work(Pass *pass, const ZpTapeInstr *instr, gboolean last_step)
{
    const ZpTapeWork *work = &pass->tape->works[instr->a];
    ChecksScan *scan = pass->scan;
    ZpTime alone = zp_time_add(work->fixed_ps, work->solo_ps);
    ZpTime *stream = &scan->stream_ps[instr->stream][work->category];
    *stream = zp_time_add(*stream, alone);
    scan->category_ps[work->category] = zp_time_add(scan->category_ps[work->category], alone);
    if (work->link != ZP_TAPE_NONE)
        scan->link_ps[work->link] = zp_time_add(scan->link_ps[work->link], work->solo_ps);
    if (!last_step || (work->category == ZP_TAPE_COMMUNICATION && work->group == ZP_TAPE_NONE))
        return;
    scan->bytes[work->kind] += work->bytes;
    scan->flops[work->kind] += work->flops;
    scan->busy_ps[work->kind] = zp_time_add(scan->busy_ps[work->kind], alone);
    if (work->kind == ZP_KIND_ALL_GATHER || work->kind == ZP_KIND_BROADCAST)
        scan->gathered_bytes[instr->phase] += work->bytes;
}

static void
enter_phase(Pass *pass, int phase)
{
    gboolean turns = phase != pass->direction; /* reductions come between parts of a backward */
    pass->phase = phase;
    if (phase == ZP_PHASE_FORWARD && turns)
        pass->scan->kept_at_forward_bytes += pass->live[ZP_CLASS_GATHERED];
    if (phase == ZP_PHASE_BACKWARD && turns)
        pass->scan->kept_at_backward_bytes += pass->live[ZP_CLASS_GATHERED];
    if (phase == ZP_PHASE_FORWARD || phase == ZP_PHASE_BACKWARD)
        pass->direction = phase;
    if (phase == ZP_PHASE_OPTIMIZER && !pass->stepped) {
        pass->scan->gradient_at_step_bytes = pass->live[ZP_CLASS_GRADIENT];
        pass->stepped = TRUE;
    }
}

static void
follow_buffer(Pass *pass, const ZpTapeInstr *instr)
{
    const ZpTapeBuffer *buffer = &pass->tape->buffers[instr->a];
    guint8 *class_now = &pass->class_now[instr->a];
    if (instr->op == ZP_TAPE_ALLOC)
        *class_now = buffer->class_id;
    else
        pass->live[*class_now] -= buffer->bytes;
    if (instr->op == ZP_TAPE_RETAG)
        *class_now = (guint8)(instr->b & 0xff);
    if (instr->op != ZP_TAPE_FREE)
        pass->live[*class_now] += buffer->bytes;
}

void
checks_scan(const ZpTape *tape, gboolean live, ChecksScan *scan)
{
    memset(scan, 0, sizeof *scan);
    g_autofree guint8 *class_now = live ? g_new(guint8, (gsize)tape->n_buffers + 1) : NULL;
    Pass pass = {.tape = tape, .scan = scan, .class_now = class_now, .phase = ZP_PHASE_INIT};
    gint32 last_begin = tape->n_steps > 0 ? tape->step_begin[tape->n_steps - 1] : 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->phase != pass.phase && i >= last_begin)
            enter_phase(&pass, instr->phase);
        if (instr->op == ZP_TAPE_LAUNCH)
            count_work(&pass, instr, i >= last_begin);
        else if (live && instr->op <= ZP_TAPE_RETAG)
            follow_buffer(&pass, instr);
    }
}
