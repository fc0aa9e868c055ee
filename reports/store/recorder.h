/* A recorder: keeps what an observer sees of one play in memory, for the database and the trace. */
#pragma once

#include "sim/players/observer.h"

typedef struct _ZpRecorder ZpRecorder;

/* Records rank 0. */
ZpRecorder *zp_recorder_new(void);
void zp_recorder_free(ZpRecorder *recorder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpRecorder, zp_recorder_free)

/* Forgets what was recorded, keeps the memory for the next play. */
void zp_recorder_clear(ZpRecorder *recorder);

/* What to hand to the player; owned by the recorder. */
const ZpObserver *zp_recorder_observer(ZpRecorder *recorder);

/* Puts what was recorded of a complete play on the device's clock.  Frameworks allocate in the
 * order of the host, which runs far ahead of the device: a step's whole memory would stand in its
 * first milliseconds.  Such a change belongs where the compute streams have done what was launched
 * before it; that keeps the order, and with it every peak.  Changes that the device decides stay.
 */
void zp_recorder_settle(ZpRecorder *recorder, const ZpTape *tape);

/* In the order they were reported: spans by their end, changes by time. */
const ZpObserverSpan *zp_recorder_spans(const ZpRecorder *recorder, gsize *n);
const ZpObserverChange *zp_recorder_changes(const ZpRecorder *recorder, gsize *n);
/* Empty where the job had no allocator. */
const ZpObserverPools *zp_recorder_pools(const ZpRecorder *recorder, gsize *n);

/* How the exposed time (communication or copies running, compute not) is shared out: each instant
 * goes to the work that started first among those running, ties to the earlier instruction, so
 * that the parts of one rank sum to that rank's exposed time.  n_spans values in the order of
 * zp_recorder_spans(); free with g_free(). */
ZpTime *zp_recorder_exposed(const ZpRecorder *recorder, const ZpTape *tape);

/* The step an instruction belongs to, 0-based; ZP_TAPE_NONE in the prologue. */
gint32 zp_recorder_step_of(const ZpTape *tape, gint32 instr);
