/* JSON pieces that receipts share. */
#pragma once

#include <json-glib/json-glib.h>

#include "reports/store/recorder.h"
#include "reports/text/report.h"

/* Members of an open object; NULL text becomes null. */
void zp_receipt_text(JsonBuilder *json, const char *key, const char *text);
void zp_receipt_int(JsonBuilder *json, const char *key, gint64 value);
void zp_receipt_double(JsonBuilder *json, const char *key, double value);
void zp_receipt_bool(JsonBuilder *json, const char *key, gboolean value);
void zp_receipt_object(JsonBuilder *json, const char *key);
void zp_receipt_array(JsonBuilder *json, const char *key);

/* "verdict" (fits, tight, does not fit) and "fits" (the simulated figure itself); null without a
 * capacity. */
void zp_receipt_verdict(JsonBuilder *json, const ZpStepSummary *summary);

/* schema, version, name, source, inputs, job. */
void zp_receipt_head(JsonBuilder *json, const ZpReportRun *run, const char *schema);
void zp_receipt_ledger(JsonBuilder *json, const ZpLedger *ledger);
void zp_receipt_trace(JsonBuilder *json, const ZpTape *tape, const ZpRecorder *recorder);
/* Ends the outermost object and prints it. */
char *zp_receipt_finish(JsonBuilder *json);
