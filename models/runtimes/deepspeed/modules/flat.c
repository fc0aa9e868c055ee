#include "models/runtimes/deepspeed/modules/flat.h"

void
zp_ds_flat_group_init(ZpDsFlatGroup *group, const gint64 *elements, gint32 n, gint32 ranks,
                      gboolean round_robin)
{
    *group = (ZpDsFlatGroup){.n = n,
                             .order = g_new(gint32, (gsize)MAX(n, 1)),
                             .start = g_new(gint64, (gsize)(n + 1)),
                             .ranks = ranks};
    gint32 stride = round_robin ? ranks : 1, place = 0;
    for (gint32 residue = 0; residue < stride; residue++)
        for (gint32 i = residue; i < n; i += stride)
            group->order[place++] = i;
    group->start[0] = 0;
    for (gint32 i = 0; i < n; i++)
        group->start[i + 1] = group->start[i] + elements[group->order[i]];
    group->elements = group->start[n];
    gint64 alignment = 2 * (gint64)ranks;
    group->flat_elements = (group->elements + alignment - 1) / alignment * alignment;
    group->slice_elements = group->flat_elements / ranks;
}

void
zp_ds_flat_group_clear(ZpDsFlatGroup *group)
{
    g_clear_pointer(&group->order, g_free);
    g_clear_pointer(&group->start, g_free);
}

void
zp_ds_flat_group_touching(const ZpDsFlatGroup *group, gint32 rank, gint32 *first, gint32 *end)
{
    gint64 begin = rank * group->slice_elements;
    gint64 stop = begin + group->slice_elements;
    *first = *end = group->n;
    for (gint32 i = group->n - 1; i >= 0; i--) {
        if (group->start[i + 1] <= begin)
            break;
        if (group->start[i] < stop && zp_ds_flat_group_size(group, i) > 0)
            *first = i;
        else if (group->start[i] >= stop)
            *end = i;
    }
    if (*first == group->n)
        *end = *first;
}

gint64
zp_ds_flat_group_touching_elements(const ZpDsFlatGroup *group, gint32 rank)
{
    gint32 first, end;
    zp_ds_flat_group_touching(group, rank, &first, &end);
    return group->start[end] - group->start[first];
}

gint64
zp_ds_flat_group_inside(const ZpDsFlatGroup *group, gint32 place, gint32 rank)
{
    gint64 begin = MAX(group->start[place], rank * group->slice_elements);
    gint64 end = MIN(group->start[place + 1], (rank + 1) * group->slice_elements);
    return MAX(end - begin, 0);
}

gint32
zp_ds_sub_groups(const gint64 *partitions, gint32 n, gint64 limit, gint32 *sub_group)
{
    gint64 total = 0;
    for (gint32 i = 0; i < n; i++)
        total += partitions[i];
    gint32 current = 0;
    gint64 held = 0;
    for (gint32 i = 0; i < n; i++) {
        sub_group[i] = current;
        held += partitions[i];
        if (total > limit && held >= limit && i + 1 < n) {
            current++;
            held = 0;
        }
    }
    return n > 0 ? current + 1 : 0;
}
