/* Activation memory: published forms, its own conservation laws, and combinations that no
 * measurement covers.  The measured cases are checked by tests/check_activations. */
#include "models/activation/activation.h"

static ZpActivationBlock
llama(void)
{
    return (ZpActivationBlock){
        .family = ZP_BLOCK_LLAMA,
        .softmax_fp32 = TRUE,
        .batch = 2,
        .tokens = 96,
        .hidden = 160,
        .heads = 6,
        .kv_heads = 2,
        .head_size = 32,
        .ffn = 416,
        .expert_count = 8,
        .chosen_experts = 2,
    };
}

static ZpActivationBlock
gpt(void)
{
    ZpActivationBlock block = llama();
    block.family = ZP_BLOCK_GPT2;
    block.activation = ZP_BLOCK_GELU;
    block.attention = ZP_BLOCK_EAGER;
    block.softmax_fp32 = FALSE;
    block.dropout = block.attention_dropout = TRUE;
    block.heads = block.kv_heads = 8;
    block.head_size = 32;
    block.hidden = 256;
    block.ffn = 1024;
    return block;
}

/* Korthikanti et al., arXiv 2205.05198: equation 2, s b h (34 + 5 a s / h), table 2 with tensor
 * parallelism, s b h (10 + 24 / t + 5 a s / (h t)), and with sequence parallelism, all over t.
 * They leave out the LayerNorms' statistics, here 16 bytes a token. */
static void
test_megatron_forms(void)
{
    ZpActivationBlock block = gpt();
    gint64 b = block.batch, s = block.tokens, h = block.hidden, a = block.heads;
    gint64 tokens = b * s, pairs = 5 * a * b * s * s;
    g_assert_cmpint(zp_activation_measure_block(&block).kept_bytes, ==,
                    34 * tokens * h + pairs + 16 * tokens);
    for (gint64 t = 2; t <= 8; t *= 2) {
        block.tensor_parallel = t;
        block.sequence_parallel = FALSE;
        g_assert_true(zp_activation_check(&block, NULL));
        g_assert_cmpint(zp_activation_measure_block(&block).kept_bytes, ==,
                        10 * tokens * h + 24 * tokens * h / t + pairs / t + 16 * tokens);
        block.sequence_parallel = TRUE;
        g_assert_true(zp_activation_check(&block, NULL));
        g_assert_cmpint(zp_activation_measure_block(&block).kept_bytes, ==,
                        (34 * tokens * h + pairs + 16 * tokens) / t);
    }
}

/* A gathered product needs whole tokens for a while: the peaks fall less than what is kept. */
static void
test_sequence_parallel_peaks(void)
{
    ZpActivationBlock block = gpt();
    ZpActivationBytes whole = zp_activation_measure_block(&block);
    block.tensor_parallel = 4;
    ZpActivationBytes tensor = zp_activation_measure_block(&block);
    block.sequence_parallel = TRUE;
    ZpActivationBytes both = zp_activation_measure_block(&block);
    g_assert_cmpint(both.forward_peak_bytes, <, tensor.forward_peak_bytes);
    g_assert_cmpint(tensor.forward_peak_bytes, <, whole.forward_peak_bytes);
    g_assert_cmpint(both.forward_peak_bytes, >, whole.forward_peak_bytes / 4);
    g_assert_cmpint(both.backward_peak_bytes, >, whole.backward_peak_bytes / 4);
}

/* Every combination of traits runs, keeps no more than it peaks at, and checkpointing keeps the
 * input alone and gives the same gradients of parameters. */
static void
check_combination(const ZpActivationBlock *block)
{
    ZpActivationBlock own = *block;
    ZpActivationBytes all = zp_activation_measure_block(&own);
    gint64 input = all.input_kept ? all.input_bytes : 0;
    g_assert_cmpint(all.kept_bytes - input, <=, all.forward_peak_bytes);
    g_assert_cmpint(all.backward_entry_bytes, <=, all.backward_peak_bytes);
    g_assert_cmpint(all.backward_peak_bytes, <=, all.backward_peak_with_workspace_bytes);
    for (ZpBlockPolicy p = ZP_KEEP_INPUT_REENTRANT; p <= ZP_KEEP_EVERY_SECOND_PRODUCT; p++) {
        own.policy = p;
        ZpActivationBytes bytes = zp_activation_measure_block(&own);
        if (p <= ZP_KEEP_INPUT)
            g_assert_cmpint(bytes.kept_bytes, ==, bytes.input_bytes);
        g_assert_cmpint(bytes.kept_bytes, >=, bytes.input_bytes);
        g_assert_true(bytes.input_kept);
        g_assert_cmpint(bytes.parameter_gradient_bytes, ==, all.parameter_gradient_bytes);
        g_assert_cmpint(bytes.forward_peak_bytes, <=, all.forward_peak_bytes + bytes.input_bytes);
        g_assert_cmpint(bytes.backward_peak_bytes, >, bytes.backward_entry_bytes);
        g_assert_cmpint(bytes.backward_entry_bytes, ==, bytes.kept_bytes + bytes.output_bytes + 4);
    }
}

/* Whether a family looks at all that differs from the first of each kind. */
static gboolean
reads(int family, int norm, int attention, int bits)
{
    gboolean rms = family == ZP_BLOCK_LLAMA || family == ZP_BLOCK_MOE;
    gboolean t5 = family == ZP_BLOCK_T5_ENCODER || family == ZP_BLOCK_T5_DECODER;
    return (norm == 0 || rms) && (attention == 0 || !t5) &&
           (bits % 4 == attention % 4 || bits > 11);
}

static void
test_all_combinations(void)
{
    for (int family = ZP_BLOCK_LLAMA; family <= ZP_BLOCK_MOE; family++)
        for (int norm = ZP_NORM_EAGER; norm <= ZP_NORM_PLUS_ONE; norm++)
            for (int attention = ZP_BLOCK_FLASH; attention <= ZP_BLOCK_EAGER; attention++)
                for (int regime = ZP_REGIME_BF16; regime <= ZP_REGIME_FP32; regime++)
                    for (int bits = 0; bits < 16; bits++) {
                        if (!reads(family, norm, attention, bits))
                            continue;
                        ZpActivationBlock block = family == ZP_BLOCK_GPT2 ? gpt() : llama();
                        block.family = (ZpBlockFamily)family;
                        block.norm = (ZpBlockNorm)norm;
                        block.attention = (ZpBlockAttention)attention;
                        block.regime = (ZpBlockRegime)regime;
                        block.activation = (ZpBlockActivation)(bits % 4);
                        block.dropout = block.attention_dropout = (bits & 4) != 0;
                        block.cpu_kernels = (bits & 8) != 0;
                        block.qk_norm = (bits & 1) != 0 && family != ZP_BLOCK_GPT2;
                        block.soft_cap = (bits & 2) != 0;
                        block.experts = (bits & 2) != 0 ? ZP_EXPERTS_LOOP : ZP_EXPERTS_GROUPED;
                        g_assert_true(zp_activation_check(&block, NULL));
                        check_combination(&block);
                    }
}

static void
test_check_names_the_size(void)
{
    ZpActivationBlock block = llama();
    g_autoptr(GError) error = NULL;
    block.tensor_parallel = 4;
    g_assert_false(zp_activation_check(&block, &error));
    g_assert_error(error, ZP_ACTIVATION_ERROR, ZP_ACTIVATION_ERROR_SIZE);
    g_assert_cmpstr(error->message, ==, "heads 6 is not a multiple of 4");
    g_clear_error(&error);
    block = llama();
    block.ffn = 0;
    g_assert_false(zp_activation_check(&block, &error));
    g_assert_nonnull(g_strstr_len(error->message, -1, "ffn"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/activation/megatron", test_megatron_forms);
    g_test_add_func("/activation/sequence-parallel", test_sequence_parallel_peaks);
    g_test_add_func("/activation/combinations", test_all_combinations);
    g_test_add_func("/activation/check", test_check_names_the_size);
    return g_test_run();
}
