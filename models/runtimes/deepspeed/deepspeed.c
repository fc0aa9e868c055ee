#include "models/runtimes/deepspeed/deepspeed.h"

#include "models/runtimes/deepspeed/compile.h"

static gboolean
compile(const ZpJob *job, const ZpUnits *units, ZpTape *tape, GError **error)
{
    (void)units; /* DeepSpeed's unit is the module */
    ZpDeepspeed defaults;
    zp_deepspeed_init(&defaults);
    return zp_ds_compile(job, job->deepspeed != NULL ? job->deepspeed : &defaults, tape, NULL, NULL,
                         error);
}

static gboolean
supports_stage(int stage)
{
    return stage >= 0 && stage <= 3;
}

const ZpRuntime zp_runtime_deepspeed = {
    .name = "deepspeed",
    .summary = "DeepSpeed 0.19: its buffers, buckets, hooks and lifetimes, freed in host order",
    .compile = compile,
    .supports_stage = supports_stage,
};
