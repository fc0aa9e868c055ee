#include "models/cost.h"

#include <math.h>

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
    if (kind == ZP_KIND_BROADCAST || kind == ZP_KIND_REDUCE)
        return bytes;
    __int128 passes = kind == ZP_KIND_ALL_REDUCE ? 2 : 1;
    __int128 wire = (passes * (size - 1) * bytes + size - 1) / size;
    return wire > G_MAXINT64 ? G_MAXINT64 : (gint64)wire;
}

static double
inside_node_bytes_per_s(const ZpNetwork *network)
{
    if (network->link_bytes_per_s > 0.0)
        return network->link_bytes_per_s * network->link_efficiency;
    return MIN(network->host_to_device_bytes_per_s, network->device_to_host_bytes_per_s);
}

/* A ring over several nodes: its share of a node's NICs, and the link where members are near. */
static double
between_nodes_bytes_per_s(const ZpNetwork *network, gint32 stride, gint32 gpus)
{
    double share =
        network->network_bytes_per_s * network->network_efficiency / (double)MIN(stride, gpus);
    return stride < gpus ? MIN(share, inside_node_bytes_per_s(network)) : share;
}

ZpCost
zp_cost_collective(const ZpNetwork *network, ZpKind kind, gint64 bytes, gint32 size, gint32 stride)
{
    ZpCost cost = {.link = ZP_LINK_SCALE_UP, .rule = "one rank: nothing to send"};
    if (size <= 1)
        return cost;
    gint32 step = MAX(1, stride);
    gint32 gpus = MAX(1, network->gpus_per_node);
    cost.wire_bytes = zp_cost_wire_bytes(kind, bytes, size);
    double bytes_per_s;
    if ((gint64)(size - 1) * step < gpus) {
        bytes_per_s = inside_node_bytes_per_s(network);
        cost.fixed_ps = network->link_latency_ps;
        cost.rule = network->link_bytes_per_s > 0.0 ? "ring inside a node"
                                                    : "ring inside a node over the host link";
        cost.link = network->link_bytes_per_s > 0.0 ? ZP_LINK_SCALE_UP : ZP_LINK_HOST;
    } else {
        bytes_per_s = between_nodes_bytes_per_s(network, step, gpus);
        cost.fixed_ps = network->network_latency_ps;
        cost.rule = step == 1 ? "ring between nodes, one a node"
                              : "ring between nodes, NICs shared by interleaved groups";
        cost.link = ZP_LINK_NETWORK;
    }
    cost.solo_ps = zp_time_from_seconds(seconds_for((double)cost.wire_bytes, bytes_per_s));
    return cost;
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
