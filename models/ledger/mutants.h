/* Accounting rules broken on purpose, to prove that a named check notices.
 *
 * A mutant is a plain change of what a rule produced: of the compiled tape, of the ledger, or of a
 * play's result.  Compilers, players and the ledger know nothing of it, so that the same mutant
 * breaks any job under any runtime where its rule says anything at all. */
#pragma once

#include "models/job/wrapping.h"
#include "models/ledger/ledger.h"
#include "sim/players/play.h"

typedef enum {
    ZP_MUTANT_NONE,
    /* What a rank stores. */
    ZP_MUTANT_OPTIMIZER_WHOLE_FROM_STAGE_1,
    ZP_MUTANT_OPTIMIZER_DIVIDED_AT_STAGE_0,
    ZP_MUTANT_GRADIENTS_WHOLE_FROM_STAGE_2,
    ZP_MUTANT_GRADIENTS_DIVIDED_BELOW_STAGE_2,
    ZP_MUTANT_PARAMETERS_WHOLE_AT_STAGE_3,
    ZP_MUTANT_PARAMETERS_DIVIDED_BELOW_STAGE_3,
    ZP_MUTANT_PARAMETERS_DOUBLED,
    ZP_MUTANT_GRADIENTS_OMITTED,
    ZP_MUTANT_GRADIENTS_DOUBLED,
    ZP_MUTANT_MASTER_OMITTED,
    ZP_MUTANT_MASTER_DOUBLED,
    ZP_MUTANT_MOMENTUM_OMITTED,
    ZP_MUTANT_VARIANCE_OMITTED,
    ZP_MUTANT_MOMENTS_DOUBLED,
    ZP_MUTANT_PARAMETERS_IN_HALF_WIDTH,
    ZP_MUTANT_MOMENTS_IN_HALF_WIDTH,
    ZP_MUTANT_SCALES_OMITTED,
    ZP_MUTANT_PADDING_DROPPED,
    ZP_MUTANT_OVERHEAD_OMITTED,
    /* What lives within a step. */
    ZP_MUTANT_ACTIVATIONS_DIVIDED,
    ZP_MUTANT_ACTIVATIONS_TRIPLED,
    ZP_MUTANT_ACTIVATION_STAYS,
    ZP_MUTANT_LOGITS_OMITTED,
    ZP_MUTANT_LOGITS_SHORT,
    ZP_MUTANT_GATHERED_UNITS_WEIGHTLESS,
    ZP_MUTANT_PREFETCHED_UNITS_WEIGHTLESS,
    ZP_MUTANT_GATHERED_UNITS_STAY,
    ZP_MUTANT_BUCKETS_ERASED,
    ZP_MUTANT_OPTIMIZER_TEMPORARIES_OMITTED,
    ZP_MUTANT_LEDGER_LOSES_A_PART,
    /* What collectives move. */
    ZP_MUTANT_FORWARD_GATHERS_NOTHING,
    ZP_MUTANT_BACKWARD_GATHERS_NOTHING,
    ZP_MUTANT_GATHERS_IN_HALF_WIDTH,
    ZP_MUTANT_UPDATES_STAY_WITH_THEIR_OWNERS,
    ZP_MUTANT_GRADIENTS_NOT_REDUCED,
    ZP_MUTANT_GRADIENTS_REDUCED_ONCE,
    ZP_MUTANT_REDUCTIONS_IN_HALF_WIDTH,
    ZP_MUTANT_WIRE_BYTES_OF_ONE_PASS,
    ZP_MUTANT_WIRE_BYTES_OF_THE_MESSAGE,
    /* FLOPs and time. */
    ZP_MUTANT_FORWARD_OF_ONE_UNIT_MISSING,
    ZP_MUTANT_BACKWARD_OF_ONE_UNIT_MISSING,
    ZP_MUTANT_BACKWARD_TOO_LONG,
    ZP_MUTANT_RECOMPUTATION_FREE,
    ZP_MUTANT_KERNELS_TOO_FAST,
    ZP_MUTANT_MFU_OF_ALL_RANKS,
    ZP_MUTANT_OPTIMIZER_FREE,
    ZP_MUTANT_LINKS_TOO_FAST,
    ZP_MUTANT_STREAMS_OVERLAP,
    ZP_MUTANT_LINKS_NOT_SHARED,
    ZP_MUTANT_BUSY_BEYOND_THE_STEP,
    ZP_MUTANT_WORK_LOST,
    ZP_N_MUTANTS,
} ZpMutant;

typedef struct {
    const char *name;   /* "parameters-whole-at-stage-3" */
    const char *breaks; /* one line: what is done to the figures */
    const char *check;  /* the check that must notice (models/ledger/checks.h) */
} ZpMutantName;

/* Not of ZP_MUTANT_NONE. */
const ZpMutantName *zp_mutants_name(ZpMutant mutant);

/* Each breaks its part and returns whether there was anything to break: a mutant says nothing of a
 * job whose stage, runtime or settings the rule is not about, and FALSE leaves all as it was. */
gboolean zp_mutants_break_tape(ZpMutant mutant, const ZpJob *job, const ZpUnits *units,
                               ZpTape *tape);
gboolean zp_mutants_break_ledger(ZpMutant mutant, const ZpJob *job, const ZpUnits *units,
                                 ZpLedger *ledger);
gboolean zp_mutants_break_play(ZpMutant mutant, const ZpJob *job, const ZpTape *tape,
                               ZpPlayResult *play, double *mfu);
