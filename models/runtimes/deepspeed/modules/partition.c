#include "models/runtimes/deepspeed/modules/partition.h"

#include "models/runtimes/deepspeed/modules/tree.h"

gint64
zp_ds_secondary_elements(gint64 elements, gint32 ranks, gint32 secondary_ranks)
{
    return zp_ds_partition_elements(elements, ranks) * ranks / secondary_ranks;
}

gint64
zp_ds_quantizer_groups(gint64 elements)
{
    if (elements <= 0 || elements % 8 != 0)
        return -1;
    gint64 eighths = elements / 8;
    gint64 least = (elements + 7999) / 8000;
    gint64 best = eighths;
    for (gint64 d = 1; d <= eighths / d; d++) {
        if (eighths % d != 0)
            continue;
        if (d >= least)
            return MIN(best, d);
        if (eighths / d >= least)
            best = MIN(best, eighths / d);
    }
    return best;
}
