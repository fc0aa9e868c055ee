/* Memory of one rank: bytes by tensor class, their sum, and the peak.
 *
 * Counting only: allocation always succeeds, and exceeding the capacity is a result (the first
 * time it happened), since a simulator must say by how much a run does not fit. */
#pragma once

#include "sim/tape/tape.h"

typedef struct {
    gint64 bytes[ZP_TAPE_MAX_CLASSES];               /* now, by class */
    gint64 peak_bytes_by_class[ZP_TAPE_MAX_CLASSES]; /* composition at the peak of the total */
    gint64 class_peak_bytes[ZP_TAPE_MAX_CLASSES];    /* each class's own maximum */
    gint64 total_bytes, peak_bytes;
    ZpTime peak_time;
    gint32 peak_instr;  /* the instruction that reached the peak first; ZP_TAPE_NONE before any */
    gint64 n_changes;   /* ALLOC, FREE and RETAG so far */
    gint64 peak_change; /* value of n_changes right after the change that made the peak */
    gint64 capacity_bytes;   /* 0: unlimited */
    gint32 first_over_instr; /* first instruction over the capacity, or ZP_TAPE_NONE */
    ZpTime first_over_time;
} ZpMemory;

void zp_memory_init(ZpMemory *memory, gint64 capacity_bytes);

/* Applies an allocation (bytes > 0) or a release (bytes < 0).  Asserts that no class goes
 * negative and that the classes sum to the total. */
void zp_memory_change(ZpMemory *memory, guint8 class_id, gint64 bytes, ZpTime time, gint32 instr);
void zp_memory_retag(ZpMemory *memory, guint8 from, guint8 to, gint64 bytes, ZpTime time,
                     gint32 instr);
