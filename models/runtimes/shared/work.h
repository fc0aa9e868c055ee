/* Works of a tape as every compiler fills them in; what only one has, it sets itself.
 *
 * `rule`: as zp_tape_add_rule() numbers it.  Works carry no label. */
#pragma once

#include "models/prices/cost.h"
#include "models/words/vocabulary.h"
#include "sim/tape/tape.h"

/* On the GPU alone, `duration_ps` without neighbours. */
ZpTapeWork zp_work_kernel(ZpKind kind, ZpTime duration_ps, double flops, guint16 rule);

/* Of `bytes` in `group` of the tape, as `cost` prices it. */
ZpTapeWork zp_work_collective(ZpKind kind, gint64 bytes, const ZpCost *cost, int group,
                              guint16 rule);

/* Between the GPU and its host. */
ZpTapeWork zp_work_copy(ZpKind kind, gint64 bytes, const ZpCost *cost, guint16 rule);
