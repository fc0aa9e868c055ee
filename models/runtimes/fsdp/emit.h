/* What the compilers of PyTorch's runtimes share while they write a tape: tags, works and their
 * prices, computation and its activations, the optimizer. */
#pragma once

#include "models/prices/cost.h"
#include "models/runtimes/fsdp/plan.h"
#include "models/runtimes/shared/communicators.h"
#include "models/runtimes/shared/layer_bytes.h"
#include "models/words/vocabulary.h"

enum { ZP_FSDP_GROUP_SHARD, ZP_FSDP_GROUP_REPLICATE, ZP_FSDP_GROUP_POST_FORWARD };

/* The stream of the computation is number 0 in every tape of these runtimes. */
enum { ZP_FSDP_STREAM_DEFAULT };

typedef struct _ZpFsdpScripts ZpFsdpScripts;

typedef struct {
    const ZpFsdpPlan *plan;
    const ZpJob *job; /* NULL: nothing takes time and there are no activations */
    ZpTape *tape;
    ZpCommunicators communicators;
    ZpPhase phase;
    gint16 micro_batch;
    gint64 tokens, pairs;    /* of a micro-batch */
    ZpLayerBytesTable bytes; /* of the job's layers */
    gint32 *kept;            /* by layer: activations (a head's: logits) kept for backward */
    gint32 *recomputed;      /* by layer */
    gboolean *region_done;   /* by region: recomputed in this backward */
    gint32 n_head_storages;  /* of ZpModel.head_events; 0: the head's bytes are a buffer each */
    gint32 *head_storages;
    ZpFsdpScripts *scripts; /* NULL without a job */
    gboolean head_done;     /* a head's backward ran, its layer's step is still to come */
    gint32 loss_due;        /* head whose loss waits for hooks in this pass, or ZP_FSDP_NONE */
    gint32 loss_unit;       /* that the last head is in */
    gboolean loss_done;     /* the loss's backward ran before the head's */
} ZpFsdpEmit;

/* Declares links, groups and units, takes scratch memory. */
void zp_fsdp_emit_init(ZpFsdpEmit *emit, const ZpFsdpPlan *plan, const ZpJob *job, ZpTape *tape);
void zp_fsdp_emit_clear(ZpFsdpEmit *emit);

static inline void
zp_fsdp_emit_tag(ZpFsdpEmit *emit, gint32 unit)
{
    zp_tape_tag(emit->tape, (guint8)emit->phase, emit->micro_batch, unit);
}

/* A device buffer of the tagged unit, made on the host clock; 0 bytes: ZP_TAPE_NONE. */
static inline gint32
zp_fsdp_emit_make(ZpFsdpEmit *emit, int stream, ZpClass class_id, ZpRole role, gint64 bytes,
                  gint32 parameter)
{
    gint32 buffer = zp_tape_make(emit->tape, ZP_TAPE_CLOCK_HOST, (guint8)stream, (guint8)class_id,
                                 (guint8)role, bytes);
    if (buffer != ZP_TAPE_NONE && parameter != ZP_FSDP_NONE)
        emit->tape->buffers[buffer].parameter = parameter;
    return buffer;
}

/* The prologue: what is emitted now was there before the first step; under a job the runtime's
 * overhead is. */
void zp_fsdp_emit_begin(ZpFsdpEmit *emit, int stream);

/* As zp_fsdp_emit_make(), in host memory. */
gint32 zp_fsdp_emit_make_host(ZpFsdpEmit *emit, ZpClass class_id, ZpRole role, gint64 bytes,
                              gboolean pinned);

/* Frees *buffer (if any) into the pool of `stream` and forgets it. */
static inline void
zp_fsdp_emit_drop(ZpFsdpEmit *emit, int stream, gint32 *buffer)
{
    zp_tape_drop(emit->tape, ZP_TAPE_CLOCK_HOST, (guint8)stream, *buffer);
    *buffer = ZP_TAPE_NONE;
}

/* The value for ZpTapeWork.rule; without a job nothing is priced and no work says how. */
static inline guint16
zp_fsdp_emit_rule(ZpFsdpEmit *emit, const char *rule)
{
    return emit->job != NULL ? zp_tape_add_rule(emit->tape, rule) : 0;
}

/* Works, each to be made once and launched as often as needed.  A collective of no bytes is
 * ZP_TAPE_NONE, and launching that does nothing. */
gint32 zp_fsdp_emit_memory_work(ZpFsdpEmit *emit, gint64 moved_bytes);
gint32 zp_fsdp_emit_collective_work(ZpFsdpEmit *emit, ZpKind kind, gint64 bytes, gint8 group);
gint32 zp_fsdp_emit_transfer_work(ZpFsdpEmit *emit, ZpKind kind, gint64 bytes);

static inline void
zp_fsdp_emit_launch(ZpFsdpEmit *emit, int stream, gint32 work)
{
    if (work != ZP_TAPE_NONE)
        zp_communicators_launch(&emit->communicators, emit->tape, (guint8)stream, work);
}

/* `stream` waits for all that was issued to `other` (Stream.wait_stream). */
void zp_fsdp_emit_wait_stream(ZpFsdpEmit *emit, int stream, int other);
static inline void
zp_fsdp_emit_wait(ZpFsdpEmit *emit, int stream, gint32 event)
{
    if (event != ZP_TAPE_NONE)
        zp_tape_wait(emit->tape, (guint8)stream, event);
}

/* Computation of the layers of a step, with their activations; around each layer's kernels lives
 * what one pass of it needs beside what is kept. */
void zp_fsdp_emit_forward(ZpFsdpEmit *emit, const ZpFsdpStep *step);
/* The same, but a head's loss waits for zp_fsdp_emit_loss(): hooks of the unit with the head run
 * between the two.  Nothing waits where the head's storages are not known. */
void zp_fsdp_emit_forward_to_loss(ZpFsdpEmit *emit, const ZpFsdpStep *step);
void zp_fsdp_emit_loss(ZpFsdpEmit *emit);
/* The backward of the last head's loss, if it has not run. */
void zp_fsdp_emit_loss_backward(ZpFsdpEmit *emit);
void zp_fsdp_emit_recompute(ZpFsdpEmit *emit, const ZpFsdpStep *step);
/* The kernels of backward, and afterwards the release of what they used. */
void zp_fsdp_emit_backward(ZpFsdpEmit *emit, const ZpFsdpStep *step);
void zp_fsdp_emit_release(ZpFsdpEmit *emit, const ZpFsdpStep *step);
void zp_fsdp_emit_begin_backward(ZpFsdpEmit *emit);

/* --- for these: a head whose storages are known one by one (emit_head.c) --- */
void zp_fsdp_emit_head_init(ZpFsdpEmit *emit);
/* The head's product and the loss behind it, in a pass; the kernel runs where most lives. */
void zp_fsdp_emit_head_product(ZpFsdpEmit *emit, gint32 layer, gboolean backward);
void zp_fsdp_emit_head_loss(ZpFsdpEmit *emit, gint32 layer, gboolean backward);
void zp_fsdp_emit_head_release(ZpFsdpEmit *emit);
/* --- for all of them: kernels as works, and a layer's in a pass (emit_kernel.c) --- */
gint32 zp_fsdp_emit_kernel_work(ZpFsdpEmit *emit, ZpKind kind, ZpTime duration_ps, double flops,
                                const char *rule);
void zp_fsdp_emit_kernel(ZpFsdpEmit *emit, gint32 layer, ZpKind kind);

/* --- and blocks that are (emit_script.c) --- */
void zp_fsdp_emit_script_init(ZpFsdpEmit *emit);
void zp_fsdp_emit_script_clear(ZpFsdpEmit *emit);
gboolean zp_fsdp_emit_is_scripted(const ZpFsdpEmit *emit, gint32 layer);
/* Forward or recomputation of a layer. */
void zp_fsdp_emit_script_pass(ZpFsdpEmit *emit, gint32 layer, ZpModelPass pass);
/* Its backward up to an event, or (ZP_FSDP_NONE) to its end. */
void zp_fsdp_emit_script_backward(ZpFsdpEmit *emit, gint32 layer, gint32 until);
void zp_fsdp_emit_script_release(ZpFsdpEmit *emit, gint32 layer);
/* What copies of parameters the forward has cached die. */
void zp_fsdp_emit_script_begin_backward(ZpFsdpEmit *emit);
/* A layer that is not known so follows: it counts the stream that it gets as its own. */
void zp_fsdp_emit_script_leave(ZpFsdpEmit *emit);
