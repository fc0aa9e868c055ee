/* A mixture of gated experts with balanced routing: grouped (sorted rows, one batched product for
 * all experts), expert by expert, or as transformers 5 does (integrations/moe.py,
 * grouped_mm_experts_forward). */
#include "models/activation/program_internal.h"

enum { INDEX_BYTES = 8, COUNT_BYTES = 4 };

typedef struct {
    const ZpProgram *program;
    const ZpActivationBlock *block;
    ZpTensor *rows;          /* [T, h] */
    ZpTensor *probabilities; /* [T, E], fp32; named to the end */
    ZpTensor *weights;       /* [T, k], of the input's dtype */
    ZpTensor *chosen;        /* [T, k] */
    ZpTensor *logits;        /* [T, E]; named to the end by transformers 5 */
} Mixture;

static ZpTensor *
integers(const ZpProgram *program, const char *name, int rank, const gint64 *sizes)
{
    ZpTraceShape shape = zp_shape(rank, sizes);
    return zp_plain(program->trace, name, &shape, INDEX_BYTES);
}

/* DeepseekV2TopkRouter casts its input and its weight. */
static ZpTensor *
router_logits(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *rows)
{
    ZpTrace *trace = program->trace;
    if (!block->router_fp32 || program->residual_bytes == 4)
        return zp_program_linear(program, ZP_LINEAR_WHOLE, rows, block->expert_count, FALSE);
    gint64 sizes[] = {block->expert_count, block->hidden};
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 2, sizes);
    ZpTensor *wide = zp_take(zp_to(trace, rows, 4));
    ZpTensor *matrix = zp_take(zp_to(trace, weight, 4));
    return zp_linear(trace, wide, matrix, NULL);
}

static void
route(Mixture *mixture, ZpTensor *a)
{
    const ZpProgram *program = mixture->program;
    const ZpActivationBlock *block = mixture->block;
    ZpTrace *trace = program->trace;
    gint64 sizes[] = {block->batch * block->tokens, block->hidden};
    gboolean rows_apart = block->experts == ZP_EXPERTS_GROUPED_MM;
    mixture->rows = zp_reshape(trace, a, 2, sizes);
    g_autoptr(ZpTensor) logits = router_logits(program, block, mixture->rows);
    if (rows_apart)
        mixture->logits = zp_tensor_again(logits);
    g_autoptr(ZpTensor) wide = zp_to(trace, logits, 4);
    g_clear_pointer(&logits, zp_tensor_unref);
    mixture->probabilities = zp_softmax(trace, wide);
    g_clear_pointer(&wide, zp_tensor_unref);
    g_autoptr(ZpTensor) values =
        zp_topk(trace, mixture->probabilities, block->chosen_experts, &mixture->chosen);
    ZpTensor *share = zp_take(zp_quotient(trace, values, zp_take(zp_sum_last(trace, values))));
    mixture->weights =
        zp_to(trace, share, rows_apart && block->shares_fp32 ? 4 : program->residual_bytes);
    if (rows_apart) /* a function's own */
        g_clear_pointer(&mixture->probabilities, zp_tensor_unref);
}

static void
mixture_clear(Mixture *mixture)
{
    zp_tensor_unref(mixture->rows);
    zp_tensor_unref(mixture->probabilities);
    zp_tensor_unref(mixture->weights);
    zp_tensor_unref(mixture->chosen);
    zp_tensor_unref(mixture->logits);
}

static ZpTensor *
zeros_for_output(const Mixture *mixture)
{
    gint64 sizes[] = {mixture->block->batch * mixture->block->tokens, mixture->block->hidden};
    ZpTraceShape shape = zp_shape(2, sizes);
    return zp_plain(mixture->program->trace, "zeros", &shape, mixture->program->residual_bytes);
}

/* torch.bmm with a new weight [E, out, in], turned; autocast does not cache the copy of a view. */
static ZpTensor *
expert_product(const ZpProgram *program, ZpTensor *a, gint64 in, gint64 out)
{
    gint64 experts = a ? a->shape.size[0] : 0;
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 3, (gint64[]){experts, out, in});
    g_autoptr(ZpTensor) turned = zp_transpose(program->trace, weight, 1, 2);
    g_autoptr(ZpTensor) input = zp_program_cast(program, a);
    g_autoptr(ZpTensor) matrix = zp_program_cast(program, turned);
    return zp_bmm(program->trace, input, matrix);
}

static ZpTensor *
grouped(const Mixture *mixture)
{
    const ZpProgram *program = mixture->program;
    const ZpActivationBlock *block = mixture->block;
    ZpTrace *trace = program->trace;
    gint64 h = block->hidden, f = block->ffn, experts = block->expert_count;
    gint64 count = block->batch * block->tokens * block->chosen_experts;
    g_autoptr(ZpTensor) order = NULL;
    {
        g_autoptr(ZpTensor) sorted G_GNUC_UNUSED = integers(program, "sort", 1, &count);
        (void)sorted; /* alive beside the order for a moment */
        order = integers(program, "sort", 1, &count);
    }
    g_autoptr(ZpTensor) token = integers(program, "floor_divide", 1, &count);
    g_autoptr(ZpTensor) gathered = zp_index(trace, mixture->rows, token, NULL);
    gint64 batched[] = {experts, count / experts, h};
    g_autoptr(ZpTensor) groups = zp_reshape(trace, gathered, 3, batched);
    g_clear_pointer(&gathered, zp_tensor_unref);
    g_autoptr(ZpTensor) gate = expert_product(program, groups, h, f);
    ZpTensor *opened = zp_take(zp_program_activation(program, block->activation, gate));
    g_clear_pointer(&gate, zp_tensor_unref);
    ZpTensor *up = zp_take(expert_product(program, groups, h, f));
    g_autoptr(ZpTensor) inner = zp_mul(trace, opened, up);
    ZpTensor *down = zp_take(expert_product(program, inner, f, h));
    g_clear_pointer(&inner, zp_tensor_unref);
    ZpTensor *rows = zp_take(zp_reshape(trace, down, 2, (gint64[]){count, h}));
    ZpTensor *flat = zp_take(zp_reshape(trace, mixture->weights, 1, &count));
    ZpTensor *share = zp_take(zp_index(trace, flat, order, NULL));
    ZpTensor *column = zp_take(zp_reshape(trace, share, 2, (gint64[]){count, 1}));
    g_autoptr(ZpTensor) weighted = zp_mul(trace, rows, column);
    ZpTensor *output = zp_take(zeros_for_output(mixture));
    return zp_index_add_in_place(trace, output, token, weighted);
}

/* Adds one expert's rows to *output. */
static void
run_expert(const Mixture *mixture, gint64 count, ZpTensor **output)
{
    const ZpProgram *program = mixture->program;
    const ZpActivationBlock *block = mixture->block;
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) token = integers(program, "zeros", 1, &count);
    g_autoptr(ZpTensor) slot = integers(program, "zeros", 1, &count);
    g_autoptr(ZpTensor) gathered = zp_index(trace, mixture->rows, token, NULL);
    g_autoptr(ZpTensor) gate =
        zp_program_linear(program, ZP_LINEAR_WHOLE, gathered, block->ffn, FALSE);
    ZpTensor *opened = zp_take(zp_program_activation(program, block->activation, gate));
    g_clear_pointer(&gate, zp_tensor_unref);
    ZpTensor *up =
        zp_take(zp_program_linear(program, ZP_LINEAR_WHOLE, gathered, block->ffn, FALSE));
    g_autoptr(ZpTensor) inner = zp_mul(trace, opened, up);
    ZpTensor *down =
        zp_take(zp_program_linear(program, ZP_LINEAR_WHOLE, inner, block->hidden, FALSE));
    g_clear_pointer(&inner, zp_tensor_unref);
    ZpTensor *share = zp_take(slot ? zp_index(trace, mixture->weights, token, slot) : NULL);
    ZpTensor *column = zp_take(zp_reshape(trace, share, 2, (gint64[]){count, 1}));
    g_autoptr(ZpTensor) weighted = zp_mul(trace, down, column);
    *output = zp_index_add_in_place(trace, zp_take(*output), token, weighted);
}

static ZpTensor *
one_by_one(const Mixture *mixture)
{
    const ZpActivationBlock *block = mixture->block;
    gint64 tokens = block->batch * block->tokens, experts = block->expert_count;
    gint64 count = tokens * block->chosen_experts;
    gint64 sizes[] = {tokens, block->chosen_experts, experts};
    ZpTensor *output = zeros_for_output(mixture);
    g_autoptr(ZpTensor) mask = integers(mixture->program, "one_hot", 3, sizes);
    (void)mask; /* alive while the experts run */
    for (gint64 e = 0; e < experts; e++)
        run_expert(mixture, count / experts + (e < count % experts), &output);
    return output;
}

/* F.grouped_mm is not known to autocast: rows take the dtype of the weight. */
static ZpTensor *
grouped_linear(const ZpProgram *program, ZpTensor *rows, gint64 experts, gint64 out)
{
    gint64 in = rows && !program->trace->stopped ? rows->shape.size[1] : 1;
    gint64 sizes[] = {experts, out, in};
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 3, sizes);
    g_autoptr(ZpTensor) turned = zp_transpose(program->trace, weight, 1, 2);
    g_autoptr(ZpTensor) input = zp_to(program->trace, rows, program->residual_bytes);
    return zp_grouped_mm(program->trace, input, turned);
}

static ZpTensor *
counts(const ZpProgram *program, gint64 count)
{
    ZpTraceShape shape = zp_shape(1, &count);
    return zp_plain(program->trace, "histc", &shape, COUNT_BYTES);
}

/* What the function names lives to its end: both results of sort, the sorted rows and shares, the
 * counts. */
static ZpTensor *
sorted_rows(const Mixture *mixture)
{
    const ZpProgram *program = mixture->program;
    const ZpActivationBlock *block = mixture->block;
    ZpTrace *trace = program->trace;
    ZpTensor *halves[ZP_TRACE_OUTPUTS] = {NULL};
    gint64 h = block->hidden, f = block->ffn, k = block->chosen_experts;
    gint64 tokens = block->batch * block->tokens, count = tokens * k;
    g_autoptr(ZpTensor) flat = zp_reshape(trace, mixture->weights, 1, &count);
    g_autoptr(ZpTensor) sorted G_GNUC_UNUSED = integers(program, "sort", 1, &count);
    g_autoptr(ZpTensor) order = integers(program, "sort", 1, &count);
    g_autoptr(ZpTensor) selected =
        zp_index(trace, mixture->rows, zp_take(integers(program, "floor_divide", 1, &count)), NULL);
    g_autoptr(ZpTensor) shares = zp_index(trace, flat, order, NULL);
    g_autoptr(ZpTensor) keys G_GNUC_UNUSED = counts(program, count);
    g_autoptr(ZpTensor) per_expert G_GNUC_UNUSED = counts(program, block->expert_count);
    g_autoptr(ZpTensor) offsets G_GNUC_UNUSED = counts(program, block->expert_count);
    g_autoptr(ZpTensor) rows = grouped_linear(program, selected, block->expert_count, 2 * f);
    {
        zp_split(trace, rows, 1, f, halves);
        g_autoptr(ZpTensor) gate = halves[0];
        g_autoptr(ZpTensor) up = halves[1];
        ZpTensor *opened = zp_take(zp_program_activation(program, block->activation, gate));
        ZpTensor *inner = zp_mul(trace, opened, up);
        zp_tensor_unref(rows);
        rows = inner;
    }
    ZpTensor *down = grouped_linear(program, rows, block->expert_count, h);
    zp_tensor_unref(rows);
    rows = down;
    ZpTensor *column = zp_take(zp_reshape(trace, shares, 2, (gint64[]){count, 1}));
    g_autoptr(ZpTensor) weighted = zp_mul(trace, rows, column);
    g_autoptr(ZpTensor) back = integers(program, "empty_like", 1, &count);
    {
        g_autoptr(ZpTensor) range = integers(program, "arange", 1, &count);
        (void)range; /* alive while it is put */
    }
    ZpTensor *restored = zp_index(trace, weighted, back, NULL);
    zp_tensor_unref(weighted);
    weighted = restored;
    ZpTensor *apart = zp_take(zp_reshape(trace, weighted, 3, (gint64[]){tokens, k, h}));
    g_autoptr(ZpTensor) sum = zp_sum_middle(trace, apart);
    return zp_to(trace, sum, mixture->rows ? mixture->rows->element_bytes : 0);
}

static ZpTensor *
run_experts(const Mixture *mixture)
{
    switch (mixture->block->experts) {
    case ZP_EXPERTS_LOOP:
        return one_by_one(mixture);
    case ZP_EXPERTS_GROUPED_MM:
        return sorted_rows(mixture);
    case ZP_EXPERTS_GROUPED:
    default:
        return grouped(mixture);
    }
}

ZpTensor *
zp_program_experts(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    Mixture mixture = {.program = program, .block = block};
    route(&mixture, a);
    ZpTensor *rows = run_experts(&mixture);
    mixture_clear(&mixture);
    gint64 sizes[] = {block->batch, block->tokens, block->hidden};
    return zp_reshape(program->trace, zp_take(rows), 3, sizes);
}
