#include "models/activation/program_internal.h"

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
        {"shared", block->shared, block->shared != 0, ways},
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
