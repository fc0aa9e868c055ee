/* All runtimes: the one place that knows each of them. */
#pragma once

#include "models/job/runtime.h"

/* By name ("ideal", "deepspeed", ...); NULL if unknown. */
const ZpRuntime *zp_registry_find(const char *name);
const ZpRuntime *const *zp_registry_table(gsize *n);
