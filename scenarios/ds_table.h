/* The rows behind ds_schema.h, indexed by ZpDsKey.  Only ds_schema.c reads them. */
#pragma once

#include "scenarios/ds_schema.h"

extern const ZpDsEntry zp_ds_table[ZP_N_DS_KEYS];
