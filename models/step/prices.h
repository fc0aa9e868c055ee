/* How the works of a step were priced: one entry per kind, size of group and rule. */
#pragma once

#include "models/words/vocabulary.h"
#include "sim/tape/tape.h"

typedef struct {
    ZpKind kind;
    ZpTapeCategory category;
    gint32 ranks;     /* that take part; 1: work of one rank */
    const char *rule; /* models/prices/cost.h; NULL: the tape does not say */
    gint64 count;
    gint64 bytes;      /* message bytes */
    gint64 wire_bytes; /* per rank, on the link */
    ZpTime busy_ps;    /* sum of durations alone on the link */
    double flops;
} ZpStepPrice;

/* Of the last step: GArray of ZpStepPrice, collectives first, then copies, kernels and the host's
 * work, each in order of their first launch. */
GArray *zp_step_prices(const ZpTape *tape);

/* Bus bandwidth as nccl-tests define it: wire bytes per second; 0 where nothing was sent. */
double zp_step_price_bus_bytes_per_s(const ZpStepPrice *price);
