/* device.file: an own GPU, node and fabric beside those of the catalogue. */
#include <math.h>
#include <string.h>

#include "models/prices/board.h"
#include "scenarios/load/resolve_internal.h"
#include "scenarios/settings/machine.h"

typedef struct {
    ZpScenarioResolve *resolve;
    const ZpHardware *hardware;
    const char *name; /* of the file */
    ZpMachineSetting settings[ZP_N_MACHINE_KEYS];
} Reader;

static void
complain(Reader *reader, ZpMachineKey key, ZpScenarioError code, const char *what)
{
    zp_machine_complain(reader->settings, key, reader->name, reader->resolve->problems, code, what);
}

static const char *
text_of(const Reader *reader, ZpMachineKey key)
{
    return reader->settings[key].given ? reader->settings[key].value.text : NULL;
}

/* A figure that is stated replaces the relative's; one that is not goes with what it depends on. */
static void
set(const Reader *reader, ZpMachineKey key, double otherwise, double *figure)
{
    const ZpMachineSetting *setting = &reader->settings[key];
    *figure = setting->given ? setting->value.real : otherwise;
}

static double
ratio(double own, double other)
{
    return own > 0.0 && other > 0.0 ? own / other : 1.0;
}

/* What rule G says of large products, whatever was measured. */
static double
by_rule(const ZpHardware *hardware, ZpGpu gpu)
{
    gpu.gemm_flops = 0.0;
    return zp_hardware_sustained_flops(hardware, &gpu);
}

static void
set_flops(const Reader *reader, const ZpGpu *like, ZpGpu *gpu)
{
    double units = ratio(gpu->sm_count, like->sm_count);
    set(reader, ZP_MACHINE_BF16, like->flops_bf16 * units, &gpu->flops_bf16);
    double fp16 = ratio(gpu->flops_bf16, like->flops_bf16) * like->flops_fp16;
    set(reader, ZP_MACHINE_FP16, fp16 > 0.0 ? fp16 : gpu->flops_bf16, &gpu->flops_fp16);
    set(reader, ZP_MACHINE_TF32, like->flops_tf32 * units, &gpu->flops_tf32);
    set(reader, ZP_MACHINE_FP32, like->flops_fp32 * units, &gpu->flops_fp32);
    set(reader, ZP_MACHINE_FP8, like->flops_fp8 * units, &gpu->flops_fp8);
    double sustained =
        like->gemm_flops * ratio(by_rule(reader->hardware, *gpu), by_rule(reader->hardware, *like));
    set(reader, ZP_MACHINE_SUSTAINED, sustained, &gpu->gemm_flops);
}

static void
set_gpu(const Reader *reader, const ZpGpu *like, ZpGpu *gpu)
{
    const ZpMachineSetting *settings = reader->settings;
    const ZpEvidence evidence = {g_intern_string(reader->name), "given"};
    *gpu = *like;
    gpu->name = text_of(reader, ZP_MACHINE_GPU);
    if (settings[ZP_MACHINE_CHIP].given)
        gpu->chip = text_of(reader, ZP_MACHINE_CHIP);
    if (settings[ZP_MACHINE_MEMORY].given)
        gpu->memory_bytes = settings[ZP_MACHINE_MEMORY].value.integer;
    if (settings[ZP_MACHINE_MULTIPROCESSORS].given)
        gpu->sm_count = (int)settings[ZP_MACHINE_MULTIPROCESSORS].value.integer;
    if (settings[ZP_MACHINE_POWER].given)
        gpu->power_watts = (double)settings[ZP_MACHINE_POWER].value.integer;
    set_flops(reader, like, gpu);
    set(reader, ZP_MACHINE_BANDWIDTH, like->memory_bytes_per_s, &gpu->memory_bytes_per_s);
    set(reader, ZP_MACHINE_BANDWIDTH_SUSTAINED,
        like->memory_measured_bytes_per_s *
            ratio(gpu->memory_bytes_per_s, like->memory_bytes_per_s),
        &gpu->memory_measured_bytes_per_s);
    set(reader, ZP_MACHINE_LINK, like->link_bytes_per_s, &gpu->link_bytes_per_s);
    double links = ratio(gpu->link_bytes_per_s, like->link_bytes_per_s);
    gpu->pair_bytes_per_s *= links;
    gpu->ring_bytes_per_s *= links;
    gpu->nvls_bytes_per_s *= links;
    double h2d = like->host_to_device_bytes_per_s;
    set(reader, ZP_MACHINE_H2D, h2d, &gpu->host_to_device_bytes_per_s);
    set(reader, ZP_MACHINE_D2H,
        h2d > 0.0 ? like->device_to_host_bytes_per_s * gpu->host_to_device_bytes_per_s / h2d
                  : gpu->host_to_device_bytes_per_s,
        &gpu->device_to_host_bytes_per_s);
    gpu->memory = gpu->flops = gpu->bandwidth = gpu->link = gpu->host_link = evidence;
}

static gboolean
check_chip(Reader *reader, const char *chip)
{
    if (chip == NULL || zp_hardware_chip(reader->hardware, chip) != NULL)
        return TRUE;
    g_autoptr(GString) legal = g_string_new("unknown chip; legal are");
    gsize n = 0;
    const ZpChip *chips = zp_hardware_chips(reader->hardware, &n);
    for (gsize i = 0; i < n; i++)
        g_string_append_printf(legal, "%s %s", i > 0 ? "," : "", chips[i].name);
    complain(reader, ZP_MACHINE_CHIP, ZP_SCENARIO_ERROR_UNKNOWN, legal->str);
    return FALSE;
}

static void
check_needed(Reader *reader)
{
    static const ZpMachineKey needed[] = {ZP_MACHINE_MEMORY, ZP_MACHINE_BANDWIDTH};
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++) {
        if (!reader->settings[needed[i]].given)
            complain(reader, needed[i], ZP_SCENARIO_ERROR_MISSING,
                     "missing: state it, or the GPU of the catalogue that this one is like");
    }
    if (!reader->settings[ZP_MACHINE_BF16].given && !reader->settings[ZP_MACHINE_FP16].given)
        complain(reader, ZP_MACHINE_BF16, ZP_SCENARIO_ERROR_MISSING,
                 "missing: state it or fp16, or the GPU of the catalogue that this one is like");
}

static void
read_gpu(Reader *reader)
{
    ZpScenarioMachine *own = &reader->resolve->state->machine;
    const char *name = text_of(reader, ZP_MACHINE_GPU),
               *like = text_of(reader, ZP_MACHINE_GPU_LIKE);
    gboolean any = FALSE;
    for (int k = ZP_MACHINE_GPU_LIKE; k <= ZP_MACHINE_POWER; k++)
        any |= reader->settings[k].given;
    if (name == NULL && any)
        complain(reader, ZP_MACHINE_GPU, ZP_SCENARIO_ERROR_MISSING,
                 "missing: the GPU needs a name");
    if (name == NULL)
        return;
    const ZpGpu *relative = like != NULL ? zp_hardware_gpu(reader->hardware, like) : NULL;
    if (zp_hardware_gpu(reader->hardware, name) != NULL)
        complain(reader, ZP_MACHINE_GPU, ZP_SCENARIO_ERROR_CONFLICT,
                 "the catalogue has a GPU of this name: choose another");
    if (like != NULL && relative == NULL)
        complain(reader, ZP_MACHINE_GPU_LIKE, ZP_SCENARIO_ERROR_UNKNOWN,
                 "unknown GPU; `zeropeak list gpus` shows all");
    if (like == NULL)
        check_needed(reader);
    if (!check_chip(reader, text_of(reader, ZP_MACHINE_CHIP)))
        return;
    const ZpGpu nothing = {0};
    set_gpu(reader, relative != NULL ? relative : &nothing, &own->gpu);
    own->like = relative != NULL ? relative->name : NULL;
    own->link_ratio =
        relative != NULL ? ratio(own->gpu.link_bytes_per_s, relative->link_bytes_per_s) : 1.0;
}

static void
read_node(Reader *reader)
{
    ZpScenarioMachine *own = &reader->resolve->state->machine;
    const ZpMachineSetting *settings = reader->settings;
    const char *name = text_of(reader, ZP_MACHINE_NODE);
    if (name == NULL &&
        (settings[ZP_MACHINE_NODE_GPUS].given || settings[ZP_MACHINE_NETWORK].given))
        complain(reader, ZP_MACHINE_NODE, ZP_SCENARIO_ERROR_MISSING,
                 "missing: the node needs a name");
    if (name == NULL)
        return;
    if (zp_hardware_node(reader->hardware, name) != NULL || strcmp(name, "none") == 0)
        complain(reader, ZP_MACHINE_NODE, ZP_SCENARIO_ERROR_CONFLICT,
                 "the catalogue has a node of this name: choose another");
    own->node = (ZpNode){.name = name, .gpu = own->gpu.name};
    own->node.gpus = (int)settings[ZP_MACHINE_NODE_GPUS].value.integer;
    own->node.network_bytes_per_s = settings[ZP_MACHINE_NETWORK].value.real;
}

static void
read_fabric(Reader *reader)
{
    static const struct {
        ZpMachineKey key;
        ZpSchemaId id;
    } rows[] = {{ZP_MACHINE_LINK_EFFICIENCY, ZP_KEY_LINK_EFFICIENCY},
                {ZP_MACHINE_LINK_LATENCY, ZP_KEY_LINK_LATENCY},
                {ZP_MACHINE_NETWORK_EFFICIENCY, ZP_KEY_NETWORK_EFFICIENCY},
                {ZP_MACHINE_NETWORK_LATENCY, ZP_KEY_NETWORK_LATENCY}};
    ZpScenarioMachine *own = &reader->resolve->state->machine;
    const char *like = text_of(reader, ZP_MACHINE_FABRIC_LIKE);
    if (like != NULL && zp_hardware_node(reader->hardware, like) == NULL)
        complain(reader, ZP_MACHINE_FABRIC_LIKE, ZP_SCENARIO_ERROR_UNKNOWN,
                 "unknown node; `zeropeak list nodes` shows all");
    own->fabric = like;
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        if (reader->settings[rows[r].key].given)
            zp_scenario_resolve_put_own(reader->resolve, rows[r].id,
                                        &reader->settings[rows[r].key].value,
                                        g_intern_string(reader->name));
    }
}

void
zp_scenario_read_machine(ZpScenarioResolve *resolve)
{
    const char *file = zp_scenario_key_text(resolve, ZP_KEY_FILE);
    if (strcmp(file, "none") == 0)
        return;
    Reader reader = {
        .resolve = resolve, .hardware = resolve->state->hardware->hardware, .name = file};
    g_autofree char *path = zp_settings_file(resolve->state->settings, ZP_KEY_FILE, file);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    if (!g_file_get_contents(path, &text, &length, &error)) {
        zp_scenario_resolve_complain(resolve, ZP_KEY_FILE, ZP_SCENARIO_ERROR_IO,
                                     "%s; legal are none and the path of a file with [gpu], [node] "
                                     "or [fabric]",
                                     error->message);
        return;
    }
    if (!zp_machine_parse(text, length, file, reader.settings, resolve->problems))
        return;
    read_gpu(&reader);
    read_node(&reader);
    read_fabric(&reader);
}
