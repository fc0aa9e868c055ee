/* Memory peaks of a run's life beside the step, where the runtime knows them (deepspeed). */
#pragma once

#include <glib.h>

#include "models/job/job.h"
#include "models/step/verdict.h"

/* Appends a table of device and host peaks per episode and the verdict over all of them, which is
 * also given back; FALSE with `error` where the runtime has no lifecycle or refuses the job. */
gboolean zp_summary_lifecycle(const ZpJob *job, GString *out, ZpVerdict *worst,
                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
