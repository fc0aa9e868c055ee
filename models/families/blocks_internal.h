/* Which block of models/activation/activation.h a model's block is, and what the two differ by.
 *
 * Exact (their operators are the simulator's, or keep the same): llama, mistral, qwen2, qwen3,
 * smollm3, granite, gemma2, gemma3_text, mixtral, qwen3_moe, gpt2, gptj, phi, phi3, gpt_neox,
 * falcon, opt, t5 and its kin, bert, roberta, vit.
 * Approximate, as the nearest block with what is kept corrected by
 * models/families/closed_internal.h and its transients as they are: fused projections whose value
 * stays a view of the whole (glm, codegen, chatglm, dbrx), LayerNorm with rotary or gated parts
 * (starcoder2, stablelm, nemotron, olmo, cohere, phimoe), one query group (gpt_bigcode), norms
 * elsewhere or over all heads (gemma, glm4, olmo2, olmo3, olmoe, opt-350m), projections and
 * position terms of their own (bloom, mpt, gpt_neo), cross-attention outside T5 (whisper), latent
 * attention (deepseek_v2 and on), routing other than softmax and top-k (glm4_moe, deepseek_v3),
 * attention sinks (gpt_oss), all experts over all tokens (llama4), vision towers (as GPT-2's
 * block).  By closed forms alone: sizes that zp_activation_check() refuses, and blocks without
 * attention or MLP. */
#pragma once

#include "models/families/closed_internal.h"

/* The layers of one block, in forward order. */
enum { ZP_BLOCK_MAX_LAYERS = 4 };
typedef struct {
    gint32 first, n_layers; /* into model->layers */
    ZpLayerKind kinds[ZP_BLOCK_MAX_LAYERS];
    ZpTreeLayer facts[ZP_BLOCK_MAX_LAYERS];
    gboolean leads;    /* with adapters: nothing before it needs a gradient */
    gboolean windowed; /* the sequence is longer than this block's window of attention */
} ZpBlockLayers;

/* In forward order. */
typedef enum { ZP_PART_ATTENTION, ZP_PART_CROSS, ZP_PART_MLP, ZP_PART_OTHER } ZpBlockPart;
ZpBlockPart zp_block_part(const ZpBlockLayers *layers, gint32 index);

/* FALSE where no block describes it. */
gboolean zp_block_describe(const ZpArchitectureTraits *traits, const ZpBlockLayers *layers,
                           ZpActivationBlock *block);
/* A part of the described block, as the closed forms see it. */
ZpClosedLayer zp_block_closed(const ZpActivationBlock *block, ZpBlockPart part,
                              const ZpClosedLayer *own);

/* Shares of a layer's FLOPs that the selective policy recomputes: of its products as a fraction,
 * and all of the attention core or none.  Products are taken in the order in which the described
 * block runs them; a mixture's experts in one batched product are never kept. */
typedef struct {
    gint64 products, of; /* products / of */
    gboolean core;
    gboolean last; /* the part's last product is among them */
} ZpBlockRecomputed;
ZpBlockRecomputed zp_block_recomputed(const ZpArchitectureTraits *traits,
                                      const ZpActivationBlock *block, ZpBlockPart part);

/* Elements by layer of the weights that autocast copies: of modules that own a matrix, tables left
 * out; `facts` (ZpTreeLayer) is parallel to the layers.  Free with g_free(). */
gint64 *zp_block_copies(const ZpModel *model, const GArray *facts);
