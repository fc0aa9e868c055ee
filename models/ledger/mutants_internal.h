/* Shared by the files of the mutants. */
#pragma once

#include "models/ledger/checks_internal.h"
#include "models/ledger/mutants.h"

/* What is done to the bytes of a class that a rank stores. */
typedef enum {
    MUTANTS_KEEP,
    MUTANTS_WHOLE,   /* what is divided is stored whole */
    MUTANTS_DIVIDED, /* what is whole is stored divided */
    MUTANTS_DOUBLE,
    MUTANTS_HALF,
    MUTANTS_ZERO,
    MUTANTS_NO_SCALES,
    MUTANTS_NO_PADDING,
} MutantsChange;

typedef struct {
    guint32 classes;      /* bits of ZpClass */
    MutantsChange change; /* of what is stored */
} MutantsState;

typedef gboolean (*MutantsBreakTape)(const ChecksFacts *facts, ZpTape *tape);
typedef gboolean (*MutantsBreakLedger)(const ChecksFacts *facts, ZpLedger *ledger);
typedef gboolean (*MutantsBreakPlay)(const ChecksFacts *facts, const ZpTape *tape,
                                     ZpPlayResult *play, double *mfu);

/* Of one class: its bytes after the change; `bytes` where the change says nothing of it. */
gint64 mutants_change(const ChecksFacts *facts, MutantsChange change, ZpClass class_id,
                      gint64 bytes);

gboolean mutants_break_state(const ChecksFacts *facts, const MutantsState *state, ZpTape *tape);

gboolean mutants_divide_activations(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_triple_activations(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_keep_activation(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_shorten_logits(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_logits(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_gathered(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_prefetched(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_keep_gathered(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_buckets(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_temporaries(const ChecksFacts *facts, ZpTape *tape);

gboolean mutants_omit_forward_gathers(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_backward_gathers(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_halve_gathers(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_updates(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_reductions(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_reduce_once(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_halve_reductions(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_halve_wire(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_whole_wire(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_forward(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_backward(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_lengthen_backward(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_omit_recomputation(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_speed_kernels(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_speed_optimizer(const ChecksFacts *facts, ZpTape *tape);
gboolean mutants_speed_links(const ChecksFacts *facts, ZpTape *tape);

gboolean mutants_divide_ledger_activations(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_triple_ledger_activations(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_shorten_ledger_logits(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_omit_ledger_logits(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_omit_ledger_gathered(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_omit_ledger_prefetched(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_omit_ledger_buckets(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_omit_ledger_temporaries(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_lose_part(const ChecksFacts *facts, ZpLedger *ledger);
gboolean mutants_credit_all_ranks(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                                  double *mfu);
gboolean mutants_overlap_streams(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                                 double *mfu);
gboolean mutants_unshare_links(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                               double *mfu);
gboolean mutants_exceed_step(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                             double *mfu);
gboolean mutants_lose_work(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                           double *mfu);
