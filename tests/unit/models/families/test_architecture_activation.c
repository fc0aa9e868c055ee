/* Activations of models: what blocks keep, brought together from their layers, against the measured
 * forms of PyTorch's operators (tests/reference/activations), and what options make of it. */
#include "models/families/architecture.h"
#include "models/families/catalog.h"
#include "models/job/job.h"

#include <string.h>

enum { NONE = ZP_CHECKPOINTING_NONE, SELECTIVE = ZP_CHECKPOINTING_SELECTIVE };
enum { FULL = ZP_CHECKPOINTING_FULL };

static const ZpArchitectureOptions flash = {
    .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};

/* What one layer or the whole of its block has under a policy. */
static ZpModelBytes
kept(const ZpModel *model, gint32 first, gint32 n, int policy)
{
    ZpModelBytes sum = {0};
    for (gint32 l = first; l < first + n; l++) {
        gint32 index = zp_model_layer(model, l)->activation;
        g_assert_cmpint(index, !=, ZP_MODEL_NONE);
        const ZpModelBytes *part = &zp_model_activation(model, index)->policies[policy].kept;
        sum.constant_bytes += part->constant_bytes;
        sum.bytes_per_token += part->bytes_per_token;
        sum.bytes_per_pair += part->bytes_per_pair;
        g_assert_cmpint(part->bytes_per_position, ==, 0);
        g_assert_cmpint(part->bytes_per_position_pair, ==, 0);
    }
    return sum;
}

static ZpModelBytes
recomputed(const ZpModel *model, gint32 layer, int policy)
{
    gint32 index = zp_model_layer(model, layer)->activation;
    return zp_model_activation(model, index)->policies[policy].recomputed;
}

static ZpModel *
build(const char *name, const ZpArchitectureOptions *options)
{
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_catalog_build(name, options, &error);
    g_assert_no_error(error);
    return model;
}

/* Layers of the first block. */
enum { BLOCK = 1, PARTS = 2 };

static void
assert_block(const char *name, const ZpArchitectureOptions *options, int policy, gint64 per_token,
             gint64 per_pair, gint64 constant)
{
    g_autoptr(ZpModel) model = build(name, options);
    ZpModelBytes bytes = kept(model, BLOCK, PARTS, policy);
    g_assert_cmpint(bytes.bytes_per_token, ==, per_token);
    g_assert_cmpint(bytes.bytes_per_pair, ==, per_pair);
    g_assert_cmpint(bytes.constant_bytes, ==, constant);
}

/* Llama-3-8B. */
static const gint64 h = 4096, q = 4096, kv = 1024, f = 14336, nq = 32;

static void
test_llama(void)
{
    ZpArchitectureOptions options = flash;
    const gint64 rest = 8 * f + 4 * nq + 8;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 4 * q + 4 * kv + rest, 0, 24);
    assert_block("Llama-3-8B", &options, FULL, 2 * h, 0, 0);
    options.attention = ZP_ATTENTION_DEFAULT;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 4 * q + 4 * kv + rest, 0, 24);
    options.attention = ZP_ATTENTION_FLASH_REPEATED;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 8 * q + rest, 0, 24);
    options.attention = ZP_ATTENTION_EFFICIENT;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 8 * q + rest, 0, 16);
    options.attention = ZP_ATTENTION_CUDNN;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 4 * q + 4 * kv + rest, 0, 16);
    options.attention = ZP_ATTENTION_EAGER;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 8 * q + 8 * f + 8, 6 * nq, 0);
    options.attention_dropout = ZP_TRAIT_YES;
    assert_block("Llama-3-8B", &options, NONE, 16 * h + 8 * q + 8 * f + 8, 7 * nq, 0);
    options = flash;
    options.fused_norms = ZP_TRAIT_YES;
    assert_block("Llama-3-8B", &options, NONE, 8 * h + 4 * q + 4 * kv + rest, 0, 24);
    options = flash;
    options.compute = ZP_DTYPE_FP32;
    assert_block("Llama-3-8B", &options, NONE, 24 * h + 8 * q + 8 * kv + 16 * f + 4 * nq + 8, 0,
                 24);
    assert_block("Llama-3-8B", &options, FULL, 4 * h, 0, 0);
}

/* fp32 stream; products' weights in 16 bits beside, all but the norms'. */
static void
test_autocast(void)
{
    ZpArchitectureOptions options = flash;
    options.autocast = TRUE;
    const gint64 copies = 2 * (2 * q * h + 2 * kv * h + 3 * h * f);
    const gint64 rest = 4 * q + 4 * kv + 8 * f + 4 * nq + 8;
    assert_block("Llama-3-8B", &options, NONE, 26 * h + rest, 0, 24 + copies);
    assert_block("Llama-3-8B", &options, FULL, 4 * h, 0, copies);
    options.fused_norms = ZP_TRAIT_YES;
    assert_block("Llama-3-8B", &options, NONE, 18 * h + rest, 0, 24 + copies);
    g_autoptr(ZpModel) model = build("Llama-3-8B", &options);
    gint32 last = (gint32)model->layers->len - 1;
    g_assert_cmpint(kept(model, last, 1, NONE).constant_bytes, ==, 2L * 128256 * h + 8);
    g_assert_cmpint(kept(model, 0, 1, NONE).constant_bytes, ==, 0);
}

/* Both norms' inputs, outputs and statistics, rotated q and k, v, attention's output and
 * log-sum-exp, gate, up and their product (tests/reference/activations_compiled.csv has recorded
 * ones); no fp32 copies, no opened gate.  A compiled loss keeps the head's input and the logits. */
static void
test_compiled(void)
{
    ZpArchitectureOptions options = flash;
    options.compile = ZP_COMPILE_BLOCKS_AND_LOSS;
    assert_block("Llama-3-8B", &options, NONE, 8 * h + 4 * q + 4 * kv + 6 * f + 4 * nq + 8, 0, 24);
    assert_block("Llama-3-8B", &options, FULL, 2 * h, 0, 0);
    g_autoptr(ZpModel) model = build("Llama-3-8B", &options);
    g_autoptr(ZpModel) plain = build("Llama-3-8B", &flash);
    gint32 last = (gint32)model->layers->len - 1;
    g_assert_cmpint(kept(model, last, 1, NONE).bytes_per_token, <,
                    kept(plain, last, 1, NONE).bytes_per_token);
    for (gint32 l = 1; l <= 2; l++)
        g_assert_cmpint(zp_model_layer(model, l)->traffic_bytes_per_token, <,
                        zp_model_layer(plain, l)->traffic_bytes_per_token);
    /* Not known to be compiled: as it was, but for its norms. */
    options.attention = ZP_ATTENTION_EAGER;
    assert_block("Llama-3-8B", &options, NONE, 8 * h + 8 * q + 8 * f + 8, 6 * nq, 0);
}

typedef struct {
    ZpSelective selective;
    gint64 kept;
    gint64 attention_products, mlp_products; /* recomputed, of elements */
    gboolean core, brings_back;
} Policy;

static void
test_selective(void)
{
    const Policy policies[] = {
        {ZP_SELECTIVE_ATTENTION_CORE, 16 * h + 4 * q + 4 * kv + 8 * f + 4 * nq + 8, 0, 0, FALSE,
         FALSE},
        {ZP_SELECTIVE_ATTENTION, 2 * h + 2 * q + 4 * nq, 2 * q * h + 2 * kv * h, 3 * h * f, FALSE,
         TRUE},
        {ZP_SELECTIVE_PRODUCTS, 6 * h + 2 * q + 4 * kv + 4 * f, 0, 0, TRUE, TRUE},
        {ZP_SELECTIVE_PRODUCTS_AND_ATTENTION, 6 * h + 4 * q + 4 * kv + 4 * f + 4 * nq, 0, 0, FALSE,
         TRUE},
        /* of q, k, v, o, gate, up, down: k, o, up */
        {ZP_SELECTIVE_EVERY_SECOND_PRODUCT, 4 * h + 4 * q + 2 * kv + 2 * f + 4 * nq, kv * h + q * h,
         h * f, FALSE, TRUE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(policies); i++) {
        const Policy *policy = &policies[i];
        ZpArchitectureOptions options = flash;
        options.selective = policy->selective;
        g_autoptr(ZpModel) model = build("Llama-3-8B", &options);
        const ZpModelLayer *attention = zp_model_layer(model, 1), *mlp = zp_model_layer(model, 2);
        g_assert_cmpint(kept(model, BLOCK, PARTS, SELECTIVE).bytes_per_token, ==, policy->kept);
        g_assert_cmpint(attention->selective_flops_per_token, ==, 2 * policy->attention_products);
        g_assert_cmpint(mlp->selective_flops_per_token, ==, 2 * policy->mlp_products);
        g_assert_cmpint(attention->selective_flops_per_pair, ==,
                        policy->core ? attention->flops_per_pair : 0);
        g_assert_true((recomputed(model, 1, SELECTIVE).bytes_per_token > 0) == policy->brings_back);
        g_assert_cmpint(kept(model, BLOCK, PARTS, NONE).bytes_per_token, ==, policies[0].kept);
        g_assert_cmpint(kept(model, BLOCK, PARTS, FULL).bytes_per_token, ==, 2 * h);
    }
}

/* Megatron-LM's selective recomputation (arXiv 2205.05198): what is quadratic goes, 34 h stay; as
 * in the rest of the literature, with a GELU of one kernel, which the catalogue's GPT-2 has not. */
static void
test_attention_core(void)
{
    ZpArchitectureOptions options = flash;
    options.attention = ZP_ATTENTION_EAGER;
    g_autoptr(ZpModel) model = build("GPT-2", &options);
    const ZpModelLayer *attention = zp_model_layer(model, 1);
    ZpModelBytes all = kept(model, BLOCK, PARTS, NONE), some = kept(model, BLOCK, PARTS, SELECTIVE);
    g_assert_cmpint(all.bytes_per_token, ==, 18 * 768 + 10 * 3072 + 16);
    g_assert_cmpint(all.bytes_per_pair, ==, 5 * 12);
    g_assert_cmpint(some.bytes_per_token, ==, all.bytes_per_token);
    g_assert_cmpint(some.bytes_per_pair, ==, 0);
    g_assert_cmpint(recomputed(model, 1, SELECTIVE).bytes_per_pair, ==, 5 * 12);
    g_assert_cmpint(recomputed(model, 1, SELECTIVE).bytes_per_token, ==, 0);
    g_assert_cmpint(attention->selective_flops_per_pair, ==, attention->flops_per_pair);
    g_assert_cmpint(attention->selective_flops_per_token, ==, 0);
}

static void
test_gpt(void)
{
    const gint64 w = 768, wide = 3072, heads = 12;
    ZpArchitectureOptions options = flash;
    assert_block("GPT-2", &options, NONE, 18 * w + 10 * wide + 4 * heads + 16, 0, 24);
    options.dropout = options.attention_dropout = ZP_TRAIT_NO;
    assert_block("GPT-2", &options, NONE, 16 * w + 10 * wide + 4 * heads + 16, 0, 24);
    options.attention = ZP_ATTENTION_EAGER;
    assert_block("GPT-2", &options, NONE, 16 * w + 10 * wide + 16, 2 * heads, 0);
}

static void
test_other_families(void)
{
    ZpArchitectureOptions options = flash;
    /* Grouped queries; norms over query and key. */
    assert_block("Mistral-7B", &options, NONE, 16 * h + 4 * q + 4 * kv + 8 * f + 4 * nq + 8, 0, 24);
    assert_block("Qwen3-8B", &options, NONE,
                 16 * h + 10 * q + 10 * kv + 8 * 12288L + 4 * nq + 4 * (nq + 8) + 8, 0, 24);
    /* Two of eight experts, in one product for all: what is added up at the end is not kept. */
    assert_block("Mixtral-8x7B", &options, NONE,
                 16 * h + 4 * q + 4 * kv + 4 * nq + 12 + 4 * 8 + 2 * (4 * h + 8 * f + 40), 0, 24);
    options.transformers = ZP_TRANSFORMERS_4;
    assert_block("Mixtral-8x7B", &options, NONE,
                 16 * h + 4 * q + 4 * kv + 4 * nq + 12 + 4 * 8 + 2 * (6 * h + 8 * f + 30), 0, 24);
    options.grouped_experts = ZP_TRAIT_NO;
    assert_block("Mixtral-8x7B", &options, NONE,
                 16 * h + 4 * q + 4 * kv + 4 * nq + 44 + 2 * (6 * h + 8 * f + 30), 0, 24);
    /* Four norms, weights 1 + w; scores soft-capped where attention is eager, as it is by default.
     */
    const gint64 w = 2304, wq = 2048, wkv = 1024, wide = 9216, heads = 8;
    assert_block("Gemma-2-2B", &flash, NONE, 36 * w + 4 * wq + 4 * wkv + 8 * wide + 4 * heads + 16,
                 0, 24 + 16 * w);
    options.attention = ZP_ATTENTION_DEFAULT;
    assert_block("Gemma-2-2B", &options, NONE, 36 * w + 8 * wq + 8 * wide + 16, 8 * heads, 16 * w);
    /* Attention and MLP side by side behind one LayerNorm; one key head. */
    assert_block("Falcon-7B", &flash, NONE,
                 4 * 4544L + 4 * 4544L + 4 * 64 + 4 * 4 * 4544L + 4 * 71 + 8, 0, 24);
}

/* Where no block is the model's, the nearest one is corrected: DeepSeek's latents and shared
 * experts come to what Llama's attention keeps, plus their own. */
static void
test_nearest(void)
{
    g_autoptr(ZpModel) model = build("DeepSeek-V2-Lite", &flash);
    const gint64 w = 2048, heads = 16, qk = 192, v = 128;
    gint64 core = 2 * heads * (2 * qk + 2 * v) + 4 * heads + 24;
    gint64 own = 8 * w + 4 + 8 * 512L; /* norms over the stream and the latent */
    gint64 attention = kept(model, BLOCK, 1, NONE).bytes_per_token;
    g_assert_cmpint(attention, >=, core + own - 24);
    g_assert_cmpint(attention, <=, core + own + 24);
    gint64 mixture = kept(model, 4, 1, NONE).bytes_per_token;
    gint64 experts = 6 * (4 * w + 8 * 1408L + 40), shared = 8 * 2 * 1408L;
    gint64 router = 4 * w; /* its input in fp32 */
    g_assert_cmpint(mixture, >=, 8 * w + router + experts + shared);
    g_assert_cmpint(mixture, <=, 8 * w + router + experts + shared + 4 * 64 + 24);
}

/* Head and loss with the final norm: bytes of a logit kept and, absolute, at the worst. */
static void
assert_loss(const ZpArchitectureOptions *options, gint64 held, gint64 forward, gint64 backward)
{
    enum { V = 128256, TOKENS = 4096 };
    g_autoptr(ZpModel) model = build("Llama-3-8B", options);
    gint32 last = (gint32)model->layers->len - 1;
    ZpModelBytes end = kept(model, last - 1, 2, NONE);
    gint64 norm = kept(model, last - 1, 1, NONE).bytes_per_token;
    g_assert_cmpint(end.bytes_per_token / V, ==, held);
    g_assert_cmpint(norm, ==, 6 * h + 4);
    gint32 index = zp_model_layer(model, last)->activation;
    const ZpModelPolicyBytes *policy = &zp_model_activation(model, index)->policies[NONE];
    gint64 all = zp_model_bytes_at(&end, 2, TOKENS), tokens = 2 * TOKENS;
    g_assert_cmpint((all + zp_model_peak_at(&policy->forward, 2, TOKENS)) / tokens / V, ==,
                    forward);
    g_assert_cmpint((all + zp_model_peak_at(&policy->backward, 2, TOKENS)) / tokens / V, ==,
                    backward);
}

static void
test_losses(void)
{
    ZpArchitectureOptions options = flash;
    assert_loss(&options, 4, 10, 12);
    options.loss = ZP_ARCHITECTURE_LOSS(ZP_LOSS_RAW);
    assert_loss(&options, 2, 4, 6);
    options.loss = ZP_ARCHITECTURE_LOSS(ZP_LOSS_FLOAT_REBIND);
    assert_loss(&options, 4, 8, 12);
    options.loss = ZP_ARCHITECTURE_LOSS(ZP_LOSS_CHUNKS);
    options.loss_chunks = 8;
    assert_loss(&options, 4, 4, 5);
    options.loss = ZP_ARCHITECTURE_LOSS(ZP_LOSS_CHUNKS_CHECKPOINTED);
    assert_loss(&options, 0, 1, 1);
    /* Gemma 2 bends its logits. */
    g_autoptr(ZpModel) model = build("Gemma-2-2B", &flash);
    gint64 end = kept(model, (gint32)model->layers->len - 1, 1, NONE).bytes_per_token;
    g_assert_cmpint(end / 256000, ==, 6);
}

/* Table 2 of arXiv 2205.05198, and contexts by tokens. */
static void
test_cuts(void)
{
    const gint64 w = 768, heads = 12;
    ZpArchitectureOptions options = flash;
    options.attention = ZP_ATTENTION_EAGER;
    options.tensor_parallel = 4;
    gint64 inner = (8 * w + 10 * 3072L) / 4;
    assert_block("GPT-2", &options, NONE, 10 * w + inner + 16, 5 * heads / 4, 0);
    options.sequence_parallel = TRUE;
    assert_block("GPT-2", &options, NONE, 10 * w / 4 + inner + 4, 5 * heads / 4, 0);
    g_autoptr(ZpModel) model = build("GPT-2", &options);
    g_assert_cmpint(kept(model, (gint32)model->layers->len - 2, 1, NONE).bytes_per_token, ==,
                    (2 * w + 8) / 4);
    options = flash;
    options.context_parallel = 2;
    assert_block("Llama-3-8B", &options, NONE, (16 * h + 4 * q + 4 * kv + 8 * f + 4 * nq + 8) / 2,
                 0, 24);
}

static void
test_reentrant(void)
{
    ZpArchitectureOptions options = flash;
    options.reentrant = TRUE;
    g_autoptr(ZpModel) plain = build("Llama-3-8B", &flash);
    g_autoptr(ZpModel) reentrant = build("Llama-3-8B", &options);
    const ZpModelPolicyBytes *a =
        &zp_model_activation(plain, zp_model_layer(plain, 2)->activation)->policies[FULL];
    const ZpModelPolicyBytes *b =
        &zp_model_activation(reentrant, zp_model_layer(reentrant, 2)->activation)->policies[FULL];
    g_assert_cmpint(kept(reentrant, BLOCK, PARTS, FULL).bytes_per_token, ==, 2 * h);
    /* The recomputed block's output lives until its backward is done: 2 h more. */
    g_assert_cmpint(zp_model_peak_at(&b->backward, 2, 512) + b->recomputed.bytes_per_token * 1024,
                    ==,
                    zp_model_peak_at(&a->backward, 2, 512) + a->recomputed.bytes_per_token * 1024 +
                        2 * h * 1024);
}

/* Every layer that computes holds something in each pass, and like layers share what they have. */
static void
test_catalogue(void)
{
    gsize n = 0;
    const ZpCatalogEntry *entries = zp_catalog_entries(&n);
    for (gsize e = 0; e < n; e++) {
        ZpArchitectureOptions options = flash;
        options.attention = ZP_ATTENTION_DEFAULT;
        g_autoptr(ZpModel) model = build(entries[e].name, &options);
        g_assert_cmpuint(model->activations->len, <=, 9);
        for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
            gint32 index = zp_model_layer(model, l)->activation;
            g_assert_cmpint(index, !=, ZP_MODEL_NONE);
            for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
                const ZpModelPolicyBytes *policy = &zp_model_activation(model, index)->policies[p];
                g_assert_cmpint(policy->forward.n_forms, >, 0);
                g_assert_cmpint(zp_model_peak_at(&policy->backward, 2, 1024), >, 0);
                g_assert_cmpint(policy->kept.bytes_per_token + policy->recomputed.bytes_per_token,
                                >, 0);
            }
        }
    }
}

static void
test_embedding(void)
{
    g_autoptr(ZpModel) model = build("GPT-2", &flash);
    const ZpModelPolicyBytes *policy =
        &zp_model_activation(model, zp_model_layer(model, 0)->activation)->policies[NONE];
    g_assert_cmpint(policy->kept.bytes_per_token, ==, 8 + 768); /* ids and a dropout mask */
    g_assert_cmpint(policy->forward.forms[0].bytes_per_token, ==, 2 * 2 * 768);
    g_assert_cmpint(policy->forward.forms[0].bytes_per_position, ==, 2 * 768);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/activations/llama", test_llama);
    g_test_add_func("/activations/autocast", test_autocast);
    g_test_add_func("/activations/compiled", test_compiled);
    g_test_add_func("/activations/selective", test_selective);
    g_test_add_func("/activations/attention-core", test_attention_core);
    g_test_add_func("/activations/gpt", test_gpt);
    g_test_add_func("/activations/other-families", test_other_families);
    g_test_add_func("/activations/nearest", test_nearest);
    g_test_add_func("/activations/losses", test_losses);
    g_test_add_func("/activations/cuts", test_cuts);
    g_test_add_func("/activations/reentrant", test_reentrant);
    g_test_add_func("/activations/catalogue", test_catalogue);
    g_test_add_func("/activations/embedding", test_embedding);
    return g_test_run();
}
