/* How layers and collectives are priced: measured constants instead of the plain keys. */
#include <string.h>

#include "models/prices/board.h"
#include "models/prices/cost.h"
#include "models/prices/fabric.h"
#include "scenarios/load/resolve_internal.h"

static const ZpHardware *
hardware(const ZpScenarioResolve *resolve)
{
    return resolve->state->hardware->hardware;
}

/* Sweeps make many scenarios of one file: what the file said is kept with each. */
static void
read_file(ZpScenarioResolve *resolve, const char *name)
{
    ZpScenarioState *state = resolve->state;
    g_autofree char *path = zp_settings_file(state->settings, ZP_KEY_CALIBRATION, name);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (g_file_get_contents(path, &text, NULL, &error))
        state->calibration = zp_calibration_parse(text, &error);
    if (state->calibration == NULL) {
        zp_scenario_resolve_complain(resolve, ZP_KEY_CALIBRATION, ZP_SCENARIO_ERROR_IO,
                                     "%s; legal are built-in, none and the path of a file made by "
                                     "'zeropeak calibrate'",
                                     error->message);
        return;
    }
    zp_calibration_set_origin(state->calibration, name);
    if (resolve->gpu != NULL && strcmp(state->calibration->gpu, resolve->gpu->name) != 0)
        zp_scenario_resolve_warn(resolve, ZP_KEY_CALIBRATION,
                                 "was measured on %s, the scenario's GPU is %s",
                                 state->calibration->gpu, resolve->gpu->name);
    resolve->scenario->job.device.calibration = state->calibration;
}

void
zp_scenario_derive_prices(ZpScenarioResolve *resolve)
{
    gboolean known =
        resolve->gpu != NULL && zp_hardware_chip(hardware(resolve), resolve->gpu->chip);
    zp_scenario_resolve_put_text(resolve, ZP_KEY_CALIBRATION, known ? "built-in" : "none", NULL);
}

/* A stated figure replaces the catalogue's, and what was measured goes with it: a GPU whose peak or
 * achieved share is another computes faster in proportion, whatever the shape. */
static void
apply_stated(const ZpScenarioResolve *resolve, ZpCalibration *constants)
{
    constants->gemm_efficiency *= zp_scenario_resolve_stated(resolve, ZP_KEY_FLOPS_EFFICIENCY);
    constants->memory_efficiency *= zp_scenario_resolve_stated(resolve, ZP_KEY_MEMORY_EFFICIENCY);
    zp_calibration_scale_attention(
        constants, zp_scenario_resolve_stated(resolve, ZP_KEY_FLOPS) *
                       zp_scenario_resolve_stated(resolve, ZP_KEY_FLOPS_EFFICIENCY));
}

static void
set_calibration(ZpScenarioResolve *resolve)
{
    const char *name = resolve->state->effective[ZP_KEY_CALIBRATION].value.text;
    ZpDevice *device = &resolve->scenario->job.device;
    if (resolve->gpu != NULL) {
        device->name = g_intern_string(resolve->gpu->name);
        device->own_link_bytes_per_s = resolve->gpu->link_bytes_per_s;
        if (resolve->gpu == &resolve->state->machine.gpu) /* constants are of the one it is like */
            device->own_link_bytes_per_s /= resolve->state->machine.link_ratio;
    }
    if (resolve->node != NULL)
        resolve->scenario->job.network.node = g_intern_string(resolve->node->name);
    if (strcmp(name, "none") == 0)
        return;
    if (strcmp(name, "built-in") != 0) {
        read_file(resolve, name);
        return;
    }
    const char *gpu = resolve->gpu != NULL ? resolve->gpu->name : "a GPU without a name";
    resolve->state->calibration =
        resolve->gpu != NULL ? zp_board_constants(hardware(resolve), resolve->gpu) : NULL;
    device->calibration = resolve->state->calibration;
    if (device->calibration == NULL)
        zp_scenario_resolve_warn(resolve, ZP_KEY_CALIBRATION,
                                 "has no effect: nothing is known of the chip of %s; layers are "
                                 "priced by a roofline",
                                 gpu);
    else
        apply_stated(resolve, resolve->state->calibration);
}

/* By the compute capability that NVIDIA names architectures after. */
static int
generation_of(const char *gpu)
{
    static const struct {
        const char *prefix;
        int generation;
    } table[] = {{"B", 10}, {"GB", 10}, {"H", 9}, {"GH", 9}, {"A100", 8}, {"A800", 8}, {"V100", 7}};
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        if (g_str_has_prefix(gpu, table[i].prefix))
            return table[i].generation;
    }
    return 0;
}

static ZpTime
scaled(ZpTime time_ps, double factor)
{
    return zp_time_from_seconds(zp_time_to_seconds(time_ps) * factor);
}

/* As for the GPU: latencies and shares in proportion, and measured tables with the rates. */
static void
apply_stated_links(const ZpScenarioResolve *resolve, ZpNetwork *network)
{
    double link = zp_scenario_resolve_stated(resolve, ZP_KEY_LINK_EFFICIENCY);
    double nic = zp_scenario_resolve_stated(resolve, ZP_KEY_NETWORK_EFFICIENCY);
    network->link_efficiency *= link;
    network->network_efficiency *= nic;
    network->link_latency_ps =
        scaled(network->link_latency_ps, zp_scenario_resolve_stated(resolve, ZP_KEY_LINK_LATENCY));
    network->network_latency_ps = scaled(
        network->network_latency_ps, zp_scenario_resolve_stated(resolve, ZP_KEY_NETWORK_LATENCY));
    network->measured_link_rate = link * zp_scenario_resolve_stated(resolve, ZP_KEY_LINK_BANDWIDTH);
    network->measured_network_rate =
        nic * zp_scenario_resolve_stated(resolve, ZP_KEY_NETWORK_BANDWIDTH);
}

static void
set_collectives(ZpScenarioResolve *resolve)
{
    ZpNetwork *network = &resolve->scenario->job.network;
    ZpSchemaCollectives how =
        (ZpSchemaCollectives)zp_scenario_key_integer(resolve, ZP_KEY_COLLECTIVES);
    if (how == ZP_COLLECTIVES_SIMPLE) {
        network->algorithm = ZP_ALGORITHM_RING;
        return;
    }
    ZpAlgorithm algorithm = network->algorithm;
    const ZpScenarioMachine *own = &resolve->state->machine;
    const char *gpu =
        resolve->gpu == &own->gpu && own->like != NULL ? own->like : resolve->gpu->name;
    zp_cost_network_defaults(network, network->link_bytes_per_s, network->network_bytes_per_s,
                             generation_of(gpu));
    const char *node = resolve->node != NULL ? resolve->node->name : NULL;
    zp_cost_network_fabric(network, own->fabric != NULL ? own->fabric : node);
    network->algorithm = algorithm;
    apply_stated_links(resolve, network);
    if (resolve->gpu == &own->gpu)
        network->measured_link_rate *= own->link_ratio;
    if (how != ZP_COLLECTIVES_MEASURED)
        return;
    resolve->state->tables = zp_cost_tables_new(gpu, NULL);
    network->measured = resolve->state->tables;
}

void
zp_scenario_set_prices(ZpScenarioResolve *resolve)
{
    set_calibration(resolve);
    set_collectives(resolve);
}
