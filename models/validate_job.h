/* A row of a table of runs as a job.  See models/validate.h for the columns and the rules. */
#pragma once

#include "models/cost_calibration.h"
#include "models/deepspeed.h"
#include "models/fsdp.h"
#include "models/hardware.h"
#include "models/validate_record.h"

typedef struct {
    ZpModel *model, *last_stage;
    ZpCalibration *calibration; /* own copy: what the row says of its program is set in it */
    ZpCostTables *tables;
    ZpFsdp fsdp;
    ZpDeepspeed deepspeed;
    ZpJob job;
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
