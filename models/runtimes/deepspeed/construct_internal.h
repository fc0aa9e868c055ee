/* Building the model and the engine: transient memory on the device and in host memory. */
#pragma once

#include "models/runtimes/deepspeed/stages/program.h"

/* Writes the construction from an empty device to what the first step finds. */
void zp_ds_construct(ZpDsProgram *program);
