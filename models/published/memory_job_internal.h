/* A row of a table of runs as a job that is simulated for its memory; rules in
 * models/published/memory.h. */
#pragma once

#include "models/published/job_internal.h"

/* NULL with a reason (error) where the row says too little, or asks for what is not modelled. */
ZpValidateJob *zp_validate_memory_job_new(const ZpValidateRecord *record,
                                          const ZpHardware *hardware, GError **error);

/* The whole model, built for the job's cuts. */
ZpModel *zp_validate_memory_model(const ZpValidateRecord *record, const ZpJob *job, GError **error);
/* Replaces what the layers of a cut model keep by what models/activation/activation.h finds for the
 * row's program; FALSE for sizes that it refuses. */
gboolean zp_validate_memory_activations(const ZpValidateRecord *record, ZpModel *model,
                                        const ZpJob *job);
