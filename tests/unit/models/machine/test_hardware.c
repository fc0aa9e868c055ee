#include <string.h>

#include "models/machine/hardware.h"

static void
test_names(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    const struct {
        const char *alias, *name;
    } gpus[] = {
        {"A100-80", "A100-SXM-80"},    {"a100-sxm-80", "A100-SXM-80"},
        {"A100-40", "A100-SXM-40"},    {"H100", "H100-SXM-80"},
        {"H200", "H200-SXM-141"},      {"B200", "B200-SXM-180"},
        {"V100-32", "V100-SXM2-32"},   {"RTX4090", "RTX4090-24"},
        {"RTX 4090", "RTX4090-24"},    {"rtx_4090", "RTX4090-24"},
        {"MI300X", "MI300X-192"},      {"NVIDIA A100-SXM4-80GB", "A100-SXM-80"},
        {"H100 PCIe", "H100-PCIe-80"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(gpus); i++) {
        const ZpGpu *gpu = zp_hardware_gpu(hardware, gpus[i].alias);
        g_assert_nonnull(gpu);
        g_assert_cmpstr(gpu->name, ==, gpus[i].name);
    }
    g_assert_null(zp_hardware_gpu(hardware, "A100-8"));
    g_assert_null(zp_hardware_gpu(hardware, ""));
    g_assert_null(zp_hardware_gpu(hardware, "DGX-A100"));
    g_assert_cmpstr(zp_hardware_node(hardware, "p4d")->name, ==, "AWS-p4d");
    g_assert_cmpstr(zp_hardware_node(hardware, "dgx-h100")->gpu, ==, "H100-SXM-80");
    g_assert_null(zp_hardware_node(hardware, "H100"));
}

/* What the framework reports as total, in whole bytes of the printed GiB. */
static void
test_figures(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    const ZpGpu *a100 = zp_hardware_gpu(hardware, "A100-80");
    g_assert_cmpint(a100->memory_bytes, ==, (gint64)(79.15 * 1073741824.0));
    g_assert_cmpfloat(a100->flops_bf16, ==, 312e12);
    g_assert_cmpfloat(a100->link_bytes_per_s, ==, 300e9);
    g_assert_cmpfloat(a100->host_to_device_bytes_per_s, ==, 26e9);
    g_assert_cmpfloat(a100->device_to_host_bytes_per_s, ==, 26e9);
    g_assert_cmpint(a100->sm_count, ==, 108);
    g_assert_cmpstr(a100->flops.confidence, ==, "looked-up");
    /* only the driver's figure is known */
    g_assert_cmpint(zp_hardware_gpu(hardware, "H100-PCIe")->memory_bytes, ==,
                    (gint64)(79.11 * 1073741824.0));
    /* only the marketed figure is known */
    g_assert_cmpint(zp_hardware_gpu(hardware, "Gaudi2")->memory_bytes, ==,
                    G_GINT64_CONSTANT(96000000000));
    /* fp16 that is not bf16's; a host link from its generation */
    g_assert_cmpfloat(zp_hardware_gpu(hardware, "V100-32")->flops_fp16, ==, 125e12);
    g_assert_cmpfloat(zp_hardware_gpu(hardware, "V100-32")->flops_bf16, ==, 0.0);
    const ZpGpu *b200 = zp_hardware_gpu(hardware, "B200");
    g_assert_cmpfloat(b200->host_to_device_bytes_per_s, ==, 53e9);
    g_assert_cmpstr(b200->host_link.confidence, ==, "derived");
    const ZpNode *node = zp_hardware_node(hardware, "AWS-p5en");
    g_assert_cmpint(node->gpus, ==, 8);
    g_assert_cmpint(node->nics, ==, 16);
    g_assert_cmpfloat(node->nic_bytes_per_s, ==, 25e9);
    g_assert_cmpfloat(node->network_bytes_per_s, ==, 400e9);
    g_assert_cmpint(zp_hardware_node(hardware, "GB200-NVL72")->gpus, ==, 72);
}

static void
assert_evidence(const ZpEvidence *evidence)
{
    static const char *const legal[] = {"looked-up", "derived", "assumed", "known", NULL};
    g_assert_nonnull(evidence->source);
    g_assert_cmpuint(strlen(evidence->source), >, 0);
    g_assert_true(g_strv_contains(legal, evidence->confidence));
}

static void
test_complete(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    gsize n = 0;
    const ZpGpu *gpus = zp_hardware_gpus(hardware, &n);
    g_assert_cmpuint(n, >=, 20);
    for (gsize i = 0; i < n; i++) {
        g_assert_true(zp_hardware_gpu(hardware, gpus[i].name) == &gpus[i]);
        g_assert_cmpint(gpus[i].memory_bytes, >, 10000000000);
        g_assert_cmpfloat(gpus[i].flops_fp16, >, 1e12);
        g_assert_cmpfloat(gpus[i].memory_bytes_per_s, >, 1e11);
        assert_evidence(&gpus[i].memory);
        assert_evidence(&gpus[i].flops);
        assert_evidence(&gpus[i].bandwidth);
    }
    const ZpNode *nodes = zp_hardware_nodes(hardware, &n);
    g_assert_cmpuint(n, >=, 15);
    for (gsize i = 0; i < n; i++) {
        g_assert_true(zp_hardware_node(hardware, nodes[i].name) == &nodes[i]);
        g_assert_nonnull(zp_hardware_gpu(hardware, nodes[i].gpu));
        g_assert_cmpint(nodes[i].gpus, >, 0);
        g_assert_cmpfloat(nodes[i].network_bytes_per_s, ==,
                          nodes[i].nics * nodes[i].nic_bytes_per_s);
        assert_evidence(&nodes[i].network);
        assert_evidence(&nodes[i].node);
    }
}

static void
test_overheads(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    const ZpGpu *a100 = zp_hardware_gpu(hardware, "A100-80");
    ZpOverhead entries[8];
    g_assert_cmpuint(zp_hardware_overheads(hardware, a100, 0, entries, 8), ==, 2);
    g_assert_cmpuint(zp_hardware_overheads(hardware, a100, 1, entries, 8), ==, 3);
    g_assert_cmpuint(zp_hardware_overheads(hardware, a100, 3, entries, 8), ==, 4);
    g_assert_cmpstr(entries[0].name, ==, "context");
    g_assert_cmpint(entries[0].bytes, ==, 481 << 20);
    g_assert_cmpstr(entries[1].name, ==, "communicator");
    g_assert_cmpint(entries[1].bytes, ==, 1600000000);
    g_assert_cmpstr(entries[2].name, ==, "further communicators");
    g_assert_cmpint(entries[2].bytes, ==, 2 * 688000000);
    g_assert_cmpint(entries[3].bytes, ==, 8519680);
    for (int i = 0; i < 4; i++)
        assert_evidence(&entries[i].evidence);
    const ZpGpu *h100 = zp_hardware_gpu(hardware, "H100");
    g_assert_cmpuint(zp_hardware_overheads(hardware, h100, 1, entries, 8), ==, 3);
    g_assert_cmpint(entries[2].bytes, ==, 32 << 20);
    const ZpGpu *rtx = zp_hardware_gpu(hardware, "RTX4090");
    g_assert_cmpuint(zp_hardware_overheads(hardware, rtx, 1, entries, 1), ==, 1);
    g_assert_cmpint(entries[0].bytes, ==, 256 << 20);
    g_assert_cmpuint(zp_hardware_overheads(hardware, NULL, 1, entries, 8), ==, 3);
    g_assert_cmpint(entries[0].bytes, ==, 481 << 20);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hardware/names", test_names);
    g_test_add_func("/hardware/figures", test_figures);
    g_test_add_func("/hardware/complete", test_complete);
    g_test_add_func("/hardware/overheads", test_overheads);
    return g_test_run();
}
