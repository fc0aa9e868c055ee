/* Shard units: which layers are gathered and resharded together. */
#pragma once

#include "models/job/job.h"

typedef struct {
    const char *name; /* interned: "embedding", "block.0", "block.0.attention", "root" */
    gint64 elements;  /* unique parameters */
    gint64 trainable_elements;
    gint64 largest_parameter_elements;
    gint32 first_layer, last_layer; /* span of use in forward order, inclusive */
} ZpUnit;

typedef struct {
    ZpUnit *units; /* in order of first use */
    gint32 n_units;
    gint32 *unit_of_layer; /* n_layers: the unit whose parameters the layer uses */
    gint32 n_layers;
} ZpUnits;

/* Applies zero->wrap and zero->outer.  A head tied to the embedding is in the embedding's unit
 * (one storage, one unit).  Layers without parameters join the unit of the layer before. */
ZpUnits *zp_wrapping_apply(const ZpModel *model, const ZpZero *zero);
void zp_wrapping_free(ZpUnits *units);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpUnits, zp_wrapping_free)

/* ceil(elements / ranks): what each rank stores of a unit, padding included. */
static inline gint64
zp_wrapping_shard_elements(gint64 elements, gint32 ranks)
{
    return elements / ranks + (elements % ranks != 0);
}
