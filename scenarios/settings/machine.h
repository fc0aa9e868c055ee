/* A file of an own GPU, node and fabric (device.file): what it says, key by key.
 *
 * The syntax is a scenario's; its groups are [gpu], [node] and [fabric].  scenarios/machines/
 * h100-capped.ini is an example, scenarios/settings/machine.c has the table of keys. */
#pragma once

#include "scenarios/settings/settings.h"

typedef enum {
    ZP_MACHINE_GPU,
    ZP_MACHINE_GPU_LIKE,
    ZP_MACHINE_CHIP,
    ZP_MACHINE_MEMORY,
    ZP_MACHINE_BF16,
    ZP_MACHINE_FP16,
    ZP_MACHINE_TF32,
    ZP_MACHINE_FP32,
    ZP_MACHINE_FP8,
    ZP_MACHINE_SUSTAINED,
    ZP_MACHINE_BANDWIDTH,
    ZP_MACHINE_BANDWIDTH_SUSTAINED,
    ZP_MACHINE_LINK,
    ZP_MACHINE_H2D,
    ZP_MACHINE_D2H,
    ZP_MACHINE_MULTIPROCESSORS,
    ZP_MACHINE_POWER,
    ZP_MACHINE_NODE,
    ZP_MACHINE_NODE_GPUS,
    ZP_MACHINE_NETWORK,
    ZP_MACHINE_FABRIC_LIKE,
    ZP_MACHINE_LINK_EFFICIENCY,
    ZP_MACHINE_LINK_LATENCY,
    ZP_MACHINE_NETWORK_EFFICIENCY,
    ZP_MACHINE_NETWORK_LATENCY,
    ZP_N_MACHINE_KEYS,
} ZpMachineKey;

typedef struct {
    gboolean given;
    ZpSchemaValue value; /* bytes, bytes/s, FLOP/s, picoseconds; texts are interned */
    int line;
} ZpMachineSetting;

/* Reads `text` into `settings`; what is wrong is added to `problems`, as "NAME:LINE: [group] key:"
 * with what is legal.  FALSE where anything was. */
gboolean zp_machine_parse(const char *text, gsize length, const char *name,
                          ZpMachineSetting settings[ZP_N_MACHINE_KEYS], ZpProblems *problems);
/* Adds a problem of one key of a file that was read. */
void zp_machine_complain(const ZpMachineSetting *settings, ZpMachineKey key, const char *name,
                         ZpProblems *problems, ZpScenarioError code, const char *what);
