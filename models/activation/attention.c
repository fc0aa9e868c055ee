#include "models/activation/program_internal.h"

/* [b, s, heads * d] to [b, heads, s, d]. */
static ZpTensor *
to_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 heads)
{
    gint64 sizes[] = {block->batch, block->tokens, heads, block->head_size};
    ZpTensor *split = zp_take(zp_reshape(program->trace, a, 4, sizes));
    return zp_transpose(program->trace, split, 1, 2);
}

/* x * cos + rotate_half(x) * sin, over the last `width` numbers that x has. */
static ZpTensor *
rotate(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    gint64 sizes[] = {block->tokens, width}, half = width / 2;
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

typedef struct {
    ZpTensor *query, *key, *value; /* [b, heads, s, d] */
    ZpTensor *whole;               /* the fused product, while it is named */
} Heads;

static void
heads_clear(Heads *heads)
{
    zp_tensor_unref(heads->query);
    zp_tensor_unref(heads->key);
    zp_tensor_unref(heads->value);
    zp_tensor_unref(heads->whole);
}

/* GPT-2's block has no groups of queries, whatever its description says. */
static gint64
key_heads(const ZpActivationBlock *block)
{
    return block->family == ZP_BLOCK_GPT2 ? block->heads : block->kv_heads;
}

/* One product cut along its last dimension. */
static void
cut_product(const ZpProgram *program, const ZpActivationBlock *block, Heads *heads)
{
    ZpTrace *trace = program->trace;
    ZpTensor *parts[ZP_TRACE_OUTPUTS] = {NULL};
    gint64 d = block->head_size, q = block->heads * d, kv = key_heads(block) * d;
    if (block->family == ZP_BLOCK_GPT2) {
        zp_split(trace, heads->whole, 2, q, parts);
    } else {
        parts[0] = zp_slice(trace, heads->whole, 2, 0, q);
        parts[1] = zp_slice(trace, heads->whole, 2, q, kv);
        parts[2] = zp_slice(trace, heads->whole, 2, q + kv, kv);
    }
    heads->query = to_heads(program, block, zp_take(parts[0]), block->heads);
    heads->key = to_heads(program, block, zp_take(parts[1]), key_heads(block));
    heads->value = to_heads(program, block, zp_take(parts[2]), key_heads(block));
}

/* [b, s, heads, 3 d], turned and cut in every head. */
static void
cut_heads(const ZpProgram *program, const ZpActivationBlock *block, Heads *heads)
{
    ZpTrace *trace = program->trace;
    ZpTensor *parts[ZP_TRACE_OUTPUTS] = {NULL};
    gint64 sizes[] = {block->batch, block->tokens, block->heads, 3 * block->head_size};
    ZpTensor *split = zp_take(zp_reshape(trace, heads->whole, 4, sizes));
    zp_tensor_unref(heads->whole);
    heads->whole = zp_transpose(trace, split, 1, 2);
    zp_split(trace, heads->whole, 3, block->head_size, parts);
    heads->query = parts[0];
    heads->key = parts[1];
    heads->value = parts[2];
}

/* [b, s, groups, heads of a group + 2, d]: queries are a view, keys and values picked by an index;
 * more than one group's are repeated to all heads (broadcast_to, flatten), queries too. */
static ZpTensor *
pick(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *whole)
{
    ZpTrace *trace = program->trace;
    gint64 b = block->batch, s = block->tokens, d = block->head_size, kv = block->kv_heads;
    ZpTensor *one = zp_take(zp_slice(trace, whole, 2, 0, kv));
    ZpTensor *own = zp_take(zp_contiguous(trace, one));
    gint64 groups = block->heads / kv;
    if (kv == 1)
        return zp_transpose(trace, own, 1, 2);
    ZpTensor *apart = zp_take(zp_reshape(trace, own, 5, (gint64[]){b, s, kv, 1, d}));
    ZpTensor *wide = zp_take(zp_expand(trace, apart, 5, (gint64[]){b, s, kv, groups, d}));
    ZpTensor *flat = zp_take(zp_reshape(trace, wide, 4, (gint64[]){b, s, block->heads, d}));
    return zp_transpose(trace, flat, 1, 2);
}

static void
pick_heads(const ZpProgram *program, const ZpActivationBlock *block, Heads *heads)
{
    ZpTrace *trace = program->trace;
    gint64 all = block->heads + 2 * block->kv_heads;
    gint64 sizes[] = {block->batch, block->tokens, all, block->head_size};
    g_autoptr(ZpTensor) split = zp_reshape(trace, heads->whole, 4, sizes);
    ZpTensor *queries = zp_take(zp_slice(trace, split, 2, 0, block->heads));
    heads->query = zp_transpose(trace, queries, 1, 2);
    heads->key = pick(program, block, split);
    heads->value = pick(program, block, split);
}

static ZpBlockProjection
projection_of(const ZpActivationBlock *block)
{
    if (block->projection != ZP_PROJECTION_OWN)
        return block->projection;
    return block->family == ZP_BLOCK_GPT2 ? ZP_PROJECTION_FUSED : ZP_PROJECTION_APART;
}

static void
make_contiguous(const ZpProgram *program, ZpTensor **heads)
{
    rebind(heads, zp_contiguous(program->trace, *heads));
}

static Heads
project_apart(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gboolean bias)
{
    Heads heads = {0};
    gint64 d = block->head_size;
    if (block->scaled_query) {
        ZpTensor *raw =
            zp_take(zp_program_linear(program, ZP_LINEAR_COLUMN, a, block->heads * d, bias));
        ZpTensor *scaled = zp_take(zp_scale(program->trace, raw));
        heads.query = to_heads(program, block, scaled, block->heads);
    } else {
        heads.query = project(program, block, a, block->heads, bias, block->qk_norm);
    }
    if (block->contiguous_heads)
        make_contiguous(program, &heads.query);
    heads.key = project(program, block, a, key_heads(block), bias, block->qk_norm);
    if (block->contiguous_heads)
        make_contiguous(program, &heads.key);
    heads.value = project(program, block, a, key_heads(block), bias, FALSE);
    if (block->contiguous_heads)
        make_contiguous(program, &heads.value);
    return heads;
}

static Heads
project_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gboolean bias)
{
    ZpBlockProjection projection = projection_of(block);
    if (projection == ZP_PROJECTION_APART)
        return project_apart(program, block, a, bias);
    gint64 width = (block->heads + 2 * key_heads(block)) * block->head_size;
    Heads heads = {.whole = zp_program_linear(program, ZP_LINEAR_COLUMN, a, width, bias)};
    if (projection == ZP_PROJECTION_PER_HEAD)
        cut_heads(program, block, &heads);
    else if (projection == ZP_PROJECTION_COPIED)
        pick_heads(program, block, &heads);
    else
        cut_product(program, block, &heads);
    return heads;
}

/* Rotates the first numbers of each head and puts the others behind them. */
static ZpTensor *
rotate_part(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, ZpTensor **rest)
{
    gint64 d = block->head_size, width = block->rotary > 0 ? block->rotary : d;
    g_autoptr(ZpTensor) part = zp_slice(program->trace, a, 3, 0, width);
    *rest = zp_slice(program->trace, a, 3, width, d - width);
    return rotate(program, block, part, width);
}

static void
turn_joined(const ZpProgram *program, const ZpActivationBlock *block, Heads *heads,
            ZpTensor *names[4])
{
    ZpTrace *trace = program->trace;
    names[0] = rotate_part(program, block, heads->query, &names[1]);
    names[2] = rotate_part(program, block, heads->key, &names[3]);
    rebind(&heads->query, zp_cat_last(trace, names[0], names[1]));
    if (!block->rotary_named)
        g_clear_pointer(&names[0], zp_tensor_unref);
    rebind(&heads->key, zp_cat_last(trace, names[2], names[3]));
    for (int i = 0; i < 4 && !block->rotary_named; i++)
        g_clear_pointer(&names[i], zp_tensor_unref);
}

static void
turn(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor **heads)
{
    ZpTensor *before = *heads;
    if (program->compiled)
        *heads = zp_fused_rotate(program->trace, zp_take(before));
    else
        rebind(heads, rotate(program, block, before, block->head_size));
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
    ZpTensor *names[4] = {NULL};
    Heads heads = project_heads(program, block, a, bias);
    if (rotary && block->rotary_joined) {
        turn_joined(program, block, &heads, names);
    } else if (rotary) {
        turn(program, block, &heads.query);
        turn(program, block, &heads.key);
    }
    g_autoptr(ZpTensor) output = attend(program, block, heads.query, heads.key, heads.value);
    rebind(&output, zp_program_linear(program, ZP_LINEAR_ROW, output, block->hidden, bias));
    gboolean inside = block->family == ZP_BLOCK_PARALLEL ||
                      (block->family == ZP_BLOCK_GPT2 && block->projection == ZP_PROJECTION_OWN);
    rebind(&output,
           zp_program_dropout(program, block->dropout && inside, block->cpu_kernels, output));
    for (int i = 0; i < 4; i++)
        zp_tensor_unref(names[i]);
    heads_clear(&heads);
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
t5_fused(const ZpProgram *program, const ZpActivationBlock *block, const Heads *heads,
         gboolean crossed)
{
    g_autoptr(ZpTensor) query = zp_program_cast(program, heads->query);
    g_autoptr(ZpTensor) key = zp_program_cast(program, heads->key);
    g_autoptr(ZpTensor) value = zp_program_cast(program, heads->value);
    g_autoptr(ZpTensor) mask = t5_mask(program, block, crossed);
    g_autoptr(ZpTensor) output =
        zp_attention_kernel(program->trace, ZP_KERNEL_EFFICIENT, query, key, value, mask);
    g_autoptr(ZpTensor) joined = from_heads(program, block, output);
    g_clear_pointer(&output, zp_tensor_unref);
    return zp_program_linear(program, ZP_LINEAR_ROW, joined, block->hidden, FALSE);
}

static ZpTensor *
t5_written_out(const ZpProgram *program, const ZpActivationBlock *block, const Heads *heads)
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
    g_autoptr(ZpTensor) joined = from_heads(program, block, output);
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
    Heads heads = {.query = project(program, block, a, block->heads, FALSE, FALSE)};
    heads.key = project(program, block, source, block->heads, FALSE, FALSE);
    heads.value = project(program, block, source, block->heads, FALSE, FALSE);
    if (block->t5_interface && block->family == ZP_BLOCK_T5_DECODER &&
        block->policy == ZP_KEEP_ALL) { /* cache.update(): cat */
        make_contiguous(program, &heads.key);
        make_contiguous(program, &heads.value);
    }
    gboolean fused = block->t5_interface && block->attention != ZP_BLOCK_EAGER;
    ZpTensor *output =
        fused ? t5_fused(program, block, &heads, crossed) : t5_written_out(program, block, &heads);
    heads_clear(&heads);
    return output;
}
