#include "models/families/costs_internal.h"

#include "models/families/layer_activation_internal.h"
#include "models/job/job.h"

#include <math.h>

enum { FLOAT_BYTES = 4 };

static gint64
scaled(const ZpArchitectureTraits *traits, gint64 expert_share)
{
    return (gint64)llround((double)expert_share * traits->expert_imbalance);
}

/* Norms and the residual addition: what every sublayer has. */
static void
cost_stream(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = traits->number_bytes;
    gboolean fused = traits->norm == ZP_NORM_FUSED;
    layer->traffic_bytes_per_token += facts->norms_width * (traits->layer_norm ? 2 * b
                                                            : fused            ? 4 * b
                                                                               : 21 * b);
    if (layer->kind != ZP_LAYER_NORM)
        layer->traffic_bytes_per_token += 3 * b * facts->residual_width;
    layer->stream_traffic_bytes_per_token = layer->traffic_bytes_per_token;
}

static void
cost_attention(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = traits->number_bytes;
    gint64 query = facts->heads * facts->qk_width, key = facts->kv_heads * facts->qk_width;
    gint64 value = facts->kv_heads * facts->v_width, out = facts->heads * facts->v_width;
    layer->flops_per_pair =
        2 * facts->heads * (facts->qk_width + facts->v_width) / (traits->causal ? 2 : 1);
    layer->traffic_bytes_per_token +=
        2 * b * (query + key + value + out) + 2 * b * facts->residual_width;
    if (traits->rotary)
        layer->traffic_bytes_per_token += (traits->fused_rotary ? 4 : 37) * b * (query + key) / 2;
}

static void
cost_mlp(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = traits->number_bytes;
    gint64 width = facts->inner_width + scaled(traits, facts->expert_inner_width);
    gint64 gathered = scaled(traits, 2 * b * facts->chosen_experts * facts->residual_width);
    layer->traffic_bytes_per_token += 2 * b * facts->residual_width + gathered;
    layer->traffic_bytes_per_token +=
        traits->gated ? 3 * b * width + (traits->compiled ? 6 : 17) * b * width / 2
                      : 2 * b * width + 2 * b * width;
}

static void
cost_head(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = traits->number_bytes;
    if (facts->matrix_elements == 0)
        return;
    layer->runs_again = traits->loss == ZP_LOSS_CHUNKS_CHECKPOINTED;
    gboolean cast = traits->loss != ZP_LOSS_RAW && b < FLOAT_BYTES;
    gint64 wide = cast ? FLOAT_BYTES : b;
    layer->traffic_bytes_per_token =
        (b + (cast ? b + FLOAT_BYTES : 0) + 2 * wide) * traits->vocabulary;
}

static void
cost_layer(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    layer->flops_per_token =
        2 * (facts->matrix_elements + scaled(traits, facts->expert_matrix_elements));
    if (layer->kind == ZP_LAYER_EMBEDDING)
        layer->traffic_bytes_per_token = 2 * traits->number_bytes * facts->residual_width;
    else if (layer->kind == ZP_LAYER_HEAD)
        cost_head(traits, facts, layer);
    else
        cost_stream(traits, facts, layer);
    if (facts->heads > 0)
        cost_attention(traits, facts, layer);
    if (facts->inner_width + facts->expert_inner_width > 0)
        cost_mlp(traits, facts, layer);
}

void
zp_architecture_cost_layers(ZpModel *model, const GArray *facts, const ZpSymbols *symbols,
                            const ZpArchitectureOptions *options)
{
    ZpArchitectureTraits traits = zp_architecture_traits(symbols, options);
    for (guint l = 0; l < model->layers->len; l++) {
        ZpTreeLayer own = g_array_index(facts, ZpTreeLayer, l);
        if (own.residual_width == 0)
            own.residual_width = model->hidden;
        cost_layer(&traits, &own, &g_array_index(model->layers, ZpModelLayer, l));
    }
    zp_architecture_attach_activations(model, facts, &traits);
}
