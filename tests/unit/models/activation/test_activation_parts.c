/* Forms of a block's parts and of losses against measuring at the sizes themselves. */
#include "models/activation/activation.h"

enum { SCALAR_BYTES = 4, BLOCKS = 600 };

static gint64
pick(GRand *rand, int count)
{
    return g_rand_int_range(rand, 0, count);
}

/* Any block; where ranks or experts share the tokens, so that every share is whole bytes. */
static ZpActivationBlock
random_block(GRand *rand)
{
    static const gint64 ways[] = {1, 1, 1, 2, 4};
    gint64 kv_heads = 4 * (1 + pick(rand, 3)), groups = 1 + pick(rand, 3);
    ZpActivationBlock block = {
        .family = (ZpBlockFamily)pick(rand, ZP_BLOCK_MOE + 1),
        .norm = (ZpBlockNorm)pick(rand, ZP_NORM_PLUS_ONE + 1),
        .attention = (ZpBlockAttention)pick(rand, ZP_BLOCK_EAGER + 1),
        .activation = (ZpBlockActivation)pick(rand, ZP_BLOCK_RELU + 1),
        .regime = (ZpBlockRegime)pick(rand, ZP_REGIME_FP32 + 1),
        .policy = (ZpBlockPolicy)pick(rand, ZP_KEEP_EVERY_SECOND_PRODUCT + 1),
        .experts = (ZpBlockExperts)pick(rand, 2),
        .softmax_fp32 = pick(rand, 2) == 1,
        .soft_cap = pick(rand, 2) == 1,
        .dropout = pick(rand, 2) == 1,
        .attention_dropout = pick(rand, 2) == 1,
        .cpu_kernels = pick(rand, 4) == 0,
        .tensor_parallel = ways[pick(rand, G_N_ELEMENTS(ways))],
        .sequence_parallel = pick(rand, 2) == 1,
        .reentrant = pick(rand, 2) == 1,
        .hidden = 16 * (3 + pick(rand, 30)),
        .heads = kv_heads * groups,
        .kv_heads = kv_heads,
        .head_size = 8 * (1 + pick(rand, 12)),
        .ffn = 32 * (2 + pick(rand, 40)),
        .expert_count = 4,
        .chosen_experts = 2 + 2 * pick(rand, 2),
    };
    block.qk_norm = pick(rand, 3) == 0 && block.family != ZP_BLOCK_GPT2;
    if (block.family == ZP_BLOCK_GPT2)
        block.kv_heads = block.heads;
    if (block.family == ZP_BLOCK_MOE && block.tensor_parallel > 1)
        block.sequence_parallel = FALSE;
    return block;
}

typedef struct {
    gint64 kept, forward, recompute, backward; /* the largest over the parts, all that lives */
} Totals;

/* As ZpModelPolicyBytes says. */
static Totals
add_up(const ZpActivationParts *parts, int slot, gint64 batch, gint64 tokens)
{
    Totals totals = {0};
    gint64 up_to = 0, brought = 0;
    for (int p = 0; p < parts->n_parts; p++)
        totals.kept += zp_model_bytes_at(
            &zp_model_policy_bytes(&parts->parts[p], slot, batch)->kept, batch, tokens);
    for (int p = 0; p < parts->n_parts; p++) {
        const ZpModelPolicyBytes *own = zp_model_policy_bytes(&parts->parts[p], slot, batch);
        gint64 kept = zp_model_bytes_at(&own->kept, batch, tokens);
        gint64 recomputed = zp_model_bytes_at(&own->recomputed, batch, tokens);
        gint64 forward = zp_model_peak_at(&own->forward, batch, tokens);
        gint64 recompute = zp_model_peak_at(&own->recompute, batch, tokens);
        gint64 backward = zp_model_peak_at(&own->backward, batch, tokens);
        g_assert_cmpint(own->forward.n_forms, >, 0);
        g_assert_cmpint(own->backward.n_forms, >, 0);
        g_assert_true(kept >= 0 && recomputed >= 0);
        g_assert_true(forward >= 0 && recompute >= 0 && backward >= 0);
        up_to += kept;
        brought += recomputed;
        totals.forward = MAX(totals.forward, up_to + forward);
        if (own->recompute.n_forms > 0)
            totals.recompute = MAX(totals.recompute, totals.kept + brought + recompute);
        totals.backward = MAX(totals.backward, up_to + brought + backward);
    }
    return totals;
}

static void
check_block(const ZpActivationBlock *block, const ZpActivationParts *parts, int slot, gint64 slack)
{
    ZpActivationBytes bytes = zp_activation_measure_block(block);
    Totals totals = add_up(parts, slot, block->batch, block->tokens);
    gint64 errors[] = {
        totals.kept - bytes.kept_bytes,
        totals.forward - bytes.forward_peak_bytes - bytes.input_bytes,
        MAX(totals.recompute, totals.backward) - bytes.backward_peak_bytes + SCALAR_BYTES,
    };
    for (guint i = 0; i < G_N_ELEMENTS(errors); i++) {
        g_assert_cmpint(errors[i], >=, 0);
        g_assert_cmpint(errors[i], <=, slack);
    }
    g_assert_true(totals.recompute == 0 || block->policy != ZP_KEEP_ALL);
}

/* Sizes that the block divides, one sequence among them. */
static void
random_sizes(GRand *rand, ZpActivationBlock *block)
{
    gint64 divisor = block->attention == ZP_BLOCK_EFFICIENT ? 32 : 4;
    block->batch = 1 + pick(rand, 4);
    block->tokens = divisor * (1 + pick(rand, 40));
    g_assert_true(zp_activation_check(block, NULL));
}

static void
check_slots(GRand *rand, const ZpActivationBlock *described, const ZpActivationParts *parts)
{
    gboolean reentrant = described->reentrant || described->policy == ZP_KEEP_INPUT_REENTRANT;
    const ZpBlockPolicy policies[ZP_MODEL_POLICIES] = {
        ZP_KEEP_ALL, described->policy, reentrant ? ZP_KEEP_INPUT_REENTRANT : ZP_KEEP_INPUT};
    for (int slot = 0; slot < ZP_MODEL_POLICIES; slot++) {
        ZpActivationBlock block = *described;
        block.policy = policies[slot];
        random_sizes(rand, &block);
        check_block(&block, parts, slot, 0);
        block.batch = 1;
        check_block(&block, parts, slot, 0);
    }
}

static void
test_random_blocks(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(20);
    for (int i = 0; i < BLOCKS; i++) {
        ZpActivationBlock block = random_block(rand);
        ZpActivationParts parts = zp_activation_parts(&block, NULL);
        g_assert_cmpint(parts.n_parts, ==, block.family == ZP_BLOCK_T5_DECODER ? 3 : 2);
        check_slots(rand, &block, &parts);
    }
}

/* Shares of tokens that are no whole bytes are rounded up, by less than a byte a token each. */
static void
test_shares(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(21);
    for (int i = 0; i < BLOCKS / 10; i++) {
        ZpActivationBlock block = random_block(rand);
        gboolean experts = block.family == ZP_BLOCK_MOE;
        block.expert_count = 16;
        block.chosen_experts = 1;
        block.tensor_parallel = experts ? 1 : 8;
        block.sequence_parallel = !experts;
        block.heads *= 2;
        block.kv_heads *= 2;
        ZpActivationParts parts = zp_activation_parts(&block, NULL);
        block.batch = 1 + pick(rand, 3);
        block.tokens = 32 * (1 + pick(rand, 9));
        check_block(&block, &parts, 1, block.batch * block.tokens * 2 * parts.n_parts);
    }
}

static gint64
per_token(const ZpModelBytes *bytes)
{
    g_assert_cmpint(bytes->bytes_per_pair, ==, 0);
    g_assert_cmpint(bytes->bytes_per_position, ==, 0);
    return bytes->bytes_per_token;
}

/* A Llama block with flash attention in bf16: the norm keeps an fp32 copy, its product with the
 * inverse deviation and its output, the attention q, k, v, its output and the logsumexp, the MLP
 * gate, up, the gate's activation and their product; what is dropped is what comes back. */
static void
test_parts_by_hand(void)
{
    gint64 h = 160, q = 192, kv = 64, f = 416, heads = 6, random_state = 24;
    ZpActivationBlock block = {.policy = ZP_KEEP_ATTENTION,
                               .hidden = h,
                               .heads = heads,
                               .kv_heads = 2,
                               .head_size = 32,
                               .ffn = f};
    ZpActivationParts parts = zp_activation_parts(&block, NULL);
    gint64 norm = (4 + 2 + 2) * h + 4;
    gint64 attention = norm + 2 * q + 4 * kv + 2 * q + 4 * heads, mlp = norm + 8 * f;
    const ZpModelPolicyBytes *first = parts.parts[0].policies, *second = parts.parts[1].policies;
    g_assert_false(parts.parts[0].differs_alone);
    g_assert_cmpint(per_token(&first[0].kept), ==, attention);
    g_assert_cmpint(first[0].kept.constant_bytes, ==, random_state);
    g_assert_cmpint(per_token(&second[0].kept), ==, mlp);
    g_assert_cmpint(per_token(&first[0].recomputed) + per_token(&second[0].recomputed), ==, 0);
    g_assert_cmpint(per_token(&first[2].kept), ==, 2 * h);
    g_assert_cmpint(per_token(&second[2].kept), ==, 0);
    g_assert_cmpint(per_token(&first[2].recomputed), ==, attention);
    g_assert_cmpint(per_token(&second[2].recomputed), ==, mlp);
    g_assert_cmpint(per_token(&first[1].kept), ==, 2 * h + 2 * q + 4 * heads);
    g_assert_cmpint(per_token(&first[1].recomputed), ==, attention - 2 * q - 4 * heads);
    g_assert_cmpint(per_token(&second[1].kept), ==, 0);
    /* Both residual streams and the norm's fp32 copy beside its square live at the least. */
    g_assert_cmpint(zp_model_peak_at(&second[0].forward, 2, 64), >=, h * 2 * 64 * 2 * 2);
}

static void
check_loss(const ZpActivationLoss *loss, const ZpModelActivation *part, gboolean whole)
{
    ZpActivationParts parts = {.n_parts = 1, .parts = {*part}};
    ZpActivationBytes bytes = zp_activation_measure_loss(loss);
    for (int slot = 0; slot < ZP_MODEL_POLICIES; slot++) {
        Totals totals = add_up(&parts, slot, loss->batch, loss->tokens);
        gint64 most = whole ? 0 : loss->batch * loss->tokens;
        gint64 forward = totals.forward - bytes.forward_peak_bytes - bytes.input_bytes;
        gint64 backward = totals.backward - bytes.backward_peak_bytes;
        g_assert_cmpint(totals.kept, ==, bytes.kept_bytes);
        g_assert_true(forward >= 0 && forward <= most);
        g_assert_true(backward >= 0 && backward <= most);
        g_assert_cmpint(totals.recompute, ==, 0);
    }
}

static void
test_losses(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(22);
    for (int i = 0; i < BLOCKS; i++) {
        ZpActivationLoss loss = {
            .kind = (ZpLossKind)pick(rand, ZP_LOSS_CHUNKS_CHECKPOINTED + 1),
            .regime = (ZpBlockRegime)pick(rand, ZP_REGIME_FP32 + 1),
            .keep_logits = pick(rand, 2) == 1,
            .soft_cap = pick(rand, 2) == 1,
            .label_smoothing = pick(rand, 2) == 1,
            .without_norm = TRUE,
            .chunks = 1 << (int)pick(rand, 4),
            .hidden = 16 * (1 + pick(rand, 30)),
            .vocabulary = 301 + pick(rand, 3000),
        };
        ZpModelActivation part = zp_activation_loss_part(&loss);
        loss.batch = 1 + pick(rand, 4);
        loss.tokens = 8 * (1 + pick(rand, 50));
        /* Chunks cut labels' masks of a byte a token, else 4 bytes. */
        gboolean whole = loss.chunks == 1 || (loss.chunks < 4 && !loss.label_smoothing);
        check_loss(&loss, &part, whole || loss.kind < ZP_LOSS_CHUNKS);
    }
}

/* A norm and what follows it keep together what they keep as one, and so do their peaks, but for
 * scalars of the loss. */
static void
test_last_norm(void)
{
    enum { SCALARS_BYTES = 16 };
    for (int bits = 0; bits < 12; bits++) {
        ZpBlockRegime regime = (ZpBlockRegime)(bits % 3);
        ZpActivationBlock block = {.regime = regime, .hidden = 192};
        ZpActivationLoss loss = {
            .kind = (ZpLossKind)(bits / 3), .regime = regime, .hidden = 192, .vocabulary = 160};
        ZpModelActivation norm = zp_activation_norm_part(&block);
        ZpActivationParts parts = {.n_parts = 2, .parts = {norm, zp_activation_loss_part(&loss)}};
        loss.batch = 3;
        loss.tokens = 40;
        ZpActivationBytes bytes = zp_activation_measure_loss(&loss);
        Totals totals = add_up(&parts, 0, loss.batch, loss.tokens);
        g_assert_cmpint(totals.kept, ==, bytes.kept_bytes);
        g_assert_cmpint(totals.backward, <=, bytes.backward_peak_bytes);
        g_assert_cmpint(totals.backward, >=, bytes.backward_peak_bytes - SCALARS_BYTES);
        g_assert_cmpint(norm.policies[0].recompute.n_forms, ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/activation-parts/random", test_random_blocks);
    g_test_add_func("/activation-parts/shares", test_shares);
    g_test_add_func("/activation-parts/by-hand", test_parts_by_hand);
    g_test_add_func("/activation-parts/losses", test_losses);
    g_test_add_func("/activation-parts/last-norm", test_last_norm);
    return g_test_run();
}
