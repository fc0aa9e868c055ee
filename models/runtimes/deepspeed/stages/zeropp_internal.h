/* ZeRO++ gradients (qgZ) and MiCS: what they add to stage 3. */
#pragma once

#include "models/runtimes/deepspeed/stages/zero3.h"

/* Quantised gradients need more than one node: else a plain reduce-scatter. */
gboolean zp_ds_quantizes_gradients(const ZpDs *ds);
/* One parameter's gradient, int4: two all-to-alls of payload and scales inside the node, two
 * between nodes; gradients that cannot be cut fall back to a reduce-scatter of their own. */
void zp_ds_quantized_reduce(ZpDsProgram *program, gint32 id, GArray *held);

/* Bytes of qgZ's buffers for one gradient. */
typedef struct {
    gint64 intra_bytes, intra_scale_bytes;
    gint64 inter_bytes, inter_scale_bytes;
    gint64 result_elements;
} ZpDsQuantizedSizes;
ZpDsQuantizedSizes zp_ds_quantized_sizes(gint64 elements, const gint64 *shape, gint32 n_dims,
                                         gint32 ranks, gint32 node_ranks);

/* MiCS: gradients of the replicas are summed once a step, at the boundary. */
void zp_ds_mics_reduce_replicas(ZpDsProgram *program);
