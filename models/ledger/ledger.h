/* The closed-form ledger: bytes per rank by tensor class, computed without playing anything.
 *
 * Independent of the engine on purpose: the simulation must agree with it at step boundaries, and
 * neither may call the other.
 *
 * Persistent rows (Rajbhandari et al., ZeRO, arXiv 1910.02054, section 5 and figure 1): the shard
 * group divides optimizer state from stage 1, gradients from stage 2, parameters from stage 3, each
 * unit by ceiling division.  Gradients and optimizer state exist for trainable parameters alone.
 *
 * The communication peak is that of the ideal runtime, stated here independently:
 *  - a gathered unit takes its padded elements in the gathered dtype, without the rank's own shard
 *    when that has the same dtype (gathered in place).  While a unit is opened, all units whose
 *    span of use includes that layer are gathered, and up to the prefetch depth of the next ones in
 *    order of first use (backward: of last use).  Without resharding after forward all units are.
 *  - gradients are staged in the reduce dtype, unit by unit backwards, from the last layer of a
 *    unit to its first, then in its bucket until that is reduced; a bucket closes when it holds
 *    bucket_elements or more.  With overlap the bucket before is still in flight while one fills
 *    (also the last one of the micro-batch before, where every micro-batch reduces).  Stage 0 does
 *    not pad.  A world of one rank reduces nothing.
 *  - activations (ZpModelPolicyBytes): what the checkpointing policy keeps of all layers, of every
 *    micro-batch that a pipeline's stage keeps at a time (zp_parallel_in_flight()), and beside it
 *    the most of what one layer needs in forward, or in recomputation and backward together with
 *    what was brought back of its block so far.  The head's, as logits, likewise, of one
 *    micro-batch. */
#pragma once

#include "models/job/job.h"
#include "models/job/wrapping.h"
#include "models/words/vocabulary.h"

typedef struct {
    ZpClass class_id;
    const char *name; /* "parameters", "gradients", "master weights", "momentum", "variance" */
    ZpDtype dtype;
    double bytes_per_element;
    int copies;              /* tensors of this kind (normally 1) */
    gint32 owners;           /* ranks that share one copy: 1 = replicated */
    gint64 elements;         /* per rank: all elements / owners, rounded down */
    gint64 padding_bytes;    /* part of persistent_bytes beyond those: padding, scales */
    gint64 persistent_bytes; /* per rank */
    const char *evidence;
} ZpLedgerRow;

#define ZP_LEDGER_MAX_ROWS 8

typedef struct {
    ZpLedgerRow rows[ZP_LEDGER_MAX_ROWS];
    int n_rows;
    gint64 persistent_bytes;
    /* Communication peak of the ideal runtime. */
    gint64 gathered_bytes;   /* gathered units in use, at the worst place */
    gint64 prefetched_bytes; /* units gathered ahead of them, at the same place */
    gint64 bucket_bytes;     /* gradient buckets in flight */
    /* Activations at their maximum. */
    gint64 activation_bytes, logits_bytes;
    gint64 optimizer_temporary_bytes;
    gint64 overhead_bytes; /* runtime overhead, declared or measured */
    gint64 contingency_bytes;
    gint64 total_bytes; /* sum of all the above: an upper bound, its parts need not coincide */
    gint64 capacity_bytes;
    gint64 headroom_bytes; /* capacity - total; negative: does not fit; 0 when unlimited */
    gboolean fits;         /* TRUE when capacity is 0 (unlimited) */
} ZpLedger;

/* `units` as wrapped for this job.  Figures too large for int64 saturate: see zp_ledger_check(). */
void zp_ledger_compute(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger);

/* Refuses what no ledger can state: worlds and stages that do not exist, negative amounts, and
 * figures that overflow int64 bytes (the message names the figure). */
gboolean zp_ledger_check(const ZpJob *job, const ZpUnits *units, GError **error);

typedef enum { ZP_LEDGER_ERROR_INVALID, ZP_LEDGER_ERROR_OVERFLOW } ZpLedgerError;
#define ZP_LEDGER_ERROR (zp_ledger_error_quark())
GQuark zp_ledger_error_quark(void);
