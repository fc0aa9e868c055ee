/* How a parameter is cut: partitions of the shard group, secondary ones, groups of the quantiser.
 */
#pragma once

#include <glib.h>

/* Elements of the flat buffer of a gather from secondary partitions or primary ones. */
gint64 zp_ds_secondary_elements(gint64 elements, gint32 ranks, gint32 secondary_ranks);

/* qwZ: groups of the quantiser for a payload of `elements`: the smallest count from
 * ceil(elements / 8000) that divides the payload into multiples of 8; -1 if there is none. */
gint64 zp_ds_quantizer_groups(gint64 elements);
