/* Shared by the files of the ledger. */
#pragma once

#include "models/ledger/ledger.h"

/* Arithmetic on non-negative int64 that saturates and remembers where it first had to. */
typedef struct {
    const char *figure;   /* what is being computed */
    const char *overflow; /* the figure that did not fit, or NULL */
} LedgerMath;

/* math.c: the greatest number, from now on an overflow; then sums and products. */
gint64 ledger_saturate(LedgerMath *math);
gint64 ledger_add(LedgerMath *math, gint64 a, gint64 b);
gint64 ledger_multiply(LedgerMath *math, gint64 a, gint64 b);
gint64 ledger_bytes(LedgerMath *math, ZpDtype dtype, gint64 elements);

/* Elements of a unit as cut into equal shards for `ranks`. */
gint64 ledger_padded(LedgerMath *math, gint64 elements, gint32 ranks);

/* state.c: the persistent rows. */
void ledger_persistent(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger, LedgerMath *math);
gint64 ledger_optimizer_temporary(const ZpJob *job, const ZpUnits *units, LedgerMath *math);

/* peak.c: what lives within a step. */
void ledger_gathered(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger, LedgerMath *math);
gint64 ledger_buckets(const ZpJob *job, const ZpUnits *units, LedgerMath *math);
void ledger_activations(const ZpJob *job, ZpLedger *ledger, LedgerMath *math);
