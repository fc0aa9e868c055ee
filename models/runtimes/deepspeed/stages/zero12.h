/* Shared by the files of stages 1 and 2 (DeepSpeedZeroOptimizer). */
#pragma once

#include "models/runtimes/deepspeed/modules/flat.h"
#include "models/runtimes/deepspeed/stages/program.h"

typedef struct {
    ZpDsFlatGroup *groups;
    GArray **members;         /* by group: ids in list order */
    gint32 *place_of;         /* by ds_id: place in its group's flat buffer */
    gboolean *in_slice;       /* by ds_id: touches this rank's slice */
    gint64 touching_elements; /* S_r: full sizes of the parameters that touch this rank's slices */
    gint64 largest_elements;
    gboolean offload, contiguous, two_stage; /* two_stage: stage 2 */
    guint8 stream;                           /* where reductions are launched */
    /* buckets */
    gint32 ipg[2], n_ipg, ipg_index;
    GArray *bucket; /* gint32 ids */
    gint64 bucket_elements;
    gboolean extra_large; /* the bucket is one gradient larger than a bucket, not copied */
    GArray *deferred;     /* gint32: reduced gradients of others, freed with the next reduction */
    /* gradients kept from backward to step */
    gint32 in_partition; /* this backward's buffer (grads_in_partition) */
    gint32 accumulated;  /* the one of earlier micro-batches */
    gint32 *own_storage; /* by ds_id: kept gradient without contiguous_gradients */
    gint32 *accumulator; /* by ds_id: param.grad_accum (stage 1, other accumulation format) */
    gint32 *padding;     /* by group: zeros behind the last parameter */
    /* host */
    gint32 *on_host; /* by ds_id: gradient accumulated in host memory */
} ZpDs12;

/* zero12_reduce.c */
void zp_ds12_add_to_bucket(ZpDsProgram *program, gint32 id);
void zp_ds12_flush(ZpDsProgram *program);
/* zero12_step.c */
void zp_ds12_step(ZpDsProgram *program);
/* zero12_offload.c */
void zp_ds12_offload_begin(ZpDsProgram *program);
void zp_ds12_offload_gradient(ZpDsProgram *program, gint32 id);
void zp_ds12_offload_step(ZpDsProgram *program);
