#include "models/activation/heads_internal.h"

/* [b, kv, s, d] to [b, heads, s, d]: expanded, then reshaped. */
static ZpTensor *
repeat(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    gint64 groups = block->heads / block->kv_heads;
    if (groups == 1)
        return zp_to(program->trace, a, a ? a->element_bytes : 0);
    gint64 b = block->batch, s = block->tokens, d = block->head_size;
    ZpTensor *apart =
        zp_take(zp_reshape(program->trace, a, 5, (gint64[]){b, block->kv_heads, 1, s, d}));
    ZpTensor *wide =
        zp_take(zp_expand(program->trace, apart, 5, (gint64[]){b, block->kv_heads, groups, s, d}));
    return zp_reshape(program->trace, wide, 4, (gint64[]){b, block->heads, s, d});
}

static ZpTensor *
matmul(const ZpProgram *program, ZpTensor *a, ZpTensor *b)
{
    g_autoptr(ZpTensor) left = zp_program_cast(program, a);
    g_autoptr(ZpTensor) right = zp_program_cast(program, b);
    return zp_matmul(program->trace, left, right);
}

static void
rebind(ZpTensor **name, ZpTensor *value)
{
    zp_tensor_unref(*name);
    *name = value;
}

static ZpTensor *
eager_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *query,
                ZpTensor *key, ZpTensor *value)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) keys = repeat(program, block, key);
    g_autoptr(ZpTensor) values = repeat(program, block, value);
    ZpTensor *turned = zp_take(zp_transpose(trace, keys, 2, 3));
    g_autoptr(ZpTensor) scores = matmul(program, query, turned);
    rebind(&scores, zp_scale(trace, scores));
    if (block->soft_cap) {
        ZpTensor *bent = zp_take(zp_tanh(trace, zp_take(zp_scale(trace, scores))));
        rebind(&scores, zp_scale(trace, bent));
    }
    gint64 s = block->tokens;
    g_autoptr(ZpTensor) mask =
        zp_program_constant(program, program->residual_bytes, 2, (gint64[]){s, s});
    rebind(&scores, zp_add(trace, scores, mask));
    gboolean wide = block->softmax_fp32 || program->autocast;
    ZpTensor *input = zp_take(zp_to(trace, scores, wide ? 4 : scores ? scores->element_bytes : 0));
    ZpTensor *softmax = zp_take(zp_softmax(trace, input));
    rebind(&scores, zp_to(trace, softmax, query ? query->element_bytes : 0));
    rebind(&scores,
           zp_program_dropout(program, block->attention_dropout, block->cpu_kernels, scores));
    g_autoptr(ZpTensor) output = matmul(program, scores, values);
    return zp_heads_join(program, block, output);
}

/* attention.cpp, convert_boolean_attn_mask: a boolean mask becomes one of the queries' dtype. */
static ZpTensor *
mask_of(const ZpProgram *program, const ZpActivationBlock *block)
{
    gint64 sequences = block->mask == ZP_MASK_SEQUENCE ? block->batch : 1;
    ZpTraceShape shape = zp_shape(4, (gint64[]){sequences, 1, block->tokens, block->tokens});
    return zp_plain(program->trace, "where", &shape, program->compute_bytes);
}

static ZpTensor *
fused_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *query,
                ZpTensor *key, ZpTensor *value)
{
    static const ZpAttentionKernel kernels[] = {
        [ZP_BLOCK_FLASH] = ZP_KERNEL_FLASH,         [ZP_BLOCK_FLASH_REPEATED] = ZP_KERNEL_FLASH,
        [ZP_BLOCK_EFFICIENT] = ZP_KERNEL_EFFICIENT, [ZP_BLOCK_CUDNN] = ZP_KERNEL_CUDNN,
        [ZP_BLOCK_CPU_KERNEL] = ZP_KERNEL_CPU,
    };
    gboolean masked = block->mask != ZP_MASK_NONE;
    gboolean repeated = block->attention == ZP_BLOCK_FLASH_REPEATED ||
                        block->attention == ZP_BLOCK_EFFICIENT ||
                        (masked && block->projection != ZP_PROJECTION_COPIED);
    g_autoptr(ZpTensor) queries = zp_program_cast(program, query);
    g_autoptr(ZpTensor) keys = zp_program_cast(program, key);
    g_autoptr(ZpTensor) values = zp_program_cast(program, value);
    if (repeated) {
        rebind(&keys, repeat(program, block, keys));
        rebind(&values, repeat(program, block, values));
    }
    g_autoptr(ZpTensor) mask = masked ? mask_of(program, block) : NULL;
    g_autoptr(ZpTensor) output = zp_attention_kernel(
        program->trace, masked ? ZP_KERNEL_EFFICIENT : kernels[block->attention], queries, keys,
        values, mask);
    return zp_heads_join(program, block, output);
}

static ZpTensor *
attend(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *query, ZpTensor *key,
       ZpTensor *value)
{
    return block->attention == ZP_BLOCK_EAGER ? eager_attention(program, block, query, key, value)
                                              : fused_attention(program, block, query, key, value);
}

static gboolean
has_biases(const ZpActivationBlock *block)
{
    return block->family == ZP_BLOCK_BERT || block->family == ZP_BLOCK_GPT2 || block->biases;
}

ZpTensor *
zp_program_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    gboolean bias = has_biases(block);
    gboolean rotary = block->family != ZP_BLOCK_BERT && block->family != ZP_BLOCK_GPT2;
    ZpTensor *names[ZP_HEADS_NAMES] = {NULL};
    ZpHeads heads = zp_heads_project(program, block, a, bias);
    if (rotary)
        zp_heads_rotate(program, block, &heads, names);
    g_autoptr(ZpTensor) output = attend(program, block, heads.query, heads.key, heads.value);
    rebind(&output, zp_program_linear(program, ZP_LINEAR_ROW, output, block->hidden, bias));
    gboolean inside = block->family == ZP_BLOCK_PARALLEL ||
                      (block->family == ZP_BLOCK_GPT2 && block->projection == ZP_PROJECTION_OWN);
    rebind(&output,
           zp_program_dropout(program, block->dropout && inside, block->cpu_kernels, output));
    for (int i = 0; i < ZP_HEADS_NAMES; i++)
        zp_tensor_unref(names[i]);
    zp_heads_clear(&heads);
    return g_steal_pointer(&output);
}

/* sdpa_attention.py, create_position_bias_mask: a contiguous copy of the bias in each layer, but of
 * cross-attention, whose zeros are one tensor for all. */
static ZpTensor *
t5_mask(const ZpProgram *program, const ZpActivationBlock *block, gboolean crossed)
{
    gint64 sizes[] = {1, block->heads, block->tokens, block->tokens};
    ZpTraceShape shape = zp_shape(4, sizes);
    if (crossed)
        return zp_program_constant(program, program->compute_bytes, 4, sizes);
    ZpTensor *mask = zp_plain(program->trace, "clone", &shape, program->compute_bytes);
    if (mask)
        mask->parameter = TRUE; /* the bias is one: it gets a gradient */
    return mask;
}

static ZpTensor *
t5_fused(const ZpProgram *program, const ZpActivationBlock *block, const ZpHeads *heads,
         gboolean crossed)
{
    g_autoptr(ZpTensor) query = zp_program_cast(program, heads->query);
    g_autoptr(ZpTensor) key = zp_program_cast(program, heads->key);
    g_autoptr(ZpTensor) value = zp_program_cast(program, heads->value);
    g_autoptr(ZpTensor) mask = t5_mask(program, block, crossed);
    g_autoptr(ZpTensor) output =
        zp_attention_kernel(program->trace, ZP_KERNEL_EFFICIENT, query, key, value, mask);
    g_autoptr(ZpTensor) joined = zp_heads_join(program, block, output);
    g_clear_pointer(&output, zp_tensor_unref);
    return zp_program_linear(program, ZP_LINEAR_ROW, joined, block->hidden, FALSE);
}

static ZpTensor *
t5_written_out(const ZpProgram *program, const ZpActivationBlock *block, const ZpHeads *heads)
{
    ZpTrace *trace = program->trace;
    gint64 s = block->tokens;
    gboolean narrow = block->t5_interface;
    ZpTensor *turned = zp_take(zp_transpose(trace, heads->key, 2, 3));
    g_autoptr(ZpTensor) scores = zp_matmul(trace, heads->query, turned);
    if (narrow)
        rebind(&scores, zp_scale(trace, scores));
    g_autoptr(ZpTensor) bias =
        zp_program_constant(program, program->compute_bytes, 3, (gint64[]){block->heads, s, s});
    rebind(&scores, zp_add(trace, scores, bias));
    ZpTensor *wide = zp_take(zp_to(trace, scores, narrow ? program->compute_bytes : 4));
    ZpTensor *softmax = zp_take(zp_softmax(trace, wide));
    g_autoptr(ZpTensor) weights = zp_to(trace, softmax, program->compute_bytes);
    if (narrow)
        g_clear_pointer(&scores, zp_tensor_unref);
    rebind(&weights,
           zp_program_dropout(program, block->attention_dropout, block->cpu_kernels, weights));
    ZpTensor *output = zp_take(zp_matmul(trace, weights, heads->value));
    g_autoptr(ZpTensor) joined = zp_heads_join(program, block, output);
    if (narrow) /* a function of its own */
        g_clear_pointer(&weights, zp_tensor_unref);
    return zp_program_linear(program, ZP_LINEAR_ROW, joined, block->hidden, FALSE);
}

ZpTensor *
zp_program_t5_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a,
                        ZpTensor *source)
{
    gboolean crossed = source != NULL;
    source = crossed ? source : a;
    ZpHeads heads = {.query = zp_heads_project_one(program, block, a, block->heads, FALSE, FALSE)};
    heads.key = zp_heads_project_one(program, block, source, block->heads, FALSE, FALSE);
    heads.value = zp_heads_project_one(program, block, source, block->heads, FALSE, FALSE);
    if (block->t5_interface && block->family == ZP_BLOCK_T5_DECODER &&
        block->policy == ZP_KEEP_ALL) { /* cache.update(): cat */
        zp_heads_make_contiguous(program, &heads.key);
        zp_heads_make_contiguous(program, &heads.value);
    }
    gboolean fused = block->t5_interface && block->attention != ZP_BLOCK_EAGER;
    ZpTensor *output =
        fused ? t5_fused(program, block, &heads, crossed) : t5_written_out(program, block, &heads);
    zp_heads_clear(&heads);
    return output;
}
