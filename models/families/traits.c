#include "models/families/traits_internal.h"

/* Values of the symbol `act`. */
enum { ACT_UNKNOWN, ACT_SILU, ACT_GELU, ACT_WRITTEN_OUT, ACT_RELU, ACT_FAST };

enum { DEFAULT_CHUNKS = 8 };

static gboolean
holds(const ZpSymbols *symbols, const char *name)
{
    return zp_symbols_get(symbols, name) != 0;
}

static gboolean
chosen(ZpTrait trait, gboolean by_default)
{
    return trait == ZP_TRAIT_DEFAULT ? by_default : trait == ZP_TRAIT_YES;
}

static ZpBlockActivation
activation_of(const ZpSymbols *symbols, gboolean gated)
{
    switch (zp_symbols_get(symbols, "act")) {
    case ACT_SILU:
        return ZP_BLOCK_SILU;
    case ACT_GELU:
        return ZP_BLOCK_GELU;
    case ACT_WRITTEN_OUT:
        return ZP_BLOCK_GELU_WRITTEN_OUT;
    case ACT_FAST:
        return ZP_BLOCK_GELU_FAST;
    case ACT_RELU:
        return ZP_BLOCK_RELU;
    default:
        return gated ? ZP_BLOCK_SILU : ZP_BLOCK_GELU;
    }
}

static ZpBlockAttention
attention_of(const ZpSymbols *symbols, ZpAttentionImpl wanted)
{
    switch (wanted) {
    case ZP_ATTENTION_EAGER:
        return ZP_BLOCK_EAGER;
    case ZP_ATTENTION_FLASH_REPEATED:
        return ZP_BLOCK_FLASH_REPEATED;
    case ZP_ATTENTION_EFFICIENT:
        return ZP_BLOCK_EFFICIENT;
    case ZP_ATTENTION_CUDNN:
        return ZP_BLOCK_CUDNN;
    case ZP_ATTENTION_DEFAULT:
        return holds(symbols, "eager_attention") ? ZP_BLOCK_EAGER : ZP_BLOCK_FLASH;
    case ZP_ATTENTION_FLASH:
        break;
    }
    return ZP_BLOCK_FLASH;
}

/* Fused since transformers 5, with the position bias as a mask. */
static ZpBlockAttention
t5_attention_of(const ZpSymbols *symbols, ZpAttentionImpl wanted)
{
    gboolean fused = holds(symbols, "hf5") && wanted != ZP_ATTENTION_EAGER;
    return fused ? ZP_BLOCK_EFFICIENT : ZP_BLOCK_EAGER;
}

static void
set_formats(ZpArchitectureTraits *traits, const ZpArchitectureOptions *options)
{
    int bits = zp_dtype_bits(options->compute);
    gboolean wide = bits > 16 && !options->autocast;
    gboolean narrow = options->autocast && options->narrow_weights;
    traits->regime = narrow              ? ZP_REGIME_AMP_16
                     : options->autocast ? ZP_REGIME_AMP
                     : wide              ? ZP_REGIME_FP32
                                         : ZP_REGIME_BF16;
    traits->number_bytes = wide ? 4 : 2; /* narrower formats are for matrix operands */
    traits->residual_bytes = wide || (options->autocast && !narrow) ? 4 : 2;
    traits->widened = wide && bits > 32 ? 2 : 1;
}

static void
set_cuts(ZpArchitectureTraits *traits, const ZpArchitectureOptions *options)
{
    traits->tensor_parallel = MAX(options->tensor_parallel, 1);
    traits->context_parallel = MAX(options->context_parallel, 1);
    traits->sequence_parallel = options->sequence_parallel && traits->tensor_parallel > 1;
    traits->expert_imbalance = MAX(options->expert_imbalance, 1.0);
}

static void
set_loss(ZpArchitectureTraits *traits, const ZpSymbols *symbols,
         const ZpArchitectureOptions *options)
{
    ZpLossKind own = holds(symbols, "raw_loss") ? ZP_LOSS_RAW : ZP_LOSS_FLOAT;
    traits->loss = options->loss > 0 ? (ZpLossKind)(options->loss - 1) : own;
    traits->loss_chunks = options->loss_chunks > 0 ? options->loss_chunks : DEFAULT_CHUNKS;
    traits->hold_outputs = options->hold_outputs;
    traits->logit_cap = holds(symbols, "logit_cap");
    traits->vocabulary = zp_symbols_get(symbols, "V");
}

/* Norms of RMS; those of weight 1 + w have no fused kernel of their own shape. */
static ZpBlockNorm
norm_of(const ZpSymbols *symbols, ZpTrait fused)
{
    if (chosen(fused, FALSE))
        return ZP_NORM_FUSED;
    return holds(symbols, "scale_plus_one") ? ZP_NORM_PLUS_ONE : ZP_NORM_EAGER;
}

/* Families whose experts are one parameter for all say so (symbol experts_3d). */
static ZpBlockExperts
experts_of(const ZpSymbols *symbols, ZpTrait grouped)
{
    if (!chosen(grouped, TRUE))
        return ZP_EXPERTS_LOOP;
    return holds(symbols, "experts_3d") ? ZP_EXPERTS_GROUPED_MM : ZP_EXPERTS_GROUPED;
}

/* scaled_dot_product_attention gets a mask where there is padding, where the sequence is longer
 * than the window, and always where the family's code makes one (symbol always_masked). */
static void
set_masks(ZpArchitectureTraits *traits, const ZpSymbols *symbols,
          const ZpArchitectureOptions *options)
{
    gint64 window = zp_symbols_get(symbols, "window");
    gboolean fused =
        options->attention == ZP_ATTENTION_DEFAULT && traits->attention == ZP_BLOCK_FLASH;
    if (!fused)
        return;
    if (options->padding)
        traits->mask = ZP_MASK_SEQUENCE;
    else if (holds(symbols, "always_masked"))
        traits->mask = ZP_MASK_SHARED;
    traits->windowed = window > 0 && options->sequence >= window;
    traits->window_step = zp_symbols_get(symbols, "window_step");
}

static void
set_layout(ZpArchitectureTraits *traits, const ZpSymbols *symbols)
{
    traits->projection = (ZpBlockProjection)zp_symbols_get(symbols, "qkv");
    traits->rotary_joined = holds(symbols, "rotary_joined");
    traits->rotary_named = holds(symbols, "rotary_named");
    traits->rotary_width = zp_symbols_get(symbols, "rotary_width");
    traits->scaled_query = holds(symbols, "scaled_query");
    traits->contiguous_heads = holds(symbols, "contiguous_heads");
    traits->two_norms = traits->norms == 2;
    traits->fused_gate = holds(symbols, "fused_gate");
    traits->biases = holds(symbols, "qb");
    traits->bare_products = holds(symbols, "bare_products");
}

/* A length of sequences; one that no model has is none. */
static gint64
tokens_of(const ZpSymbols *symbols, const char *name)
{
    enum { MOST_TOKENS = 1 << 24 };
    gint64 tokens = zp_symbols_get(symbols, name);
    return tokens <= MOST_TOKENS ? MAX(tokens, 0) : 0;
}

ZpArchitectureTraits
zp_architecture_traits(const ZpSymbols *symbols, const ZpArchitectureOptions *options)
{
    gint64 norms = zp_symbols_get(symbols, "norms");
    gboolean gated = holds(symbols, "gated"), t5 = holds(symbols, "t5");
    gboolean dropout = chosen(options->dropout, holds(symbols, "dropout"));
    gboolean compiled = options->compile != ZP_COMPILE_NONE;
    ZpArchitectureTraits traits = {
        .layer_norm = holds(symbols, "ln"),
        .norm = norm_of(symbols, compiled ? ZP_TRAIT_YES : options->fused_norms),
        .compiled = compiled,
        .compiled_loss = options->compile == ZP_COMPILE_BLOCKS_AND_LOSS,
        .norms = norms > 0 ? norms : 2,
        .attention = t5 ? t5_attention_of(symbols, options->attention)
                        : attention_of(symbols, options->attention),
        .heads = zp_symbols_get(symbols, "heads"),
        .own_tokens = tokens_of(symbols, "own_tokens"),
        .source_tokens = tokens_of(symbols, "source_tokens"),
        .pixels = zp_symbols_get(symbols, "pixels"),
        .lora_rank = options->lora_rank,
        .lora_dropout = options->lora_dropout,
        .lora_targets = options->lora_targets,
        .t5_interface = t5 && holds(symbols, "hf5"),
        .softmax_fp32 = !holds(symbols, "native_softmax"),
        .soft_cap = holds(symbols, "soft_cap"),
        .qk_norm = holds(symbols, "qk_norm"),
        .causal = options->causal,
        .rotary = !holds(symbols, "positions"),
        .fused_rotary = compiled || options->fused_rotary,
        .gated = gated,
        .parallel =
            zp_symbols_is_set(symbols, "parallel") ? holds(symbols, "parallel") : norms == 1,
        .post_norm = holds(symbols, "post_norm"),
        .t5 = t5,
        .dropout = dropout,
        .attention_dropout =
            chosen(options->attention_dropout, holds(symbols, "attention_dropout")),
        .embedding_dropout = dropout && holds(symbols, "embedding_dropout"),
        .activation = activation_of(symbols, gated),
        .experts = experts_of(symbols, options->grouped_experts),
        .router_fp32 = holds(symbols, "router_fp32"),
        .shares_fp32 = holds(symbols, "shares_fp32"),
        .gated_shared = holds(symbols, "gated_shared"),
        .positions = holds(symbols, "positions"),
        .token_types = holds(symbols, "types"),
        .scaled_embedding = holds(symbols, "scaled_embedding"),
        .selective = options->selective,
        .reentrant = options->reentrant,
    };
    set_layout(&traits, symbols);
    set_masks(&traits, symbols, options);
    set_formats(&traits, options);
    set_cuts(&traits, options);
    set_loss(&traits, symbols, options);
    return traits;
}
