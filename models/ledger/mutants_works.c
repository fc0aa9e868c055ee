/* Mutants of works on a tape: traffic, FLOPs, time. */
#include "models/ledger/mutants_internal.h"

/* Which launches a mutant is about. */
typedef struct {
    guint32 kinds;  /* bits of ZpKind */
    guint32 phases; /* bits of ZpPhase; 0: all */
} Where;

#define KIND(kind) (1u << ZP_KIND_##kind)
#define PHASE(phase) (1u << ZP_PHASE_##phase)
#define GATHERS (KIND(ALL_GATHER) | KIND(BROADCAST))
#define REDUCTIONS (KIND(ALL_REDUCE) | KIND(REDUCE_SCATTER) | KIND(REDUCE) | KIND(ALL_TO_ALL))
#define PASSES (KIND(FORWARD) | KIND(BACKWARD) | KIND(RECOMPUTE))

static gboolean
is_there(const ZpTape *tape, gint32 i, Where where)
{
    const ZpTapeInstr *instr = &tape->instrs[i];
    if (instr->op != ZP_TAPE_LAUNCH || (where.phases && !(where.phases & 1u << instr->phase)))
        return FALSE;
    const ZpTapeWork *work = &tape->works[instr->a];
    gboolean own_cut = work->category == ZP_TAPE_COMMUNICATION && work->group == ZP_TAPE_NONE;
    return !own_cut && (where.kinds & 1u << work->kind) != 0;
}

/* The launch's work, of no other launch any more. */
static ZpTapeWork *
own_work(ZpTape *tape, gint32 i)
{
    ZpTapeWork copy = tape->works[tape->instrs[i].a];
    tape->instrs[i].a = zp_tape_add_work(tape, &copy);
    return &tape->works[tape->instrs[i].a];
}

/* Divides what the messages move; 0 leaves nothing. */
static gboolean
divide_messages(ZpTape *tape, Where where, gint64 by, gint32 before_micro_batch)
{
    gboolean broken = FALSE;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        if (!is_there(tape, i, where) || tape->works[tape->instrs[i].a].bytes == 0 ||
            (before_micro_batch >= 0 && tape->instrs[i].micro_batch >= before_micro_batch))
            continue;
        ZpTapeWork *work = own_work(tape, i);
        work->bytes = by == 0 ? 0 : work->bytes / by;
        work->wire_bytes = by == 0 ? 0 : work->wire_bytes / by;
        broken = TRUE;
    }
    return broken;
}

/* What several micro-batches keep gathered hides that one gathers less. */
static gboolean
gathers_each_pass(const ChecksFacts *facts)
{
    return facts->runtime == CHECKS_IDEAL ||
           (checks_gathers_plainly(facts) && facts->job->training.accumulation == 1);
}

gboolean
mutants_omit_forward_gathers(const ChecksFacts *facts, ZpTape *tape)
{
    return gathers_each_pass(facts) &&
           divide_messages(tape, (Where){GATHERS, PHASE(FORWARD)}, 0, -1);
}

gboolean
mutants_halve_gathers(const ChecksFacts *facts, ZpTape *tape)
{
    return gathers_each_pass(facts) &&
           divide_messages(tape, (Where){GATHERS, PHASE(FORWARD)}, 2, -1);
}

/* Frameworks may keep a root or a last unit; and frozen layers need not come back. */
gboolean
mutants_omit_backward_gathers(const ChecksFacts *facts, ZpTape *tape)
{
    const ZpZero *zero = &facts->job->zero;
    gboolean ideal = facts->runtime == CHECKS_IDEAL;
    gboolean again = zero->reshard_after_forward && zero->stage >= 3 && facts->units->n_units > 4 &&
                     facts->trainable == facts->elements &&
                     facts->fsdp->reshard_after_forward < 0 &&
                     facts->fsdp->shard_gradients_only == ZP_FSDP_AUTO;
    return gathers_each_pass(facts) && (ideal || again) &&
           divide_messages(tape, (Where){GATHERS, PHASE(BACKWARD)}, 0, -1);
}

gboolean
mutants_omit_updates(const ChecksFacts *facts, ZpTape *tape)
{
    return !(facts->runtime & CHECKS_FSDP) &&
           (facts->job->zero.stage == 1 || facts->job->zero.stage == 2) &&
           divide_messages(tape, (Where){GATHERS, PHASE(GATHER)}, 0, -1);
}

static gboolean
reduces_plainly(const ChecksFacts *facts)
{
    return facts->job->world.ranks > 1 && facts->trainable > 0 && !checks_quantises(facts);
}

gboolean
mutants_omit_reductions(const ChecksFacts *facts, ZpTape *tape)
{
    return reduces_plainly(facts) && divide_messages(tape, (Where){REDUCTIONS, 0}, 0, -1);
}

gboolean
mutants_halve_reductions(const ChecksFacts *facts, ZpTape *tape)
{
    return reduces_plainly(facts) && divide_messages(tape, (Where){REDUCTIONS, 0}, 2, -1);
}

gboolean
mutants_reduce_once(const ChecksFacts *facts, ZpTape *tape)
{
    gint32 last = (gint32)MIN(facts->job->training.accumulation - 1, G_MAXINT16);
    return reduces_plainly(facts) && facts->job->zero.stage >= 2 && last > 0 &&
           (facts->runtime & (CHECKS_IDEAL | CHECKS_DEEPSPEED)) != 0 &&
           divide_messages(tape, (Where){REDUCTIONS, 0}, 0, last);
}

/* Sets what goes over the wire to `times` of the message or (0) to half of what it was. */
static gboolean
set_wire(ZpTape *tape, Where where, gint64 times)
{
    gboolean broken = FALSE;
    for (gint32 w = 0; w < tape->n_works; w++) {
        ZpTapeWork *work = &tape->works[w];
        gboolean shared = work->group != ZP_TAPE_NONE && tape->groups[work->group].size > 1;
        if (!(where.kinds & 1u << work->kind) || !shared || work->bytes < 64)
            continue;
        gint64 wire = times > 0 ? times * work->bytes : work->wire_bytes / 2;
        broken = broken || wire != work->wire_bytes;
        work->wire_bytes = wire;
    }
    return broken;
}

gboolean
mutants_halve_wire(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    return set_wire(tape, (Where){KIND(ALL_REDUCE), 0}, 0);
}

gboolean
mutants_whole_wire(const ChecksFacts *facts, ZpTape *tape)
{
    return facts->job->network.piece_bytes == 0 &&
           set_wire(tape, (Where){KIND(ALL_GATHER) | KIND(REDUCE_SCATTER), 0}, 1);
}

static gboolean
spends(const ZpTape *tape, gint32 i, Where where)
{
    return is_there(tape, i, where) && tape->works[tape->instrs[i].a].flops > 0.0;
}

/* The work of one launch becomes nothing. */
static void
erase_work(ZpTape *tape, gint32 i)
{
    ZpTapeWork *work = own_work(tape, i);
    work->flops = 0.0;
    work->fixed_ps = work->solo_ps = 0;
}

gboolean
mutants_omit_forward(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    gint32 most = ZP_TAPE_NONE;
    for (gint32 i = tape->n_steps > 0 ? tape->step_begin[tape->n_steps - 1] : 0; i < tape->n_instrs;
         i++)
        if (spends(tape, i, (Where){KIND(FORWARD), 0}) &&
            (most == ZP_TAPE_NONE ||
             tape->works[tape->instrs[i].a].flops > tape->works[tape->instrs[most].a].flops))
            most = i;
    if (most == ZP_TAPE_NONE)
        return FALSE;
    erase_work(tape, most);
    return TRUE;
}

/* Of the first layers, whose backward comes last; of what is trained in part less is known. */
gboolean
mutants_omit_backward(const ChecksFacts *facts, ZpTape *tape)
{
    gint32 i = tape->n_instrs - 1;
    while (i >= 0 && !spends(tape, i, (Where){KIND(BACKWARD), 0}))
        i--;
    if (i < 0 || facts->trainable < facts->elements)
        return FALSE;
    gint32 unit = tape->instrs[i].unit;
    for (; i >= 0; i--)
        if (tape->instrs[i].unit == unit && spends(tape, i, (Where){KIND(BACKWARD), 0}))
            erase_work(tape, i);
    return TRUE;
}

static gboolean
scale_flops(ZpTape *tape, ZpKind kind, double by)
{
    gboolean broken = FALSE;
    for (gint32 w = 0; w < tape->n_works; w++) {
        if (tape->works[w].kind != (gint16)kind || tape->works[w].flops <= 0.0)
            continue;
        tape->works[w].flops *= by;
        broken = TRUE;
    }
    return broken;
}

gboolean
mutants_lengthen_backward(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    return scale_flops(tape, ZP_KIND_BACKWARD, 3.0);
}

gboolean
mutants_omit_recomputation(const ChecksFacts *facts, ZpTape *tape)
{
    return facts->trainable == facts->elements && scale_flops(tape, ZP_KIND_RECOMPUTE, 0.0);
}

static gboolean
take_no_time(ZpTape *tape, Where where)
{
    gboolean broken = FALSE;
    for (gint32 w = 0; w < tape->n_works; w++) {
        ZpTapeWork *work = &tape->works[w];
        if (!(where.kinds & 1u << work->kind))
            continue;
        broken = broken || work->flops > 0.0 || work->solo_ps > 0;
        work->fixed_ps = work->solo_ps = 0;
    }
    return broken;
}

static gboolean
has_flops(const ZpTape *tape)
{
    for (gint32 i = 0; i < tape->n_instrs; i++)
        if (spends(tape, i, (Where){PASSES, 0}))
            return TRUE;
    return FALSE;
}

gboolean
mutants_speed_kernels(const ChecksFacts *facts, ZpTape *tape)
{
    (void)facts;
    return has_flops(tape) && take_no_time(tape, (Where){PASSES, 0});
}

gboolean
mutants_speed_optimizer(const ChecksFacts *facts, ZpTape *tape)
{
    gint64 state =
        facts->stored[CHECKS_MOMENTUM].bounds.low + facts->stored[CHECKS_VARIANCE].bounds.low;
    return !checks_offloads(facts) && state > 0 && take_no_time(tape, (Where){KIND(OPTIMIZER), 0});
}

gboolean
mutants_speed_links(const ChecksFacts *facts, ZpTape *tape)
{
    gboolean broken = FALSE;
    for (gint32 w = 0; w < tape->n_works && facts->job->network.measured == NULL; w++) {
        ZpTapeWork *work = &tape->works[w];
        gboolean shared = work->group != ZP_TAPE_NONE && tape->groups[work->group].size > 1;
        if (!shared || work->bytes < 1 << 20)
            continue;
        work->fixed_ps = work->solo_ps = 0;
        broken = TRUE;
    }
    return broken;
}
