/* Devices, nodes and networks: numbers with their sources. */
#pragma once

#include <glib.h>

typedef struct {
    const char *source;
    const char *confidence; /* looked-up, derived, assumed, known */
} ZpEvidence;

typedef struct {
    const char *name;    /* "A100-80" */
    gint64 memory_bytes; /* what torch reports as total where known, else what nvidia-smi does */
    double flops_bf16, flops_fp16, flops_tf32, flops_fp32,
        flops_fp8;     /* dense peak per second; 0: none */
    double gemm_flops; /* best achieved bf16 matrix product, 0: unknown */
    double memory_bytes_per_s, memory_measured_bytes_per_s;
    double link_bytes_per_s; /* scale-up, per direction and GPU; 0: PCIe only */
    double pair_bytes_per_s; /* measured between one pair, 0: unknown */
    double ring_bytes_per_s; /* measured 8-GPU bus bandwidth, 0: unknown */
    double nvls_bytes_per_s; /* the same for all-reduce in the switch, 0: unknown */
    double host_to_device_bytes_per_s, device_to_host_bytes_per_s;
    int pcie_generation, sm_count;
    double power_watts;                                   /* limit; 0: unknown */
    const char *chip;                                     /* "GA100"; NULL: unknown */
    ZpEvidence memory, flops, bandwidth, link, host_link; /* of the figures used by default */
} ZpGpu;

/* What boards of one chip share (models/catalog/chips.csv). */
typedef struct {
    const char *name;  /* "GA100" */
    double efficiency; /* sustained large product over the dense peak, with power to spare */
    const char *base;  /* GPU whose measured constants stand for the chip */
    gboolean own;      /* the base is of this chip */
} ZpChip;

typedef struct {
    const char *name;           /* "DGX-A100" */
    int gpus;                   /* per node */
    double network_bytes_per_s; /* all NICs of the node, per direction; 0: a node without */
    int nics;
    double nic_bytes_per_s;
    double measured_bytes_per_s;        /* bus bandwidth seen on it: see its source; 0: unknown */
    const char *gpu;                    /* the GPU it comes with */
    ZpEvidence network, node, measured; /* node: the GPU count */
} ZpNode;

/* Kinds of memory outside the allocator. */
enum { ZP_OVERHEADS = 4 };
/* One named entry of it. */
typedef struct {
    const char *name; /* "context", "communicator", "further communicators", "workspace" */
    gint64 bytes;
    ZpEvidence evidence;
} ZpOverhead;

typedef struct _ZpHardware ZpHardware; /* the parsed catalogue */

/* The built-in catalogue (models/catalog/hardware.csv, embedded).  Aborts on a broken built-in.
 *
 * Memory is what the framework reports as total where that is known, else what the driver reports,
 * else the marketed figure.  Host link bandwidths nobody measured are derived from the PCIe
 * generation: 12, 25 and 53 GB/s for 3, 4 and 5, as measured on others. */
ZpHardware *zp_hardware_load(void);
void zp_hardware_free(ZpHardware *hardware);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpHardware, zp_hardware_free)

/* Names are matched without case, blanks, '-' and '_': catalogue names ("A100-SXM-80") and common
 * aliases ("A100-80", "RTX 4090").  NULL if unknown. */
const ZpGpu *zp_hardware_gpu(const ZpHardware *hardware, const char *name);
const ZpNode *zp_hardware_node(const ZpHardware *hardware, const char *name);
/* NULL if unknown. */
const ZpChip *zp_hardware_chip(const ZpHardware *hardware, const char *name);
const ZpChip *zp_hardware_chips(const ZpHardware *hardware, gsize *n);
const ZpGpu *zp_hardware_gpus(const ZpHardware *hardware, gsize *n);
const ZpNode *zp_hardware_nodes(const ZpHardware *hardware, gsize *n);
/* FLOP/s of a large 16-bit matrix product that the board sustains: measured, or (rule G)
 *   marketed peak x efficiency of the chip x min(1, (watt / marketed TFLOP/s)^0.45):
 * 3.1 % mean, 9.7 % at most over 20 boards, each left out; one efficiency a chip without power 10.1
 * and 25 %.  0: neither is known. */
double zp_hardware_sustained_flops(const ZpHardware *hardware, const ZpGpu *gpu);
/* Default overhead entries for a GPU and number of communicators (first one, all further ones in
 * one entry); `gpu` NULL: any GPU.  Fills up to n_max, returns n. */
gsize zp_hardware_overheads(const ZpHardware *hardware, const ZpGpu *gpu, int n_communicators,
                            ZpOverhead *entries, gsize n_max);
