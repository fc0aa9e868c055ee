/* The rows behind ds_schema.h and the words that keep them short.  Only ds_schema.c and the
 * tables themselves include it. */
#pragma once

#include "scenarios/imports/deepspeed/schema.h"

/* Indexed by key: batch, precision, zero_optimization. */
extern const ZpDsEntry zp_ds_table_core[ZP_DS_OPTIMIZER];
/* Indexed by key - ZP_DS_OPTIMIZER: the rest. */
extern const ZpDsEntry zp_ds_table_other[ZP_N_DS_KEYS - ZP_DS_OPTIMIZER];
