#include "models/runtimes/shared/layer_bytes.h"

/* Holds a product of two int64, and a few of them once clamped. */
typedef __int128 Wide;
#define LARGEST ((Wide)G_MAXINT64)

typedef struct {
    Wide tokens, pairs, positions, position_pairs, sequences;
} Dimensions;

static Wide
product(Wide a, Wide b)
{
    return MIN(a * b, LARGEST);
}

static Dimensions
dimensions(gint64 micro_batch, gint64 sequence)
{
    Wide positions = product(sequence, 1);
    Wide tokens = product(micro_batch, positions);
    return (Dimensions){
        .tokens = tokens,
        .pairs = product(tokens, positions),
        .positions = positions,
        .position_pairs = product(positions, positions),
        .sequences = micro_batch,
    };
}

static Wide
term(gint64 bytes, Wide by)
{
    const Wide far = LARGEST << 32;
    return CLAMP(bytes * by, -far, far);
}

static gint64
weigh(const ZpModelBytes *form, const Dimensions *by)
{
    Wide sum = form->constant_bytes;
    sum += term(form->bytes_per_token, by->tokens) + term(form->bytes_per_pair, by->pairs);
    sum += term(form->bytes_per_position, by->positions);
    sum += term(form->bytes_per_position_pair, by->position_pairs);
    sum += term(form->bytes_per_sequence, by->sequences);
    return (gint64)CLAMP(sum, (Wide)0, LARGEST);
}

gint64
zp_layer_bytes_weigh(const ZpModelBytes *form, gint64 micro_batch, gint64 sequence)
{
    Dimensions by = dimensions(micro_batch, sequence);
    return weigh(form, &by);
}

static gint64
largest(const ZpModelPeak *peak, const Dimensions *by)
{
    gint64 bytes = 0;
    for (gint32 f = 0; f < peak->n_forms; f++)
        bytes = MAX(bytes, weigh(&peak->forms[f], by));
    return bytes;
}

static ZpLayerBytes
weigh_policy(const ZpModelActivation *activation, ZpCheckpointing chosen, const Dimensions *by)
{
    const ZpModelPolicyBytes *policy =
        zp_model_policy_bytes(activation, (int)chosen, (gint64)by->sequences);
    return (ZpLayerBytes){
        .kept_bytes = weigh(&policy->kept, by),
        .recomputed_bytes = weigh(&policy->recomputed, by),
        .forward_bytes = largest(&policy->forward, by),
        .recompute_bytes = largest(&policy->recompute, by),
        .backward_bytes = largest(&policy->backward, by),
    };
}

void
zp_layer_bytes_init(ZpLayerBytesTable *table, const ZpJob *job)
{
    guint n = job->model->activations->len;
    Dimensions by = dimensions(job->training.micro_batch, job->training.sequence);
    ZpCheckpointing chosen = job->training.checkpointing;
    table->model = job->model;
    table->entries = g_new(ZpLayerBytes, 2 * (gsize)n + 1);
    for (guint a = 0; a < n; a++) {
        const ZpModelActivation *activation = zp_model_activation(job->model, (gint32)a);
        ZpLayerBytes whole = weigh_policy(activation, ZP_CHECKPOINTING_NONE, &by);
        table->entries[n + a] = whole;
        if (chosen == ZP_CHECKPOINTING_FULL)
            table->entries[n + a].kept_bytes += weigh(&activation->handed, &by);
        table->entries[a] =
            chosen == ZP_CHECKPOINTING_NONE ? whole : weigh_policy(activation, chosen, &by);
    }
}

void
zp_layer_bytes_clear(ZpLayerBytesTable *table)
{
    g_free(table->entries);
    table->entries = NULL;
}

const ZpLayerBytes *
zp_layer_bytes_get(const ZpLayerBytesTable *table, gint32 index)
{
    static const ZpLayerBytes nothing = {0};
    const ZpModelLayer *layer = zp_model_layer(table->model, index);
    if (layer->activation == ZP_MODEL_NONE)
        return &nothing;
    gsize first = layer->block == ZP_MODEL_NONE ? table->model->activations->len : 0;
    return &table->entries[first + (gsize)layer->activation];
}
