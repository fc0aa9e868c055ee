/* The closed-form ledger: bytes per rank by tensor class, computed without playing anything.
 *
 * Independent of the engine on purpose: the simulation must agree with it at step boundaries, and
 * neither may call the other.  Stage rules: Rajbhandari et al., ZeRO (arXiv 1910.02054), section 3
 * and figure 1; padding: ceiling division per unit. */
#pragma once

#include "models/job.h"
#include "models/vocabulary.h"
#include "models/wrapping.h"

typedef struct {
    ZpClass class_id;
    const char *name; /* "parameters", "gradients", "master weights", "momentum", "variance" */
    ZpDtype dtype;
    double bytes_per_element;
    int copies;              /* tensors of this kind (normally 1) */
    gint32 owners;           /* ranks that share one copy: 1 = replicated */
    gint64 elements;         /* per rank, without padding share */
    gint64 padding_bytes;    /* part of persistent_bytes that is padding (and scales) */
    gint64 persistent_bytes; /* per rank */
    const char *evidence;
} ZpLedgerRow;

#define ZP_LEDGER_MAX_ROWS 8

typedef struct {
    ZpLedgerRow rows[ZP_LEDGER_MAX_ROWS];
    int n_rows;
    gint64 persistent_bytes;
    /* Communication peak of the ideal runtime. */
    gint64 gathered_bytes;   /* largest gathered unit: the remote shards a rank lacks */
    gint64 prefetched_bytes; /* units gathered ahead of it, at the worst place */
    gint64 bucket_bytes;     /* gradient buckets in flight */
    /* Activations at their maximum. */
    gint64 activation_bytes, logits_bytes;
    gint64 optimizer_temporary_bytes;
    gint64 overhead_bytes; /* runtime overhead, declared or measured */
    gint64 contingency_bytes;
    gint64 total_bytes; /* sum of all the above: an upper bound, its parts need not coincide */
    gint64 capacity_bytes;
    gint64 headroom_bytes; /* capacity - total; negative: does not fit */
    gboolean fits;         /* TRUE when capacity is 0 (unlimited) */
} ZpLedger;

/* `units` as wrapped for this job. */
void zp_ledger_compute(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger);
