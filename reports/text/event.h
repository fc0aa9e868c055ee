/* Words for one instruction of a tape: the event at the peak, for people. */
#pragma once

#include "sim/tape/tape.h"

typedef struct {
    const char *op;     /* "alloc", "free", "retag", "launch", ... */
    const char *stream; /* its stream, or the stream whose pool the buffer belongs to */
    const char *phase;
    const char *unit;       /* or NULL */
    const char *class_name; /* of the buffer after the instruction; NULL unless it has one */
    const char *role;       /* likewise; "" where there is no finer name */
    gint64 bytes;           /* of the buffer or message */
    /* What is queued next on that stream: what a buffer was allocated for.  NULL when nothing is.
     * For a launch its own kind. */
    const char *kind;
    gint32 micro_batch; /* or ZP_TAPE_NONE */
} ZpEvent;

void zp_event_fill(const ZpTape *tape, gint32 instr, ZpEvent *event);

/* "alloc of 436207616 bytes, gathered parameter (all-gather output), for all-gather on stream
 * gather"; ZP_TAPE_NONE gives "nothing allocated". */
char *zp_event_text(const ZpTape *tape, gint32 instr);
