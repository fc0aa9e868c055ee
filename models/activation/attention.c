#include "models/activation/program_internal.h"

/* [b, s, heads * d] to [b, heads, s, d]. */
static ZpTensor *
to_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 heads)
{
    gint64 sizes[] = {block->batch, block->tokens, heads, block->head_size};
    ZpTensor *split = zp_take(zp_reshape(program->trace, a, 4, sizes));
    return zp_transpose(program->trace, split, 1, 2);
}

/* x * cos + rotate_half(x) * sin */
static ZpTensor *
rotate(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    ZpTrace *trace = program->trace;
    gint64 sizes[] = {block->tokens, block->head_size}, half = block->head_size / 2;
    g_autoptr(ZpTensor) cosine = zp_program_constant(program, program->residual_bytes, 2, sizes);
    g_autoptr(ZpTensor) sine = zp_program_constant(program, program->residual_bytes, 2, sizes);
    ZpTensor *straight = zp_take(zp_mul(trace, a, cosine));
    g_autoptr(ZpTensor) first = zp_slice(trace, a, 3, 0, half);
    g_autoptr(ZpTensor) second = zp_slice(trace, a, 3, half, half);
    ZpTensor *turned = zp_take(zp_cat_last(trace, zp_take(zp_neg(trace, second)), first));
    ZpTensor *across = zp_take(zp_mul(trace, turned, sine));
    return zp_add(trace, straight, across);
}

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

/* [b, heads, s, d] to [b, s, heads * d] */
static ZpTensor *
from_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    gint64 sizes[] = {block->batch, block->tokens, block->heads * block->head_size};
    ZpTensor *turned = zp_take(zp_transpose(program->trace, a, 1, 2));
    return zp_reshape(program->trace, turned, 3, sizes);
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
    return from_heads(program, block, output);
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
    gboolean repeated =
        block->attention == ZP_BLOCK_FLASH_REPEATED || block->attention == ZP_BLOCK_EFFICIENT;
    g_autoptr(ZpTensor) queries = zp_program_cast(program, query);
    g_autoptr(ZpTensor) keys = zp_program_cast(program, key);
    g_autoptr(ZpTensor) values = zp_program_cast(program, value);
    if (repeated) {
        rebind(&keys, repeat(program, block, keys));
        rebind(&values, repeat(program, block, values));
    }
    g_autoptr(ZpTensor) output =
        zp_attention_kernel(program->trace, kernels[block->attention], queries, keys, values);
    return from_heads(program, block, output);
}

static ZpTensor *
attend(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *query, ZpTensor *key,
       ZpTensor *value)
{
    return block->attention == ZP_BLOCK_EAGER ? eager_attention(program, block, query, key, value)
                                              : fused_attention(program, block, query, key, value);
}

/* A projection to heads; its norm, when there is one, sees [b, s, heads, d]. */
static ZpTensor *
project(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 heads,
        gboolean bias, gboolean normed)
{
    ZpTensor *wide =
        zp_take(zp_program_linear(program, ZP_LINEAR_COLUMN, a, heads * block->head_size, bias));
    if (!normed)
        return to_heads(program, block, wide, heads);
    gint64 sizes[] = {block->batch, block->tokens, heads, block->head_size};
    g_autoptr(ZpTensor) split = zp_reshape(program->trace, wide, 4, sizes);
    ZpTensor *result = zp_take(zp_program_norm(program, block->norm, split, block->head_size));
    return zp_transpose(program->trace, result, 1, 2);
}

static ZpTensor *
fused_projection_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    ZpTensor *parts[ZP_TRACE_OUTPUTS] = {NULL};
    g_autoptr(ZpTensor) qkv =
        zp_program_linear(program, ZP_LINEAR_COLUMN, a, 3 * block->heads * block->head_size, TRUE);
    zp_split(program->trace, qkv, 2, block->heads * block->head_size, parts);
    g_autoptr(ZpTensor) query = to_heads(program, block, zp_take(parts[0]), block->heads);
    g_autoptr(ZpTensor) key = to_heads(program, block, zp_take(parts[1]), block->heads);
    g_autoptr(ZpTensor) value = to_heads(program, block, zp_take(parts[2]), block->heads);
    g_autoptr(ZpTensor) output = attend(program, block, query, key, value);
    rebind(&output, zp_program_linear(program, ZP_LINEAR_ROW, output, block->hidden, TRUE));
    return zp_program_dropout(program, block->dropout, block->cpu_kernels, output);
}

static void
turn(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor **heads)
{
    ZpTensor *before = *heads;
    if (program->compiled)
        *heads = zp_fused_rotate(program->trace, zp_take(before));
    else
        rebind(heads, rotate(program, block, before));
}

ZpTensor *
zp_program_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    if (block->family == ZP_BLOCK_GPT2)
        return fused_projection_attention(program, block, a);
    gboolean bias = block->family == ZP_BLOCK_BERT, rotary = !bias;
    g_autoptr(ZpTensor) query = project(program, block, a, block->heads, bias, block->qk_norm);
    g_autoptr(ZpTensor) key = project(program, block, a, block->kv_heads, bias, block->qk_norm);
    g_autoptr(ZpTensor) value = project(program, block, a, block->kv_heads, bias, FALSE);
    if (rotary) {
        turn(program, block, &query);
        turn(program, block, &key);
    }
    g_autoptr(ZpTensor) output = attend(program, block, query, key, value);
    rebind(&output, zp_program_linear(program, ZP_LINEAR_ROW, output, block->hidden, bias));
    gboolean drop = block->dropout && block->family == ZP_BLOCK_PARALLEL;
    return zp_program_dropout(program, drop, block->cpu_kernels, output);
}

ZpTensor *
zp_program_t5_attention(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a,
                        ZpTensor *source)
{
    ZpTrace *trace = program->trace;
    source = source ? source : a;
    gint64 s = block->tokens;
    g_autoptr(ZpTensor) query = project(program, block, a, block->heads, FALSE, FALSE);
    g_autoptr(ZpTensor) key = project(program, block, source, block->heads, FALSE, FALSE);
    g_autoptr(ZpTensor) value = project(program, block, source, block->heads, FALSE, FALSE);
    ZpTensor *turned = zp_take(zp_transpose(trace, key, 2, 3));
    g_autoptr(ZpTensor) scores = zp_matmul(trace, query, turned);
    g_autoptr(ZpTensor) bias =
        zp_program_constant(program, program->compute_bytes, 3, (gint64[]){block->heads, s, s});
    rebind(&scores, zp_add(trace, scores, bias));
    ZpTensor *softmax = zp_take(zp_softmax(trace, zp_take(zp_to(trace, scores, 4))));
    g_autoptr(ZpTensor) weights = zp_to(trace, softmax, program->compute_bytes);
    rebind(&weights,
           zp_program_dropout(program, block->attention_dropout, block->cpu_kernels, weights));
    ZpTensor *output = zp_take(zp_matmul(trace, weights, value));
    g_autoptr(ZpTensor) joined = from_heads(program, block, output);
    return zp_program_linear(program, ZP_LINEAR_ROW, joined, block->hidden, FALSE);
}
