/* Mutants of the ledger and of a play's result. */
#include "models/ledger/mutants_internal.h"

static gboolean
set(gint64 *figure, gint64 value)
{
    gboolean broken = *figure != value;
    *figure = value;
    return broken;
}

gboolean
mutants_divide_ledger_activations(const ChecksFacts *facts, ZpLedger *ledger)
{
    return set(&ledger->activation_bytes, ledger->activation_bytes / facts->job->world.ranks);
}

gboolean
mutants_triple_ledger_activations(const ChecksFacts *facts, ZpLedger *ledger)
{
    (void)facts;
    return set(&ledger->activation_bytes, 3 * ledger->activation_bytes);
}

gboolean
mutants_shorten_ledger_logits(const ChecksFacts *facts, ZpLedger *ledger)
{
    (void)facts;
    return set(&ledger->logits_bytes, ledger->logits_bytes / 16 * 15);
}

gboolean
mutants_omit_ledger_logits(const ChecksFacts *facts, ZpLedger *ledger)
{
    return checks_least_logits_bytes(facts) > 0 && set(&ledger->logits_bytes, 0);
}

gboolean
mutants_omit_ledger_gathered(const ChecksFacts *facts, ZpLedger *ledger)
{
    (void)facts;
    ledger->prefetched_bytes = 0;
    return set(&ledger->gathered_bytes, 0);
}

gboolean
mutants_omit_ledger_prefetched(const ChecksFacts *facts, ZpLedger *ledger)
{
    gint64 largest = checks_missing_bytes(facts, facts->largest_unit_elements);
    if (ledger->prefetched_bytes == 0 || facts->job->zero.prefetch_forward == 0)
        return FALSE;
    ledger->gathered_bytes = MIN(ledger->gathered_bytes, largest);
    return set(&ledger->prefetched_bytes, 0);
}

gboolean
mutants_omit_ledger_buckets(const ChecksFacts *facts, ZpLedger *ledger)
{
    (void)facts;
    return set(&ledger->bucket_bytes, 0);
}

gboolean
mutants_omit_ledger_temporaries(const ChecksFacts *facts, ZpLedger *ledger)
{
    (void)facts;
    return set(&ledger->optimizer_temporary_bytes, 0);
}

gboolean
mutants_lose_part(const ChecksFacts *facts, ZpLedger *ledger)
{
    (void)facts;
    return set(&ledger->total_bytes, ledger->total_bytes - ledger->rows[0].persistent_bytes);
}

gboolean
mutants_credit_all_ranks(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                         double *mfu)
{
    (void)tape;
    (void)play;
    double credited = *mfu * facts->job->world.ranks;
    if (credited <= 1.5)
        return FALSE;
    *mfu = credited;
    return TRUE;
}

static void
end_at(ZpPlayResult *play, ZpTime end)
{
    play->end = play->ranks[0].end = end;
    for (gint32 k = 0; k < play->n_steps; k++)
        play->step_end[k] = MIN(play->step_end[k], end);
}

gboolean
mutants_overlap_streams(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play,
                        double *mfu)
{
    (void)mfu;
    ChecksScan scan;
    checks_scan(tape, FALSE, &scan);
    ZpTime longest = checks_longest_stream(tape, &scan, checks_are_nominal(facts->job));
    if (longest < 2)
        return FALSE;
    end_at(play, longest / 2);
    return TRUE;
}

gboolean
mutants_unshare_links(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play, double *mfu)
{
    (void)mfu;
    ChecksScan scan;
    checks_scan(tape, FALSE, &scan);
    ZpTime longest = checks_longest_stream(tape, &scan, checks_are_nominal(facts->job));
    for (int l = 0; l < tape->n_links; l++) {
        if (scan.link_ps[l] <= longest)
            continue;
        end_at(play, longest);
        return TRUE;
    }
    return FALSE;
}

gboolean
mutants_exceed_step(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play, double *mfu)
{
    (void)facts;
    (void)tape;
    (void)mfu;
    return set(&play->ranks[0].busy[ZP_TAPE_COMPUTE], play->ranks[0].end + 1);
}

gboolean
mutants_lose_work(const ChecksFacts *facts, const ZpTape *tape, ZpPlayResult *play, double *mfu)
{
    (void)tape;
    (void)mfu;
    ZpTime *busy = &play->ranks[0].busy[ZP_TAPE_COMPUTE];
    return checks_are_nominal(facts->job) && set(busy, 0);
}
