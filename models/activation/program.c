#include "models/activation/program_internal.h"

ZpProgram
zp_program(ZpTrace *trace, ZpBlockRegime regime)
{
    return (ZpProgram){
        .trace = trace,
        .compute_bytes = regime == ZP_REGIME_FP32 ? 4 : 2,
        .residual_bytes = regime == ZP_REGIME_BF16 || regime == ZP_REGIME_AMP_16 ? 2 : 4,
        .autocast = regime == ZP_REGIME_AMP || regime == ZP_REGIME_AMP_16,
        .sequence_ways = 1,
    };
}

void
zp_program_freeze(ZpProgram *program, const ZpActivationBlock *block)
{
    program->frozen = block->adapter_rank > 0;
    program->adapter_rank = block->adapter_rank;
    program->adapted = block->adapted;
    program->adapter_dropout = block->adapter_dropout;
}

ZpTensor *
zp_program_constant(const ZpProgram *program, int element_bytes, int rank, const gint64 *sizes)
{
    ZpTraceShape shape = zp_shape(rank, sizes);
    return zp_tensor_new(program->trace, ZP_TRACE_CONSTANT, &shape, element_bytes);
}

ZpTensor *
zp_program_parameter(const ZpProgram *program, int rank, const gint64 *sizes)
{
    ZpTensor *tensor = zp_program_constant(program, program->residual_bytes, rank, sizes);
    program->trace->weights++;
    if (program->frozen)
        return tensor;
    zp_trace_make_leaf(tensor, TRUE);
    if (program->trace->parameter_shapes && !program->trace->in_backward)
        g_array_append_val(program->trace->parameter_shapes, tensor->shape);
    return tensor;
}

ZpTensor *
zp_program_cast(const ZpProgram *program, ZpTensor *a)
{
    return zp_to(program->trace, a, program->autocast ? 2 : a ? a->element_bytes : 0);
}

ZpTensor *
zp_program_cast32(const ZpProgram *program, ZpTensor *a)
{
    return zp_to(program->trace, a, program->autocast ? 4 : a ? a->element_bytes : 0);
}

/* Autocast caches the copies of weights until it is left: at the end of the forward, or of
 * a recomputation. */
ZpTensor *
zp_program_cast_weight(const ZpProgram *program, ZpTensor *weight)
{
    ZpTensor *copy = zp_program_cast(program, weight);
    if (copy && copy->storage != weight->storage && weight->needs_grad)
        g_ptr_array_add(program->trace->copies, zp_tensor_ref(copy));
    return copy;
}

static ZpTensor *
adapter_product(const ZpProgram *program, ZpTensor *a, gint64 in, gint64 out)
{
    ZpTensor *weight =
        zp_program_constant(program, program->residual_bytes, 2, (gint64[]){out, in});
    zp_trace_make_leaf(weight, TRUE);
    g_autoptr(ZpTensor) input = zp_program_cast(program, a);
    g_autoptr(ZpTensor) matrix = zp_program_cast_weight(program, weight);
    ZpTensor *result = zp_linear(program->trace, input, matrix, NULL);
    zp_tensor_unref(weight);
    return result;
}

/* peft/tuners/lora/layer.py, Linear.forward: result + lora_B(lora_A(x)) * scaling. */
static ZpTensor *
adapt(const ZpProgram *program, ZpTensor *a, ZpTensor *result, gint64 in, gint64 out)
{
    ZpTrace *trace = program->trace;
    gint64 rank = program->adapter_rank;
    g_autoptr(ZpTensor) cast = zp_to(trace, a, program->residual_bytes);
    g_autoptr(ZpTensor) input = zp_program_dropout(program, program->adapter_dropout, FALSE, cast);
    g_clear_pointer(&cast, zp_tensor_unref);
    g_autoptr(ZpTensor) low = adapter_product(program, input, in, rank);
    g_clear_pointer(&input, zp_tensor_unref);
    ZpTensor *high = zp_take(adapter_product(program, low, rank, out));
    g_clear_pointer(&low, zp_tensor_unref);
    ZpTensor *scaled = zp_take(zp_scale(trace, high));
    return zp_add(trace, zp_take(result), scaled);
}

ZpTensor *
zp_program_linear(const ZpProgram *program, ZpLinearCut cut, ZpTensor *a, gint64 out, gboolean bias)
{
    if (!a || program->trace->stopped)
        return zp_linear(program->trace, a, NULL, NULL);
    gint64 in = a->shape.size[a->shape.rank - 1];
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 2, (gint64[]){out, in});
    guint place = (guint)program->trace->weights - 1;
    gboolean adapted = program->adapter_rank > 0 && place < 64 && (program->adapted >> place & 1);
    g_autoptr(ZpTensor) offset = bias ? zp_program_parameter(program, 1, &out) : NULL;
    g_autoptr(ZpTensor) input = zp_program_cast(program, a);
    g_autoptr(ZpTensor) matrix = zp_program_cast_weight(program, weight);
    g_autoptr(ZpTensor) shift = bias ? zp_program_cast_weight(program, offset) : NULL;
    if (cut == ZP_LINEAR_COLUMN && program->sequence_ways > 1)
        return zp_gathered_linear(program->trace, input, matrix, shift, program->sequence_ways);
    ZpTensor *result = zp_linear(program->trace, input, matrix, shift);
    if (adapted && !program->trace->stopped) {
        g_clear_pointer(&input, zp_tensor_unref);
        result = adapt(program, a, result, in, out);
    }
    if (cut == ZP_LINEAR_ROW && program->sequence_ways > 1)
        return zp_reduce_scatter(program->trace, zp_take(result), program->sequence_ways);
    return result;
}

static ZpTensor *
inverse_deviation(const ZpProgram *program, ZpTensor *a)
{
    ZpTrace *trace = program->trace;
    ZpTensor *square = zp_take(zp_pow(trace, a));
    ZpTensor *variance = zp_take(zp_mean_last(trace, square));
    ZpTensor *offset = zp_take(zp_offset(trace, variance));
    return zp_rsqrt(trace, offset);
}

/* LlamaRMSNorm: the variance stays named until the end. */
static ZpTensor *
eager_norm(const ZpProgram *program, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 1, &width);
    g_autoptr(ZpTensor) wide = zp_to(trace, a, 4);
    g_autoptr(ZpTensor) variance = zp_mean_last(trace, zp_take(zp_pow(trace, wide)));
    ZpTensor *inverse = zp_take(zp_rsqrt(trace, zp_take(zp_offset(trace, variance))));
    g_autoptr(ZpTensor) normed = zp_mul(trace, wide, inverse);
    g_clear_pointer(&wide, zp_tensor_unref);
    ZpTensor *narrow = zp_take(zp_to(trace, normed, a ? a->element_bytes : 0));
    return zp_mul(trace, weight, narrow);
}

ZpTensor *
zp_program_t5_norm(const ZpProgram *program, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 1, &width);
    ZpTensor *wide = zp_take(zp_to(trace, a, 4));
    g_autoptr(ZpTensor) variance = zp_mean_last(trace, zp_take(zp_pow(trace, wide)));
    ZpTensor *inverse = zp_take(zp_rsqrt(trace, zp_take(zp_offset(trace, variance))));
    g_autoptr(ZpTensor) normed = zp_mul(trace, a, inverse);
    if (program->residual_bytes == 2) {
        ZpTensor *narrow = zp_to(trace, normed, 2);
        zp_tensor_unref(normed);
        normed = narrow;
    }
    return zp_mul(trace, weight, normed);
}

/* Gemma2RMSNorm: x.float() normed, times 1 + w, cast back. */
static ZpTensor *
plus_one_norm(const ZpProgram *program, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 1, &width);
    g_autoptr(ZpTensor) wide = zp_to(trace, a, 4);
    g_autoptr(ZpTensor) normed = zp_mul(trace, wide, zp_take(inverse_deviation(program, wide)));
    ZpTensor *scale = zp_take(zp_offset(trace, zp_take(zp_to(trace, weight, 4))));
    ZpTensor *scaled = zp_mul(trace, normed, scale);
    zp_tensor_unref(normed);
    normed = scaled;
    return zp_to(trace, normed, a ? a->element_bytes : 0);
}

/* layer_norm.cpp, rms_norm_composite. */
static ZpTensor *
composite_norm(const ZpProgram *program, ZpTensor *a, gint64 width)
{
    ZpTrace *trace = program->trace;
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 1, &width);
    g_autoptr(ZpTensor) wide = zp_to(trace, a, 4);
    ZpTensor *variance = zp_take(zp_mean_last(trace, zp_take(zp_pow(trace, wide))));
    g_autoptr(ZpTensor) inverse = zp_rsqrt(trace, variance);
    ZpTensor *normed = zp_mul(trace, wide, inverse);
    g_autoptr(ZpTensor) scaled = zp_mul(trace, normed, weight);
    zp_tensor_unref(normed);
    return zp_to(trace, scaled, a ? a->element_bytes : 0);
}

ZpTensor *
zp_program_norm(const ZpProgram *program, ZpBlockNorm norm, ZpTensor *a, gint64 width)
{
    switch (program->compiled ? ZP_NORM_FUSED : norm) {
    case ZP_NORM_FUSED: {
        g_autoptr(ZpTensor) weight = zp_program_parameter(program, 1, &width);
        return zp_rms_norm(program->trace, a, weight);
    }
    case ZP_NORM_COMPOSITE:
        return composite_norm(program, a, width);
    case ZP_NORM_PLUS_ONE:
        return plus_one_norm(program, a, width);
    case ZP_NORM_EAGER:
    default:
        return eager_norm(program, a, width);
    }
}

ZpTensor *
zp_program_layer_norm(const ZpProgram *program, gboolean cpu, ZpTensor *a, gint64 width)
{
    g_autoptr(ZpTensor) weight = zp_program_parameter(program, 1, &width);
    g_autoptr(ZpTensor) bias = zp_program_parameter(program, 1, &width);
    /* Autocast has it among its fp32 operators. */
    g_autoptr(ZpTensor) input = zp_program_cast32(program, a);
    g_autoptr(ZpTensor) scale = zp_program_cast32(program, weight);
    g_autoptr(ZpTensor) shift = zp_program_cast32(program, bias);
    return cpu ? zp_layer_norm_cpu(program->trace, input, scale, shift)
               : zp_layer_norm(program->trace, input, scale, shift);
}

ZpTensor *
zp_program_dropout(const ZpProgram *program, gboolean on, gboolean cpu, ZpTensor *a)
{
    if (!on)
        return zp_to(program->trace, a, a ? a->element_bytes : 0);
    return cpu ? zp_noise_dropout(program->trace, a) : zp_native_dropout(program->trace, a);
}

/* 0.5 * x * (1 + tanh(c * (x + 0.044715 * pow(x, 3)))); autocast takes pow in fp32. */
static ZpTensor *
gelu_written_out(const ZpProgram *program, ZpTensor *a)
{
    ZpTrace *trace = program->trace;
    ZpTensor *half = zp_take(zp_scale(trace, a));
    ZpTensor *wide = zp_take(zp_program_cast32(program, a));
    ZpTensor *cube = zp_take(zp_scale(trace, zp_take(zp_pow(trace, wide))));
    g_autoptr(ZpTensor) inner = zp_scale(trace, zp_take(zp_add(trace, a, cube)));
    ZpTensor *outer = zp_take(zp_offset(trace, zp_take(zp_tanh(trace, inner))));
    return zp_mul(trace, half, outer);
}

/* 0.5 * x * (1 + tanh(c * x * (1 + 0.044715 * x * x))) */
static ZpTensor *
gelu_fast(const ZpProgram *program, ZpTensor *a)
{
    ZpTrace *trace = program->trace;
    ZpTensor *half = zp_take(zp_scale(trace, a));
    ZpTensor *scaled = zp_take(zp_scale(trace, a));
    ZpTensor *square = zp_take(zp_mul(trace, zp_take(zp_scale(trace, a)), a));
    ZpTensor *inner = zp_take(zp_mul(trace, scaled, zp_take(zp_offset(trace, square))));
    ZpTensor *outer = zp_take(zp_offset(trace, zp_take(zp_tanh(trace, inner))));
    return zp_mul(trace, half, outer);
}

ZpTensor *
zp_program_activation(const ZpProgram *program, ZpBlockActivation kind, ZpTensor *a)
{
    switch (kind) {
    case ZP_BLOCK_SILU:
        return zp_silu(program->trace, a);
    case ZP_BLOCK_RELU:
        return zp_relu(program->trace, a);
    case ZP_BLOCK_GELU_WRITTEN_OUT:
        return gelu_written_out(program, a);
    case ZP_BLOCK_GELU_FAST:
        return gelu_fast(program, a);
    case ZP_BLOCK_GELU:
    default:
        return zp_gelu(program->trace, a);
    }
}
