#include "models/activation/heads_internal.h"

/* [b, s, heads * d] to [b, heads, s, d]. */
static ZpTensor *
to_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 heads)
{
    gint64 sizes[] = {block->batch, block->tokens, heads, block->head_size};
    ZpTensor *split = zp_take(zp_reshape(program->trace, a, 4, sizes));
    return zp_transpose(program->trace, split, 1, 2);
}

static void
rebind(ZpTensor **name, ZpTensor *value)
{
    zp_tensor_unref(*name);
    *name = value;
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

ZpTensor *
zp_heads_join(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    gint64 sizes[] = {block->batch, block->tokens, block->heads * block->head_size};
    ZpTensor *turned = zp_take(zp_transpose(program->trace, a, 1, 2));
    return zp_reshape(program->trace, turned, 3, sizes);
}

ZpTensor *
zp_heads_project_one(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a,
                     gint64 heads, gboolean bias, gboolean normed)
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

void
zp_heads_clear(ZpHeads *heads)
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
cut_product(const ZpProgram *program, const ZpActivationBlock *block, ZpHeads *heads)
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
cut_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpHeads *heads)
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
pick_heads(const ZpProgram *program, const ZpActivationBlock *block, ZpHeads *heads)
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

void
zp_heads_make_contiguous(const ZpProgram *program, ZpTensor **heads)
{
    rebind(heads, zp_contiguous(program->trace, *heads));
}

static ZpHeads
project_apart(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gboolean bias)
{
    ZpHeads heads = {0};
    gint64 d = block->head_size;
    if (block->scaled_query) {
        ZpTensor *raw =
            zp_take(zp_program_linear(program, ZP_LINEAR_COLUMN, a, block->heads * d, bias));
        ZpTensor *scaled = zp_take(zp_scale(program->trace, raw));
        heads.query = to_heads(program, block, scaled, block->heads);
    } else {
        heads.query = zp_heads_project_one(program, block, a, block->heads, bias, block->qk_norm);
    }
    if (block->contiguous_heads)
        zp_heads_make_contiguous(program, &heads.query);
    heads.key = zp_heads_project_one(program, block, a, key_heads(block), bias, block->qk_norm);
    if (block->contiguous_heads)
        zp_heads_make_contiguous(program, &heads.key);
    heads.value = zp_heads_project_one(program, block, a, key_heads(block), bias, FALSE);
    if (block->contiguous_heads)
        zp_heads_make_contiguous(program, &heads.value);
    return heads;
}

ZpHeads
zp_heads_project(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a,
                 gboolean bias)
{
    ZpBlockProjection projection = projection_of(block);
    if (projection == ZP_PROJECTION_APART)
        return project_apart(program, block, a, bias);
    gint64 width = (block->heads + 2 * key_heads(block)) * block->head_size;
    ZpHeads heads = {.whole = zp_program_linear(program, ZP_LINEAR_COLUMN, a, width, bias)};
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
turn_joined(const ZpProgram *program, const ZpActivationBlock *block, ZpHeads *heads,
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

void
zp_heads_rotate(const ZpProgram *program, const ZpActivationBlock *block, ZpHeads *heads,
                ZpTensor *names[ZP_HEADS_NAMES])
{
    if (block->rotary_joined) {
        turn_joined(program, block, heads, names);
        return;
    }
    turn(program, block, &heads->query);
    turn(program, block, &heads->key);
}
