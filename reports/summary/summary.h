/* What a person reads: the short table of a run, the ledger, and why the peak is where it is.
 * GB is 10^9 and GiB 2^30 bytes; both are shown.  Lines fit 100 columns. */
#pragma once

#include "reports/text/report.h"

#define ZP_SUMMARY_COLUMNS 100

/* Step time, exposed communication, throughput, peak by class with where and when, persistent
 * bytes, verdict with headroom.  Escape sequences only with `color`. */
void zp_summary_run(const ZpReportRun *run, gboolean color, GString *out);

/* Goes after zp_summary_run(), which names the event: the buffers live at the peak by class, role
 * and unit, largest first.  Without a live set only a line that says so. */
void zp_summary_why(const ZpReportRun *run, GString *out);

/* The ledger: rows with dtype, bytes per element, copies, owners, bytes, share and evidence, then
 * the terms of the upper bound and a verdict.  Needs job, units and ledger only. */
void zp_summary_ledger(const ZpReportRun *run, gboolean color, GString *out);
