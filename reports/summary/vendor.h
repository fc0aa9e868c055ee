/* What DeepSpeed's own estimators say, beside what is simulated, with the gap by tensor class. */
#pragma once

#include "models/ledger/vendor_estimate.h"
#include "reports/text/report.h"

/* The estimator's answer to every choice of offload, then the gap to the job's simulated peak.
 * Needs job and summary of `run`; stages 2 and 3 only. */
void zp_summary_vendor(const ZpReportRun *run, const ZpVendorQuestion *question, gboolean color,
                       GString *out);
