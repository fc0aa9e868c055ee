/* The numbered statements about DeepSpeed computed by hand: micro-model M has parameters of 1000,
 * 501 and 7 elements, one group, bf16, four ranks. */
#pragma once

#include "tests/unit/deepspeed_fixture.h"

static const gint64 m_sizes[] = {1000, 501, 7};

static inline void
fixture_m(DsFixture *f, int stage)
{
    ZpModel *model = ds_model_m();
    ds_fixture_init(f, model, 4, stage);
    f->owned = model;
    f->settings.param_persistence_elements = 0;
    f->settings.rank = 0;
}

static inline gint64
live_after_step(const DsFixture *f)
{
    DsMemory memory;
    ds_play_memory(f->tape, f->tape->n_instrs, &memory);
    return memory.total[ZP_TAPE_SPACE_DEVICE];
}

static inline gint64
live_before_steps(const DsFixture *f)
{
    DsMemory memory;
    ds_play_memory(f->tape, f->tape->step_begin[0], &memory);
    return memory.total[ZP_TAPE_SPACE_DEVICE];
}

/* Most bytes of one role alive at once in the steps. */
static inline gint64
role_peak(const ZpTape *tape, ZpClass class_id, ZpRole role)
{
    gint64 now = 0, peak = 0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        if (buffer->class_id != class_id || buffer->role != role)
            continue;
        now += instr->op == ZP_TAPE_ALLOC ? buffer->bytes : -buffer->bytes;
        peak = MAX(peak, now);
    }
    return peak;
}

static inline void
expect_sizes(const DsFixture *f, ZpKind kind, ZpPhase phase, int width, guint n,
             const gint64 *expected)
{
    g_autoptr(GArray) sizes = ds_collectives(f->tape, kind, phase, width);
    ds_assert_sizes(sizes, n, expected);
}

/* Bytes of gradient temporaries at the cast and while the optimizer's first kernel runs. */
static inline void
step_transient(DsFixture *f, gint64 *cast, gint64 *during)
{
    gint64 now = 0, peak = 0;
    *during = -1;
    for (gint32 i = f->tape->step_begin[0]; i < f->tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &f->tape->instrs[i];
        if (instr->op == ZP_TAPE_LAUNCH &&
            f->tape->works[instr->a].kind == (gint16)ZP_KIND_OPTIMIZER && *during < 0)
            *during = now;
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        const ZpTapeBuffer *buffer = &f->tape->buffers[instr->a];
        /* The norm's fp64 copies are at most 8 x 250 bytes, one at a time. */
        if (buffer->class_id != ZP_CLASS_OPTIMIZER_TEMPORARY)
            continue;
        now += instr->op == ZP_TAPE_ALLOC ? buffer->bytes : -buffer->bytes;
        peak = MAX(peak, now);
    }
    *cast = peak;
}
