/* A row of a table of runs as a job, for the time of its step.  See models/published/validate.h for
 * the columns and the rules; models/published/memory_job_internal.h makes the same of it for its
 * memory. */
#pragma once

#include "models/job/deepspeed.h"
#include "models/job/fsdp.h"
#include "models/machine/hardware.h"
#include "models/prices/calibration.h"
#include "models/published/record_internal.h"

typedef struct {
    ZpModel *model, *last_stage;
    ZpFsdp fsdp;
    ZpDeepspeed deepspeed;
    ZpJob job;
    /* For time alone. */
    ZpCalibration *calibration; /* own copy: what the row says of its program is set in it */
    ZpCostTables *tables;
    gint64 memory_bytes; /* of the GPU */
} ZpValidateJob;

/* `own` (or NULL) takes the place of the built-in constants of the GPU it names, or of every GPU
 * where it names none.  NULL with a reason (error) where the row says too little, or asks for what
 * is not modelled. */
ZpValidateJob *zp_validate_job_new(const ZpValidateCsv *csv, guint record,
                                   const ZpHardware *hardware, const ZpCalibration *own,
                                   GError **error);
void zp_validate_job_free(ZpValidateJob *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpValidateJob, zp_validate_job_free)

/* Steps in which time and memory do not differ.  A job begins with a block a unit and all else in
 * the root unit, two steps of one rank. */
ZpValidateJob *zp_validate_job_start(void);
/* Checks the cuts of a job whose training is whole; sets ranks, their sequence and shard group. */
gboolean zp_validate_job_place(ZpValidateJob *job, const ZpValidateRecord *record, gint64 gpus,
                               GError **error);
/* Takes the whole model and leaves a rank's, then the first stage of a pipeline. */
gboolean zp_validate_job_cut(ZpValidateJob *job, ZpModel *model, ZpDtype compute, GError **error);
gboolean zp_validate_job_cut_stage(ZpValidateJob *job, GError **error);
