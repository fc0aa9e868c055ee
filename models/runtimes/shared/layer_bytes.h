/* What the layers of a job hold, in bytes: the forms of ZpModelActivation weighed with the job's
 * micro-batch and sequence, once for each distinct entry.
 *
 * For runtimes.  The ledger (models/ledger/ledger.h) and the checks weigh the forms on their own.
 */
#pragma once

#include "models/job/job.h"

/* By the policy that holds for the layer; see ZpModelPolicyBytes. */
typedef struct {
    gint64 kept_bytes, recomputed_bytes;
    gint64 forward_bytes, recompute_bytes, backward_bytes; /* beside those, at the worst instant */
} ZpLayerBytes;

typedef struct {
    const ZpModel *model;
    ZpLayerBytes *entries; /* by entry: under the job's policy, then with nothing recomputed */
} ZpLayerBytesTable;

/* A form at a micro-batch of `micro_batch` sequences of `sequence` tokens: at least 0, and
 * G_MAXINT64 where it does not fit (zp_step_simulate() refuses such jobs). */
gint64 zp_layer_bytes_weigh(const ZpModelBytes *form, gint64 micro_batch, gint64 sequence);

void zp_layer_bytes_init(ZpLayerBytesTable *table, const ZpJob *job);
void zp_layer_bytes_clear(ZpLayerBytesTable *table);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpLayerBytesTable, zp_layer_bytes_clear)

/* Checkpointing is of blocks: a layer outside them keeps everything. */
const ZpLayerBytes *zp_layer_bytes_get(const ZpLayerBytesTable *table, gint32 layer);
