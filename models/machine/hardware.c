/* Look-up in the catalogue. */
#include "models/machine/hardware_internal.h"

#include <math.h>

static char
next_significant(const char **text)
{
    while (**text == ' ' || **text == '-' || **text == '_')
        (*text)++;
    char c = **text;
    if (c != '\0')
        (*text)++;
    return g_ascii_tolower(c);
}

gboolean
hardware_same_name(const char *a, const char *b)
{
    char ca, cb;
    do {
        ca = next_significant(&a);
        cb = next_significant(&b);
    } while (ca == cb && ca != '\0');
    return ca == cb;
}

static const char *
resolve(const ZpHardware *hardware, const char *name)
{
    for (guint i = 0; i < hardware->aliases->len; i++) {
        const HardwareAlias *alias = &g_array_index(hardware->aliases, HardwareAlias, i);
        if (hardware_same_name(alias->name, name))
            return alias->target;
    }
    return name;
}

const ZpGpu *
zp_hardware_gpu(const ZpHardware *hardware, const char *name)
{
    const char *wanted = resolve(hardware, name);
    for (guint i = 0; i < hardware->gpus->len; i++) {
        const ZpGpu *gpu = &g_array_index(hardware->gpus, ZpGpu, i);
        if (hardware_same_name(gpu->name, wanted))
            return gpu;
    }
    return NULL;
}

const ZpNode *
zp_hardware_node(const ZpHardware *hardware, const char *name)
{
    const char *wanted = resolve(hardware, name);
    for (guint i = 0; i < hardware->nodes->len; i++) {
        const ZpNode *node = &g_array_index(hardware->nodes, ZpNode, i);
        if (hardware_same_name(node->name, wanted))
            return node;
    }
    return NULL;
}

const ZpChip *
zp_hardware_chip(const ZpHardware *hardware, const char *name)
{
    for (guint i = 0; i < hardware->chips->len; i++) {
        const ZpChip *chip = &g_array_index(hardware->chips, ZpChip, i);
        if (g_strcmp0(chip->name, name) == 0)
            return chip;
    }
    return NULL;
}

double
zp_hardware_sustained_flops(const ZpHardware *hardware, const ZpGpu *gpu)
{
    const ZpChip *chip = zp_hardware_chip(hardware, gpu->chip);
    double peak = MAX(gpu->flops_bf16, gpu->flops_fp16);
    if (gpu->gemm_flops > 0.0 || chip == NULL)
        return gpu->gemm_flops;
    double watts_per_tera = peak > 0.0 ? gpu->power_watts / (peak / 1e12) : 0.0;
    double throttled = watts_per_tera > 0.0 ? MIN(1.0, pow(watts_per_tera, 0.45)) : 1.0;
    return peak * chip->efficiency * throttled;
}

const ZpChip *
zp_hardware_chips(const ZpHardware *hardware, gsize *n)
{
    *n = hardware->chips->len;
    return (const ZpChip *)(gpointer)hardware->chips->data;
}

const ZpGpu *
zp_hardware_gpus(const ZpHardware *hardware, gsize *n)
{
    *n = hardware->gpus->len;
    return (const ZpGpu *)(gpointer)hardware->gpus->data;
}

const ZpNode *
zp_hardware_nodes(const ZpHardware *hardware, gsize *n)
{
    *n = hardware->nodes->len;
    return (const ZpNode *)(gpointer)hardware->nodes->data;
}

/* The entry of this GPU, else the default one. */
static const ZpOverhead *
find_overhead(const ZpHardware *hardware, const ZpGpu *gpu, const char *name)
{
    const ZpOverhead *fallback = NULL;
    for (guint i = 0; i < hardware->overheads->len; i++) {
        const HardwareOverhead *row = &g_array_index(hardware->overheads, HardwareOverhead, i);
        if (g_strcmp0(row->overhead.name, name) != 0)
            continue;
        if (gpu != NULL && g_strcmp0(row->gpu, gpu->name) == 0)
            return &row->overhead;
        if (g_strcmp0(row->gpu, "default") == 0)
            fallback = &row->overhead;
    }
    g_assert(fallback != NULL);
    return fallback;
}

gsize
zp_hardware_overheads(const ZpHardware *hardware, const ZpGpu *gpu, int n_communicators,
                      ZpOverhead *entries, gsize n_max)
{
    const struct {
        const char *row, *name;
        gint64 count;
    } wanted[] = {
        {"context", "context", 1},
        {"communicator", "communicator", n_communicators >= 1},
        {"further_communicator", "further communicators", MAX(0, (gint64)n_communicators - 1)},
        {"workspace", "workspace", 1},
    };
    gsize n = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(wanted) && n < n_max; i++) {
        if (wanted[i].count == 0)
            continue;
        entries[n] = *find_overhead(hardware, gpu, wanted[i].row);
        entries[n].name = wanted[i].name;
        entries[n].bytes *= wanted[i].count; /* at most 2^31 x 10^9: fits */
        n++;
    }
    return n;
}
