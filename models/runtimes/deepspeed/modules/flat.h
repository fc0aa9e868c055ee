/* Stages 1 and 2: a parameter group as one flat buffer cut into equal slices, one per rank.
 *
 * Parameters are concatenated in the optimizer's order (or round-robin: those of residue 0 modulo
 * the ranks first, then residue 1 ...), padded at the end only, to a multiple of 2 x ranks
 * elements.  Slice boundaries ignore parameter boundaries.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage_1_and_2.py (__init__, _round_robin_reorder,
 * get_data_parallel_partitions, get_partition_info), runtime/utils.py (align_dense_tensors). */
#pragma once

#include <glib.h>

typedef struct {
    gint32 n;
    gint32 *order;         /* positions in the group's list, in the order of the flat buffer */
    gint64 *start;         /* by place in the flat buffer: first element; start[n] = elements */
    gint64 elements;       /* without padding */
    gint64 flat_elements;  /* with padding */
    gint64 slice_elements; /* of each rank */
    gint32 ranks;
} ZpDsFlatGroup;

void zp_ds_flat_group_init(ZpDsFlatGroup *group, const gint64 *elements, gint32 n, gint32 ranks,
                           gboolean round_robin);
void zp_ds_flat_group_clear(ZpDsFlatGroup *group);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpDsFlatGroup, zp_ds_flat_group_clear)

static inline gint64
zp_ds_flat_group_size(const ZpDsFlatGroup *group, gint32 place)
{
    return group->start[place + 1] - group->start[place];
}

/* Places [*first, *end) of the flat buffer that touch the slice of `rank`; empty when the slice
 * is padding alone. */
void zp_ds_flat_group_touching(const ZpDsFlatGroup *group, gint32 rank, gint32 *first, gint32 *end);
/* Sum of the *full* sizes of the parameters that touch the slice: what grads_in_partition holds. */
gint64 zp_ds_flat_group_touching_elements(const ZpDsFlatGroup *group, gint32 rank);
/* Elements of the parameter at `place` inside the slice of `rank`. */
gint64 zp_ds_flat_group_inside(const ZpDsFlatGroup *group, gint32 place, gint32 rank);

/* Stage 3: parameters' partitions in order close a sub-group when their sum reaches `limit`; one
 * group if all fit.  Gives the index of each parameter's sub-group and returns their number.
 * Source: runtime/zero/stage3.py, _create_fp16_sub_groups. */
gint32 zp_ds_sub_groups(const gint64 *partitions, gint32 n, gint64 limit, gint32 *sub_group);
