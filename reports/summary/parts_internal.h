/* Pieces that the summaries share. */
#pragma once

#include "reports/text/report.h"
#include "reports/text/table.h"

/* Name, source and the line that says what was simulated. */
void zp_summary_head(const ZpReportRun *run, gboolean color, GString *out);
/* Cells in GB and GiB to the MB, so that a column's points align; then with the share of `whole`.
 */
void zp_summary_amount_cells(ZpTable *table, gint64 bytes);
void zp_summary_bytes_cells(ZpTable *table, gint64 bytes, gint64 whole);
/* What priced the works of the last step: kind, ranks, bytes, time, rate and rule. */
void zp_summary_prices(const ZpReportRun *run, gboolean color, GString *out);
/* "Verdict: fits, ... to spare of ..." */
typedef struct {
    ZpVerdict verdict;
    gint64 capacity_bytes, contingency_bytes, headroom_bytes;
    gint64 low_bytes, high_bytes; /* the band of what is needed; 0: none is known */
    gint64 n_flushes;             /* times the allocator emptied its cache */
} ZpSummaryVerdict;
void zp_summary_verdict(const ZpSummaryVerdict *what, gboolean color, GString *out);
/* Where the last step's time went, summed to the step. */
void zp_summary_parts(const ZpReportRun *run, gboolean color, GString *out);
/* What the caching allocator reserved and why; nothing where the run had none. */
void zp_summary_allocator(const ZpReportRun *run, GString *out);
/* The live set at the peak, grouped by class, role and unit, largest first. */
void zp_summary_live(const ZpReportRun *run, GString *out);
