/* Modules that are units of their own inside the unit of their block: with `wrap_trainable` each
 * one that has no children and a trainable weight, as peft's fsdp_auto_wrap_policy
 * (peft/utils/other.py) wraps adapters. */
#pragma once

#include "models/job/model.h"
#include "models/runtimes/fsdp/plan.h"

typedef struct {
    gint32 *of_module; /* by module: its unit, or ZP_FSDP_NONE */
    GArray *layers;    /* gint32 by such unit: the layer that it is in */
} ZpFsdpOwnUnits;

/* Numbers them from `first_unit` on, in the order of the parameters; none unless `wanted`. */
void zp_fsdp_own_units_find(ZpFsdpOwnUnits *own, const ZpModel *model, gboolean wanted,
                            gint32 first_unit);
void zp_fsdp_own_units_clear(ZpFsdpOwnUnits *own);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpFsdpOwnUnits, zp_fsdp_own_units_clear)

/* Interned. */
const char *zp_fsdp_own_unit_name(const ZpFsdpOwnUnits *own, const ZpModel *model, gint32 unit);

static inline gint32
zp_fsdp_own_unit(const ZpFsdpOwnUnits *own, gint32 module)
{
    return module == ZP_MODEL_NONE ? ZP_FSDP_NONE : own->of_module[module];
}
