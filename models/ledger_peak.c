/* What lives within a step: gathered units, gradient buckets, activations. */
#include "models/ledger_internal.h"
#include "models/parallel.h"

/* New memory of one gathered unit. */
static gint64
gathered_unit_bytes(const ZpJob *job, const ZpUnit *unit, LedgerMath *math)
{
    gint32 owners = MAX(1, job->world.shard_group);
    gint64 elements = ledger_padded(math, unit->elements, owners);
    if (job->precision.gathered == job->precision.parameter)
        elements -= zp_wrapping_shard_elements(unit->elements, owners);
    return ledger_bytes(math, job->precision.gathered, elements);
}

typedef struct {
    const gint64 *unit_bytes;
    const gint64 *opened_bytes; /* [i]: the first i units in order of opening, together */
    gint32 n_units;
    gint32 n_opened;
    gint32 prefetch;
    gint64 in_use_bytes;
    gint64 worst_bytes, worst_in_use_bytes;
    LedgerMath *math;
} Walk;

/* A unit is opened: it and those still open are in use, the next ones gathered ahead. */
static void
open_unit(Walk *walk, gint32 unit)
{
    walk->n_opened++;
    walk->in_use_bytes = ledger_add(walk->math, walk->in_use_bytes, walk->unit_bytes[unit]);
    gint32 reach = (gint32)MIN((gint64)walk->n_opened + walk->prefetch, walk->n_units);
    gint64 ahead = walk->opened_bytes[reach] - walk->opened_bytes[walk->n_opened];
    gint64 sum = ledger_add(walk->math, walk->in_use_bytes, ahead);
    if (sum > walk->worst_bytes) {
        walk->worst_bytes = sum;
        walk->worst_in_use_bytes = walk->in_use_bytes;
    }
}

/* One pass over the layers, forward (direction 1) or backward (-1). */
static void
walk_pass(Walk *walk, const ZpUnits *units, gint32 direction, gint64 *opened_bytes)
{
    gint32 first = direction > 0 ? 0 : units->n_layers - 1;
    gint32 n = 0;
    opened_bytes[0] = 0;
    for (gint32 i = 0, l = first; i < units->n_layers; i++, l += direction) {
        const ZpUnit *unit = &units->units[units->unit_of_layer[l]];
        if (l == (direction > 0 ? unit->first_layer : unit->last_layer)) {
            gint64 bytes = walk->unit_bytes[units->unit_of_layer[l]];
            opened_bytes[n + 1] = ledger_add(walk->math, opened_bytes[n], bytes);
            n++;
        }
    }
    walk->opened_bytes = opened_bytes;
    walk->n_units = n;
    walk->n_opened = 0;
    walk->in_use_bytes = 0;
    for (gint32 i = 0, l = first; i < units->n_layers; i++, l += direction) {
        gint32 u = units->unit_of_layer[l];
        const ZpUnit *unit = &units->units[u];
        if (l == (direction > 0 ? unit->first_layer : unit->last_layer))
            open_unit(walk, u);
        if (l == (direction > 0 ? unit->last_layer : unit->first_layer))
            walk->in_use_bytes -= walk->unit_bytes[u];
    }
}

void
ledger_gathered(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger, LedgerMath *math)
{
    if (job->zero.stage < 3 || job->ledger_mutant == ZP_MUTANT_GATHER_PEAK_ERASED)
        return;
    gsize n = (gsize)units->n_units;
    g_autofree gint64 *unit_bytes = g_new(gint64, n);
    gint64 all = 0;
    for (gsize u = 0; u < n; u++) {
        unit_bytes[u] = gathered_unit_bytes(job, &units->units[u], math);
        all = ledger_add(math, all, unit_bytes[u]);
    }
    if (!job->zero.reshard_after_forward) {
        ledger->gathered_bytes = all;
        return;
    }
    gboolean forgotten = job->ledger_mutant == ZP_MUTANT_PREFETCHED_UNIT_FORGOTTEN;
    g_autofree gint64 *opened_bytes = g_new(gint64, n + 1);
    Walk walk = {.unit_bytes = unit_bytes, .math = math};
    walk.prefetch = forgotten ? 0 : MAX(0, job->zero.prefetch_forward);
    walk_pass(&walk, units, 1, opened_bytes);
    walk.prefetch = forgotten ? 0 : MAX(0, job->zero.prefetch_backward);
    walk_pass(&walk, units, -1, opened_bytes);
    ledger->gathered_bytes = walk.worst_in_use_bytes;
    ledger->prefetched_bytes = walk.worst_bytes - walk.worst_in_use_bytes;
}

/* Staging buffer of one unit's gradient. */
static gint64
staging_bytes(const ZpJob *job, const ZpUnit *unit, LedgerMath *math)
{
    ZpDtype dtype =
        job->precision.reduce == ZP_DTYPE_NONE ? job->precision.gradient : job->precision.reduce;
    gint64 elements = unit->trainable_elements;
    if (job->zero.stage > 0)
        elements = ledger_padded(math, elements, MAX(1, job->world.shard_group));
    return ledger_bytes(math, dtype, elements);
}

typedef struct {
    gint64 begun_bytes; /* gradients of units whose backward runs */
    gint64 open_bytes, open_elements;
    gint64 reducing_bytes; /* the bucket before the open one */
    gint64 worst_bytes;
} Buckets;

/* One backward pass of one micro-batch. */
static void
fill_buckets(Buckets *buckets, const ZpJob *job, const ZpUnits *units, LedgerMath *math)
{
    for (gint32 l = units->n_layers - 1; l >= 0; l--) {
        const ZpUnit *unit = &units->units[units->unit_of_layer[l]];
        gint64 bytes = staging_bytes(job, unit, math);
        if (unit->last_layer == l) {
            buckets->begun_bytes = ledger_add(math, buckets->begun_bytes, bytes);
            gint64 live = ledger_add(math, buckets->begun_bytes, buckets->open_bytes);
            live = ledger_add(math, live, buckets->reducing_bytes);
            buckets->worst_bytes = MAX(buckets->worst_bytes, live);
        }
        if (unit->first_layer != l)
            continue;
        buckets->begun_bytes -= bytes;
        buckets->open_bytes = ledger_add(math, buckets->open_bytes, bytes);
        buckets->open_elements = ledger_add(math, buckets->open_elements, unit->trainable_elements);
        if (l > 0 && buckets->open_elements < job->zero.bucket_elements)
            continue;
        buckets->reducing_bytes = job->zero.overlap ? buckets->open_bytes : 0;
        buckets->open_bytes = buckets->open_elements = 0;
    }
}

gint64
ledger_buckets(const ZpJob *job, const ZpUnits *units, LedgerMath *math)
{
    if (job->world.ranks <= 1)
        return 0;
    Buckets buckets = {0};
    fill_buckets(&buckets, job, units, math);
    /* Sharded gradients are reduced every micro-batch: the first bucket of the next one may meet
     * the last of this one. */
    if (job->zero.stage >= 2 && job->training.accumulation > 1)
        fill_buckets(&buckets, job, units, math);
    return buckets.worst_bytes;
}

typedef struct {
    gint64 tokens, pairs;
    ZpCheckpointing policy;
    LedgerMath *math;
} Activations;

static gint64
weigh(const Activations *activations, gint64 per_token, gint64 per_pair)
{
    LedgerMath *math = activations->math;
    return ledger_add(math, ledger_multiply(math, per_token, activations->tokens),
                      ledger_multiply(math, per_pair, activations->pairs));
}

static gint64
kept_bytes(const Activations *activations, const ZpModelLayer *layer)
{
    if (layer->block != ZP_MODEL_NONE) {
        switch (activations->policy) {
        case ZP_CHECKPOINTING_NONE:
            break;
        case ZP_CHECKPOINTING_SELECTIVE:
            return weigh(activations, layer->selective_bytes_per_token,
                         layer->selective_bytes_per_pair);
        case ZP_CHECKPOINTING_FULL:
            return weigh(activations, layer->input_bytes_per_token, 0);
        }
    }
    return weigh(activations, layer->kept_bytes_per_token, layer->kept_bytes_per_pair);
}

void
ledger_activations(const ZpJob *job, ZpLedger *ledger, LedgerMath *math)
{
    const ZpTraining *training = &job->training;
    Activations activations = {.policy = training->checkpointing, .math = math};
    activations.tokens = ledger_multiply(math, training->micro_batch, training->sequence);
    activations.pairs = ledger_multiply(math, activations.tokens, training->sequence);
    gint64 kept = 0, block_bytes = 0, largest_block_bytes = 0;
    gint32 block = ZP_MODEL_NONE;
    for (guint l = 0; l < job->model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(job->model, (gint32)l);
        gint64 own = kept_bytes(&activations, layer);
        gint64 all = weigh(&activations, layer->kept_bytes_per_token, layer->kept_bytes_per_pair);
        if (layer->block != block)
            block_bytes = 0;
        block = layer->block;
        kept = ledger_add(math, kept, own);
        block_bytes = ledger_add(math, block_bytes, MAX(0, all - own));
        largest_block_bytes = MAX(largest_block_bytes, block_bytes);
        ledger->logits_bytes =
            ledger_add(math, ledger->logits_bytes,
                       ledger_multiply(math, layer->logits_bytes_per_token, activations.tokens));
    }
    kept = ledger_multiply(math, kept, zp_parallel_in_flight(job));
    ledger->activation_bytes = ledger_add(math, kept, largest_block_bytes);
    if (job->ledger_mutant == ZP_MUTANT_ACTIVATIONS_DIVIDED_BY_DATA_PARALLELISM)
        ledger->activation_bytes /= job->world.ranks;
}
