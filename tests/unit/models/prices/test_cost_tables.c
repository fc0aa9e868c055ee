/* Measured collectives and the formula for where none are. */
#include <math.h>

#include "models/prices/cost.h"
#include "models/prices/fabric.h"
#include "models/prices/tables.h"

static double
seconds(const ZpCost *cost)
{
    return zp_time_to_seconds(cost->fixed_ps) + zp_time_to_seconds(cost->solo_ps);
}

static ZpNetwork
a100(void)
{
    ZpNetwork network = {.gpus_per_node = 8};
    zp_cost_network_defaults(&network, 300e9, 200e9, 8);
    return network;
}

/* Between points the time lies on the straight line of logarithms; at them it is the measured one.
 */
static void
test_interpolation(void)
{
    g_autoptr(ZpCostTables) tables = zp_cost_tables_new("A100-SXM-80", NULL);
    const ZpCostTable *table = zp_cost_tables_find(tables, ZP_KIND_ALL_REDUCE, 1, 8);
    g_assert_nonnull(table);
    g_assert_cmpuint(table->points->len, >=, 20);
    for (guint p = 1; p < table->points->len; p++) {
        const ZpCostPoint *a = &g_array_index(table->points, ZpCostPoint, p - 1), *b = a + 1;
        g_assert_cmpint(a->bytes, <, b->bytes);
        g_assert_cmpfloat_with_epsilon(zp_cost_table_seconds(table, b->bytes), b->seconds, 1e-12);
        gint64 middle = (gint64)sqrt((double)a->bytes * (double)b->bytes);
        double expected = sqrt(a->seconds * b->seconds);
        g_assert_cmpfloat_with_epsilon(zp_cost_table_seconds(table, middle) / expected, 1.0, 1e-4);
    }
    const ZpCostPoint *last = &g_array_index(table->points, ZpCostPoint, table->points->len - 1);
    g_assert_cmpfloat_with_epsilon(zp_cost_table_seconds(table, 2 * last->bytes),
                                   2.0 * last->seconds, 1e-9);
}

static void
test_table_wins(void)
{
    ZpNetwork network = a100();
    ZpCost formula = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, 1 << 20, 8, 1);
    g_autoptr(ZpCostTables) tables = zp_cost_tables_new("A100-SXM-80", NULL);
    network.measured = tables;
    ZpCost measured = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, 1 << 20, 8, 1);
    g_assert_cmpstr(formula.rule, ==, "ring inside a node");
    g_assert_true(g_str_has_prefix(measured.rule, "measured, "));
    const ZpCostTable *table = zp_cost_tables_find(tables, ZP_KIND_ALL_REDUCE, 1, 8);
    g_assert_cmpfloat_with_epsilon(seconds(&measured), zp_cost_table_seconds(table, 1 << 20),
                                   2e-12);
    g_assert_cmpint(measured.wire_bytes, ==, formula.wire_bytes);
    /* What no table knows stays with the formula: another kind, a strided group, two nodes. */
    const struct {
        ZpKind kind;
        gint32 size, stride;
    } others[] = {
        {ZP_KIND_ALL_GATHER, 8, 1}, {ZP_KIND_ALL_REDUCE, 4, 2}, {ZP_KIND_ALL_REDUCE, 16, 1}};
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        ZpCost cost =
            zp_cost_collective(&network, others[i].kind, 1 << 20, others[i].size, others[i].stride);
        g_assert_false(g_str_has_prefix(cost.rule, "measured, "));
    }
}

static void
test_platform(void)
{
    g_autoptr(ZpCostTables) near = zp_cost_tables_new("H100-SXM-80", NULL);
    g_autoptr(ZpCostTables) efa = zp_cost_tables_new("H100-SXM-80", "EFAv2");
    g_autoptr(ZpCostTables) none = zp_cost_tables_new("TPU", NULL);
    g_assert_null(zp_cost_tables_find(near, ZP_KIND_ALL_REDUCE, 2, 8));
    g_assert_nonnull(zp_cost_tables_find(efa, ZP_KIND_ALL_REDUCE, 2, 8));
    g_assert_nonnull(zp_cost_tables_find(near, ZP_KIND_REDUCE_SCATTER, 1, 8));
    g_assert_cmpuint(zp_cost_tables_count(none), ==, 0);
}

/* T = alpha + x + sqrt(tau x) inside a node, to the picosecond; between nodes the root is a limit
 * for short messages and the fill for long ones. */
static void
test_formula(void)
{
    ZpNetwork network = a100();
    ZpCost cost = zp_cost_collective(&network, ZP_KIND_ALL_GATHER, 8 << 20, 8, 1);
    double x = 7.0 * (1 << 20) / (300e9 * 0.81);
    g_assert_cmpint(cost.fixed_ps, ==, network.link_latency_ps);
    g_assert_cmpint(cost.solo_ps, ==, zp_time_from_seconds(x + sqrt(13e-6 * x)));
    const struct {
        gint64 bytes;
        double pipeline_seconds;
    } ends[] = {{1 << 10, sqrt(720e-6 * 960.0 / (200e9 * 0.94))},
                {G_GINT64_CONSTANT(1) << 40, 243e-6}};
    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++) {
        cost = zp_cost_collective(&network, ZP_KIND_ALL_GATHER, ends[i].bytes, 16, 1);
        x = 15.0 / 16.0 * (double)ends[i].bytes / (200e9 * 0.94);
        double pipeline = zp_time_to_seconds(cost.solo_ps) - x;
        g_assert_cmpfloat_with_epsilon(pipeline / ends[i].pipeline_seconds, 1.0, 0.01);
    }
}

/* The published all-reduces of 2 to 8 A100 (VIA-Research/vTrain): the fewer, the less of the link.
 */
static void
test_few_ranks(void)
{
    ZpNetwork network = a100();
    const double busbw[] = {197e9, 212e9, 222e9, 225e9, 227e9, 227e9, 229e9};
    double before = 0.0;
    for (gint32 n = 2; n <= 8; n++) {
        ZpCost cost = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, 1 << 30, n, 1);
        double rate = (double)cost.wire_bytes / seconds(&cost);
        g_assert_cmpfloat(rate, >, before);
        g_assert_cmpfloat_with_epsilon(rate / busbw[n - 2], 1.0, 0.08);
        before = rate;
    }
}

/* Names of nodes and of their networks mean the same; the first that fits is the right one. */
static void
test_fabrics(void)
{
    const struct {
        const char *name;
        int latency_us;
        ZpFabric fabric;
    } cases[] = {
        {NULL, 36, ZP_FABRIC_INFINIBAND},
        {"DGX-H100", 36, ZP_FABRIC_INFINIBAND},
        {"CX-7 NDR400 x8", 36, ZP_FABRIC_INFINIBAND},
        {"AWS-p4de", 164, ZP_FABRIC_EFA},
        {"AWS-p5", 69, ZP_FABRIC_EFA},
        {"EFAv2 32x100Gb", 69, ZP_FABRIC_EFA},
        {"AWS-p5en", 237, ZP_FABRIC_EFA},
        {"EFAv4 8x400Gb", 237, ZP_FABRIC_EFA},
        {"GCP-a3-mega", 100, ZP_FABRIC_GCP},
        {"GCP A3 High TCPX 4x200Gb", 614, ZP_FABRIC_GCP},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        ZpNetwork network = {0};
        g_assert_cmpint(zp_cost_network_fabric(&network, cases[i].name), ==, cases[i].fabric);
        g_assert_cmpint(network.network_latency_ps, ==,
                        cases[i].latency_us * ZP_TIME_PER_US + ZP_COST_FABRIC_LAUNCH_PS);
        g_assert_cmpint(network.network_tau_ps, >, 0);
    }
}

static void
test_algorithms(void)
{
    ZpNetwork hopper = {.gpus_per_node = 8};
    zp_cost_network_defaults(&hopper, 450e9, 400e9, 9);
    const struct {
        ZpKind kind;
        gint32 size;
        const char *rule;
    } picked[] = {
        {ZP_KIND_ALL_REDUCE, 8, "reduction in the switch (NVLS)"},
        {ZP_KIND_ALL_REDUCE, 4, "ring inside a node"}, /* too few for the switch */
        {ZP_KIND_ALL_GATHER, 8, "ring inside a node"},
        {ZP_KIND_ALL_REDUCE, 16, "tree between nodes"},
        {ZP_KIND_ALL_GATHER, 16, "ring between nodes, one a node"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(picked); i++)
        g_assert_cmpstr(
            zp_cost_collective(&hopper, picked[i].kind, 1 << 28, picked[i].size, 1).rule, ==,
            picked[i].rule);
    /* Many small messages: the tree is shallow where the ring is long. */
    ZpCost small = zp_cost_collective(&hopper, ZP_KIND_ALL_REDUCE, 1 << 20, 4096, 1);
    g_assert_cmpstr(small.rule, ==, "tree between nodes");
    hopper.algorithm = ZP_ALGORITHM_RING;
    ZpCost ring = zp_cost_collective(&hopper, ZP_KIND_ALL_REDUCE, 1 << 20, 4096, 1);
    g_assert_cmpint(ring.fixed_ps, >, 5 * small.fixed_ps);
    /* Two nodes: a tree's NICs carry S, a ring's 2 (n-1)/n S; hierarchical S each way. */
    ZpNetwork slow = hopper;
    slow.network_bytes_per_s = 10e9;
    slow.network_tau_ps = slow.link_tau_ps = slow.network_fill_ps = 0;
    ZpCost by_ring = zp_cost_collective(&slow, ZP_KIND_ALL_REDUCE, 1 << 30, 16, 1);
    slow.algorithm = ZP_ALGORITHM_TREE;
    ZpCost by_tree = zp_cost_collective(&slow, ZP_KIND_ALL_REDUCE, 1 << 30, 16, 1);
    g_assert_cmpfloat_with_epsilon((double)by_ring.solo_ps / (double)by_tree.solo_ps, 1.875, 1e-6);
    slow.algorithm = ZP_ALGORITHM_HIERARCHICAL;
    ZpCost by_node = zp_cost_collective(&slow, ZP_KIND_ALL_GATHER, 1 << 30, 16, 1);
    double expected = 0.5 * (1 << 30) / 9.4e9 + 7.0 / 8.0 * (1 << 30) / (450e9 * 0.81);
    g_assert_cmpfloat_with_epsilon(zp_time_to_seconds(by_node.solo_ps), expected, 1e-9);
}

/* NVIDIA/nccl issue 1229: bus bandwidth of long reduce-scatters, 4 to 128 nodes of H100. */
static void
test_decline(void)
{
    ZpNetwork network = {.gpus_per_node = 8};
    zp_cost_network_defaults(&network, 450e9, 400e9, 9);
    const struct {
        gint32 nodes;
        double busbw;
    } measured[] = {{4, 360e9}, {8, 345e9}, {16, 320e9}, {32, 300e9}, {64, 280e9}, {128, 260e9}};
    gint64 bytes = G_GINT64_CONSTANT(17179869184);
    for (gsize i = 0; i < G_N_ELEMENTS(measured); i++) {
        ZpCost cost =
            zp_cost_collective(&network, ZP_KIND_REDUCE_SCATTER, bytes, 8 * measured[i].nodes, 1);
        double busbw = (double)cost.wire_bytes / seconds(&cost);
        g_assert_cmpfloat_with_epsilon(busbw / measured[i].busbw, 1.0, 0.08);
    }
    /* Trees keep their bandwidth: 345 of 360 GB/s with 512 nodes (arXiv 2411.13055). */
    ZpCost few = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, bytes, 8 * 4, 1);
    ZpCost many = zp_cost_collective(&network, ZP_KIND_ALL_REDUCE, bytes, 8 * 512, 1);
    g_assert_cmpfloat_with_epsilon(seconds(&few) / seconds(&many), 345.0 / 360.0, 0.06);
}

/* A partition owner at a time: as many latencies as pieces. */
static void
test_pieces(void)
{
    ZpNetwork network = a100();
    network.network_tau_ps = 0;
    network.piece_bytes = 1 << 20;
    ZpCost cost = zp_cost_collective(&network, ZP_KIND_ALL_GATHER, 64 << 20, 16, 1);
    network.piece_bytes = 0;
    ZpCost one = zp_cost_collective(&network, ZP_KIND_BROADCAST, 1 << 20, 16, 1);
    g_assert_cmpint(cost.fixed_ps, ==, 64 * one.fixed_ps);
    g_assert_cmpint(ABS(cost.solo_ps - 64 * one.solo_ps), <=, 64);
    g_assert_cmpstr(cost.rule, ==, "a broadcast for each owner");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cost-tables/interpolation", test_interpolation);
    g_test_add_func("/cost-tables/table-wins", test_table_wins);
    g_test_add_func("/cost-tables/platform", test_platform);
    g_test_add_func("/cost-tables/formula", test_formula);
    g_test_add_func("/cost-tables/few-ranks", test_few_ranks);
    g_test_add_func("/cost-tables/fabrics", test_fabrics);
    g_test_add_func("/cost-tables/algorithms", test_algorithms);
    g_test_add_func("/cost-tables/decline", test_decline);
    g_test_add_func("/cost-tables/pieces", test_pieces);
    return g_test_run();
}
