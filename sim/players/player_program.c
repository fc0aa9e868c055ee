/* A tape prepared for the event player, once per play for all ranks. */
#include "sim/players/player_state_internal.h"

static gboolean
is_item(const ZpTapeInstr *instr)
{
    switch ((ZpTapeOp)instr->op) {
    case ZP_TAPE_ALLOC:
    case ZP_TAPE_FREE:
    case ZP_TAPE_RETAG:
        return instr->clock == ZP_TAPE_CLOCK_DEVICE;
    case ZP_TAPE_LAUNCH:
    case ZP_TAPE_RECORD:
    case ZP_TAPE_WAIT:
        return TRUE;
    case ZP_TAPE_USE:
    case ZP_TAPE_SYNC:
        return FALSE;
    }
    return FALSE;
}

static inline int
source_of(const ZpTapeInstr *instr)
{
    return instr->clock == ZP_TAPE_CLOCK_DEVICE ? 1 + instr->stream : 0;
}

/* Sizes first: the arrays come out of the scratch memory in one piece each. */
static void
measure(ZpPlayerProgram *program, const ZpPlayConfig *config, ZpPlayScratch *scratch)
{
    const ZpTape *tape = program->tape;
    gint32 per_stream[ZP_TAPE_MAX_STREAMS] = {0}, per_source[ZP_PLAYER_MAX_SOURCES] = {0};
    gint32 n_syncs = 0, n_launches = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        n_syncs += instr->op == ZP_TAPE_SYNC;
        n_launches += instr->op == ZP_TAPE_LAUNCH;
        if (instr->op <= ZP_TAPE_RETAG)
            per_source[source_of(instr)]++;
        if (is_item(instr))
            per_stream[instr->stream]++;
    }
    program->begin[0] = 0;
    for (int s = 0; s < ZP_TAPE_MAX_STREAMS; s++)
        program->begin[s + 1] = program->begin[s] + per_stream[s];
    for (int k = 0; k < ZP_PLAYER_MAX_SOURCES; k++)
        program->source_begin[k + 1] = program->source_begin[k] + per_source[k];
    program->n_changes = program->source_begin[ZP_PLAYER_MAX_SOURCES];
    program->n_items = program->begin[ZP_TAPE_MAX_STREAMS];
    gsize n_blocks = (gsize)n_syncs + (config->run_ahead > 0 ? (gsize)n_launches : 0);
    program->items = zp_play_scratch_get(scratch, ZP_PLAYER_ITEMS, (gsize)program->n_items,
                                         sizeof *program->items);
    program->blocks =
        zp_play_scratch_get(scratch, ZP_PLAYER_BLOCKS, n_blocks, sizeof *program->blocks);
    program->changes = zp_play_scratch_get(scratch, ZP_PLAYER_CHANGES, (gsize)program->n_changes,
                                           sizeof *program->changes);
    program->host_steps = zp_play_scratch_get(scratch, ZP_PLAYER_HOST_STEPS, (gsize)tape->n_steps,
                                              sizeof *program->host_steps);
}

typedef struct {
    ZpTime cost_ps;
    gint32 fill[ZP_TAPE_MAX_STREAMS];      /* where the next item of each stream goes */
    gint32 step_fill[ZP_TAPE_MAX_STREAMS]; /* the same when the present step began */
    gint32 change_fill[ZP_PLAYER_MAX_SOURCES];
    gint32 step;
} Walk;

/* The present step is over before instruction `end`. */
static void
end_step(ZpPlayerProgram *program, Walk *walk)
{
    program->host_steps[walk->step] =
        (ZpPlayerChange){.cost_ps = walk->cost_ps, .block = program->n_blocks};
    for (int s = 0; s < program->tape->n_streams; s++) {
        if (walk->fill[s] > walk->step_fill[s])
            program->items[walk->fill[s] - 1].step_last = walk->step;
        walk->step_fill[s] = walk->fill[s];
    }
    walk->step++;
}

static void
add_item(ZpPlayerProgram *program, Walk *walk, const ZpTapeInstr *instr, gint32 i)
{
    gint32 target = instr->op <= ZP_TAPE_RETAG ? program->n_device_changes++ : instr->a;
    program->items[walk->fill[instr->stream]++] = (ZpPlayerItem){
        .cost_ps = walk->cost_ps,
        .instr = i,
        .target = target,
        .block = program->n_blocks,
        .launch = program->n_launches,
        .step_last = ZP_TAPE_NONE,
        .op = instr->op,
    };
}

static inline void
add_block(ZpPlayerProgram *program, ZpTime cost_ps, gint32 awaited, gboolean is_launch)
{
    program->blocks[program->n_blocks++] =
        (ZpPlayerBlock){.cost_ps = cost_ps, .awaited = awaited, .is_launch = is_launch};
}

static void
add_instr(ZpPlayerProgram *program, const ZpPlayConfig *config, Walk *walk, gint32 i)
{
    const ZpTapeInstr *instr = &program->tape->instrs[i];
    gboolean is_launch = instr->op == ZP_TAPE_LAUNCH;
    if (is_launch && config->run_ahead > 0 && program->n_launches >= config->run_ahead)
        add_block(program, walk->cost_ps, program->n_launches - config->run_ahead, TRUE);
    walk->cost_ps = zp_time_add(walk->cost_ps,
                                is_launch ? config->launch_overhead_ps : config->instr_overhead_ps);
    if (instr->op == ZP_TAPE_SYNC) {
        add_block(program, walk->cost_ps, instr->a, FALSE);
        return;
    }
    if (instr->op <= ZP_TAPE_RETAG)
        program->changes[walk->change_fill[source_of(instr)]++] = (ZpPlayerChange){
            .cost_ps = walk->cost_ps,
            .instr = i,
            .block = program->n_blocks,
            .device =
                instr->clock == ZP_TAPE_CLOCK_DEVICE ? program->n_device_changes : ZP_TAPE_NONE,
        };
    if (is_item(instr))
        add_item(program, walk, instr, i);
    program->n_launches += is_launch;
}

/* Works of one stream follow one another, so a link is shared only if two streams use it. */
static gboolean
may_contend(const ZpPlayerProgram *program, const ZpPlayConfig *config)
{
    for (int own = 0; own < ZP_TAPE_N_CATEGORIES; own++)
        for (int other = 0; other < ZP_TAPE_N_CATEGORIES; other++) {
            gint32 ppm = config->interference_ppm[own][other];
            if (own != other && ppm != 0 && ppm != 1000000)
                return TRUE;
        }
    gint32 user[ZP_TAPE_MAX_LINKS];
    for (int l = 0; l < ZP_TAPE_MAX_LINKS; l++)
        user[l] = ZP_TAPE_NONE;
    for (int s = 0; s < program->tape->n_streams; s++)
        for (gint32 k = program->begin[s]; k < program->begin[s + 1]; k++) {
            const ZpPlayerItem *item = &program->items[k];
            if (item->op != ZP_TAPE_LAUNCH)
                continue;
            gint8 link = program->tape->works[item->target].link;
            if (link == ZP_TAPE_NONE)
                continue;
            if (user[link] != ZP_TAPE_NONE && user[link] != s)
                return TRUE;
            user[link] = s;
        }
    return FALSE;
}

gboolean
zp_player_build(ZpPlayerProgram *program, const ZpTape *tape, const ZpPlayConfig *config,
                ZpPlayScratch *scratch)
{
    *program = (ZpPlayerProgram){.tape = tape};
    measure(program, config, scratch);
    Walk walk = {0};
    memcpy(walk.fill, program->begin, sizeof walk.fill);
    memcpy(walk.step_fill, program->begin, sizeof walk.step_fill);
    memcpy(walk.change_fill, program->source_begin, sizeof walk.change_fill);
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        while (walk.step + 1 < tape->n_steps && tape->step_begin[walk.step + 1] == i)
            end_step(program, &walk);
        add_instr(program, config, &walk, i);
    }
    while (walk.step < tape->n_steps)
        end_step(program, &walk);
    program->host_cost_ps = walk.cost_ps;
    program->contends = may_contend(program, config);
    return walk.cost_ps <= ZP_PLAY_MAX_TIME;
}
