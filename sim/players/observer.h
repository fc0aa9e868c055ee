/* What a recorder sees of a play: the only thing reports know of the engine. */
#pragma once

#include "sim/tape/tape.h"

typedef struct {
    ZpTime start, end;
    gint32 instr; /* the LAUNCH in tape->instrs */
    gint32 rank;
} ZpObserverSpan;

typedef struct {
    ZpTime time;
    gint64 delta_bytes; /* 0 for RETAG */
    gint64 total_bytes; /* of the space, after the change */
    gint64 class_bytes; /* of class_id, after the change */
    gint32 instr;       /* ALLOC, FREE or RETAG in tape->instrs */
    gint32 rank;
    guint8 class_id; /* the class that changed; RETAG reports two: the class left, then the new */
    guint8 space;    /* ZpTapeSpace */
} ZpObserverChange;

/* What a caching allocator beside the play holds (sim/allocator/allocator.h), whenever a figure
 * changes. */
typedef struct {
    ZpTime time;
    gint64 allocated_bytes, active_bytes, reserved_bytes;
    gint32 instr; /* that changed it */
} ZpObserverPools;

/* Callbacks may be NULL.  Spans (by their end) and changes come merged in order of time, ties in
 * order of instruction, then of rank.  The pointers are valid during the call only. */
typedef struct {
    void (*span)(const ZpTape *tape, const ZpObserverSpan *span, gpointer data);
    void (*change)(const ZpTape *tape, const ZpObserverChange *change, gpointer data);
    gpointer data;
    gint32 rank; /* the rank observed; ZP_TAPE_NONE observes all */
    /* Of rank 0; players know no allocator and never call it. */
    void (*pools)(const ZpTape *tape, const ZpObserverPools *pools, gpointer data);
} ZpObserver;
