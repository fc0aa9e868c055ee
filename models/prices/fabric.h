/* What a kind of network between nodes costs a collective, whatever its bandwidth.
 *
 * Two numbers that published measurements give: the time of an all-reduce of a few bytes over two
 * nodes, and the tau of the pipeline (models/prices/cost.h).  Latencies are nccl-tests' (one
 * process a GPU), plus 23 us to launch from torch:
 *
 *     InfiniBand, RoCE    36 us   Vultr, 2 nodes of B200, NDR
 *     EFA, version 1     164 us   aws-samples, p4de
 *     EFA, version 2      69 us   aws-samples, p5
 *     EFA, version 3, 4  260 us   as torch launches it (stas00/ml-engineering, p6-b200)
 *     GCP: TCPXO, gIB    100 us   dstack, A3 Mega and A4 (no small messages: extrapolated)
 *     GCP: TCPX          614 us   dstack, A3 High (likewise)
 *
 * The taus are fitted to all tables of a family: InfiniBand and RoCE, EFA, GCP. */
#pragma once

#include "models/job/job.h"

#define ZP_COST_FABRIC_LAUNCH_PS (23 * ZP_TIME_PER_US) /* from torch; part of the latency set */

typedef enum { ZP_FABRIC_INFINIBAND, ZP_FABRIC_EFA, ZP_FABRIC_GCP, ZP_N_FABRICS } ZpFabric;

/* Sets network_latency_ps and network_tau_ps by the name of a node or its network: "AWS-p5",
 * "EFAv2 32x100Gb", "GCP-a3-mega".  Case does not count; NULL or no name known: InfiniBand. Returns
 * the family. */
ZpFabric zp_cost_network_fabric(ZpNetwork *network, const char *name);
