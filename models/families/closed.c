#include "models/families/closed_internal.h"

typedef enum { LAYER_NORM, FUSED, WRITTEN_OUT, PLUS_ONE, OVER_BRANCH, N_NORMS } Norm;

static const gint64 norm_bytes[][N_NORMS] = {
    [ZP_REGIME_BF16] = {4, 4, 8, 10, 8},
    [ZP_REGIME_AMP] = {6, 9, 13, 13, 8},
    [ZP_REGIME_AMP_16] = {6, 4, 8, 10, 8},
    [ZP_REGIME_FP32] = {8, 8, 12, 12, 12},
};
static const gint64 written_out_bytes[] = {
    [ZP_REGIME_BF16] = 6,
    [ZP_REGIME_AMP] = 12,
    [ZP_REGIME_AMP_16] = 12,
    [ZP_REGIME_FP32] = 12,
};

enum { LOG_SUM_BYTES = 4, FLOAT_BYTES = 4 };

static gint64
shared_out(gint64 width, gint64 ways)
{
    return (width + ways - 1) / ways;
}

ZpClosedLayer
zp_closed_layer(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts)
{
    gint64 ways = traits->tensor_parallel;
    gint64 heads = shared_out(facts->heads, ways), kv_heads = shared_out(facts->kv_heads, ways);
    gboolean repeated = traits->attention == ZP_BLOCK_EAGER ||
                        traits->attention == ZP_BLOCK_FLASH_REPEATED ||
                        traits->attention == ZP_BLOCK_EFFICIENT;
    gint64 key_heads = repeated && kv_heads > 1 ? heads : kv_heads;
    gboolean attends = facts->heads > 0, inside = facts->inner_width > 0;
    gboolean mixture = facts->expert_inner_width > 0;
    gint64 before = traits->norms == 4 && traits->norm == ZP_NORM_PLUS_ONE ? facts->norms_width / 2
                                                                           : facts->norms_width;
    return (ZpClosedLayer){
        .layer_norm = traits->layer_norm,
        .norm = traits->norm,
        .norms_width = before,
        .branch_norms_width = facts->norms_width - before,
        .query = heads * facts->qk_width,
        .key = key_heads * facts->qk_width,
        .value = key_heads * facts->v_width,
        .output = heads * facts->v_width,
        .query_norm = traits->qk_norm ? heads * facts->qk_width : 0,
        .key_norm = traits->qk_norm ? kv_heads * facts->qk_width : 0,
        .latent = attends && !traits->qk_norm ? facts->latent_width : 0,
        .dropped = traits->dropout && (attends || inside || mixture) ? facts->residual_width : 0,
        .inner = mixture ? 0 : shared_out(facts->inner_width, ways),
        .shared = mixture ? shared_out(facts->inner_width, ways) : 0,
        .gated = traits->gated,
        .activation = traits->activation,
    };
}

static Norm
norm_kind(const ZpClosedLayer *layer)
{
    if (layer->layer_norm)
        return LAYER_NORM;
    return layer->norm == ZP_NORM_FUSED      ? FUSED
           : layer->norm == ZP_NORM_PLUS_ONE ? PLUS_ONE
                                             : WRITTEN_OUT;
}

static gint64
per_inner(const ZpArchitectureTraits *traits, const ZpClosedLayer *layer, gboolean gated)
{
    gint64 b = traits->number_bytes, bytes = gated ? 4 * b : 2 * b;
    if (layer->activation == ZP_BLOCK_RELU)
        return bytes - b;
    gboolean written_out =
        layer->activation == ZP_BLOCK_GELU_WRITTEN_OUT || layer->activation == ZP_BLOCK_GELU_FAST;
    return bytes + (written_out ? written_out_bytes[traits->regime] : 0);
}

gint64
zp_closed_bytes_per_token(const ZpArchitectureTraits *traits, const ZpClosedLayer *layer)
{
    const gint64 *norms = norm_bytes[traits->regime];
    gint64 b = traits->number_bytes, stream = zp_architecture_stream_ways(traits);
    Norm kind = norm_kind(layer), over = layer->layer_norm || kind == FUSED ? kind : OVER_BRANCH;
    gint64 repeated =
        norms[kind] * layer->norms_width + norms[over] * layer->branch_norms_width + layer->dropped;
    gint64 core = b * (layer->query + layer->key + layer->value + layer->output);
    gint64 beside =
        (norms[kind] - b) * (layer->query_norm + layer->key_norm) + norms[kind] * layer->latent;
    gint64 mlp = per_inner(traits, layer, layer->gated) * layer->inner +
                 per_inner(traits, layer, TRUE) * layer->shared;
    return shared_out(repeated, stream) + core + beside + mlp;
}

/* Expert by expert: gathered rows, output and its weighted form, and the index of each. */
static gint64
experts_bytes(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts)
{
    gint64 b = traits->number_bytes;
    return 4 * b * facts->expert_inner_width +
           3 * b * facts->chosen_experts * facts->residual_width;
}

ZpModelActivation
zp_closed_activation(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, gboolean first)
{
    ZpClosedLayer layer = zp_closed_layer(traits, facts);
    gint64 b = traits->number_bytes;
    gint64 stream =
        traits->residual_bytes * facts->residual_width / zp_architecture_stream_ways(traits);
    gint64 inner = layer.inner + layer.shared + facts->expert_inner_width;
    gint64 widest = MAX(2 * b * inner, b * (layer.query + layer.output));
    gboolean eager = facts->heads > 0 && traits->attention == ZP_BLOCK_EAGER;
    gint64 heads = shared_out(facts->heads, traits->tensor_parallel);
    gint64 pairs = eager ? heads * (traits->attention_dropout ? 2 * b + 1 : FLOAT_BYTES + b) : 0;
    ZpModelBytes kept = {
        .bytes_per_token = zp_closed_bytes_per_token(traits, &layer) +
                           experts_bytes(traits, facts) + (eager ? 0 : LOG_SUM_BYTES * heads),
        .bytes_per_pair = pairs,
    };
    ZpModelPeak forward = {1, {{.bytes_per_token = 2 * stream, .bytes_per_pair = pairs}}};
    ZpModelPeak backward = {1, {{.bytes_per_token = 2 * stream + widest, .bytes_per_pair = pairs}}};
    ZpModelBytes input = {.bytes_per_token = first ? stream : 0};
    ZpModelActivation activation = {0};
    activation.policies[0] =
        (ZpModelPolicyBytes){.kept = kept, .forward = forward, .backward = backward};
    activation.policies[1] = activation.policies[2] = (ZpModelPolicyBytes){
        .kept = input,
        .recomputed = kept,
        .forward = {1, {{.bytes_per_token = 2 * stream + widest, .bytes_per_pair = 2 * pairs}}},
        .recompute = forward,
        .backward = backward,
    };
    return activation;
}
