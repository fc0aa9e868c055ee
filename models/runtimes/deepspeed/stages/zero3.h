/* Shared by the files of stage 3 (DeepSpeedZeroOptimizer_Stage3). */
#pragma once

#include "models/runtimes/deepspeed/stages/program.h"

/* Parameters updated together: their partitions are one flat master. */
typedef struct {
    GArray *ids;      /* gint32 */
    gint64 elements;  /* of this rank's partitions */
    gboolean on_host; /* its optimizer state is */
    gboolean on_nvme; /* its optimizer state is */
    gboolean parameters_on_nvme;
} ZpDsSubGroup;

typedef struct {
    ZpDsCoordinator *coordinator;
    ZpDsGathers gathers;
    GArray *sub_groups;        /* ZpDsSubGroup */
    gint32 *sub_group_of;      /* by ds_id */
    gint64 partition_elements; /* P3 */
    gint64 host_flat_elements; /* offloaded parameters kept in host memory */
    gboolean offload;          /* optimizer on host or NVMe */
    /* bucket */
    GArray *bucket; /* gint32 ids */
    gint64 bucket_elements;
    GQueue reduced; /* events of flushes the host has not synchronised */
} ZpDs3;

/* zero3_init.c */
void zp_ds3_begin(ZpDsProgram *program);
/* zero3_reduce.c */
void zp_ds3_gradient(ZpDsProgram *program, gint32 id);
void zp_ds3_flush(ZpDsProgram *program);
/* zero3_step.c */
void zp_ds3_step(ZpDsProgram *program);
/* zero3_offload.c */
void zp_ds3_offload_begin(ZpDsProgram *program);
/* One gradient partition of `elements` on its way to host memory; `held` gets device temporaries
 * that live until the flush ends. */
void zp_ds3_offload_gradient(ZpDsProgram *program, gint32 id, gint64 elements, GArray *held);
void zp_ds3_offload_update(ZpDsProgram *program, const ZpDsSubGroup *group);
/* Page-locked buffers of the NVMe tier. */
void zp_ds3_make_pools(ZpDsProgram *program);
/* NVMe sizes. */
gint64 zp_ds3_nvme_aligned_elements(int dtype, gint64 elements);
/* Is a tensor of `bytes` swapped, or too small? */
gboolean zp_ds3_nvme_swaps(gint64 bytes);

static inline gint64
zp_ds3_partition(const ZpDsProgram *program, gint32 id)
{
    return zp_ds_partition_elements(zp_ds_program_elements(program, id), program->ds.shard_ranks);
}
