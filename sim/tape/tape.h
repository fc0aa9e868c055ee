/* The tape: one training step as data.
 *
 * A framework's step is decided by a host thread that allocates and frees memory,
 * launches work on in-order streams, records and waits for events and now and then
 * blocks.  Those decisions do not depend on the clock, so a runtime *compiles* them into
 * a flat array of instructions and the players give them time.  The tape is shared by
 * all ranks that run the same program.
 *
 * Meaning of the instructions (the players must agree on it exactly):
 *
 *   ALLOC  buffer    the buffer becomes live.
 *   FREE   buffer    it stops being live; every buffer is freed at most once, after its ALLOC.
 *   RETAG  buffer    a live buffer changes its tensor class and role (a reduce-scatter output
 *                    becomes the gradient): b = class | role << 8.  No bytes move.
 *          With clock HOST these three happen when the host executes the instruction.  With
 *          clock DEVICE they are queued on `stream` and happen in stream order, in zero time.
 *   USE    buffer    the work so far on `stream` uses a buffer of another stream
 *                    (record_stream): only an allocator model cares.
 *   LAUNCH work      queues work on `stream`; it runs when the host has launched it, all earlier
 *                    items of the stream are done and, for a collective, every rank of its group
 *                    has arrived.
 *   RECORD event     queued on `stream`: the event happens when all earlier items are done.
 *   WAIT   event     queued on `stream`: later items of the stream wait for the event.
 *   SYNC   event     the host blocks until the event has happened.
 *
 * Every event is recorded exactly once, before any WAIT or SYNC on it in tape order.
 * Buffers that are never freed are persistent.  A tape holds a prologue (persistent
 * allocations; instructions before step_begin[0]) and one or more steps. */
#pragma once

#include "sim/events/time.h"

typedef enum {
    ZP_TAPE_ALLOC,
    ZP_TAPE_FREE,
    ZP_TAPE_RETAG,
    ZP_TAPE_USE,
    ZP_TAPE_LAUNCH,
    ZP_TAPE_RECORD,
    ZP_TAPE_WAIT,
    ZP_TAPE_SYNC,
} ZpTapeOp;

typedef enum {
    ZP_TAPE_CLOCK_HOST,
    ZP_TAPE_CLOCK_DEVICE,
} ZpTapeClock;

#define ZP_TAPE_MAX_STREAMS 16
#define ZP_TAPE_MAX_LINKS 8
#define ZP_TAPE_MAX_GROUPS 8
#define ZP_TAPE_MAX_CLASSES 32 /* tensor classes; names come from the compiler's vocabulary */
#define ZP_TAPE_NONE (-1)

typedef struct {
    guint8 op;          /* ZpTapeOp */
    guint8 clock;       /* ZpTapeClock; ALLOC, FREE and RETAG only */
    guint8 stream;      /* index into streams; for HOST clock the stream whose pool it belongs to */
    guint8 phase;       /* index into vocabulary->phases */
    gint16 micro_batch; /* 0-based, or ZP_TAPE_NONE */
    gint16 b;           /* RETAG: new class | new role << 8 */
    gint32 unit;        /* index into unit names, or ZP_TAPE_NONE */
    gint32 a;           /* buffer, work or event */
} ZpTapeInstr;

/* Where a buffer lives. */
typedef enum {
    ZP_TAPE_SPACE_DEVICE,
    ZP_TAPE_SPACE_HOST,
    ZP_TAPE_N_SPACES,
} ZpTapeSpace;

typedef struct {
    gint64 bytes;
    gint32 unit;      /* or ZP_TAPE_NONE */
    guint8 class_id;  /* tensor class at ALLOC */
    guint8 space;     /* ZpTapeSpace */
    guint8 pinned;    /* host space only */
    guint8 role;      /* finer name than the class: index into vocabulary->roles */
    gint32 parameter; /* index of a parameter in the model, or ZP_TAPE_NONE (detail for people) */
} ZpTapeBuffer;

/* What work occupies; also how overlapping works slow one another down. */
typedef enum {
    ZP_TAPE_COMPUTE,
    ZP_TAPE_COMMUNICATION, /* collectives */
    ZP_TAPE_COPY,          /* transfers between device and host, device copies */
    ZP_TAPE_HOST_COMPUTE,  /* work of the CPU (an offloaded optimizer) */
    ZP_TAPE_N_CATEGORIES,
} ZpTapeCategory;

typedef struct {
    ZpTime fixed_ps;   /* latency: not shared, not slowed by sharing */
    ZpTime solo_ps;    /* time of the rest when nothing else runs on the link */
    gint64 bytes;      /* message bytes as reported (nccl-tests convention), 0 for kernels */
    gint64 wire_bytes; /* bytes this rank puts on the link, 0 for kernels */
    double flops;      /* floating-point operations, for reports only */
    gint16 kind;       /* index into vocabulary->kinds */
    gint8 link;        /* index into links, or ZP_TAPE_NONE: occupies no link */
    gint8 group;       /* index into groups: a rendezvous of that group; ZP_TAPE_NONE: local */
    guint8 category;   /* ZpTapeCategory */
    guint16 rule;      /* how its times were found: 1 + index into rules; 0: not said */
    gint32 label;      /* index into labels, or ZP_TAPE_NONE */
    gint32 ranks; /* local work that stands for several ranks: how many, for reports only; else 0 */
} ZpTapeWork;

/* A partition of the ranks into groups of `size`, members `stride` apart: ranks r and q are in
 * the same group iff r / (size * stride) == q / (size * stride) and r % stride == q % stride. */
typedef struct {
    gint32 size;
    gint32 stride;
} ZpTapeGroup;

typedef struct {
    const char *name; /* static or interned */
    guint8 category;  /* ZpTapeCategory: what mostly runs there (plots, exposed time) */
} ZpTapeStream;

/* Names as small integers, so that the tape stays numbers.  Borrowed: must outlive the tape. */
typedef struct {
    const char *const *classes; /* n_classes <= ZP_TAPE_MAX_CLASSES */
    const char *const *phases;
    const char *const *kinds;
    const char *const *roles;
    int n_classes, n_phases, n_kinds, n_roles;
} ZpTapeVocabulary;

typedef struct {
    const ZpTapeVocabulary *vocabulary;
    ZpTapeInstr *instrs;
    ZpTapeBuffer *buffers;
    ZpTapeWork *works;
    gint32 *step_begin; /* n_steps entries: index of the first instruction of each step */
    gint32 n_instrs, n_buffers, n_works, n_events, n_steps;
    ZpTapeStream streams[ZP_TAPE_MAX_STREAMS];
    const char *links[ZP_TAPE_MAX_LINKS];
    ZpTapeGroup groups[ZP_TAPE_MAX_GROUPS];
    int n_streams, n_links, n_groups;
    GPtrArray *unit_names; /* of interned or static strings: not owned */
    GPtrArray *labels;     /* of interned or static strings: not owned */
    GPtrArray *rules;      /* likewise, each once */
    /* Tags for the instructions that follow; set by zp_tape_tag(). */
    guint8 phase;
    gint16 micro_batch;
    gint32 unit;
    /* capacities of the arrays above; private */
    gint32 cap_instrs, cap_buffers, cap_works, cap_steps;
} ZpTape;

ZpTape *zp_tape_new(const ZpTapeVocabulary *vocabulary);
void zp_tape_free(ZpTape *tape);
/* Empties the tape but keeps its memory: a sweep compiles thousands of tapes into one. */
void zp_tape_clear(ZpTape *tape);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpTape, zp_tape_free)

/* Declarations.  Each returns the new index; names are borrowed (static or interned). */
guint8 zp_tape_add_stream(ZpTape *tape, const char *name, ZpTapeCategory category);
gint8 zp_tape_add_link(ZpTape *tape, const char *name);
gint8 zp_tape_add_group(ZpTape *tape, gint32 size, gint32 stride);
gint32 zp_tape_add_unit(ZpTape *tape, const char *name);
gint32 zp_tape_add_label(ZpTape *tape, const char *label);
/* The value for ZpTapeWork.rule; 0 for NULL.  Equal texts give the same one. */
guint16 zp_tape_add_rule(ZpTape *tape, const char *rule);
/* NULL where the work does not say. */
const char *zp_tape_rule(const ZpTape *tape, const ZpTapeWork *work);
/* The buffer's unit is the current tag. */
gint32 zp_tape_add_buffer(ZpTape *tape, guint8 class_id, guint8 role, gint64 bytes);
gint32 zp_tape_add_work(ZpTape *tape, const ZpTapeWork *work);
gint32 zp_tape_add_event(ZpTape *tape);

/* Tags carried by the instructions that follow. */
void zp_tape_tag(ZpTape *tape, guint8 phase, gint16 micro_batch, gint32 unit);
/* The instructions that follow are a new step. */
void zp_tape_begin_step(ZpTape *tape);

/* Instructions, in host order. */
void zp_tape_alloc(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer);
void zp_tape_free_buffer(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer);
void zp_tape_retag(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer, guint8 class_id,
                   guint8 role);
void zp_tape_use(ZpTape *tape, guint8 stream, gint32 buffer);
void zp_tape_launch(ZpTape *tape, guint8 stream, gint32 work);
/* Records a new event and returns it. */
gint32 zp_tape_record(ZpTape *tape, guint8 stream);
void zp_tape_wait(ZpTape *tape, guint8 stream, gint32 event);
void zp_tape_sync(ZpTape *tape, gint32 event);

/* Conveniences: buffer of `bytes` of `class_id`, allocated at once; 0 bytes give ZP_TAPE_NONE and
 * no instruction, and zp_tape_drop() of ZP_TAPE_NONE does nothing. */
gint32 zp_tape_make(ZpTape *tape, ZpTapeClock clock, guint8 stream, guint8 class_id, guint8 role,
                    gint64 bytes);
void zp_tape_drop(ZpTape *tape, ZpTapeClock clock, guint8 stream, gint32 buffer);

typedef enum {
    ZP_TAPE_ERROR_BUFFER, /* freed twice, freed before or without ALLOC, allocated twice */
    ZP_TAPE_ERROR_EVENT,  /* waited for before or without RECORD, recorded twice */
    ZP_TAPE_ERROR_RANGE,  /* an index outside its table, negative bytes or times */
    ZP_TAPE_ERROR_LEAK,   /* a step's buffer outlives its step and is not declared persistent */
} ZpTapeError;
#define ZP_TAPE_ERROR (zp_tape_error_quark())
GQuark zp_tape_error_quark(void);

/* Checks the rules above.  With `check_leaks`, also that every buffer allocated in a step (not in
 * the prologue) whose class is outside `persistent_classes` (bit set) is freed in that step. */
gboolean zp_tape_check(const ZpTape *tape, gboolean check_leaks, guint32 persistent_classes,
                       GError **error);

/* One line per instruction, stable: golden files and reviews diff it. */
void zp_tape_dump(const ZpTape *tape, GString *out);
