/* What lives within a step: gathered units, gradient buckets, activations. */
#include "models/ledger/ledger_internal.h"
#include "models/parallel/parallel.h"

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
    if (job->zero.stage < 3)
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
    g_autofree gint64 *opened_bytes = g_new(gint64, n + 1);
    Walk walk = {.unit_bytes = unit_bytes, .math = math};
    walk.prefetch = MAX(0, job->zero.prefetch_forward);
    walk_pass(&walk, units, 1, opened_bytes);
    walk.prefetch = MAX(0, job->zero.prefetch_backward);
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

/* c, or c times micro-batch and sequence to the powers given: what is not there cannot overflow. */
static gint64
term(const ZpTraining *training, gint64 bytes, int batches, int sequences, LedgerMath *math)
{
    for (int i = 0; bytes != 0 && i < batches; i++)
        bytes = ledger_multiply(math, bytes, training->micro_batch);
    for (int i = 0; bytes != 0 && i < sequences; i++)
        bytes = ledger_multiply(math, bytes, training->sequence);
    return bytes;
}

static gint64
weigh(const ZpTraining *training, const ZpModelBytes *form, LedgerMath *math)
{
    const gint64 terms[] = {
        form->constant_bytes,
        term(training, form->bytes_per_token, 1, 1, math),
        term(training, form->bytes_per_pair, 1, 2, math),
        term(training, form->bytes_per_position, 0, 1, math),
        term(training, form->bytes_per_position_pair, 0, 2, math),
        term(training, form->bytes_per_sequence, 1, 0, math),
    };
    gint64 sum = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(terms); i++)
        sum = ledger_add(math, sum, terms[i]);
    return MAX(sum, 0);
}

static gint64
weigh_peak(const ZpTraining *training, const ZpModelPeak *peak, LedgerMath *math)
{
    gint64 largest = 0;
    for (gint32 f = 0; f < peak->n_forms; f++)
        largest = MAX(largest, weigh(training, &peak->forms[f], math));
    return largest;
}

/* What layers of one kind hold; alike layers are weighed once. */
typedef struct {
    gboolean known;
    gint64 kept_bytes, recomputed_bytes;
    gint64 forward_bytes, backward_bytes; /* beside those; backward with its recomputation */
} Weighed;

static void
weigh_policy(Weighed *weighed, const ZpTraining *training, const ZpModelPolicyBytes *policy,
             LedgerMath *math)
{
    if (weighed->known)
        return;
    *weighed = (Weighed){
        .known = TRUE,
        .kept_bytes = weigh(training, &policy->kept, math),
        .recomputed_bytes = weigh(training, &policy->recomputed, math),
        .forward_bytes = weigh_peak(training, &policy->forward, math),
        .backward_bytes = MAX(weigh_peak(training, &policy->recompute, math),
                              weigh_peak(training, &policy->backward, math)),
    };
}

/* One class of what layers hold, in forward order. */
typedef struct {
    gint64 kept_bytes;
    gint64 recomputed_bytes; /* of the block so far */
    gint64 beside_bytes;     /* the most that any layer needs beside what is kept */
} Held;

static void
hold(Held *held, const Weighed *layer, LedgerMath *math)
{
    held->kept_bytes = ledger_add(math, held->kept_bytes, layer->kept_bytes);
    held->recomputed_bytes = ledger_add(math, held->recomputed_bytes, layer->recomputed_bytes);
    gint64 backward = ledger_add(math, held->recomputed_bytes, layer->backward_bytes);
    held->beside_bytes = MAX(held->beside_bytes, MAX(layer->forward_bytes, backward));
}

void
ledger_activations(const ZpJob *job, ZpLedger *ledger, LedgerMath *math)
{
    const ZpModel *model = job->model;
    Held activations = {0}, logits = {0};
    g_autofree Weighed *weighed = g_new0(Weighed, 2 * (gsize)model->activations->len + 1);
    gint32 block = ZP_MODEL_NONE;
    for (guint l = 0; l < model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, (gint32)l);
        if (layer->block != block)
            activations.recomputed_bytes = 0;
        block = layer->block;
        if (layer->activation == ZP_MODEL_NONE)
            continue;
        /* Checkpointing is of blocks: other layers keep everything. */
        gboolean whole = block == ZP_MODEL_NONE;
        ZpCheckpointing policy = whole ? ZP_CHECKPOINTING_NONE : job->training.checkpointing;
        Weighed *own = &weighed[2 * layer->activation + whole];
        const ZpModelPolicyBytes *bytes = zp_model_policy_bytes(
            zp_model_activation(model, layer->activation), (int)policy, job->training.micro_batch);
        weigh_policy(own, &job->training, bytes, math);
        hold(layer->kind == ZP_LAYER_HEAD ? &logits : &activations, own, math);
    }
    gint64 kept = ledger_multiply(math, activations.kept_bytes, zp_parallel_in_flight(job));
    ledger->activation_bytes = ledger_add(math, kept, activations.beside_bytes);
    ledger->logits_bytes = ledger_add(math, logits.kept_bytes, logits.beside_bytes);
}
