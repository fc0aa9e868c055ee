/* What the catalogue knows of GPU and node, and what stands in where it knows nothing. */
#include "scenarios/load/resolve_internal.h"

/* Stand-ins; the rules in the schema's table state them. */
#define FLOPS_EFFICIENCY 0.75
#define MEMORY_EFFICIENCY 0.8
#define LINK_EFFICIENCY 0.78
#define HOST_BYTES_PER_S 25e9
#define NETWORK_BYTES_PER_S 50e9
#define GPUS_PER_NODE 8

static const ZpHardware *
hardware(const ZpScenarioResolve *resolve)
{
    return resolve->state->hardware->hardware;
}

static void
find_gpu(ZpScenarioResolve *resolve)
{
    const ZpGpu *own = &resolve->state->machine.gpu;
    if (own->name != NULL)
        zp_scenario_resolve_put_text(resolve, ZP_KEY_GPU, own->name, own->name);
    const char *name = zp_scenario_key_text(resolve, ZP_KEY_GPU);
    resolve->gpu = g_strcmp0(name, own->name) == 0 ? own : zp_hardware_gpu(hardware(resolve), name);
    if (resolve->gpu != NULL)
        return;
    gsize n = 0;
    const ZpGpu *gpus = zp_hardware_gpus(hardware(resolve), &n);
    g_autofree const char **names = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++)
        names[i] = gpus[i].name;
    zp_scenario_resolve_unknown(
        resolve, ZP_KEY_GPU, "GPU", names,
        "`zeropeak list gpus` shows all, or state memory, flops, memory_bandwidth and "
        "node.link_bandwidth beside the nearest one");
}

static const ZpNode *
usual_node(const ZpScenarioResolve *resolve)
{
    gsize n = 0;
    const ZpNode *nodes = zp_hardware_nodes(hardware(resolve), &n);
    const ZpScenarioMachine *own = &resolve->state->machine;
    if (own->node.name != NULL)
        return &own->node;
    const char *gpu = resolve->gpu == &own->gpu ? own->like
                      : resolve->gpu != NULL    ? resolve->gpu->name
                                                : NULL;
    for (gsize i = 0; gpu != NULL && i < n; i++) {
        if (nodes[i].gpu != NULL && g_ascii_strcasecmp(nodes[i].gpu, gpu) == 0)
            return &nodes[i];
    }
    return NULL;
}

static void
find_node(ZpScenarioResolve *resolve)
{
    if (!zp_scenario_resolve_given(resolve, ZP_KEY_NODE)) {
        resolve->node = usual_node(resolve);
        zp_scenario_resolve_put_text(resolve, ZP_KEY_NODE,
                                     resolve->node ? resolve->node->name : "none",
                                     resolve->node && resolve->gpu ? resolve->gpu->name : NULL);
        return;
    }
    const char *name = zp_scenario_key_text(resolve, ZP_KEY_NODE);
    if (g_strcmp0(name, "none") == 0)
        return;
    const ZpNode *own = &resolve->state->machine.node;
    resolve->node =
        g_strcmp0(name, own->name) == 0 ? own : zp_hardware_node(hardware(resolve), name);
    if (resolve->node != NULL)
        return;
    gsize n = 0;
    const ZpNode *nodes = zp_hardware_nodes(hardware(resolve), &n);
    g_autofree const char **names = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++)
        names[i] = nodes[i].name;
    zp_scenario_resolve_unknown(resolve, ZP_KEY_NODE, "node", names,
                                "`zeropeak list nodes` shows all");
}

/* A figure of the catalogue, or what stands in for one that it lacks (0). */
static void
put_known(ZpScenarioResolve *resolve, ZpSchemaId id, double known, const char *catalogue,
          double otherwise)
{
    zp_scenario_resolve_put_real(resolve, id, known > 0 ? known : otherwise,
                                 known > 0 ? catalogue : NULL);
}

static double
share(double achieved, double peak)
{
    return achieved > 0 && peak > 0 ? MIN(achieved / peak, 1.0) : 0;
}

static double
peak_flops(const ZpGpu *gpu, ZpDtype compute)
{
    switch (compute) {
    case ZP_DTYPE_BF16:
        return gpu->flops_bf16;
    case ZP_DTYPE_FP16:
        return gpu->flops_fp16 > 0 ? gpu->flops_fp16 : gpu->flops_bf16;
    case ZP_DTYPE_TF32:
        return gpu->flops_tf32;
    case ZP_DTYPE_FP8:
        return gpu->flops_fp8;
    case ZP_DTYPE_FP32:
        return gpu->flops_fp32;
    case ZP_DTYPE_NONE:
    case ZP_DTYPE_INT8:
    case ZP_DTYPE_INT4:
    case ZP_DTYPE_FP64:
    case ZP_N_DTYPES:
        return 0;
    }
    g_assert_not_reached();
}

static void
derive_flops(ZpScenarioResolve *resolve)
{
    const ZpGpu *gpu = resolve->gpu;
    ZpDtype compute = (ZpDtype)zp_scenario_key_integer(resolve, ZP_KEY_COMPUTE);
    double peak = peak_flops(gpu, compute);
    if (peak <= 0 && !zp_scenario_resolve_given(resolve, ZP_KEY_FLOPS)) {
        zp_scenario_resolve_complain(
            resolve, ZP_KEY_FLOPS, ZP_SCENARIO_ERROR_MISSING,
            "the catalogue has no %s rate of the GPU %s: state device.flops, or choose another "
            "precision.compute",
            zp_dtype_name(compute), gpu->name);
        return;
    }
    zp_scenario_resolve_put_real(resolve, ZP_KEY_FLOPS, peak, gpu->name);
    put_known(resolve, ZP_KEY_FLOPS_EFFICIENCY,
              share(zp_hardware_sustained_flops(hardware(resolve), gpu),
                    MAX(gpu->flops_bf16, gpu->flops_fp16)),
              gpu->name, FLOPS_EFFICIENCY);
}

static void
derive_overhead(ZpScenarioResolve *resolve)
{
    gint64 ranks = zp_scenario_key_integer(resolve, ZP_KEY_RANKS);
    gint64 group = zp_scenario_key_integer(resolve, ZP_KEY_SHARD_GROUP);
    int n_communicators = ranks == 1 ? 0 : group < ranks ? 2 : 1;
    ZpDevice *device = &resolve->scenario->job.device;
    ZpOverhead *entries = device->overheads;
    gsize n = zp_hardware_overheads(hardware(resolve), resolve->gpu, n_communicators, entries,
                                    G_N_ELEMENTS(device->overheads));
    gint64 bytes = 0;
    for (gsize i = 0; i < n; i++) {
        bytes += entries[i].bytes;
        entries[i].evidence.source = g_intern_string(entries[i].evidence.source);
        entries[i].evidence.confidence = g_intern_string(entries[i].evidence.confidence);
    }
    zp_scenario_resolve_put(resolve, ZP_KEY_OVERHEAD, bytes, resolve->gpu->name);
    /* The sum written out, as a dump does, is still that of the entries. */
    device->n_overheads = zp_scenario_key_integer(resolve, ZP_KEY_OVERHEAD) == bytes ? (int)n : 0;
}

static void
derive_links(ZpScenarioResolve *resolve)
{
    const ZpGpu *gpu = resolve->gpu;
    const ZpNode *node = resolve->node;
    double h2d = gpu->host_to_device_bytes_per_s, d2h = gpu->device_to_host_bytes_per_s;
    put_known(resolve, ZP_KEY_H2D, h2d, gpu->name, HOST_BYTES_PER_S);
    put_known(resolve, ZP_KEY_D2H, d2h > 0 ? d2h : h2d, gpu->name, HOST_BYTES_PER_S);
    put_known(resolve, ZP_KEY_LINK_BANDWIDTH, gpu->link_bytes_per_s, gpu->name,
              resolve->state->effective[ZP_KEY_H2D].value.real);
    put_known(resolve, ZP_KEY_LINK_EFFICIENCY, share(gpu->ring_bytes_per_s, gpu->link_bytes_per_s),
              gpu->name, LINK_EFFICIENCY);
    zp_scenario_resolve_put(resolve, ZP_KEY_GPUS,
                            node && node->gpus > 0 ? node->gpus : GPUS_PER_NODE,
                            node && node->gpus > 0 ? node->name : NULL);
    put_known(resolve, ZP_KEY_NETWORK_BANDWIDTH, node ? node->network_bytes_per_s : 0,
              node ? node->name : NULL, NETWORK_BYTES_PER_S);
}

void
zp_scenario_derive_hardware(ZpScenarioResolve *resolve)
{
    const ZpGpu *gpu;
    find_gpu(resolve);
    find_node(resolve);
    gpu = resolve->gpu;
    if (gpu == NULL)
        return;
    zp_scenario_resolve_put(resolve, ZP_KEY_MEMORY, gpu->memory_bytes, gpu->name);
    put_known(resolve, ZP_KEY_MEMORY_BANDWIDTH, gpu->memory_bytes_per_s, gpu->name, 1e12);
    put_known(resolve, ZP_KEY_MEMORY_EFFICIENCY,
              share(gpu->memory_measured_bytes_per_s, gpu->memory_bytes_per_s), gpu->name,
              MEMORY_EFFICIENCY);
    derive_flops(resolve);
    derive_overhead(resolve);
    derive_links(resolve);
}
