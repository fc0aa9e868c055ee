/* A checkpointed region: what its saved tensors are, and the program that makes them again. */
#pragma once

#include "models/activation/operators/trace.h"

struct _ZpTraceFrame {
    int references;
    ZpTraceRecompute policy;
    ZpTraceProgram program;
    gconstpointer data;
    ZpTensor *input;
    int handles, recomputed_handles;
    gboolean recomputed;
    GPtrArray *values; /* ZpTensor by handle, NULL once handed out */
    GQueue cached[ZP_CACHED_KINDS];
    int products; /* of the running pass */
};

/* The region's instants are of its own parts, whoever asked for it; output NULL: dropped. */
void zp_frame_run_again(ZpTrace *trace, ZpTraceProgram program, ZpTensor *input, gconstpointer data,
                        ZpTensor **output);
