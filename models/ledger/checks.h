/* Named accounting checks.
 *
 * Each states one rule from first principles (the model, the units, the stage, the settings and the
 * hardware alone) and holds a simulated step to it, or the ledger: bytes of every class, what
 * collectives move, FLOPs, time.  They share no arithmetic with the compilers, the cost models and
 * the ledger, so that a rule that breaks in one of those is reported by its own name, not by a
 * total that happens to differ.
 *
 * Under the ideal runtime bytes and traffic are held to equality.  Frameworks pad, align, keep and
 * split as they like: they are held to what no implementation can go below, and to what none that
 * follows the rule goes above. */
#pragma once

#include "models/job/wrapping.h"
#include "models/ledger/ledger.h"
#include "sim/players/play.h"

/* What is held against the rules; all of one simulated step. */
typedef struct {
    const ZpJob *job;
    const ZpUnits *units;
    const ZpLedger *ledger;
    const ZpTape *tape;
    const ZpPlayResult *play;
    double mfu; /* as it will be told */
} ZpChecksStep;

/* Runs every check that the job's runtime is subject to; fails with ZP_CHECKS_ERROR, the message
 * starting with the name of the first broken rule. */
gboolean zp_checks_run(const ZpChecksStep *step, GError **error);

/* Names in the order in which the checks run, with what each guards and where the rule stands. */
typedef struct {
    const char *name;
    const char *guards;
    const char *source;
} ZpChecksName;
gsize zp_checks_count(void);
const ZpChecksName *zp_checks_name(gsize index);

#define ZP_CHECKS_ERROR (zp_checks_error_quark())
GQuark zp_checks_error_quark(void);
