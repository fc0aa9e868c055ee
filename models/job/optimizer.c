#include "models/job/optimizer.h"

#define TORCH "torch.optim, _multi_tensor_adam and _single_tensor_adam: "
#define ZERO_PAPER "Rajbhandari et al. 2019 (arXiv 1910.02054), section 3.1: K = 12; "
#define FUSED "traffic: read g, p, m, v and write p, m, v in fp32, and a bf16 copy"
#define FOREACH "traffic: the ten passes of the multi-tensor form in fp32, and a bf16 copy"

/* traffic_bits counts fp32 reads and writes of each pass over the owned elements: fused Adam
 * 4 x (4 + 3) + 2 = 30 bytes; foreach Adam passes of 8, 12, 8, 12, 8, 8, 8 and 16 bytes and the
 * copy of 6 = 86 bytes, the ratio of about 3 that others measured (NeMo Automodel PR 3110). */
static const ZpOptimizer table[] = {
    {
        .name = "adamw",
        .summary = "Adam with decoupled weight decay, fused; fp32 master copy and moments",
        .master = TRUE,
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_FP32,
        .traffic_bits = 240,
        .source = ZERO_PAPER FUSED,
    },
    {
        .name = "adam",
        .summary = "Adam, fused; fp32 master copy and moments",
        .master = TRUE,
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_FP32,
        .traffic_bits = 240,
        .source = ZERO_PAPER FUSED,
    },
    {
        .name = "adamw_foreach",
        .summary = "adamw, one kernel list per operation: a temporary as large as the shard",
        .master = TRUE,
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_FP32,
        .temporary_bits = 32,
        .traffic_bits = 688,
        .source = TORCH "the list of square roots is alive at once; " FOREACH,
    },
    {
        .name = "adamw_forloop",
        .summary = "adamw, parameter by parameter: three temporaries of the largest one",
        .master = TRUE,
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_FP32,
        .temporary_largest_copies = 3,
        .traffic_bits = 688,
        .source = TORCH "denominator of the previous parameter and two of the next; " FOREACH,
    },
    {
        .name = "adamw_bf16",
        .summary = "adamw on low-precision parameters directly: moments alike, no master copy",
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_BF16,
        .moments_as_parameters = TRUE,
        .traffic_bits = 112,
        .source = TORCH "states are zeros_like(parameter); fused: 7 accesses of 2 bytes",
    },
    {
        .name = "adamw_bf16_foreach",
        .summary = "adamw_bf16, one kernel list per operation: a temporary as large as the shard",
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_BF16,
        .moments_as_parameters = TRUE,
        .temporary_bits = 16,
        .traffic_bits = 320,
        .source = TORCH "the list of square roots, in the state dtype; ten passes in 2 bytes",
    },
    {
        .name = "adam8bit",
        .summary = "Adam with 8-bit moments, an fp32 scale per 256 elements, no master copy",
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_INT8,
        .block_elements = 256,
        .traffic_bits = 80,
        .source =
            "Dettmers et al. 2021 (arXiv 2110.02861); bitsandbytes optim/optimizer.py, "
            "Optimizer2State.init_state: absmax1 and absmax2 in fp32, blocks of 256 (2048 in "
            "older releases); parameters below 4096 elements keep fp32 states there, not here",
    },
    {
        .name = "sgd",
        .summary = "Stochastic gradient descent without momentum; fp32 master copy",
        .master = TRUE,
        .moments = ZP_DTYPE_FP32,
        .traffic_bits = 112,
        .source = "torch.optim.SGD, foreach: no temporary; read g, p and write p, bf16 copy",
    },
    {
        .name = "sgd_momentum",
        .summary = "Stochastic gradient descent with momentum; fp32 master copy",
        .master = TRUE,
        .momentum = TRUE,
        .moments = ZP_DTYPE_FP32,
        .traffic_bits = 176,
        .source = "torch.optim.SGD: momentum_buffer; read g, p, m and write p, m, bf16 copy",
    },
    {
        .name = "adafactor",
        .summary = "Adafactor: factored variance, no momentum; fp32 master copy",
        .master = TRUE,
        .variance = TRUE,
        .factored = TRUE,
        .moments = ZP_DTYPE_FP32,
        .temporary_largest_copies = 2,
        .traffic_bits = 368,
        .source = "Shazeer and Stern 2018 (arXiv 1804.04235), algorithm 4 with beta1 = 0; squared "
                  "gradient and update of one parameter at a time",
    },
    {
        .name = "lion",
        .summary = "Lion: momentum alone; fp32 master copy",
        .master = TRUE,
        .momentum = TRUE,
        .moments = ZP_DTYPE_FP32,
        .traffic_bits = 176,
        .source = "Chen et al. 2023 (arXiv 2302.06675), algorithm 2; read g, p, m and write p, m, "
                  "bf16 copy",
    },
};

const ZpOptimizer *
zp_optimizer_find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        if (g_ascii_strcasecmp(name, table[i].name) == 0)
            return &table[i];
    }
    return NULL;
}

const ZpOptimizer *
zp_optimizer_table(gsize *n)
{
    *n = G_N_ELEMENTS(table);
    return table;
}

gboolean
zp_optimizer_keeps_master(const ZpOptimizer *optimizer, ZpDtype parameter, ZpDtype master)
{
    if (!optimizer->master || master == ZP_DTYPE_NONE)
        return FALSE;
    return zp_dtype_bits(parameter) < 32 || zp_dtype_bits(parameter) != zp_dtype_bits(master);
}

ZpDtype
zp_optimizer_moments(const ZpOptimizer *optimizer, ZpDtype parameter)
{
    return optimizer->moments_as_parameters ? parameter : optimizer->moments;
}

gint64
zp_optimizer_variance_elements(const ZpOptimizer *optimizer, const ZpModelParameter *parameter)
{
    if (!optimizer->variance)
        return 0;
    if (!optimizer->factored || parameter->n_dims < 2)
        return parameter->elements;
    gint64 rows = parameter->shape[parameter->n_dims - 2];
    gint64 columns = parameter->shape[parameter->n_dims - 1];
    if (rows == 0 || columns == 0)
        return 0;
    gint64 matrices = parameter->elements / rows / columns;
    return matrices * rows + matrices * columns;
}

gint64
zp_optimizer_temporary_bytes(const ZpOptimizer *optimizer, gint64 owned_elements,
                             gint64 largest_owned_elements)
{
    return zp_dtype_bytes(optimizer->temporary_bits, owned_elements) +
           optimizer->temporary_largest_copies *
               zp_dtype_bytes(zp_dtype_bits(ZP_DTYPE_FP32), largest_owned_elements);
}
