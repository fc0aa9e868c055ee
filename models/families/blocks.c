#include "models/families/blocks_internal.h"

#include <string.h>

/* Sizes do not matter to forms, but experts must share their rows evenly. */
enum { SEQUENCES = 2, TOKENS = 64 };
/* Larger than any that the forms are found at, for each expert and rank. */
enum { MOST_SEQUENCES = 32, MOST_TOKENS = 128, MOST_BYTES = 64 };

static const ZpTreeLayer *
find_part(const ZpBlockLayers *layers, ZpBlockPart part)
{
    for (gint32 l = 0; l < layers->n_layers; l++)
        if (zp_block_part(layers, l) == part)
            return &layers->facts[l];
    return NULL;
}

ZpBlockPart
zp_block_part(const ZpBlockLayers *layers, gint32 index)
{
    const ZpTreeLayer *facts = &layers->facts[index];
    if (facts->heads > 0) {
        for (gint32 l = 0; l < index; l++)
            if (layers->facts[l].heads > 0)
                return ZP_PART_CROSS;
        return ZP_PART_ATTENTION;
    }
    return facts->inner_width + facts->expert_inner_width > 0 ? ZP_PART_MLP : ZP_PART_OTHER;
}

static ZpBlockFamily
family_of(const ZpArchitectureTraits *traits, const ZpBlockLayers *layers, const ZpTreeLayer *mlp)
{
    if (layers->kinds[0] == ZP_LAYER_OTHER)
        return ZP_BLOCK_GPT2;
    if (traits->t5)
        return find_part(layers, ZP_PART_CROSS) ? ZP_BLOCK_T5_DECODER : ZP_BLOCK_T5_ENCODER;
    if (mlp->expert_inner_width > 0)
        return ZP_BLOCK_MOE;
    if (traits->post_norm)
        return ZP_BLOCK_BERT;
    if (traits->parallel)
        return ZP_BLOCK_PARALLEL;
    return traits->gated || !traits->layer_norm ? ZP_BLOCK_LLAMA : ZP_BLOCK_GPT2;
}

static ZpBlockPolicy
policy_of(ZpSelective selective)
{
    switch (selective) {
    case ZP_SELECTIVE_ATTENTION:
        return ZP_KEEP_ATTENTION;
    case ZP_SELECTIVE_PRODUCTS:
        return ZP_KEEP_PRODUCTS;
    case ZP_SELECTIVE_PRODUCTS_AND_ATTENTION:
        return ZP_KEEP_PRODUCTS_AND_ATTENTION;
    case ZP_SELECTIVE_EVERY_SECOND_PRODUCT:
        return ZP_KEEP_EVERY_SECOND_PRODUCT;
    case ZP_SELECTIVE_ATTENTION_CORE:
        break;
    }
    return ZP_KEEP_ALL;
}

/* The norms of a Llama block: weights 1 + w come with norms over the branches there. */
static ZpBlockNorm
norm_of(const ZpArchitectureTraits *traits)
{
    return traits->norm == ZP_NORM_PLUS_ONE && traits->norms != 4 ? ZP_NORM_EAGER : traits->norm;
}

static gboolean
has_grouped_heads(ZpBlockFamily family)
{
    return family == ZP_BLOCK_LLAMA || family == ZP_BLOCK_MOE || family == ZP_BLOCK_PARALLEL;
}

static void
set_traits(ZpActivationBlock *block, const ZpArchitectureTraits *traits, gboolean vision)
{
    gboolean llama = block->family == ZP_BLOCK_LLAMA || block->family == ZP_BLOCK_MOE;
    block->norm = norm_of(traits);
    block->attention = traits->attention;
    block->compiled = traits->compiled && block->family == ZP_BLOCK_LLAMA &&
                      block->attention != ZP_BLOCK_EAGER && traits->regime != ZP_REGIME_AMP;
    block->activation = vision ? ZP_BLOCK_GELU : traits->activation;
    block->regime = traits->regime;
    block->policy = policy_of(traits->selective);
    block->reentrant = traits->reentrant;
    block->experts = traits->experts;
    gboolean parallel = block->family == ZP_BLOCK_PARALLEL;
    block->projection = vision ? ZP_PROJECTION_OWN : traits->projection;
    block->mask = vision ? ZP_MASK_NONE : traits->mask;
    block->rotary_joined = traits->rotary_joined;
    block->rotary_named = traits->rotary_named;
    block->rotary = traits->rotary_width;
    block->scaled_query = !vision && traits->scaled_query;
    block->contiguous_heads = !vision && traits->contiguous_heads;
    block->two_norms = parallel && traits->two_norms;
    block->fused_gate = llama && traits->fused_gate;
    block->biases = traits->biases;
    block->bare_products = traits->bare_products;
    block->t5_interface = traits->t5_interface;
    block->router_fp32 = traits->router_fp32;
    block->shares_fp32 = traits->shares_fp32;
    block->gated_shared = traits->gated_shared;
    block->softmax_fp32 = traits->softmax_fp32;
    block->qk_norm = llama && traits->qk_norm;
    block->soft_cap = !vision && traits->soft_cap && traits->attention == ZP_BLOCK_EAGER;
    block->dropout = !vision && traits->dropout;
    block->attention_dropout = !vision && traits->attention_dropout;
    block->tensor_parallel = traits->tensor_parallel;
    block->sequence_parallel = traits->sequence_parallel;
}

static void
set_sizes(ZpActivationBlock *block, const ZpTreeLayer *attention, const ZpTreeLayer *mlp)
{
    block->batch = SEQUENCES;
    block->tokens = TOKENS * MAX(block->tensor_parallel, 1);
    block->hidden = attention->residual_width;
    block->heads = attention->heads;
    block->kv_heads = has_grouped_heads(block->family) ? attention->kv_heads : attention->heads;
    block->head_size = attention->qk_width;
    block->ffn = mlp->inner_width;
    if (block->family != ZP_BLOCK_MOE)
        return;
    block->chosen_experts = mlp->chosen_experts;
    block->expert_count = mlp->experts;
    block->ffn = mlp->expert_inner_width / MAX(mlp->chosen_experts, 1);
    if (block->experts == ZP_EXPERTS_GROUPED_MM)
        block->shared = mlp->inner_width;
    else
        block->tokens *= MAX(mlp->experts, 1);
}

/* Do the block's tensors fit 64 bits, at the sizes at which forms are found? */
static gboolean
fits(const ZpActivationBlock *block)
{
    double tokens = (double)MOST_TOKENS * (double)MAX(block->expert_count, 1) *
                    (double)MAX(block->tensor_parallel, 1);
    double query = (double)block->heads * (double)block->head_size;
    double width = MAX((double)block->hidden, (double)block->ffn);
    width = MAX(MAX(width, query), (double)block->expert_count);
    double most = MAX(width * (double)MAX(block->chosen_experts, 1), (double)block->heads * tokens);
    return most * tokens * MOST_SEQUENCES * MOST_BYTES < (double)G_MAXINT64;
}

gboolean
zp_block_describe(const ZpArchitectureTraits *traits, const ZpBlockLayers *layers,
                  ZpActivationBlock *block)
{
    const ZpTreeLayer *attention = find_part(layers, ZP_PART_ATTENTION);
    const ZpTreeLayer *mlp = find_part(layers, ZP_PART_MLP);
    if (attention == NULL || mlp == NULL)
        return FALSE;
    memset(block, 0, sizeof *block);
    block->family = family_of(traits, layers, mlp);
    set_traits(block, traits, layers->kinds[0] == ZP_LAYER_OTHER);
    set_sizes(block, attention, mlp);
    if (layers->windowed && block->mask == ZP_MASK_NONE)
        block->mask = ZP_MASK_SHARED;
    return zp_activation_check(block, NULL) && fits(block);
}

/* Traits that the block has and the layer's own sizes; `own` gives what both share. */
ZpClosedLayer
zp_block_closed(const ZpActivationBlock *block, ZpBlockPart part, const ZpClosedLayer *own)
{
    gboolean llama = block->family == ZP_BLOCK_LLAMA || block->family == ZP_BLOCK_MOE;
    gboolean t5 = block->family == ZP_BLOCK_T5_ENCODER || block->family == ZP_BLOCK_T5_DECODER;
    gboolean plus_one = llama && block->norm == ZP_NORM_PLUS_ONE;
    gint64 ways = MAX(block->tensor_parallel, 1);
    gint64 heads = block->heads / ways, kv_heads = MAX(block->kv_heads / ways, 1);
    gboolean repeated = block->attention == ZP_BLOCK_EAGER ||
                        block->attention == ZP_BLOCK_FLASH_REPEATED ||
                        block->attention == ZP_BLOCK_EFFICIENT;
    gint64 key = (repeated && kv_heads > 1 ? heads : kv_heads) * block->head_size;
    gboolean attends = part != ZP_PART_MLP;
    gboolean normed = attends || block->family != ZP_BLOCK_PARALLEL || block->two_norms;
    return (ZpClosedLayer){
        .layer_norm = !llama && !t5,
        .norm = t5 ? own->norm : block->norm,
        .norms_width = normed ? block->hidden : 0,
        .branch_norms_width = plus_one ? block->hidden : 0,
        .query = attends ? heads * block->head_size : 0,
        .key = attends ? key : 0,
        .value = attends ? key : 0,
        .output = attends ? heads * block->head_size : 0,
        .query_norm = attends && block->qk_norm ? heads * block->head_size : 0,
        .key_norm = attends && block->qk_norm ? kv_heads * block->head_size : 0,
        .dropped = block->dropout && !llama ? block->hidden : 0,
        .inner = !attends && block->family != ZP_BLOCK_MOE ? block->ffn / ways : 0,
        .shared = !attends ? block->shared / ways : 0,
        .gated = llama || (t5 && own->gated),
        .activation = block->activation,
    };
}

enum { MAX_PRODUCTS = 10 };

/* Sizes of a part's products in the order in which it runs them. */
static int
list_products(const ZpActivationBlock *block, ZpBlockPart part, gint64 sizes[MAX_PRODUCTS])
{
    gint64 h = block->hidden, q = block->heads * block->head_size;
    gint64 kv = block->kv_heads * block->head_size, f = block->ffn;
    if (part != ZP_PART_MLP) {
        gint64 apart[] = {q * h, kv * h, kv * h, q * h}, fused[] = {3 * q * h, q * h};
        gboolean one = block->family == ZP_BLOCK_GPT2;
        int count = one ? 2 : 4;
        memcpy(sizes, one ? fused : apart, (gsize)count * sizeof sizes[0]);
        return count;
    }
    gboolean t5 = block->family == ZP_BLOCK_T5_ENCODER || block->family == ZP_BLOCK_T5_DECODER;
    gboolean gated = block->family == ZP_BLOCK_LLAMA || (t5 && block->activation != ZP_BLOCK_RELU);
    int count = gated ? 3 : 2;
    for (int i = 0; i < count; i++)
        sizes[i] = h * f;
    return count;
}

/* The router is a product; each expert runs three, or all of them three batched ones. */
static ZpBlockRecomputed
recomputed_experts(const ZpActivationBlock *block, gboolean every_second, int before)
{
    gint64 router = block->hidden * block->expert_count;
    gint64 each = block->hidden * block->ffn * block->chosen_experts;
    ZpBlockRecomputed share = {.of = router + 3 * each};
    gboolean skipped = every_second && before % 2 == 1;
    share.products = skipped ? router : 0;
    share.last = block->experts == ZP_EXPERTS_GROUPED;
    if (share.last)
        share.products += 3 * each;
    else if (every_second) /* three a time: each place is even every second expert */
        share.products += 3 * each / 2;
    return share;
}

static ZpBlockRecomputed
recomputed_products(const ZpActivationBlock *block, ZpBlockPart part, gboolean every_second)
{
    gint64 sizes[MAX_PRODUCTS] = {0};
    int before = 0;
    for (int p = ZP_PART_ATTENTION; p < (int)part; p++)
        if (p != ZP_PART_CROSS || block->family == ZP_BLOCK_T5_DECODER)
            before += list_products(block, (ZpBlockPart)p, sizes);
    if (part == ZP_PART_MLP && block->family == ZP_BLOCK_MOE)
        return recomputed_experts(block, every_second, before);
    ZpBlockRecomputed share = {0};
    int count = list_products(block, part, sizes);
    for (int i = 0; i < count; i++) {
        share.of += sizes[i];
        share.last = every_second && (before + i) % 2 == 1;
        share.products += share.last ? sizes[i] : 0;
    }
    return share;
}

ZpBlockRecomputed
zp_block_recomputed(const ZpArchitectureTraits *traits, const ZpActivationBlock *block,
                    ZpBlockPart part)
{
    gboolean eager = traits->attention == ZP_BLOCK_EAGER;
    ZpBlockRecomputed share = {.of = 1};
    if (part == ZP_PART_OTHER)
        return share;
    switch (traits->selective) {
    case ZP_SELECTIVE_ATTENTION_CORE:
        share.core = eager;
        return share;
    case ZP_SELECTIVE_ATTENTION:
        return (ZpBlockRecomputed){.products = 1, .of = 1, .core = eager, .last = TRUE};
    case ZP_SELECTIVE_PRODUCTS:
    case ZP_SELECTIVE_PRODUCTS_AND_ATTENTION:
    case ZP_SELECTIVE_EVERY_SECOND_PRODUCT:
        share = recomputed_products(block, part,
                                    traits->selective == ZP_SELECTIVE_EVERY_SECOND_PRODUCT);
        share.core = eager || traits->selective == ZP_SELECTIVE_PRODUCTS;
        return share;
    }
    g_assert_not_reached();
}

gint64 *
zp_block_copies(const ZpModel *model, const GArray *facts)
{
    gint64 *copied = g_new0(gint64, model->layers->len);
    for (guint i = 0; i < model->parameters->len; i++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)i);
        if (parameter->layer == ZP_MODEL_NONE)
            continue;
        const ZpModelModule *owner = zp_model_module(model, parameter->module);
        gboolean multiplied = FALSE;
        for (gint32 p = 0; p < owner->n_parameters; p++)
            multiplied |= zp_model_parameter(model, owner->first_parameter + p)->n_dims > 1;
        if (multiplied)
            copied[parameter->layer] += parameter->elements;
    }
    for (guint l = 0; l < model->layers->len; l++) {
        copied[l] -= g_array_index(facts, ZpTreeLayer, l).table_elements;
        if (zp_model_layer(model, (gint32)l)->kind == ZP_LAYER_EMBEDDING)
            copied[l] = 0;
    }
    return copied;
}
