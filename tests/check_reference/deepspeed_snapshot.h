/* What a tape holds at a place, in the words of the recorded runs. */
#pragma once

#include "deepspeed_case.h"

/* Live buffers after the first `end` instructions, in order of allocation, as (class, role). */
typedef struct {
    gint32 buffer;
    guint8 class_id, role;
} DsLive;
GArray *ds_live_buffers(const ZpTape *tape, gint32 end);
gint64 ds_live_bytes(const ZpTape *tape, const GArray *live, ZpClass class_id, ZpRole role);
/* Sizes of the live buffers of a class and role. */
GArray *ds_live_sizes(const ZpTape *tape, const GArray *live, ZpClass class_id, ZpRole role);

typedef struct {
    const ZpTape *tape;
    const ZpDs *formats; /* dtypes */
    const ZpDeepspeed *settings;
    int stage;
    gint32 begin; /* for one recorded place: instructions before it */
    gboolean after_backward, boundary, after_init;
    gint64 gathered_elements;
    gint64 averaged_bytes;
    gint64 frozen_bytes; /* stage 3: partitions of frozen parameters */
} DsPlace;
void ds_compare_snapshot(DsCheck *check, const char *where, const DsPlace *place,
                         JsonObject *expected);
