#include "models/ledger/ledger.h"

#include <math.h>

#include "models/ledger/ledger_internal.h"

G_DEFINE_QUARK(zp - ledger - error - quark, zp_ledger_error)

static gint64
contingency(double ratio, gint64 bytes, LedgerMath *math)
{
    double wanted = ceil((double)bytes * ratio);
    if (!(wanted < 9.2e18))
        return ledger_saturate(math);
    return wanted > 0.0 ? (gint64)wanted : 0;
}

static void
add_up(const ZpJob *job, ZpLedger *ledger, LedgerMath *math)
{
    const gint64 parts[] = {
        ledger->gathered_bytes,   ledger->prefetched_bytes, ledger->bucket_bytes,
        ledger->activation_bytes, ledger->logits_bytes,     ledger->optimizer_temporary_bytes,
        ledger->overhead_bytes,
    };
    math->figure = "total";
    gint64 sum = ledger->persistent_bytes;
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        sum = ledger_add(math, sum, parts[i]);
    math->figure = "contingency";
    ledger->contingency_bytes = contingency(job->device.contingency, sum, math);
    ledger->total_bytes = ledger_add(math, sum, ledger->contingency_bytes);
    ledger->capacity_bytes = job->device.capacity_bytes;
    if (ledger->capacity_bytes > 0)
        ledger->headroom_bytes = ledger->capacity_bytes - ledger->total_bytes;
    ledger->fits = ledger->headroom_bytes >= 0;
}

static void
compute(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger, LedgerMath *math)
{
    *ledger = (ZpLedger){0};
    ledger_persistent(job, units, ledger, math);
    math->figure = "gathered parameters";
    ledger_gathered(job, units, ledger, math);
    math->figure = "gradient buckets";
    ledger->bucket_bytes = ledger_buckets(job, units, math);
    math->figure = "activations";
    ledger_activations(job, ledger, math);
    math->figure = "optimizer temporaries";
    ledger->optimizer_temporary_bytes = ledger_optimizer_temporary(job, units, math);
    ledger->overhead_bytes = job->device.overhead_bytes;
    add_up(job, ledger, math);
}

void
zp_ledger_compute(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger)
{
    LedgerMath math = {0};
    compute(job, units, ledger, &math);
}

static gboolean
check_values(const ZpJob *job, GError **error)
{
    const struct {
        const char *name;
        gint64 value, low, high;
    } ranges[] = {
        {"world size", job->world.ranks, 1, G_MAXINT32},
        {"shard group", job->world.shard_group, 1, job->world.ranks},
        {"ZeRO stage", job->zero.stage, 0, 3},
        {"micro-batch", job->training.micro_batch, 0, G_MAXINT64},
        {"sequence", job->training.sequence, 0, G_MAXINT64},
        {"forward prefetch", job->zero.prefetch_forward, 0, G_MAXINT32},
        {"backward prefetch", job->zero.prefetch_backward, 0, G_MAXINT32},
        {"runtime overhead", job->device.overhead_bytes, 0, G_MAXINT64},
        {"device capacity", job->device.capacity_bytes, 0, G_MAXINT64},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ranges); i++) {
        if (ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high)
            continue;
        g_set_error(error, ZP_LEDGER_ERROR, ZP_LEDGER_ERROR_INVALID,
                    "%s is %" G_GINT64_FORMAT ": legal is %" G_GINT64_FORMAT
                    " to %" G_GINT64_FORMAT,
                    ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high);
        return FALSE;
    }
    if (job->world.ranks % job->world.shard_group != 0) {
        g_set_error(error, ZP_LEDGER_ERROR, ZP_LEDGER_ERROR_INVALID,
                    "a shard group of %d does not divide a world of %d ranks",
                    job->world.shard_group, job->world.ranks);
        return FALSE;
    }
    if (!(job->device.contingency >= 0.0)) {
        g_set_error(error, ZP_LEDGER_ERROR, ZP_LEDGER_ERROR_INVALID,
                    "the contingency ratio is %g: legal is 0 and more", job->device.contingency);
        return FALSE;
    }
    return TRUE;
}

gboolean
zp_ledger_check(const ZpJob *job, const ZpUnits *units, GError **error)
{
    if (!check_values(job, error))
        return FALSE;
    ZpLedger ledger;
    LedgerMath math = {0};
    compute(job, units, &ledger, &math);
    if (math.overflow == NULL)
        return TRUE;
    g_set_error(error, ZP_LEDGER_ERROR, ZP_LEDGER_ERROR_OVERFLOW,
                "%s: more than %" G_GINT64_FORMAT " bytes on a rank", math.overflow, G_MAXINT64);
    return FALSE;
}
