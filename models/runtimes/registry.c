#include "models/runtimes/registry.h"

#include <string.h>

#include "models/runtimes/ddp/ddp.h"
#include "models/runtimes/deepspeed/deepspeed.h"
#include "models/runtimes/fsdp1/fsdp1.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/runtimes/ideal/ideal.h"

static const ZpRuntime *const runtimes[] = {
    &zp_runtime_ideal, &zp_runtime_deepspeed, &zp_runtime_fsdp2,
    &zp_runtime_fsdp1, &zp_runtime_ddp,       &zp_runtime_none,
};

const ZpRuntime *
zp_registry_find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(runtimes); i++) {
        if (strcmp(runtimes[i]->name, name) == 0)
            return runtimes[i];
    }
    return NULL;
}

const ZpRuntime *const *
zp_registry_table(gsize *n)
{
    *n = G_N_ELEMENTS(runtimes);
    return runtimes;
}
