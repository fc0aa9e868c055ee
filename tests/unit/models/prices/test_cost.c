#include "models/prices/cost.h"

/* Eight GPUs a node, 300 GB/s between them, 200 GB/s of network a node. */
static const ZpNetwork network = {
    .link_bytes_per_s = 300e9,
    .link_efficiency = 0.8,
    .link_latency_ps = 16 * ZP_TIME_PER_US,
    .gpus_per_node = 8,
    .network_bytes_per_s = 200e9,
    .network_efficiency = 0.9,
    .network_latency_ps = 40 * ZP_TIME_PER_US,
    .host_to_device_bytes_per_s = 26e9,
    .device_to_host_bytes_per_s = 13e9,
};

static void
test_wire_bytes(void)
{
    const struct {
        ZpKind kind;
        gint64 bytes;
        gint32 size;
        gint64 wire;
    } cases[] = {
        {ZP_KIND_ALL_GATHER, 800, 8, 700},
        {ZP_KIND_REDUCE_SCATTER, 800, 8, 700},
        {ZP_KIND_ALL_TO_ALL, 800, 8, 700},
        {ZP_KIND_ALL_REDUCE, 800, 8, 1400},
        {ZP_KIND_BROADCAST, 800, 8, 800},
        {ZP_KIND_REDUCE, 800, 8, 800},
        {ZP_KIND_ALL_GATHER, 801, 8, 701}, /* 700.875 */
        {ZP_KIND_ALL_REDUCE, 1, 2, 1},
        {ZP_KIND_ALL_REDUCE, 0, 8, 0},
        {ZP_KIND_ALL_GATHER, 800, 1, 0},
        {ZP_KIND_BROADCAST, 800, 1, 0},
        {ZP_KIND_ALL_GATHER, G_MAXINT64, 2, G_MAXINT64 / 2 + 1},
        {ZP_KIND_ALL_REDUCE, G_MAXINT64, 16384, G_MAXINT64},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(zp_cost_wire_bytes(cases[i].kind, cases[i].bytes, cases[i].size), ==,
                        cases[i].wire);
}

/* 240e9 wire bytes on each path. */
static void
test_paths(void)
{
    const struct {
        gint32 size, stride;
        ZpLink link;
        double bytes_per_s;
    } cases[] = {
        {8, 1, ZP_LINK_SCALE_UP, 240e9},  /* a node */
        {2, 4, ZP_LINK_SCALE_UP, 240e9},  /* replicas inside a node */
        {16, 1, ZP_LINK_NETWORK, 180e9},  /* two nodes, one ring a node */
        {64, 1, ZP_LINK_NETWORK, 180e9},  /* more nodes: no slower */
        {8, 4, ZP_LINK_NETWORK, 45e9},    /* two members a node, four rings share the NICs */
        {2, 8, ZP_LINK_NETWORK, 22.5e9},  /* a member a node, all eight GPUs share */
        {4, 64, ZP_LINK_NETWORK, 22.5e9}, /* no more than eight on a node */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        gint64 bytes = G_GINT64_CONSTANT(240000000000) / (cases[i].size - 1) * cases[i].size;
        ZpCost cost =
            zp_cost_collective(&network, ZP_KIND_ALL_GATHER, bytes, cases[i].size, cases[i].stride);
        g_assert_cmpint(cost.link, ==, cases[i].link);
        g_assert_cmpint(cost.fixed_ps, ==,
                        (cost.link == ZP_LINK_NETWORK ? 40 : 16) * ZP_TIME_PER_US);
        g_assert_cmpint(cost.solo_ps, ==,
                        zp_time_from_seconds((double)cost.wire_bytes / cases[i].bytes_per_s));
    }
    ZpNetwork fat = network; /* more network than link: the link binds */
    fat.network_bytes_per_s = 800e9;
    ZpCost cost = zp_cost_collective(&fat, ZP_KIND_ALL_GATHER, 16 * 15000000, 16, 1);
    g_assert_cmpint(cost.solo_ps, ==, zp_time_from_seconds(15.0 * 15e6 / 240e9));
    cost = zp_cost_collective(&fat, ZP_KIND_ALL_GATHER, 1600, 2, 8); /* no link on the ring */
    g_assert_cmpint(cost.solo_ps, ==, zp_time_from_seconds(800.0 / 90e9));
}

static void
test_edges(void)
{
    ZpCost one = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, 1000, 1, 1);
    g_assert_cmpint(one.fixed_ps + one.solo_ps + one.wire_bytes, ==, 0);
    ZpNetwork pcie = network; /* no scale-up link: the slower way of the host link */
    pcie.link_bytes_per_s = 0.0;
    ZpCost cost = zp_cost_collective(&pcie, ZP_KIND_ALL_GATHER, 2000, 2, 1);
    g_assert_cmpint(cost.solo_ps, ==, zp_time_from_seconds(1000.0 / 13e9));
    g_assert_cmpint(cost.link, ==, ZP_LINK_HOST);
    ZpNetwork cut = network; /* no network at all: never, and no overflow */
    cut.network_bytes_per_s = 0.0;
    cost = zp_cost_collective(&cut, ZP_KIND_ALL_GATHER, 2000, 16, 1);
    g_assert_cmpint(cost.solo_ps, ==, ZP_TIME_MAX);
    cost = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, G_MAXINT64, 16384, G_MAXINT32);
    g_assert_cmpint(cost.wire_bytes, ==, G_MAXINT64);
    g_assert_cmpint(cost.solo_ps, ==, zp_time_from_seconds((double)G_MAXINT64 / 22.5e9));
}

static void
test_kernel(void)
{
    ZpDevice device = {.flops_per_s = 312e12,
                       .flops_efficiency = 0.5,
                       .memory_bytes_per_s = 2e12,
                       .memory_efficiency = 0.75,
                       .kernel_latency_ps = 5 * ZP_TIME_PER_US};
    g_assert_cmpint(zp_cost_kernel(&device, 156e9, 1.0), ==, 1005 * ZP_TIME_PER_US);
    g_assert_cmpint(zp_cost_kernel(&device, 1.0, 3e9), ==, 2005 * ZP_TIME_PER_US);
    g_assert_cmpint(zp_cost_kernel(&device, 0.0, 0.0), ==, 5 * ZP_TIME_PER_US);
    device.flops_per_s = 0.0;
    g_assert_cmpint(zp_cost_kernel(&device, 1.0, 1.0), ==, ZP_TIME_MAX);
}

static void
test_transfer(void)
{
    ZpCost up = zp_cost_transfer(&network, ZP_KIND_HOST_TO_DEVICE, 26000);
    ZpCost down = zp_cost_transfer(&network, ZP_KIND_DEVICE_TO_HOST, 26000);
    g_assert_cmpint(up.solo_ps, ==, ZP_TIME_PER_US);
    g_assert_cmpint(down.solo_ps, ==, 2 * ZP_TIME_PER_US);
    g_assert_cmpint(up.wire_bytes, ==, 26000);
    g_assert_cmpint(up.link, ==, ZP_LINK_HOST);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cost/wire-bytes", test_wire_bytes);
    g_test_add_func("/cost/paths", test_paths);
    g_test_add_func("/cost/edges", test_edges);
    g_test_add_func("/cost/kernel", test_kernel);
    g_test_add_func("/cost/transfer", test_transfer);
    return g_test_run();
}
