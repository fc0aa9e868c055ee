/* Cost models: how long work takes.  Functions of structs: no clock, no state, no I/O. */
#pragma once

#include "models/job.h"
#include "models/vocabulary.h"

/* Which link a collective occupies. */
typedef enum { ZP_LINK_SCALE_UP, ZP_LINK_NETWORK, ZP_LINK_HOST, ZP_N_LINKS } ZpLink;

typedef struct {
    ZpTime fixed_ps, solo_ps;
    gint64 wire_bytes; /* each rank puts on the link */
    ZpLink link;
    const char *rule; /* which rule priced it: "ring inside a node" */
} ZpCost;

/* A collective of `bytes` message bytes (nccl-tests convention: all-gather output, reduce-scatter
 * input, all-reduce buffer) among `size` ranks, `stride` apart in the world.  Ring: wire bytes
 * (n-1)/n x bytes (twice for all-reduce); time = latency + wire / bandwidth, the bandwidth of the
 * slowest link on the ring.  size 1 costs nothing.  Source: semantics of nccl-tests
 * doc/PERFORMANCE.md; Thakur et al. 2005 for the ring. */
ZpCost zp_cost_collective(const ZpNetwork *network, ZpKind kind, gint64 bytes, gint32 size,
                          gint32 stride);
/* Roofline: max(flops / achieved flops, bytes / achieved bandwidth) + kernel latency. */
ZpTime zp_cost_kernel(const ZpDevice *device, double flops, double bytes);
/* A transfer over the host link. */
ZpCost zp_cost_transfer(const ZpNetwork *network, ZpKind kind, gint64 bytes);
