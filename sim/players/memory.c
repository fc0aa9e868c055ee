#include "sim/players/memory.h"

#include <string.h>

void
zp_memory_init(ZpMemory *memory, gint64 capacity_bytes)
{
    *memory = (ZpMemory){
        .peak_instr = ZP_TAPE_NONE,
        .capacity_bytes = capacity_bytes,
        .first_over_instr = ZP_TAPE_NONE,
    };
}

static inline void
check_sum(const ZpMemory *memory)
{
    gint64 sum = 0;
    for (int c = 0; c < ZP_TAPE_MAX_CLASSES; c++)
        sum += memory->bytes[c];
    g_assert(sum == memory->total_bytes);
}

static inline void
change_class(ZpMemory *memory, guint8 class_id, gint64 bytes)
{
    g_assert(class_id < ZP_TAPE_MAX_CLASSES);
    gint64 now = memory->bytes[class_id] + bytes;
    g_assert(now >= 0);
    memory->bytes[class_id] = now;
    if (now > memory->class_peak_bytes[class_id])
        memory->class_peak_bytes[class_id] = now;
}

void
zp_memory_change(ZpMemory *memory, guint8 class_id, gint64 bytes, ZpTime time, gint32 instr)
{
    change_class(memory, class_id, bytes);
    memory->total_bytes += bytes;
    memory->n_changes++;
    check_sum(memory);
    if (memory->total_bytes <= memory->peak_bytes)
        return;
    memory->peak_bytes = memory->total_bytes;
    memory->peak_time = time;
    memory->peak_instr = instr;
    memory->peak_change = memory->n_changes;
    memcpy(memory->peak_bytes_by_class, memory->bytes, sizeof memory->bytes);
    if (memory->capacity_bytes > 0 && memory->first_over_instr == ZP_TAPE_NONE &&
        memory->total_bytes > memory->capacity_bytes) {
        memory->first_over_instr = instr;
        memory->first_over_time = time;
    }
}

void
zp_memory_retag(ZpMemory *memory, guint8 from, guint8 to, gint64 bytes, ZpTime time, gint32 instr)
{
    (void)time;
    (void)instr;
    change_class(memory, from, -bytes);
    change_class(memory, to, bytes);
    memory->n_changes++;
    check_sum(memory);
}
