/* The table of mutants. */
#include "models/ledger/mutants.h"

#include "models/ledger/mutants_internal.h"

#define CLASS(name) (1u << ZP_CLASS_##name)
#define MOMENTS (CLASS(MOMENTUM) | CLASS(VARIANCE))
#define STATES (CLASS(MASTER) | MOMENTS)
#define DIVISIBLE (STATES | CLASS(PARAMETER) | CLASS(GRADIENT))

typedef struct {
    ZpMutantName label;
    MutantsState state; /* or one of the others, by what the mutant is about */
    MutantsBreakTape tape;
    MutantsBreakLedger ledger;
    MutantsBreakPlay play;
} Mutant;

static const Mutant mutants[ZP_N_MUTANTS] = {
    [ZP_MUTANT_OPTIMIZER_WHOLE_FROM_STAGE_1] =
        {.label = {"optimizer-whole-from-stage-1", "every rank stores all of the optimizer's state",
                   "optimizer-state-is-divided"},
         .state = {STATES, MUTANTS_WHOLE}},
    [ZP_MUTANT_OPTIMIZER_DIVIDED_AT_STAGE_0] =
        {.label = {"optimizer-divided-at-stage-0", "a rank stores a share of the optimizer's state",
                   "optimizer-state-is-whole-at-stage-0"},
         .state = {STATES, MUTANTS_DIVIDED}},
    [ZP_MUTANT_GRADIENTS_WHOLE_FROM_STAGE_2] = {.label = {"gradients-whole-from-stage-2",
                                                          "every rank keeps all gradients",
                                                          "gradients-are-divided-from-stage-2"},
                                                .state = {CLASS(GRADIENT), MUTANTS_WHOLE}},
    [ZP_MUTANT_GRADIENTS_DIVIDED_BELOW_STAGE_2] =
        {.label = {"gradients-divided-below-stage-2", "a rank keeps a share of the gradients",
                   "gradients-are-whole-below-stage-2"},
         .state = {CLASS(GRADIENT), MUTANTS_DIVIDED}},
    [ZP_MUTANT_PARAMETERS_WHOLE_AT_STAGE_3] = {.label = {"parameters-whole-at-stage-3",
                                                         "every rank stores all parameters",
                                                         "parameters-are-divided-at-stage-3"},
                                               .state = {CLASS(PARAMETER), MUTANTS_WHOLE}},
    [ZP_MUTANT_PARAMETERS_DIVIDED_BELOW_STAGE_3] =
        {.label = {"parameters-divided-below-stage-3", "a rank stores a share of the parameters",
                   "parameters-are-whole-below-stage-3"},
         .state = {CLASS(PARAMETER), MUTANTS_DIVIDED}},
    [ZP_MUTANT_PARAMETERS_DOUBLED] = {.label = {"parameters-doubled", "parameters are stored twice",
                                                "parameters-are-counted-once"},
                                      .state = {CLASS(PARAMETER), MUTANTS_DOUBLE}},
    [ZP_MUTANT_GRADIENTS_OMITTED] = {.label = {"gradients-omitted", "gradients take nothing",
                                               "gradients-are-counted"},
                                     .state = {CLASS(GRADIENT), MUTANTS_ZERO}},
    [ZP_MUTANT_GRADIENTS_DOUBLED] = {.label = {"gradients-doubled", "gradients are stored twice",
                                               "gradients-are-counted-once"},
                                     .state = {CLASS(GRADIENT), MUTANTS_DOUBLE}},
    [ZP_MUTANT_MASTER_OMITTED] = {.label = {"master-omitted", "there is no master copy",
                                            "master-weights-are-counted"},
                                  .state = {CLASS(MASTER), MUTANTS_ZERO}},
    [ZP_MUTANT_MASTER_DOUBLED] = {.label = {"master-doubled", "there are two master copies",
                                            "master-weights-are-counted-once"},
                                  .state = {CLASS(MASTER), MUTANTS_DOUBLE}},
    [ZP_MUTANT_MOMENTUM_OMITTED] = {.label = {"momentum-omitted", "the momentum takes nothing",
                                              "moments-are-counted"},
                                    .state = {CLASS(MOMENTUM), MUTANTS_ZERO}},
    [ZP_MUTANT_VARIANCE_OMITTED] = {.label = {"variance-omitted", "the variance takes nothing",
                                              "moments-are-counted"},
                                    .state = {CLASS(VARIANCE), MUTANTS_ZERO}},
    [ZP_MUTANT_MOMENTS_DOUBLED] = {.label = {"moments-doubled", "moments are stored twice",
                                             "moments-are-counted-once"},
                                   .state = {MOMENTS, MUTANTS_DOUBLE}},
    [ZP_MUTANT_PARAMETERS_IN_HALF_WIDTH] = {.label = {"parameters-in-half-width",
                                                      "a parameter takes half of its format",
                                                      "stored-numbers-have-their-width"},
                                            .state = {CLASS(PARAMETER), MUTANTS_HALF}},
    [ZP_MUTANT_MOMENTS_IN_HALF_WIDTH] = {.label = {"moments-in-half-width",
                                                   "a moment takes half of its format",
                                                   "stored-numbers-have-their-width"},
                                         .state = {MOMENTS, MUTANTS_HALF}},
    [ZP_MUTANT_SCALES_OMITTED] = {.label = {"scales-omitted", "8-bit states keep no scales",
                                            "scales-are-counted"},
                                  .state = {MOMENTS, MUTANTS_NO_SCALES}},
    [ZP_MUTANT_PADDING_DROPPED] = {.label = {"padding-dropped", "a share is rounded down",
                                             "padding-is-kept"},
                                   .state = {DIVISIBLE, MUTANTS_NO_PADDING}},
    [ZP_MUTANT_OVERHEAD_OMITTED] = {.label = {"overhead-omitted",
                                              "nothing lies outside the allocator",
                                              "runtime-overhead-is-counted"},
                                    .state = {CLASS(RUNTIME), MUTANTS_ZERO}},
    [ZP_MUTANT_ACTIVATIONS_DIVIDED] = {.label = {"activations-divided",
                                                 "data parallel ranks share their activations",
                                                 "activations-are-per-rank"},
                                       .tape = mutants_divide_activations,
                                       .ledger = mutants_divide_ledger_activations},
    [ZP_MUTANT_ACTIVATIONS_TRIPLED] = {.label = {"activations-tripled",
                                                 "activations take thrice their bytes",
                                                 "activations-are-counted-once"},
                                       .tape = mutants_triple_activations,
                                       .ledger = mutants_triple_ledger_activations},
    [ZP_MUTANT_ACTIVATION_STAYS] = {.label = {"activation-stays",
                                              "the last activation is never freed",
                                              "temporaries-are-freed"},
                                    .tape = mutants_keep_activation},
    [ZP_MUTANT_LOGITS_OMITTED] = {.label = {"logits-omitted", "no logit takes memory",
                                            "logits-are-whole"},
                                  .tape = mutants_omit_logits,
                                  .ledger = mutants_omit_ledger_logits},
    [ZP_MUTANT_LOGITS_SHORT] = {.label = {"logits-short",
                                          "a sixteenth of the head's bytes is missing",
                                          "logits-are-counted"},
                                .tape = mutants_shorten_logits,
                                .ledger = mutants_shorten_ledger_logits},
    [ZP_MUTANT_GATHERED_UNITS_WEIGHTLESS] = {.label = {"gathered-units-weightless",
                                                       "gathered units take nothing",
                                                       "gathered-unit-is-counted"},
                                             .tape = mutants_omit_gathered,
                                             .ledger = mutants_omit_ledger_gathered},
    [ZP_MUTANT_PREFETCHED_UNITS_WEIGHTLESS] = {.label = {"prefetched-units-weightless",
                                                         "nothing is alive beside the largest unit",
                                                         "prefetched-unit-is-counted"},
                                               .tape = mutants_omit_prefetched,
                                               .ledger = mutants_omit_ledger_prefetched},
    [ZP_MUTANT_GATHERED_UNITS_STAY] = {.label = {"gathered-units-stay",
                                                 "gathered units are never freed",
                                                 "gathered-units-are-freed"},
                                       .tape = mutants_keep_gathered},
    [ZP_MUTANT_BUCKETS_ERASED] = {.label = {"buckets-erased",
                                            "gradients wait for their reduction in no memory",
                                            "gradient-buckets-are-counted"},
                                  .tape = mutants_omit_buckets,
                                  .ledger = mutants_omit_ledger_buckets},
    [ZP_MUTANT_OPTIMIZER_TEMPORARIES_OMITTED] =
        {.label = {"optimizer-temporaries-omitted", "the optimizer needs no tensors of its own",
                   "optimizer-temporaries-are-counted"},
         .tape = mutants_omit_temporaries,
         .ledger = mutants_omit_ledger_temporaries},
    [ZP_MUTANT_LEDGER_LOSES_A_PART] = {.label = {"ledger-loses-a-part",
                                                 "the total leaves the parameters out",
                                                 "ledger-adds-up"},
                                       .ledger = mutants_lose_part},
    [ZP_MUTANT_FORWARD_GATHERS_NOTHING] = {.label = {"forward-gathers-nothing",
                                                     "gathers of forward move nothing",
                                                     "forward-gathers-every-parameter"},
                                           .tape = mutants_omit_forward_gathers},
    [ZP_MUTANT_BACKWARD_GATHERS_NOTHING] = {.label = {"backward-gathers-nothing",
                                                      "gathers of backward move nothing",
                                                      "backward-gathers-what-was-freed"},
                                            .tape = mutants_omit_backward_gathers},
    [ZP_MUTANT_GATHERS_IN_HALF_WIDTH] = {.label = {"gathers-in-half-width",
                                                   "gathers of forward move half of each number",
                                                   "forward-gathers-every-parameter"},
                                         .tape = mutants_halve_gathers},
    [ZP_MUTANT_UPDATES_STAY_WITH_THEIR_OWNERS] = {.label = {"updates-stay-with-their-owners",
                                                            "updated shares are not gathered",
                                                            "updated-parameters-are-gathered"},
                                                  .tape = mutants_omit_updates},
    [ZP_MUTANT_GRADIENTS_NOT_REDUCED] = {.label = {"gradients-not-reduced",
                                                   "reductions move nothing",
                                                   "gradients-are-reduced"},
                                         .tape = mutants_omit_reductions},
    [ZP_MUTANT_GRADIENTS_REDUCED_ONCE] =
        {.label = {"gradients-reduced-once",
                   "divided gradients are reduced with the last micro-batch alone",
                   "gradients-are-reduced"},
         .tape = mutants_reduce_once},
    [ZP_MUTANT_REDUCTIONS_IN_HALF_WIDTH] = {.label = {"reductions-in-half-width",
                                                      "reductions move half of each number",
                                                      "gradients-are-reduced"},
                                            .tape = mutants_halve_reductions},
    [ZP_MUTANT_WIRE_BYTES_OF_ONE_PASS] = {.label = {"wire-bytes-of-one-pass",
                                                    "a reduction to all crosses the ring once",
                                                    "wire-bytes-follow-the-collective"},
                                          .tape = mutants_halve_wire},
    [ZP_MUTANT_WIRE_BYTES_OF_THE_MESSAGE] =
        {.label = {"wire-bytes-of-the-message",
                   "a rank sends all of a message that it holds a share of",
                   "wire-bytes-follow-the-collective"},
         .tape = mutants_whole_wire},
    [ZP_MUTANT_FORWARD_OF_ONE_UNIT_MISSING] = {.label = {"forward-of-one-unit-missing",
                                                         "one layer does not run forward",
                                                         "forward-flops-are-conserved"},
                                               .tape = mutants_omit_forward},
    [ZP_MUTANT_BACKWARD_OF_ONE_UNIT_MISSING] = {.label = {"backward-of-one-unit-missing",
                                                          "the first layers do not run backward",
                                                          "trainable-layers-run-backward"},
                                                .tape = mutants_omit_backward},
    [ZP_MUTANT_BACKWARD_TOO_LONG] = {.label = {"backward-too-long",
                                               "backward computes six times a forward",
                                               "backward-flops-are-conserved"},
                                     .tape = mutants_lengthen_backward},
    [ZP_MUTANT_RECOMPUTATION_FREE] = {.label = {"recomputation-free",
                                                "recomputation computes nothing",
                                                "recomputation-is-run"},
                                      .tape = mutants_omit_recomputation},
    [ZP_MUTANT_KERNELS_TOO_FAST] = {.label = {"kernels-too-fast", "layers take no time",
                                              "kernels-are-no-faster-than-the-device"},
                                    .tape = mutants_speed_kernels},
    [ZP_MUTANT_MFU_OF_ALL_RANKS] = {.label = {"mfu-of-all-ranks",
                                              "one GPU is credited with the FLOPs of all",
                                              "mfu-is-at-most-one"},
                                    .play = mutants_credit_all_ranks},
    [ZP_MUTANT_OPTIMIZER_FREE] = {.label = {"optimizer-free", "the optimizer takes no time",
                                            "optimizer-moves-its-state"},
                                  .tape = mutants_speed_optimizer},
    [ZP_MUTANT_LINKS_TOO_FAST] = {.label = {"links-too-fast", "collectives take no time",
                                            "links-carry-no-more-than-their-bandwidth"},
                                  .tape = mutants_speed_links},
    [ZP_MUTANT_STREAMS_OVERLAP] = {.label = {"streams-overlap",
                                             "works of one stream run side by side",
                                             "streams-run-one-work-at-a-time"},
                                   .play = mutants_overlap_streams},
    [ZP_MUTANT_LINKS_NOT_SHARED] = {.label = {"links-not-shared",
                                              "transfers on a link do not slow one another",
                                              "links-are-shared"},
                                    .play = mutants_unshare_links},
    [ZP_MUTANT_BUSY_BEYOND_THE_STEP] = {.label = {"busy-beyond-the-step",
                                                  "kernels run for longer than the step",
                                                  "busy-is-within-the-step"},
                                        .play = mutants_exceed_step},
    [ZP_MUTANT_WORK_LOST] = {.label = {"work-lost", "kernels are launched and never run",
                                       "work-is-conserved"},
                             .play = mutants_lose_work},
};

const ZpMutantName *
zp_mutants_name(ZpMutant mutant)
{
    g_assert(mutant > ZP_MUTANT_NONE && mutant < ZP_N_MUTANTS);
    return &mutants[mutant].label;
}

gboolean
zp_mutants_break_tape(ZpMutant mutant, const ZpJob *job, const ZpUnits *units, ZpTape *tape)
{
    ChecksFacts facts;
    ZpDeepspeed defaults;
    const Mutant *row = &mutants[mutant];
    if (row->state.change == MUTANTS_KEEP && row->tape == NULL)
        return FALSE;
    ChecksScan scan = {0};
    checks_facts_init(&facts, job, units, &defaults);
    facts.scan = &scan;
    checks_store(&facts);
    return row->tape != NULL ? row->tape(&facts, tape)
                             : mutants_break_state(&facts, &row->state, tape);
}

static gboolean
set(gint64 *figure, gint64 value)
{
    gboolean broken = *figure != value;
    *figure = value;
    return broken;
}

static gboolean
break_rows(const ChecksFacts *facts, const MutantsState *state, ZpLedger *ledger)
{
    gboolean broken = FALSE;
    for (int r = 0; r < ledger->n_rows; r++) {
        ZpLedgerRow *row = &ledger->rows[r];
        if (state->classes & 1u << row->class_id)
            broken = set(&row->persistent_bytes, mutants_change(facts, state->change, row->class_id,
                                                                row->persistent_bytes)) ||
                     broken;
    }
    if (state->classes & CLASS(RUNTIME))
        broken = set(&ledger->overhead_bytes, 0) || broken;
    return broken;
}

gboolean
zp_mutants_break_ledger(ZpMutant mutant, const ZpJob *job, const ZpUnits *units, ZpLedger *ledger)
{
    ChecksFacts facts;
    ZpDeepspeed defaults;
    const Mutant *row = &mutants[mutant];
    checks_facts_init(&facts, job, units, &defaults);
    if (facts.runtime != CHECKS_IDEAL) /* frameworks are not held to it */
        return FALSE;
    if (row->state.change != MUTANTS_KEEP) {
        checks_store(&facts);
        return break_rows(&facts, &row->state, ledger);
    }
    return row->ledger != NULL && row->ledger(&facts, ledger);
}

gboolean
zp_mutants_break_play(ZpMutant mutant, const ZpJob *job, const ZpTape *tape, ZpPlayResult *play,
                      double *mfu)
{
    const Mutant *row = &mutants[mutant];
    ChecksFacts facts = {.job = job};
    return row->play != NULL && row->play(&facts, tape, play, mfu);
}
