/* Named accounting checks.
 *
 * Each states one rule of ZeRO accounting from first principles (the model, the units and the stage
 * alone) and holds a set of figures to it: the figures of a play of the ideal runtime, or those of
 * the ledger.  A broken rule is reported by its own name, not by a total that happens to differ. */
#pragma once

#include "models/job/wrapping.h"
#include "models/ledger/ledger.h"
#include "sim/players/play.h"

/* What is held against the rules. */
typedef struct {
    gint64 persistent[ZP_N_CLASSES];
    gint64 gathered_peak_bytes;   /* most gathered parameters alive at once */
    gint64 activation_peak_bytes; /* most activations alive at once */
} ZpChecksFigures;

void zp_checks_figures_of_play(const ZpPlayRank *rank, ZpChecksFigures *figures);
void zp_checks_figures_of_ledger(const ZpLedger *ledger, ZpChecksFigures *figures);

/* Runs every check; fails with ZP_CHECKS_ERROR, the message starting with the name of the first
 * broken rule. */
gboolean zp_checks_run(const ZpJob *job, const ZpUnits *units, const ZpChecksFigures *figures,
                       GError **error);

/* Names in the order in which the checks run, with what each guards. */
typedef struct {
    const char *name;
    const char *guards;
} ZpChecksName;
gsize zp_checks_count(void);
const ZpChecksName *zp_checks_name(gsize index);

#define ZP_CHECKS_ERROR (zp_checks_error_quark())
GQuark zp_checks_error_quark(void);
