/* Cost models: how long work takes.  Functions of structs: no clock, no state, no I/O.
 *
 * Collectives.  Message bytes S follow nccl-tests (doc/PERFORMANCE.md): the output of an
 * all-gather, the input of a reduce-scatter, the buffer of all others.  Each rank puts on its link
 *
 *     all-reduce                                   2 (n-1)/n S
 *     all-gather, reduce-scatter, all-to-all         (n-1)/n S
 *     broadcast, reduce, send                                S
 *
 * (rings: Thakur, Rabenseifner and Gropp 2005), rounded up to a byte.  Time = latency + wire bytes
 * / bandwidth.  With a tau, x being wire bytes / bandwidth,
 *
 *     T = alpha + x + 1 / sqrt(1 / (tau x) + 1 / fill^2)
 *
 * For short messages that is alpha + x + sqrt(tau x), the time of a pipeline whose chunks have the
 * best size: filling it costs a chunk per hop, cutting it an overhead per chunk.  Chunks of long
 * messages have the largest size instead, which is filled in the same time whatever the length.
 *
 * Algorithms beside the ring, for all-reduce; g GPUs a node, k nodes:
 *     tree          each node sends S over its NICs with two nodes, 2 S with more, and reduces
 *                   inside as the ring or the switch does; one node: 0.92 of the ring's bandwidth
 *     NVLS          the switch reduces: its own bandwidth
 *     hierarchical  inside the node 2 (g-1)/g S on the link, then 2 (k-1)/k S over the NICs of a
 *                   node (all-gather and reduce-scatter: half of each)
 * Left to choose, an all-reduce over more than two nodes takes the faster of ring and tree.
 * A ring visits every rank: hops beyond the first two nodes add their latency, a tree's twice the
 * depth between nodes.  Of the NICs of more than four nodes a ring loses `network_decline` with
 * each doubling; trees keep them (arXiv 2411.13055: 360 GB/s with 4 nodes, 345 with 512).
 * A measured table for the very collective (kind, GPUs a node, nodes) wins over all formulas.
 *
 * Bandwidth.  Ranks are numbered node by node, and member i of a group is rank i x stride (groups
 * start at a node's boundary; with network.rank_stride, place i x stride x rank_stride).  A group
 * inside a node is bound by the scale-up link.  One that spans nodes visits them one after the
 * other, so that a node's NICs carry one flow of the ring in each direction: a group of contiguous
 * ranks (stride 1) has the whole node's network to itself. Groups of stride s come as s interleaved
 * groups, min(s, GPUs per node) of them on every node and active together, and share the NICs: with
 * a member on each node only (s >= GPUs per node) a GPU has the node's network / GPUs per node. The
 * slower of link (where two members share a node) and NIC share bounds the ring.  Without a
 * scale-up link the host link is the path inside a node.
 * Whatever their number, ranks copy the message once in their own memory (`link_copy`); a ring of
 * few puts less on the link beside it and gets less of the link than the eight that
 * `link_efficiency` is of.
 *
 * How well it fits (tests/unit/models/prices/test_cost_fit.c): 25 published tables of A100 to B200,
 * each predicted by parameters fitted to the others, median and 90th percentile of the absolute
 * error
 *
 *     below 1 MiB  6.5 %, 22.8 %     1 to 64 MiB  9.8 %, 28.7 %     above  3.9 %, 11.5 %
 *
 * given the latency of their network (models/prices/fabric.h). */
#pragma once

#include "models/job/job.h"
#include "models/words/vocabulary.h"

/* Which link a collective occupies. */
typedef enum { ZP_LINK_SCALE_UP, ZP_LINK_NETWORK, ZP_LINK_HOST, ZP_N_LINKS } ZpLink;

typedef struct {
    ZpTime fixed_ps, solo_ps; /* latency; transfer alone on the link.  Saturate at ZP_TIME_MAX */
    gint64 wire_bytes;        /* each rank puts on the link; saturates at G_MAXINT64 */
    ZpLink link;
    const char *rule; /* which rule priced it, for ever valid: "ring inside a node" */
} ZpCost;

/* A collective of `bytes` message bytes among `size` ranks, `stride` apart in the world.  size 1
 * costs nothing.  A link of no bandwidth takes for ever (ZP_TIME_MAX). */
ZpCost zp_cost_collective(const ZpNetwork *network, ZpKind kind, gint64 bytes, gint32 size,
                          gint32 stride);

/* Bytes each rank puts on the link (the table above). */
gint64 zp_cost_wire_bytes(ZpKind kind, gint64 bytes, gint32 size);

/* What a ring inside a node gets, per GPU. */
double zp_cost_inside_bytes_per_s(const ZpNetwork *network);

/* Fills latencies, efficiencies, tau, decline and the switch's bandwidth from nominal link and NIC
 * rates: parameters that hold over all platforms of switched GPUs with published measurements (A100
 * to B200, 1 to 16 nodes).  `link` per GPU and direction, `network` per node and direction,
 * `generation` of the GPU (8 Ampere, 9 Hopper, 10 Blackwell): the switch reduces from 9 on.  The
 * network is InfiniBand or RoCE; models/prices/fabric.h has the others. */
void zp_cost_network_defaults(ZpNetwork *network, double link_bytes_per_s,
                              double network_bytes_per_s, int generation);

/* Roofline: max(flops / achieved flops, bytes / achieved bandwidth) + kernel latency (Williams,
 * Waterman and Patterson 2009). */
ZpTime zp_cost_kernel(const ZpDevice *device, double flops, double bytes);
#define ZP_COST_ROOFLINE "roofline of the device"

/* A transfer over the host link: wire bytes = bytes, no latency of its own. */
ZpCost zp_cost_transfer(const ZpNetwork *network, ZpKind kind, gint64 bytes);
