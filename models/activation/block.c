/* The programs of the block families; scopes end where the modules' functions would return. */
#include "models/activation/program_internal.h"

/* No backward reads its result, unless a norm follows: then a compiler drops what a policy would
 * keep of it. */
static ZpTensor *
last_product(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    program->trace->unread = block->norm != ZP_NORM_PLUS_ONE;
    ZpTensor *result = zp_program_linear(program, ZP_LINEAR_ROW, a, block->hidden, FALSE);
    program->trace->unread = FALSE;
    return result;
}

static ZpTensor *
add_branch(const ZpProgram *program, ZpTensor *stream, ZpTensor *branch)
{
    return program->compiled ? zp_fused_sum(program->trace, stream, branch)
                             : zp_add(program->trace, stream, branch);
}

/* Phi3MLP: both halves are views of one product. */
static ZpTensor *
fused_gate_mlp(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    ZpTensor *halves[ZP_TRACE_OUTPUTS] = {NULL};
    g_autoptr(ZpTensor) both = zp_program_linear(program, ZP_LINEAR_COLUMN, a, 2 * width, FALSE);
    zp_split(trace, both, 2, width, halves);
    g_clear_pointer(&both, zp_tensor_unref);
    g_autoptr(ZpTensor) gate = halves[0];
    g_autoptr(ZpTensor) up = halves[1];
    ZpTensor *opened = zp_take(zp_program_activation(program, block->activation, gate));
    ZpTensor *inner = zp_mul(trace, up, opened);
    zp_tensor_unref(up);
    up = inner;
    return zp_program_linear(program, ZP_LINEAR_ROW, up, block->hidden, FALSE);
}

static ZpTensor *
gated_mlp(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    if (block->fused_gate)
        return fused_gate_mlp(program, block, a, width);
    g_autoptr(ZpTensor) gate = zp_program_linear(program, ZP_LINEAR_COLUMN, a, width, FALSE);
    if (program->compiled) {
        ZpTensor *up = zp_take(zp_program_linear(program, ZP_LINEAR_COLUMN, a, width, FALSE));
        ZpTensor *first = zp_take(g_steal_pointer(&gate));
        g_autoptr(ZpTensor) inner = zp_fused_gate(trace, first, up);
        return last_product(program, block, inner);
    }
    ZpTensor *opened = zp_take(zp_program_activation(program, block->activation, gate));
    g_clear_pointer(&gate, zp_tensor_unref);
    ZpTensor *up = zp_take(zp_program_linear(program, ZP_LINEAR_COLUMN, a, width, FALSE));
    g_autoptr(ZpTensor) inner = zp_mul(trace, opened, up);
    return zp_program_linear(program, ZP_LINEAR_ROW, inner, block->hidden, FALSE);
}

static ZpTensor *
plain_mlp(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    gboolean bias = block->family != ZP_BLOCK_PARALLEL || !block->bare_products;
    g_autoptr(ZpTensor) wide = zp_program_linear(program, ZP_LINEAR_COLUMN, a, block->ffn, bias);
    g_autoptr(ZpTensor) inner = zp_program_activation(program, block->activation, wide);
    g_clear_pointer(&wide, zp_tensor_unref);
    return zp_program_linear(program, ZP_LINEAR_ROW, inner, block->hidden, bias);
}

static ZpTensor *
feed(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    if (block->family != ZP_BLOCK_MOE)
        return gated_mlp(program, block, a, block->ffn);
    g_autoptr(ZpTensor) routed = zp_program_experts(program, block, a);
    if (block->shared == 0)
        return g_steal_pointer(&routed);
    g_autoptr(ZpTensor) shared = gated_mlp(program, block, a, block->shared);
    if (block->gated_shared) {
        ZpTensor *gate = zp_take(zp_program_linear(program, ZP_LINEAR_WHOLE, a, 1, FALSE));
        ZpTensor *open = zp_take(zp_tanh(program->trace, gate)); /* keeps what a sigmoid does */
        ZpTensor *opened = zp_mul(program->trace, open, shared);
        zp_tensor_unref(shared);
        shared = opened;
    }
    return zp_add(program->trace, routed, shared);
}

static ZpTensor *
llama(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *input)
{
    ZpTrace *trace = program->trace;
    gboolean post = block->norm == ZP_NORM_PLUS_ONE;
    g_autoptr(ZpTensor) residual = NULL, branch = NULL;
    {
        g_autoptr(ZpTensor) normed = zp_program_norm(program, block->norm, input, block->hidden);
        branch = zp_program_attention(program, block, normed);
    }
    if (post) {
        g_autoptr(ZpTensor) raw = g_steal_pointer(&branch);
        branch = zp_program_norm(program, block->norm, raw, block->hidden);
    }
    residual = add_branch(program, input, branch);
    g_clear_pointer(&branch, zp_tensor_unref);
    trace->part++;
    {
        g_autoptr(ZpTensor) normed = zp_program_norm(program, block->norm, residual, block->hidden);
        branch = feed(program, block, normed);
    }
    if (post) {
        g_autoptr(ZpTensor) raw = g_steal_pointer(&branch);
        branch = zp_program_norm(program, block->norm, raw, block->hidden);
    }
    return add_branch(program, residual, branch);
}

static ZpTensor *
dropped(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    return zp_program_dropout(program, block->dropout, block->cpu_kernels, a);
}

static ZpTensor *
gpt2(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *input)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) residual = NULL, branch = NULL;
    {
        g_autoptr(ZpTensor) normed =
            zp_program_layer_norm(program, block->cpu_kernels, input, block->hidden);
        branch = zp_program_attention(program, block, normed);
    }
    if (block->projection != ZP_PROJECTION_OWN) { /* else inside of the attention's module */
        ZpTensor *kept = dropped(program, block, branch);
        zp_tensor_unref(branch);
        branch = kept;
    }
    residual = zp_add(trace, input, branch);
    g_clear_pointer(&branch, zp_tensor_unref);
    trace->part++;
    {
        g_autoptr(ZpTensor) normed =
            zp_program_layer_norm(program, block->cpu_kernels, residual, block->hidden);
        g_autoptr(ZpTensor) mlp = plain_mlp(program, block, normed);
        branch = dropped(program, block, mlp);
    }
    return zp_add(trace, residual, branch);
}

static ZpTensor *
parallel(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *input)
{
    g_autoptr(ZpTensor) normed =
        zp_program_layer_norm(program, block->cpu_kernels, input, block->hidden);
    g_autoptr(ZpTensor) attention = zp_program_attention(program, block, normed);
    if (block->two_norms)
        g_clear_pointer(&normed, zp_tensor_unref);
    program->trace->part++;
    if (block->two_norms)
        normed = zp_program_layer_norm(program, block->cpu_kernels, input, block->hidden);
    g_autoptr(ZpTensor) raw = plain_mlp(program, block, normed);
    if (block->two_norms)
        g_clear_pointer(&normed, zp_tensor_unref);
    g_autoptr(ZpTensor) mlp = dropped(program, block, raw);
    g_clear_pointer(&raw, zp_tensor_unref);
    ZpTensor *branches = zp_take(zp_add(program->trace, attention, mlp));
    return zp_add(program->trace, branches, input);
}

/* A LayerNorm over the sum, made in the norm's own function. */
static ZpTensor *
join(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *branch, ZpTensor *a)
{
    g_autoptr(ZpTensor) sum = zp_add(program->trace, branch, a);
    return zp_program_layer_norm(program, block->cpu_kernels, sum, block->hidden);
}

static ZpTensor *
bert(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *input)
{
    g_autoptr(ZpTensor) attention = zp_program_attention(program, block, input);
    g_autoptr(ZpTensor) branch = dropped(program, block, attention);
    g_clear_pointer(&attention, zp_tensor_unref);
    g_autoptr(ZpTensor) middle = join(program, block, branch, input);
    g_clear_pointer(&branch, zp_tensor_unref);
    program->trace->part++;
    g_autoptr(ZpTensor) mlp = plain_mlp(program, block, middle);
    branch = dropped(program, block, mlp);
    g_clear_pointer(&mlp, zp_tensor_unref);
    return join(program, block, branch, middle);
}

static ZpTensor *
t5_mlp(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) wide = zp_program_linear(program, ZP_LINEAR_COLUMN, a, block->ffn, FALSE);
    g_autoptr(ZpTensor) inner = zp_program_activation(program, block->activation, wide);
    g_clear_pointer(&wide, zp_tensor_unref);
    if (block->activation != ZP_BLOCK_RELU) {
        g_autoptr(ZpTensor) opened = g_steal_pointer(&inner);
        ZpTensor *up = zp_take(zp_program_linear(program, ZP_LINEAR_COLUMN, a, block->ffn, FALSE));
        inner = zp_mul(trace, opened, up);
    }
    ZpTensor *kept = dropped(program, block, inner);
    zp_tensor_unref(inner);
    inner = kept;
    return zp_program_linear(program, ZP_LINEAR_ROW, inner, block->hidden, FALSE);
}

typedef ZpTensor *(*Branch)(const ZpProgram *, const ZpActivationBlock *, ZpTensor *);

static ZpTensor *
t5_self(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    return zp_program_t5_attention(program, block, a, NULL);
}

static ZpTensor *
t5_cross(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    gint64 sizes[] = {block->batch, block->tokens / program->sequence_ways, block->hidden};
    g_autoptr(ZpTensor) encoder = zp_program_constant(program, program->residual_bytes, 3, sizes);
    return zp_program_t5_attention(program, block, a, encoder);
}

static ZpTensor *
t5_sublayer(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *input,
            Branch branch)
{
    g_autoptr(ZpTensor) result = NULL;
    {
        g_autoptr(ZpTensor) normed = zp_program_t5_norm(program, input, block->hidden);
        result = branch(program, block, normed);
    }
    g_autoptr(ZpTensor) kept = dropped(program, block, result);
    return zp_add(program->trace, input, kept);
}

static ZpTensor *
t5(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *input)
{
    g_autoptr(ZpTensor) stream = t5_sublayer(program, block, input, t5_self);
    program->trace->part++;
    if (block->family == ZP_BLOCK_T5_DECODER) {
        ZpTensor *crossed = t5_sublayer(program, block, stream, t5_cross);
        zp_tensor_unref(stream);
        stream = crossed;
        program->trace->part++;
    }
    return t5_sublayer(program, block, stream, t5_mlp);
}

int
zp_program_parts(ZpBlockFamily family)
{
    return family == ZP_BLOCK_T5_DECODER ? 3 : 2;
}

/* Parts are numbered in the order in which they run. */
ZpTensor *
zp_program_block(ZpTrace *trace, ZpTensor *input, gconstpointer data)
{
    const ZpActivationBlock *block = data;
    ZpProgram program = zp_program(trace, block->regime);
    program.compiled = block->compiled;
    zp_program_freeze(&program, block);
    program.sequence_ways = block->sequence_parallel ? MAX(block->tensor_parallel, 1) : 1;
    trace->part = 0;
    trace->parameters = trace->weights = 0;
    switch (block->family) {
    case ZP_BLOCK_GPT2:
        return gpt2(&program, block, input);
    case ZP_BLOCK_PARALLEL:
        return parallel(&program, block, input);
    case ZP_BLOCK_BERT:
        return bert(&program, block, input);
    case ZP_BLOCK_T5_ENCODER:
    case ZP_BLOCK_T5_DECODER:
        return t5(&program, block, input);
    case ZP_BLOCK_LLAMA:
    case ZP_BLOCK_MOE:
    default:
        return llama(&program, block, input);
    }
}

ZpTensor *
zp_program_last_norm(ZpTrace *trace, ZpTensor *input, gconstpointer data)
{
    const ZpActivationBlock *block = data;
    ZpProgram program = zp_program(trace, block->regime);
    zp_program_freeze(&program, block);
    switch (block->family) {
    case ZP_BLOCK_GPT2:
    case ZP_BLOCK_PARALLEL:
    case ZP_BLOCK_BERT:
        return zp_program_layer_norm(&program, block->cpu_kernels, input, block->hidden);
    case ZP_BLOCK_T5_ENCODER:
    case ZP_BLOCK_T5_DECODER:
        return zp_program_t5_norm(&program, input, block->hidden);
    case ZP_BLOCK_LLAMA:
    case ZP_BLOCK_MOE:
    default:
        return zp_program_norm(&program, block->norm, input, block->hidden);
    }
}
