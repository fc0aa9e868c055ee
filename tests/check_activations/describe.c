#include "check_activations/describe.h"

#include <gio/gio.h>

typedef struct {
    const char *word;
    int value;
} Word;

static const Word families[] = {
    {"llama", ZP_BLOCK_LLAMA},   {"gpt2", ZP_BLOCK_GPT2},
    {"gptj", ZP_BLOCK_PARALLEL}, {"bert", ZP_BLOCK_BERT},
    {"t5", ZP_BLOCK_T5_ENCODER}, {"t5dec", ZP_BLOCK_T5_DECODER},
    {"moe", ZP_BLOCK_MOE},       {NULL, 0},
};
static const Word norms[] = {
    {"eager", ZP_NORM_EAGER},
    {"fused", ZP_NORM_FUSED},
    {"F", ZP_NORM_COMPOSITE},
    {"gemma", ZP_NORM_PLUS_ONE},
    {NULL, 0},
};
static const Word attentions[] = {
    {"flash", ZP_BLOCK_FLASH},
    {"flash_rep", ZP_BLOCK_FLASH_REPEATED},
    {"eff", ZP_BLOCK_EFFICIENT},
    {"cudnn", ZP_BLOCK_CUDNN},
    {"sdpa_cpu", ZP_BLOCK_CPU_KERNEL},
    {"eager", ZP_BLOCK_EAGER},
    {NULL, 0},
};
static const Word activations[] = {
    {"silu", ZP_BLOCK_SILU},      {"gelu", ZP_BLOCK_GELU},
    {"gelu_tanh", ZP_BLOCK_GELU}, {"gelu_new", ZP_BLOCK_GELU_WRITTEN_OUT},
    {"relu", ZP_BLOCK_RELU},      {NULL, 0},
};
static const Word regimes[] = {
    {"bf16", ZP_REGIME_BF16},
    {"amp", ZP_REGIME_AMP},
    {"fp32", ZP_REGIME_FP32},
    {NULL, 0},
};
static const Word policies[] = {
    {"none", ZP_KEEP_ALL},
    {"ckpt_reentrant", ZP_KEEP_INPUT_REENTRANT},
    {"ckpt_nonreentrant", ZP_KEEP_INPUT},
    {"sac_attn", ZP_KEEP_ATTENTION},
    {"sac_mm", ZP_KEEP_PRODUCTS},
    {"sac_mm_attn", ZP_KEEP_PRODUCTS_AND_ATTENTION},
    {"sac_titan", ZP_KEEP_EVERY_SECOND_PRODUCT},
    {NULL, 0},
};
static const Word losses[] = {
    {"raw", ZP_LOSS_RAW},
    {"new", ZP_LOSS_FLOAT},
    {"new_rebind", ZP_LOSS_FLOAT_REBIND},
    {"old", ZP_LOSS_SHIFT_FLOAT},
    {"shift16", ZP_LOSS_SHIFT_16},
    {"chunk", ZP_LOSS_CHUNKS},
    {"chunk_ckpt", ZP_LOSS_CHUNKS_CHECKPOINTED},
    {NULL, 0},
};

/* The value of a word; -1 and an error when it is unknown. */
static int
look_up(const Word *words, const char *what, const char *word, GError **error)
{
    for (; words->word; words++)
        if (g_strcmp0(words->word, word) == 0)
            return words->value;
    if (error && !*error)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "unknown %s '%s'", what, word);
    return -1;
}

static const char *
option(const CaseWords *words, const char *key, const char *otherwise)
{
    const char *value = g_hash_table_lookup(words->options, key);
    return value ? value : otherwise;
}

static gboolean
is_on(const CaseWords *words, const char *key, const char *otherwise)
{
    const char *value = option(words, key, otherwise);
    return !g_str_equal(value, "false") && g_ascii_strtod(value, NULL) + (value[0] == 't') > 0;
}

static gint64
size_of(const CaseWords *words, const char *key)
{
    const gint64 *size = g_hash_table_lookup(words->sizes, key);
    return size ? *size : 0;
}

static void
describe_loss(const CaseWords *words, ActivationCase *item, GError **error)
{
    item->is_loss = TRUE;
    item->loss = (ZpActivationLoss){
        .kind = (ZpLossKind)look_up(losses, "mode", option(words, "mode", ""), error),
        .regime = (ZpBlockRegime)look_up(regimes, "dtype", words->regime, error),
        .keep_logits = is_on(words, "keep_logits", "false"),
        .soft_cap = is_on(words, "softcap", "false"),
        .label_smoothing = is_on(words, "ls", "0"),
        .chunks = atoi(option(words, "nc", "8")),
        .batch = size_of(words, "b"),
        .tokens = size_of(words, "s"),
        .hidden = size_of(words, "h"),
        .vocabulary = size_of(words, "V"),
    };
}

static void
describe_block(const CaseWords *words, ActivationCase *item, GError **error)
{
    const char *attention = option(words, "attn", "flash"), *norm = option(words, "norm", "eager");
    gboolean t5 = g_str_has_prefix(words->family, "t5");
    gboolean cpu = g_str_equal(option(words, "kern", "cuda"), "cpu");
    if (g_str_equal(norm, "F") && !cpu)
        norm = "fused"; /* one operator on CUDA */
    item->block = (ZpActivationBlock){
        .family = (ZpBlockFamily)look_up(families, "family", words->family, error),
        .norm = (ZpBlockNorm)look_up(norms, "norm", norm, error),
        .attention = (ZpBlockAttention)look_up(attentions, "attn", attention, error),
        .activation =
            (ZpBlockActivation)look_up(activations, "act", option(words, "act", "silu"), error),
        .regime = (ZpBlockRegime)look_up(regimes, "dtype", words->regime, error),
        .policy = (ZpBlockPolicy)look_up(policies, "policy", words->policy, error),
        .experts =
            g_str_equal(option(words, "moe", ""), "loop") ? ZP_EXPERTS_LOOP : ZP_EXPERTS_GROUPED,
        .softmax_fp32 = is_on(words, "sm32", "true"),
        .qk_norm = is_on(words, "qknorm", "false"),
        .soft_cap = g_str_equal(norm, "gemma"),
        .dropout = is_on(words, "p", "0"),
        .attention_dropout = is_on(words, t5 ? "p" : "pa", "0"),
        .cpu_kernels = cpu,
        .gradients_by_shape = TRUE,
        .batch = size_of(words, "b"),
        .tokens = size_of(words, "s"),
        .hidden = size_of(words, "h"),
        .heads = size_of(words, "nq"),
        .kv_heads = size_of(words, "nkv"),
        .head_size = size_of(words, "d"),
        .ffn = size_of(words, "f"),
        .expert_count = size_of(words, "E"),
        .chosen_experts = size_of(words, "k"),
    };
}

gboolean
activation_case_describe(const CaseWords *words, ActivationCase *item, GError **error)
{
    GError *first = NULL;
    if (g_str_equal(words->family, "lossfn"))
        describe_loss(words, item, &first);
    else
        describe_block(words, item, &first);
    if (!first)
        return TRUE;
    g_propagate_error(error, first);
    return FALSE;
}
