/* TOY: e, L blocks of two linear layers (a: d -> inner, b: inner -> d), h; every block a unit, e
 * and h in the root; no biases.  What the statements about PyTorch's runtimes are made for. */
#pragma once

#include "models/runtimes/ddp.h"
#include "models/runtimes/fsdp1.h"
#include "models/runtimes/fsdp2.h"
#include "models/vocabulary.h"

#define MIB (G_GINT64_CONSTANT(1) << 20)

typedef struct {
    gint64 d, inner;
    int n_blocks;
    gint32 shard, replicate, rank;
    int stored_bytes, param_bytes, reduce_bytes;
    gint32 reshard_after_forward, root_reshard;
    int micro_batches;
    gboolean sync, reshard_after_backward; /* of all micro-batches but the last */
    gboolean own_ends;                     /* e and h are units of their own, the root is empty */
    gboolean e_unshard_in_backward;
    int forward_prefetch, backward_prefetch;
    gboolean checkpointed, checkpoint_outside;
} Toy;

static inline Toy
toy_default(void)
{
    return (Toy){
        .d = 1024,
        .inner = 1024,
        .n_blocks = 6,
        .shard = 8,
        .replicate = 1,
        .stored_bytes = 4,
        .param_bytes = 2,
        .reduce_bytes = 4,
        .reshard_after_forward = 1,
        .micro_batches = 1,
        .sync = TRUE,
        .reshard_after_backward = TRUE,
        .e_unshard_in_backward = TRUE,
    };
}

static inline void
toy_add_parameter(ZpFsdpPlan *plan, gint64 rows, gint64 columns, gint32 unit)
{
    ZpFsdpParameter parameter = {
        .name = "weight",
        .rows = rows,
        .row_elements = columns,
        .trainable = TRUE,
        .unit = unit,
        .parameter = ZP_FSDP_NONE,
    };
    g_array_append_val(plan->parameters, parameter);
    g_array_index(plan->units, ZpFsdpUnit, (guint)unit).n_parameters++;
}

static inline gint32
toy_add_unit(ZpFsdpPlan *plan, const char *name, gboolean root, gint32 reshard)
{
    ZpFsdpUnit unit = {
        .name = g_intern_string(name),
        .first_parameter = (gint32)plan->parameters->len,
        .root = root,
        .input_requires_grad = !root,
        .reshard_after_forward = reshard,
        .unshard_in_backward = TRUE,
    };
    g_array_append_val(plan->units, unit);
    return (gint32)plan->units->len - 1;
}

static inline void
toy_add_step(ZpFsdpPlan *plan, ZpFsdpStepKind kind, gint32 unit, gint32 parameter, gint32 region)
{
    ZpFsdpStep step = {
        .kind = (guint8)kind,
        .unit = unit,
        .first_use = (gint32)plan->uses->len,
        .n_uses = parameter != ZP_FSDP_NONE,
        .region = region,
    };
    if (parameter != ZP_FSDP_NONE) {
        g_array_append_val(plan->uses, parameter);
        g_array_append_val(plan->optimizer_order, parameter);
    }
    g_array_append_val(plan->steps, step);
}

/* Lists of the next (previous) n blocks for explicit prefetching. */
static inline void
toy_add_prefetch(ZpFsdpPlan *plan, const Toy *toy, gint32 first_block)
{
    for (int i = 0; i < toy->n_blocks; i++) {
        ZpFsdpUnit *unit = &g_array_index(plan->units, ZpFsdpUnit, (guint)(first_block + i));
        unit->first_forward_prefetch = (gint32)plan->prefetch->len;
        for (int k = 1; k <= toy->forward_prefetch && i + k < toy->n_blocks; k++) {
            gint32 target = first_block + i + k;
            g_array_append_val(plan->prefetch, target);
            unit->n_forward_prefetch++;
        }
        unit->first_backward_prefetch = (gint32)plan->prefetch->len;
        for (int k = 1; k <= toy->backward_prefetch && i - k >= 0; k++) {
            gint32 target = first_block + i - k;
            g_array_append_val(plan->prefetch, target);
            unit->n_backward_prefetch++;
        }
    }
}

static inline void
toy_add_block(ZpFsdpPlan *plan, const Toy *toy, int index)
{
    g_autofree char *name = g_strdup_printf("ls.%d", index);
    gint32 unit = toy_add_unit(plan, name, FALSE, toy->reshard_after_forward);
    gint32 first = (gint32)plan->parameters->len;
    toy_add_parameter(plan, toy->inner, toy->d, unit);
    toy_add_parameter(plan, toy->d, toy->inner, unit);
    gint32 region = toy->checkpointed ? (gint32)plan->regions->len : ZP_FSDP_NONE;
    gint32 enter = (gint32)plan->steps->len;
    gboolean outside = toy->checkpointed && toy->checkpoint_outside;
    toy_add_step(plan, ZP_FSDP_ENTER, unit, ZP_FSDP_NONE, outside ? region : ZP_FSDP_NONE);
    toy_add_step(plan, ZP_FSDP_CALL, unit, first, region);
    toy_add_step(plan, ZP_FSDP_CALL, unit, first + 1, region);
    toy_add_step(plan, ZP_FSDP_LEAVE, unit, ZP_FSDP_NONE, outside ? region : ZP_FSDP_NONE);
    ZpFsdpRegion range = {outside ? enter : enter + 1, outside ? enter + 3 : enter + 2};
    if (toy->checkpointed)
        g_array_append_val(plan->regions, range);
}

static inline ZpFsdpPlan *
toy_plan(const Toy *toy)
{
    ZpFsdpPlan *plan = zp_fsdp_plan_new();
    plan->shard = toy->shard;
    plan->replicate = toy->replicate;
    plan->rank = toy->rank;
    plan->stored_bytes = plan->moment_bytes = toy->stored_bytes;
    plan->param_bytes = toy->param_bytes;
    plan->reduce_bytes = toy->reduce_bytes;
    plan->moments = 2;
    plan->square_root = TRUE;
    gint32 e = toy_add_unit(plan, toy->own_ends ? "e" : "root", !toy->own_ends, toy->own_ends);
    ZpFsdpUnit *unit = &g_array_index(plan->units, ZpFsdpUnit, 0);
    unit->input_requires_grad = FALSE;
    unit->unshard_in_backward = toy->e_unshard_in_backward;
    if (!toy->own_ends)
        unit->reshard_after_forward = toy->root_reshard;
    toy_add_parameter(plan, toy->d, toy->d, e);
    if (!toy->own_ends)
        toy_add_parameter(plan, toy->d, toy->d, e);
    toy_add_step(plan, ZP_FSDP_ENTER, e, ZP_FSDP_NONE, ZP_FSDP_NONE);
    toy_add_step(plan, ZP_FSDP_CALL, e, 0, ZP_FSDP_NONE);
    if (toy->own_ends)
        toy_add_step(plan, ZP_FSDP_LEAVE, e, ZP_FSDP_NONE, ZP_FSDP_NONE);
    for (int i = 0; i < toy->n_blocks; i++)
        toy_add_block(plan, toy, i);
    gint32 h = e, weight = 1;
    if (toy->own_ends) {
        h = toy_add_unit(plan, "h", FALSE, 0);
        weight = (gint32)plan->parameters->len;
        toy_add_parameter(plan, toy->d, toy->d, h);
        toy_add_step(plan, ZP_FSDP_ENTER, h, ZP_FSDP_NONE, ZP_FSDP_NONE);
    }
    toy_add_step(plan, ZP_FSDP_CALL, h, weight, ZP_FSDP_NONE);
    toy_add_step(plan, ZP_FSDP_LEAVE, h, ZP_FSDP_NONE, ZP_FSDP_NONE);
    toy_add_prefetch(plan, toy, 1);
    for (gint32 u = 0; u < (gint32)plan->units->len; u++)
        g_array_append_val(plan->state_order, u);
    for (int m = 0; m < toy->micro_batches; m++) {
        gboolean last = m == toy->micro_batches - 1;
        ZpFsdpMicroBatch micro_batch = {
            .sync = last || toy->sync,
            .all_reduce = TRUE,
            .reshard_after_backward = last || toy->reshard_after_backward,
            .last_backward = TRUE,
        };
        g_array_append_val(plan->micro_batches, micro_batch);
    }
    zp_fsdp_plan_finish(plan);
    return plan;
}

/* Figures of the last step of a tape. */
typedef struct {
    gint64 start_bytes;
    gint64 peak_bytes[ZP_N_PHASES];      /* the value on entry counts */
    gint64 end_bytes[ZP_N_PHASES];       /* after the phase's last change, last micro-batch */
    gint64 first_end_bytes[ZP_N_PHASES]; /* the same of micro-batch 0 */
    gint64 role_peak_bytes[ZP_N_ROLES];
    int count[ZP_N_KINDS];
    gint64 bytes[ZP_N_KINDS];
    GString *collectives; /* "all-gather ls.5, reduce-scatter ls.4, ..." of backward */
} Figures;

static inline void
figures_clear(Figures *figures)
{
    g_string_free(figures->collectives, TRUE);
}

static inline void
figures_change(Figures *figures, const ZpTape *tape, const ZpTapeInstr *instr, gint64 *now,
               gint64 *by_role, gboolean recording)
{
    const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
    if (buffer->space != ZP_TAPE_SPACE_DEVICE)
        return;
    gint64 before = *now;
    if (instr->op == ZP_TAPE_ALLOC)
        *now += buffer->bytes;
    else if (instr->op == ZP_TAPE_FREE)
        *now -= buffer->bytes;
    by_role[buffer->role] += *now - before;
    if (!recording)
        return;
    gint64 *peak = &figures->peak_bytes[instr->phase];
    *peak = MAX(*peak, MAX(before, *now));
    figures->end_bytes[instr->phase] = *now;
    if (instr->micro_batch == 0)
        figures->first_end_bytes[instr->phase] = *now;
    gint64 *role_peak = &figures->role_peak_bytes[buffer->role];
    *role_peak = MAX(*role_peak, by_role[buffer->role]);
}

static inline Figures
figures_of(const ZpTape *tape)
{
    Figures figures = {.collectives = g_string_new(NULL)};
    gint32 begin = tape->step_begin[tape->n_steps - 1];
    gint64 now = 0;
    gint64 by_role[ZP_N_ROLES] = {0};
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (i == begin)
            figures.start_bytes = now;
        if (instr->op == ZP_TAPE_ALLOC || instr->op == ZP_TAPE_FREE)
            figures_change(&figures, tape, instr, &now, by_role, i >= begin);
        if (instr->op != ZP_TAPE_LAUNCH || i < begin)
            continue;
        const ZpTapeWork *work = &tape->works[instr->a];
        figures.count[work->kind]++;
        figures.bytes[work->kind] += work->bytes;
        if (zp_vocabulary_kind_is_collective((ZpKind)work->kind) &&
            instr->phase == ZP_PHASE_BACKWARD && instr->unit != ZP_TAPE_NONE)
            g_string_append_printf(
                figures.collectives, "%s%s %s", figures.collectives->len ? ", " : "",
                zp_vocabulary_kind_name((ZpKind)work->kind),
                (const char *)g_ptr_array_index(tape->unit_names, (guint)instr->unit));
    }
    return figures;
}
