/* Shared by the reader of the catalogue and its look-up. */
#pragma once

#include "models/machine/hardware.h"

typedef struct {
    const char *name, *target;
} HardwareAlias;

typedef struct {
    const char *gpu; /* or "default" */
    ZpOverhead overhead;
} HardwareOverhead;

struct _ZpHardware {
    GStringChunk *strings; /* every name and source, once */
    GArray *gpus, *nodes;  /* ZpGpu, ZpNode */
    GArray *overheads;     /* HardwareOverhead */
    GArray *aliases;       /* HardwareAlias */
    GArray *chips;         /* ZpChip */
};

gboolean hardware_same_name(const char *a, const char *b);
