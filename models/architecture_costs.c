#include "models/architecture_costs.h"

#include <math.h>

/* What is the same for all layers. */
typedef struct {
    gint64 number_bytes; /* of an activation */
    gboolean eager, causal, gated, layer_norm, scale_plus_one, dropout, qk_norm, rotary;
    gint64 vocabulary;
    double imbalance;
} Rules;

static gint64
scaled(const Rules *rules, gint64 expert_share)
{
    return (gint64)llround((double)expert_share * rules->imbalance);
}

static gint64
norm_bytes(const Rules *rules, gint64 width)
{
    gint64 b = rules->number_bytes;
    return width * (rules->layer_norm ? 2 * b : 4 + 2 * b + (rules->scale_plus_one ? b : 0));
}

/* Norms, dropout mask and the residual addition: what every sublayer has. */
static void
cost_stream(const Rules *rules, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = rules->number_bytes;
    layer->kept_bytes_per_token += norm_bytes(rules, facts->norms_width);
    layer->traffic_bytes_per_token += facts->norms_width * (rules->layer_norm ? 2 * b : 21 * b);
    layer->stream_traffic_bytes_per_token = layer->traffic_bytes_per_token;
    if (layer->kind == ZP_LAYER_NORM)
        return;
    if (rules->dropout)
        layer->kept_bytes_per_token += facts->residual_width;
    layer->traffic_bytes_per_token += 3 * b * facts->residual_width;
    layer->stream_traffic_bytes_per_token = layer->traffic_bytes_per_token;
}

static void
cost_attention(const Rules *rules, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = rules->number_bytes;
    gint64 query = facts->heads * facts->qk_width, key = facts->kv_heads * facts->qk_width;
    gint64 value = facts->kv_heads * facts->v_width, out = facts->heads * facts->v_width;
    layer->kept_bytes_per_token += b * (query + key + value + out);
    if (rules->qk_norm)
        layer->kept_bytes_per_token += (4 + b) * (query + key);
    else
        layer->kept_bytes_per_token += norm_bytes(rules, facts->latent_width);
    if (rules->eager)
        layer->kept_bytes_per_pair = facts->heads * (rules->dropout ? 2 * b + 1 : 4 + b);
    else
        layer->kept_bytes_per_token += 4 * facts->heads;
    layer->flops_per_pair =
        2 * facts->heads * (facts->qk_width + facts->v_width) / (rules->causal ? 2 : 1);
    layer->traffic_bytes_per_token +=
        2 * b * (query + key + value + out) + 2 * b * facts->residual_width;
    if (rules->rotary)
        layer->traffic_bytes_per_token += 37 * b * (query + key) / 2;
}

static void
cost_mlp(const Rules *rules, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = rules->number_bytes;
    gint64 width = facts->inner_width + scaled(rules, facts->expert_inner_width);
    gint64 gathered = scaled(rules, 2 * b * facts->chosen_experts * facts->residual_width);
    layer->kept_bytes_per_token += (rules->gated ? 4 : 2) * b * width + gathered;
    layer->traffic_bytes_per_token += 2 * b * facts->residual_width + gathered;
    layer->traffic_bytes_per_token +=
        rules->gated ? 3 * b * width + 17 * b * width / 2 : 2 * b * width + 2 * b * width;
}

static void
cost_head(const Rules *rules, const ZpTreeLayer *facts, ZpModelLayer *layer)
{
    gint64 b = rules->number_bytes;
    if (facts->matrix_elements == 0)
        return;
    layer->logits_bytes_per_token = (b + 12) * rules->vocabulary;
    layer->traffic_bytes_per_token = 2 * (b + 12) * rules->vocabulary;
}

static void
cost_layer(const Rules *rules, const ZpTreeLayer *facts, ZpModelLayer *layer, gboolean first)
{
    gint64 b = rules->number_bytes;
    layer->flops_per_token =
        2 * (facts->matrix_elements + scaled(rules, facts->expert_matrix_elements));
    if (layer->kind == ZP_LAYER_EMBEDDING) {
        layer->kept_bytes_per_token = sizeof(gint64); /* the token's id */
        if (rules->dropout)
            layer->kept_bytes_per_token += facts->residual_width;
        layer->traffic_bytes_per_token = 2 * b * facts->residual_width;
    } else if (layer->kind == ZP_LAYER_HEAD) {
        cost_head(rules, facts, layer);
    } else {
        cost_stream(rules, facts, layer);
    }
    if (facts->heads > 0)
        cost_attention(rules, facts, layer);
    if (facts->inner_width + facts->expert_inner_width > 0)
        cost_mlp(rules, facts, layer);
    layer->selective_bytes_per_token = layer->kept_bytes_per_token;
    if (rules->eager)
        layer->selective_flops_per_pair = layer->flops_per_pair;
    if (first)
        layer->input_bytes_per_token = b * facts->residual_width;
}

void
zp_architecture_cost_layers(ZpModel *model, const GArray *facts, const ZpSymbols *symbols,
                            const ZpArchitectureOptions *options)
{
    int bits = zp_dtype_bits(options->compute);
    Rules rules = {
        .number_bytes = bits >= 16 ? bits / 8 : 2, /* narrower formats are for matrix operands */
        .eager = options->attention == ZP_ATTENTION_EAGER,
        .causal = options->causal,
        .gated = zp_symbols_get(symbols, "gated") != 0,
        .layer_norm = zp_symbols_get(symbols, "ln") != 0,
        .scale_plus_one = zp_symbols_get(symbols, "scale_plus_one") != 0,
        .dropout = zp_symbols_get(symbols, "dropout") != 0,
        .qk_norm = zp_symbols_get(symbols, "qk_norm") != 0,
        .rotary = zp_symbols_get(symbols, "positions") == 0,
        .vocabulary = zp_symbols_get(symbols, "V"),
        .imbalance = MAX(options->expert_imbalance, 1.0),
    };
    gint32 block = ZP_MODEL_NONE;
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        ZpTreeLayer own = g_array_index(facts, ZpTreeLayer, l);
        if (own.residual_width == 0)
            own.residual_width = model->hidden;
        cost_layer(&rules, &own, layer, layer->block != ZP_MODEL_NONE && layer->block != block);
        block = layer->block;
    }
}
