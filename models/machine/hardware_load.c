/* Reads the embedded catalogue: one number a line, fields kind, name, attribute, value, source,
 * confidence, quoted where they hold a comma. */
#include <string.h>

#include "models/machine/hardware_internal.h"
#include "models/words/resources.h"

enum { KIND, NAME, ATTRIBUTE, VALUE, SOURCE, CONFIDENCE, N_FIELDS };

typedef struct {
    const char *attribute;
    gsize value_offset;
    gsize evidence_offset; /* or NO_EVIDENCE */
    double scale;          /* file unit to the struct's */
    gboolean integer;      /* the member is an int */
} Column;

#define NO_EVIDENCE G_MAXSIZE
#define G(field) offsetof(ZpGpu, field)
#define N(field) offsetof(ZpNode, field)

static const Column gpu_columns[] = {
    {"bf16", G(flops_bf16), G(flops), 1e12, FALSE},
    {"fp16", G(flops_fp16), NO_EVIDENCE, 1e12, FALSE},
    {"tf32", G(flops_tf32), NO_EVIDENCE, 1e12, FALSE},
    {"fp32", G(flops_fp32), NO_EVIDENCE, 1e12, FALSE},
    {"fp8", G(flops_fp8), NO_EVIDENCE, 1e12, FALSE},
    {"gemm", G(gemm_flops), NO_EVIDENCE, 1e12, FALSE},
    {"hbm", G(memory_bytes_per_s), G(bandwidth), 1e9, FALSE},
    {"hbm_meas", G(memory_measured_bytes_per_s), NO_EVIDENCE, 1e9, FALSE},
    {"link", G(link_bytes_per_s), G(link), 1e9, FALSE},
    {"link_p2p", G(pair_bytes_per_s), NO_EVIDENCE, 1e9, FALSE},
    {"ring", G(ring_bytes_per_s), NO_EVIDENCE, 1e9, FALSE},
    {"nvls", G(nvls_bytes_per_s), NO_EVIDENCE, 1e9, FALSE},
    {"h2d", G(host_to_device_bytes_per_s), G(host_link), 1e9, FALSE},
    {"d2h", G(device_to_host_bytes_per_s), NO_EVIDENCE, 1e9, FALSE},
    {"pcie", G(pcie_generation), NO_EVIDENCE, 1, TRUE},
    {"sm", G(sm_count), NO_EVIDENCE, 1, TRUE},
    {"power", G(power_watts), NO_EVIDENCE, 1, FALSE},
};

static const Column node_columns[] = {
    {"gpus", N(gpus), N(node), 1, TRUE},
    {"nics", N(nics), NO_EVIDENCE, 1, TRUE},
    {"nic_gbit_s", N(nic_bytes_per_s), NO_EVIDENCE, 1e9 / 8, FALSE},
    {"net_total", N(network_bytes_per_s), N(network), 1e9, FALSE},
    {"net_measured", N(measured_bytes_per_s), N(measured), 1e9, FALSE},
};

/* Splits in place; the program's own data file is either well-formed or a bug. */
static void
split(char *line, char *fields[N_FIELDS])
{
    char *in = line;
    for (int f = 0; f < N_FIELDS; f++) {
        gboolean quoted = *in == '"';
        if (quoted)
            in++;
        fields[f] = in;
        char *end = strchr(in, quoted ? '"' : f < N_FIELDS - 1 ? ',' : '\0');
        g_assert(end != NULL);
        in = end + quoted;
        g_assert(*in == (f < N_FIELDS - 1 ? ',' : '\0'));
        in += f < N_FIELDS - 1;
        *end = '\0';
    }
}

static const char *
keep(ZpHardware *hardware, const char *text)
{
    return g_string_chunk_insert_const(hardware->strings, text);
}

static double
number(const char *text)
{
    char *end = NULL;
    double value = g_ascii_strtod(text, &end);
    g_assert(end != text && *end == '\0' && value >= 0.0);
    return value;
}

static ZpEvidence
evidence(ZpHardware *hardware, char *const fields[N_FIELDS])
{
    return (ZpEvidence){keep(hardware, fields[SOURCE]), keep(hardware, fields[CONFIDENCE])};
}

static gboolean
store(ZpHardware *hardware, gpointer row, const Column *columns, gsize n,
      char *const fields[N_FIELDS])
{
    for (gsize c = 0; c < n; c++) {
        if (strcmp(columns[c].attribute, fields[ATTRIBUTE]) != 0)
            continue;
        double value = number(fields[VALUE]) * columns[c].scale;
        gpointer member = (char *)row + columns[c].value_offset;
        if (columns[c].integer)
            *(int *)member = (int)value;
        else
            *(double *)member = value;
        if (columns[c].evidence_offset != NO_EVIDENCE)
            *(ZpEvidence *)(gpointer)((char *)row + columns[c].evidence_offset) =
                evidence(hardware, fields);
        return TRUE;
    }
    return FALSE;
}

/* A GPU has up to three figures of its memory; the file orders them mem, smi, torch, from what is
 * sold to what is usable, and the last wins. */
static gboolean
store_memory(ZpHardware *hardware, ZpGpu *gpu, char *const fields[N_FIELDS])
{
    static const struct {
        const char *attribute;
        double unit_bytes;
    } units[] = {{"mem", 1e9}, {"smi", 1048576.0}, {"torch", 1073741824.0}};
    for (gsize u = 0; u < G_N_ELEMENTS(units); u++) {
        if (strcmp(units[u].attribute, fields[ATTRIBUTE]) != 0)
            continue;
        gpu->memory_bytes = (gint64)(number(fields[VALUE]) * units[u].unit_bytes);
        gpu->memory = evidence(hardware, fields);
        return TRUE;
    }
    return FALSE;
}

static void
read_gpu(ZpHardware *hardware, char *const fields[N_FIELDS])
{
    GArray *gpus = hardware->gpus;
    if (gpus->len == 0 ||
        strcmp(g_array_index(gpus, ZpGpu, gpus->len - 1).name, fields[NAME]) != 0) {
        ZpGpu fresh = {.name = keep(hardware, fields[NAME])};
        g_array_append_val(gpus, fresh);
    }
    ZpGpu *gpu = &g_array_index(gpus, ZpGpu, gpus->len - 1);
    if (strcmp(fields[ATTRIBUTE], "chip") == 0) {
        gpu->chip = keep(hardware, fields[VALUE]);
        return;
    }
    gboolean known = store_memory(hardware, gpu, fields) ||
                     store(hardware, gpu, gpu_columns, G_N_ELEMENTS(gpu_columns), fields);
    g_assert(known);
}

static void
read_node(ZpHardware *hardware, char *const fields[N_FIELDS])
{
    GArray *nodes = hardware->nodes;
    if (nodes->len == 0 ||
        strcmp(g_array_index(nodes, ZpNode, nodes->len - 1).name, fields[NAME]) != 0) {
        ZpNode fresh = {.name = keep(hardware, fields[NAME])};
        g_array_append_val(nodes, fresh);
    }
    ZpNode *node = &g_array_index(nodes, ZpNode, nodes->len - 1);
    if (strcmp(fields[ATTRIBUTE], "gpu") == 0) {
        node->gpu = keep(hardware, fields[VALUE]);
        return;
    }
    gboolean known = store(hardware, node, node_columns, G_N_ELEMENTS(node_columns), fields);
    g_assert(known);
}

static void
read_line(ZpHardware *hardware, char *line)
{
    char *fields[N_FIELDS];
    split(line, fields);
    if (strcmp(fields[KIND], "gpu") == 0) {
        read_gpu(hardware, fields);
    } else if (strcmp(fields[KIND], "node") == 0) {
        read_node(hardware, fields);
    } else if (strcmp(fields[KIND], "overhead") == 0) {
        HardwareOverhead row = {
            .gpu = keep(hardware, fields[NAME]),
            .overhead = {.name = keep(hardware, fields[ATTRIBUTE]),
                         .bytes = (gint64)number(fields[VALUE]),
                         .evidence = evidence(hardware, fields)},
        };
        g_array_append_val(hardware->overheads, row);
    } else if (strcmp(fields[KIND], "alias") == 0) {
        HardwareAlias alias = {keep(hardware, fields[NAME]), keep(hardware, fields[VALUE])};
        g_array_append_val(hardware->aliases, alias);
    } else {
        g_assert(strcmp(fields[KIND], "kind") == 0); /* the heading */
    }
}

/* What the file leaves out follows from what it holds. */
static void
complete(ZpGpu *gpu)
{
    static const double host_link_bytes_per_s[] = {[3] = 12e9, [4] = 25e9, [5] = 53e9};
    if (gpu->flops_fp16 <= 0.0)
        gpu->flops_fp16 = gpu->flops_bf16; /* every device with bf16 runs fp16 as fast */
    int generation = gpu->pcie_generation;
    if (gpu->host_to_device_bytes_per_s <= 0.0 && generation >= 3 &&
        generation < (int)G_N_ELEMENTS(host_link_bytes_per_s)) {
        gpu->host_to_device_bytes_per_s = host_link_bytes_per_s[generation];
        gpu->host_link =
            (ZpEvidence){"pinned copies measured on others of this PCIe generation", "derived"};
    }
    if (gpu->device_to_host_bytes_per_s <= 0.0)
        gpu->device_to_host_bytes_per_s = gpu->host_to_device_bytes_per_s;
}

/* chip,e_cap,base,own */
static void
read_chips(ZpHardware *hardware)
{
    g_auto(GStrv) lines = g_strsplit(zp_resources_text("catalog/chips.csv"), "\n", -1);
    for (gsize l = 0; lines[l] != NULL; l++) {
        g_auto(GStrv) fields = g_strsplit(lines[l], ",", -1);
        if (lines[l][0] == '#' || lines[l][0] == '\0' || strcmp(fields[0], "chip") == 0)
            continue;
        g_assert(g_strv_length(fields) == 4);
        ZpChip chip = {.name = keep(hardware, fields[0]),
                       .efficiency = number(fields[1]),
                       .base = keep(hardware, fields[2]),
                       .own = strcmp(fields[3], "1") == 0};
        g_array_append_val(hardware->chips, chip);
    }
}

ZpHardware *
zp_hardware_load(void)
{
    g_autofree char *text = g_strdup(zp_resources_text("catalog/hardware.csv"));
    ZpHardware *hardware = g_new0(ZpHardware, 1);
    hardware->strings = g_string_chunk_new(4096);
    hardware->gpus = g_array_new(FALSE, TRUE, sizeof(ZpGpu));
    hardware->nodes = g_array_new(FALSE, TRUE, sizeof(ZpNode));
    hardware->overheads = g_array_new(FALSE, TRUE, sizeof(HardwareOverhead));
    hardware->chips = g_array_new(FALSE, TRUE, sizeof(ZpChip));
    hardware->aliases = g_array_new(FALSE, TRUE, sizeof(HardwareAlias));
    for (char *line = text, *next; *line != '\0'; line = next) {
        char *end = strchr(line, '\n');
        g_assert(end != NULL);
        next = end + 1;
        *end = '\0';
        if (*line != '#' && *line != '\0')
            read_line(hardware, line);
    }
    for (guint i = 0; i < hardware->gpus->len; i++)
        complete(&g_array_index(hardware->gpus, ZpGpu, i));
    read_chips(hardware);
    return hardware;
}

void
zp_hardware_free(ZpHardware *hardware)
{
    if (hardware == NULL)
        return;
    g_array_unref(hardware->gpus);
    g_array_unref(hardware->nodes);
    g_array_unref(hardware->overheads);
    g_array_unref(hardware->aliases);
    g_array_unref(hardware->chips);
    g_string_chunk_free(hardware->strings);
    g_free(hardware);
}
