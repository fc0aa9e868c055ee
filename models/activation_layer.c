#include "models/activation_program.h"

enum { POINTS = 3, SCALAR_BYTES = 4 };

G_DEFINE_QUARK(zp - activation - error - quark, zp_activation_error)

typedef struct {
    const char *name;
    gint64 value;
    gboolean needed;
    gint64 divisor; /* that must divide it; 0: none */
} Size;

gboolean
zp_activation_check(const ZpActivationBlock *block, GError **error)
{
    gint64 ways = MAX(block->tensor_parallel, 1);
    gboolean mixture = block->family == ZP_BLOCK_MOE;
    const Size sizes[] = {
        {"batch", block->batch, TRUE, 0},
        {"tokens", block->tokens, TRUE, block->sequence_parallel ? ways : 0},
        {"hidden", block->hidden, TRUE, 0},
        {"heads", block->heads, TRUE, ways},
        {"kv_heads", block->kv_heads, TRUE, block->kv_heads > ways ? ways : 0},
        {"head_size", block->head_size, TRUE, 2},
        {"ffn", block->ffn, TRUE, ways},
        {"expert_count", block->expert_count, mixture, 0},
        {"chosen_experts", block->chosen_experts, mixture, 0},
    };
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        const Size *size = &sizes[i];
        if (size->needed && (size->value < 1 || size->value > G_MAXINT32)) {
            g_set_error(error, ZP_ACTIVATION_ERROR, ZP_ACTIVATION_ERROR_SIZE,
                        "%s is %" G_GINT64_FORMAT ", not between 1 and %d", size->name, size->value,
                        G_MAXINT32);
            return FALSE;
        }
        if (size->needed && size->divisor > 1 && size->value % size->divisor != 0) {
            g_set_error(error, ZP_ACTIVATION_ERROR, ZP_ACTIVATION_ERROR_SIZE,
                        "%s %" G_GINT64_FORMAT " is not a multiple of %" G_GINT64_FORMAT,
                        size->name, size->value, size->divisor);
            return FALSE;
        }
    }
    gint64 key_heads = MAX(block->kv_heads / ways, 1);
    gint64 rows = block->batch * block->tokens * block->chosen_experts;
    const char *problem = NULL;
    if (block->heads / ways % key_heads != 0)
        problem = "heads is not a multiple of kv_heads";
    else if (mixture && block->chosen_experts > block->expert_count)
        problem = "chosen_experts is above expert_count";
    else if (mixture && block->experts == ZP_EXPERTS_GROUPED && rows % block->expert_count != 0)
        problem = "batch x tokens x chosen_experts is not a multiple of expert_count";
    else if (mixture && block->sequence_parallel && ways > 1)
        problem = "sequence_parallel does not apply to a mixture of experts";
    else if (block->compiled && block->family != ZP_BLOCK_LLAMA)
        problem = "compiled is known for Llama's blocks alone";
    else if (block->compiled && block->attention == ZP_BLOCK_EAGER)
        problem = "compiled is not known for attention that is written out";
    else if (block->compiled && block->regime == ZP_REGIME_AMP)
        problem = "compiled is not known under autocast";
    if (!problem)
        return TRUE;
    g_set_error_literal(error, ZP_ACTIVATION_ERROR, ZP_ACTIVATION_ERROR_SIZE, problem);
    return FALSE;
}

/* kept(s), kept(2 s), kept(3 s) of c + t b s + p b s^2. */
static void
fit(const gint64 *kept, gint64 batch, gint64 tokens, gint64 *per_token, gint64 *per_pair,
    gint64 *constant)
{
    gint64 second = kept[2] - 2 * kept[1] + kept[0];
    gint64 square = batch * tokens * tokens;
    *per_pair = second / (2 * square);
    *per_token = (kept[1] - kept[0] - 3 * square * *per_pair) / (batch * tokens);
    *constant = kept[0] - batch * tokens * *per_token - square * *per_pair;
}

static void
transients(const ZpActivationBytes *bytes, gint64 scalar, gint64 *forward, gint64 *backward)
{
    gint64 left = bytes->kept_bytes - (bytes->input_kept ? bytes->input_bytes : 0);
    *forward = bytes->forward_peak_bytes - left;
    *backward = bytes->backward_peak_bytes - bytes->kept_bytes - scalar;
}

ZpActivationLayer
zp_activation_layer(const ZpActivationBlock *block)
{
    ZpActivationLayer layer = {0};
    ZpActivationBlock varied = *block;
    gint64 kept[POINTS], selective[POINTS];
    for (int i = 0; i < POINTS; i++) {
        varied.tokens = (i + 1) * block->tokens;
        varied.policy = ZP_KEEP_ALL;
        ZpActivationBytes whole = zp_activation_measure_block(&varied);
        varied.policy = block->policy;
        ZpActivationBytes own = zp_activation_measure_block(&varied);
        kept[i] = whole.kept_bytes;
        selective[i] = own.kept_bytes;
        if (i > 0)
            continue;
        transients(&whole, SCALAR_BYTES, &layer.forward_transient_bytes,
                   &layer.backward_transient_bytes);
        transients(&own, SCALAR_BYTES, &layer.selective_forward_transient_bytes,
                   &layer.selective_backward_transient_bytes);
        layer.input_bytes_per_token = whole.input_bytes / (block->batch * block->tokens);
    }
    fit(kept, block->batch, block->tokens, &layer.kept_bytes_per_token, &layer.kept_bytes_per_pair,
        &layer.kept_bytes);
    fit(selective, block->batch, block->tokens, &layer.selective_bytes_per_token,
        &layer.selective_bytes_per_pair, &layer.selective_bytes);
    return layer;
}

ZpActivationLayer
zp_activation_loss_layer(const ZpActivationLoss *loss)
{
    ZpActivationLayer layer = {0};
    ZpActivationLoss varied = *loss;
    gint64 kept[POINTS];
    for (int i = 0; i < POINTS; i++) {
        varied.tokens = (i + 1) * loss->tokens;
        ZpActivationBytes bytes = zp_activation_measure_loss(&varied);
        kept[i] = bytes.kept_bytes;
        if (i > 0)
            continue;
        transients(&bytes, 0, &layer.forward_transient_bytes, &layer.backward_transient_bytes);
        layer.input_bytes_per_token = bytes.input_bytes / (loss->batch * loss->tokens);
    }
    fit(kept, loss->batch, loss->tokens, &layer.kept_bytes_per_token, &layer.kept_bytes_per_pair,
        &layer.kept_bytes);
    layer.selective_bytes_per_token = layer.kept_bytes_per_token;
    layer.selective_bytes_per_pair = layer.kept_bytes_per_pair;
    layer.selective_bytes = layer.kept_bytes;
    layer.selective_forward_transient_bytes = layer.forward_transient_bytes;
    layer.selective_backward_transient_bytes = layer.backward_transient_bytes;
    return layer;
}
