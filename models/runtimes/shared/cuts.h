/* What the model's own cuts communicate, on a tape: rules and papers in models/parallel/parallel.h.
 */
#pragma once

#include "models/job/job.h"
#include "models/words/vocabulary.h"
#include "sim/tape/tape.h"

/* What follows a pass of a layer (ZP_KIND_FORWARD, _RECOMPUTE, _BACKWARD) of a micro-batch,
 * launched on `stream`; nothing without cuts.  The tape's links are in the order of ZpLink. */
void zp_cuts_communicate(const ZpJob *job, ZpTape *tape, guint8 stream, const ZpModelLayer *layer,
                         ZpKind pass);
/* How long that takes. */
ZpTime zp_cuts_duration(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass);

/* Waiting until the other stages have what this one needs: work of the stream without bytes;
 * nothing for 0. */
void zp_cuts_wait(ZpTape *tape, guint8 stream, ZpTime waiting_ps);
/* The residual stream of a micro-batch on its way to the next stage, or its gradient back. */
void zp_cuts_send(const ZpJob *job, ZpTape *tape, guint8 stream);
ZpTime zp_cuts_send_duration(const ZpJob *job);
