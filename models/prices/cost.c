#include "models/prices/cost.h"

#include <math.h>

#include "models/prices/fabric.h"
#include "models/prices/tables.h"

/* A tree moves data through fewer links at once than a ring (NCCL src/graph/tuning.cc). */
#define TREE_SHARE 0.92
#define NVLS_MIN_GPUS 5
#define DECLINE_FREE_NODES 4.0
#define DECLINE_FLOOR 0.1

/* Where a group lies and what its links can do. */
typedef struct {
    gint32 size, stride, gpus, nodes, members_per_node;
    double link;                  /* bytes per second that a ring of the members gets */
    double network, ring_network; /* of a whole node: trees, rings */
} Path;

/* What an algorithm puts on which link. */
typedef struct {
    double seconds; /* of the bytes alone */
    double hops;    /* seconds of latency beyond what the fixed one holds */
    gboolean crosses;
    const char *rule;
} Price;

static double
seconds_for(double amount, double per_second)
{
    if (amount <= 0.0)
        return 0.0;
    return per_second > 0.0 ? amount / per_second : INFINITY;
}

gint64
zp_cost_wire_bytes(ZpKind kind, gint64 bytes, gint32 size)
{
    if (size <= 1 || bytes <= 0)
        return 0;
    if (kind == ZP_KIND_BROADCAST || kind == ZP_KIND_REDUCE || kind == ZP_KIND_SEND)
        return bytes;
    __int128 passes = kind == ZP_KIND_ALL_REDUCE ? 2 : 1;
    __int128 wire = (passes * (size - 1) * bytes + size - 1) / size;
    return wire > G_MAXINT64 ? G_MAXINT64 : (gint64)wire;
}

double
zp_cost_inside_bytes_per_s(const ZpNetwork *network)
{
    if (network->link_bytes_per_s > 0.0)
        return network->link_bytes_per_s * network->link_efficiency;
    return MIN(network->host_to_device_bytes_per_s, network->device_to_host_bytes_per_s);
}

/* Longer rings and deeper trees wait more often for the slowest NIC. */
static double
decline(const ZpNetwork *network, gint32 nodes)
{
    if (network->network_decline <= 0.0 || nodes <= DECLINE_FREE_NODES)
        return 1.0;
    return MAX(DECLINE_FLOOR, 1.0 - network->network_decline * log2(nodes / DECLINE_FREE_NODES));
}

/* What a ring of `members` gets of the link over what eight get: the copy in a rank's own memory
 * takes the same time in both, the link (n-1)/n of the message's. */
static double
crowd(const ZpNetwork *network, gint32 members)
{
    if (network->link_bytes_per_s <= 0.0 || members <= 1)
        return 1.0;
    double n = members;
    return (1.0 + network->link_copy * 8.0 / 7.0) / (1.0 + network->link_copy * n / (n - 1.0));
}

static Path
find_path(const ZpNetwork *network, gint32 size, gint32 stride)
{
    Path path = {.size = size, .stride = MAX(1, stride), .gpus = MAX(1, network->gpus_per_node)};
    gint64 span = (gint64)(size - 1) * path.stride + 1;
    path.nodes = (gint32)MIN((span + path.gpus - 1) / path.gpus, (gint64)size);
    path.members_per_node = MIN(size, MAX(1, path.gpus / path.stride));
    path.link = zp_cost_inside_bytes_per_s(network) * crowd(network, path.members_per_node);
    path.network = network->network_bytes_per_s * network->network_efficiency /
                   (double)MIN(path.stride, path.gpus);
    path.ring_network = path.network * decline(network, path.nodes);
    return path;
}

/* Latency of the ranks that a ring visits beyond two nodes full of them. */
static double
ring_hops(const ZpNetwork *network, const Path *path, double passes)
{
    double far = MAX(0, path->nodes - 2);
    double near = far * (path->members_per_node - 1);
    return passes * (far * zp_time_to_seconds(network->network_hop_ps) +
                     near * zp_time_to_seconds(network->link_hop_ps));
}

static Price
ring(const ZpNetwork *network, const Path *path, double wire, double passes)
{
    if (path->nodes == 1)
        return (Price){seconds_for(wire, path->link), 0.0, FALSE,
                       network->link_bytes_per_s > 0.0 ? "ring inside a node"
                                                       : "ring inside a node over the host link"};
    gboolean near = path->stride < path->gpus;
    double bytes_per_s = near ? MIN(path->ring_network, path->link) : path->ring_network;
    return (Price){seconds_for(wire, bytes_per_s), ring_hops(network, path, passes), TRUE,
                   path->stride == 1 ? "ring between nodes, one a node"
                                     : "ring between nodes, groups share NICs"};
}

/* Between nodes a tree spans the nodes, and each reduces inside as fast as it can. */
static Price
tree(const ZpNetwork *network, const Path *path, double bytes, double wire)
{
    if (path->nodes == 1)
        return (Price){seconds_for(wire, path->link * TREE_SHARE), 0.0, FALSE,
                       "tree inside a node"};
    double inside = seconds_for(wire, MAX(path->link, network->nvls_bytes_per_s));
    double passes = path->nodes == 2 ? 1.0 : 2.0;
    double between = seconds_for(passes * bytes, path->network);
    if (path->stride >= path->gpus)
        inside = 0.0;
    double depth = 2.0 * log2(path->nodes / 2.0) * zp_time_to_seconds(network->network_hop_ps);
    return (Price){MAX(inside, between), depth, TRUE, "tree between nodes"};
}

static Price
nvls(const ZpNetwork *network, double wire)
{
    return (Price){seconds_for(wire, network->nvls_bytes_per_s), 0.0, FALSE,
                   "reduction in the switch (NVLS)"};
}

/* Inside the nodes first, then one ring for each place in a node; all rings share the NICs. */
static Price
hierarchical(const ZpNetwork *network, const Path *path, ZpKind kind, double bytes)
{
    double passes = kind == ZP_KIND_ALL_REDUCE ? 2.0 : 1.0;
    double near = path->members_per_node, far = path->nodes;
    double inside = seconds_for(passes * (near - 1.0) / near * bytes, path->link);
    double between = seconds_for(passes * (far - 1.0) / far * bytes, path->ring_network);
    double hops = passes * MAX(0.0, far - 2.0) * zp_time_to_seconds(network->network_hop_ps);
    return (Price){inside + between, hops, path->nodes > 1,
                   path->nodes > 1 ? "hierarchical: node, then NICs" : "ring inside a node"};
}

static gboolean
reduces_or_gathers(ZpKind kind)
{
    return kind == ZP_KIND_ALL_REDUCE || kind == ZP_KIND_ALL_GATHER ||
           kind == ZP_KIND_REDUCE_SCATTER;
}

static ZpAlgorithm
choose(const ZpNetwork *network, const Path *path, ZpKind kind)
{
    ZpAlgorithm wanted = network->algorithm;
    gboolean switched = path->nodes == 1 && network->nvls_bytes_per_s > 0.0;
    if (wanted == ZP_ALGORITHM_HIERARCHICAL && reduces_or_gathers(kind))
        return wanted;
    if (kind != ZP_KIND_ALL_REDUCE)
        return ZP_ALGORITHM_RING; /* trees and the switch serve reductions to all */
    if (wanted == ZP_ALGORITHM_AUTO) {
        if (switched && path->size >= NVLS_MIN_GPUS)
            return ZP_ALGORITHM_NVLS;
        if (path->nodes > 2)
            return ZP_ALGORITHM_AUTO;
        return path->nodes == 2 ? ZP_ALGORITHM_TREE : ZP_ALGORITHM_RING;
    }
    if (wanted == ZP_ALGORITHM_NVLS && !switched)
        return ZP_ALGORITHM_TREE;
    return wanted;
}

static Price
faster(Price a, Price b)
{
    return a.seconds + a.hops <= b.seconds + b.hops ? a : b;
}

static Price
price(const ZpNetwork *network, const Path *path, ZpKind kind, gint64 bytes)
{
    double wire = (double)zp_cost_wire_bytes(kind, bytes, path->size);
    Price by_ring = ring(network, path, wire, kind == ZP_KIND_ALL_REDUCE ? 2.0 : 1.0);
    switch (choose(network, path, kind)) {
    case ZP_ALGORITHM_NVLS:
        return nvls(network, wire);
    case ZP_ALGORITHM_TREE:
        return tree(network, path, (double)bytes, wire);
    case ZP_ALGORITHM_HIERARCHICAL:
        return hierarchical(network, path, kind, (double)bytes);
    case ZP_ALGORITHM_AUTO:
        return faster(by_ring, tree(network, path, (double)bytes, wire));
    case ZP_ALGORITHM_RING:
        break;
    }
    return by_ring;
}

/* TRUE where a table knows this collective; below its smallest message the formula's shape holds.
 */
static gboolean
look_up(const ZpNetwork *network, const Path *path, ZpKind kind, gint64 bytes, ZpCost *cost)
{
    if (network->measured == NULL || path->stride != 1 ||
        (path->nodes > 1 && path->size % path->gpus != 0))
        return FALSE;
    gint32 near = path->nodes > 1 ? path->gpus : path->size;
    const ZpCostTable *table = zp_cost_tables_find(network->measured, kind, path->nodes, near);
    if (table == NULL)
        return FALSE;
    double rate = path->nodes > 1 ? network->measured_network_rate : network->measured_link_rate;
    ZpTime time =
        zp_time_from_seconds(zp_cost_table_seconds(table, bytes) / (rate > 0.0 ? rate : 1.0));
    gint64 first_bytes = g_array_index(table->points, ZpCostPoint, 0).bytes;
    if (bytes < first_bytes) {
        double x = price(network, path, kind, bytes).seconds;
        double first = price(network, path, kind, first_bytes).seconds;
        ZpTime saved = zp_time_from_seconds(first - x);
        time = MAX(cost->fixed_ps, time - MIN(time, saved));
    }
    cost->fixed_ps = MIN(cost->fixed_ps, time);
    cost->solo_ps = time - cost->fixed_ps;
    cost->rule = table->rule;
    return TRUE;
}

/* Chunks of the best size cost the root of `square`; the largest chunk, `fill` seconds (0: none).
 */
static double
pipeline(double square, double fill)
{
    double best = sqrt(square);
    return fill > 0.0 ? 1.0 / hypot(1.0 / best, 1.0 / fill) : best;
}

static ZpCost
one_message(const ZpNetwork *network, ZpKind kind, gint64 bytes, gint32 size, gint32 stride)
{
    Path path = find_path(network, size, stride);
    Price found = price(network, &path, kind, bytes);
    ZpCost cost = {.wire_bytes = zp_cost_wire_bytes(kind, bytes, size), .rule = found.rule};
    cost.fixed_ps =
        zp_time_add(found.crosses ? network->network_latency_ps : network->link_latency_ps,
                    zp_time_from_seconds(found.hops));
    cost.link = found.crosses                     ? ZP_LINK_NETWORK
                : network->link_bytes_per_s > 0.0 ? ZP_LINK_SCALE_UP
                                                  : ZP_LINK_HOST;
    if (look_up(network, &path, kind, bytes, &cost))
        return cost;
    double tau = zp_time_to_seconds(found.crosses ? network->network_tau_ps : network->link_tau_ps);
    double fill = found.crosses ? zp_time_to_seconds(network->network_fill_ps) : 0.0;
    cost.solo_ps = zp_time_from_seconds(found.seconds + pipeline(tau * found.seconds, fill));
    return cost;
}

/* Every owner of a partition sends its piece to all, or gets it reduced from all, in turn. */
static ZpCost
piece_by_piece(const ZpNetwork *network, ZpKind kind, gint64 bytes, gint32 size, gint32 stride)
{
    gint64 count = (bytes - 1) / network->piece_bytes + 1;
    ZpKind one = kind == ZP_KIND_ALL_GATHER ? ZP_KIND_BROADCAST : ZP_KIND_REDUCE;
    ZpCost cost = one_message(network, one, bytes / count, size, stride);
    double fixed = zp_time_to_seconds(cost.fixed_ps), solo = zp_time_to_seconds(cost.solo_ps);
    cost.fixed_ps = zp_time_from_seconds(fixed * (double)count);
    cost.solo_ps = zp_time_from_seconds(solo * (double)count);
    cost.wire_bytes = bytes;
    cost.rule =
        kind == ZP_KIND_ALL_GATHER ? "a broadcast for each owner" : "a reduction for each owner";
    return cost;
}

ZpCost
zp_cost_collective(const ZpNetwork *network, ZpKind kind, gint64 bytes, gint32 size, gint32 stride)
{
    if (size <= 1)
        return (ZpCost){.link = ZP_LINK_SCALE_UP, .rule = "one rank: nothing to send"};
    stride *= MAX(1, network->rank_stride);
    if (network->piece_bytes > 0 && bytes > network->piece_bytes &&
        (kind == ZP_KIND_ALL_GATHER || kind == ZP_KIND_REDUCE_SCATTER))
        return piece_by_piece(network, kind, bytes, size, stride);
    return one_message(network, kind, bytes, size, stride);
}

/* The switch's share of the link on Blackwell over that on Hopper: channels, their bandwidth and
 * efficiency in NCCL src/graph/tuning.cc give 829 of 900 and 476 of 450 GB/s. */
#define NVLS_BLACKWELL ((829.0 / 900.0) / (476.0 / 450.0))

void
zp_cost_network_defaults(ZpNetwork *network, double link_bytes_per_s, double network_bytes_per_s,
                         int generation)
{
    network->link_bytes_per_s = link_bytes_per_s;
    network->network_bytes_per_s = network_bytes_per_s;
    network->link_efficiency = 0.81; /* of eight GPUs */
    network->link_copy = 0.14;
    network->network_efficiency = 0.94;
    network->link_latency_ps = 39 * ZP_TIME_PER_US; /* 16 in the library, 23 to launch from torch */
    network->link_tau_ps = 13 * ZP_TIME_PER_US;
    network->network_fill_ps = 243 * ZP_TIME_PER_US;
    zp_cost_network_fabric(network, NULL);
    network->network_decline = 0.055; /* NVIDIA/nccl issue 1229: 360 to 260 GB/s, 4 to 128 nodes */
    network->link_hop_ps = 1250 * (ZP_TIME_PER_US / 1000);    /* middle of 0.6 to 1.9 us */
    network->network_hop_ps = 8350 * (ZP_TIME_PER_US / 1000); /* middle of 2.7 to 14 us */
    network->algorithm = ZP_ALGORITHM_AUTO;
    network->nvls_bytes_per_s = 0.0;
    if (generation >= 9)
        network->nvls_bytes_per_s =
            1.06 * (generation >= 10 ? NVLS_BLACKWELL : 1.0) * link_bytes_per_s;
}

ZpTime
zp_cost_kernel(const ZpDevice *device, double flops, double bytes)
{
    double compute = seconds_for(flops, device->flops_per_s * device->flops_efficiency);
    double memory = seconds_for(bytes, device->memory_bytes_per_s * device->memory_efficiency);
    return zp_time_add(zp_time_from_seconds(MAX(compute, memory)), device->kernel_latency_ps);
}

ZpCost
zp_cost_transfer(const ZpNetwork *network, ZpKind kind, gint64 bytes)
{
    gboolean up = kind == ZP_KIND_HOST_TO_DEVICE;
    double bytes_per_s =
        up ? network->host_to_device_bytes_per_s : network->device_to_host_bytes_per_s;
    return (ZpCost){
        .solo_ps = zp_time_from_seconds(seconds_for((double)bytes, bytes_per_s)),
        .wire_bytes = MAX(bytes, 0),
        .link = ZP_LINK_HOST,
        .rule = up ? "host to device" : "device to host",
    };
}
