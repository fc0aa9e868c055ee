#include "models/activation/activation.h"

#include <string.h>

enum { BLOCK_NUMBERS = 45 };

/* All that a description says here, without the padding between its fields. */
static void
list_numbers(const ZpActivationBlock *o, gint64 numbers[BLOCK_NUMBERS])
{
    const gint64 values[] = {
        (gint64)o->family,
        (gint64)o->norm,
        (gint64)o->attention,
        (gint64)o->activation,
        (gint64)o->regime,
        (gint64)o->policy,
        (gint64)o->experts,
        o->softmax_fp32,
        o->qk_norm,
        o->soft_cap,
        o->dropout,
        o->attention_dropout,
        o->compiled,
        o->reentrant,
        o->tensor_parallel,
        o->sequence_parallel,
        o->batch,
        o->tokens,
        o->hidden,
        o->heads,
        o->kv_heads,
        o->head_size,
        o->ffn,
        o->expert_count,
        o->chosen_experts,
        o->router_fp32,
        o->shares_fp32,
        o->gated_shared,
        o->shared,
        (gint64)o->projection,
        (gint64)o->mask,
        o->rotary_joined,
        o->rotary_named,
        o->rotary,
        o->scaled_query,
        o->contiguous_heads,
        o->two_norms,
        o->fused_gate,
        o->biases,
        o->bare_products,
        o->t5_interface,
        o->adapter_rank,
        (gint64)o->adapted,
        o->input_frozen,
        o->adapter_dropout,
    };
    G_STATIC_ASSERT(G_N_ELEMENTS(values) == BLOCK_NUMBERS);
    memcpy(numbers, values, sizeof values);
}

gboolean
zp_activation_equal(const ZpActivationBlock *a, const ZpActivationBlock *b)
{
    gint64 of_a[BLOCK_NUMBERS], of_b[BLOCK_NUMBERS];
    list_numbers(a, of_a);
    list_numbers(b, of_b);
    return memcmp(of_a, of_b, sizeof of_a) == 0;
}
