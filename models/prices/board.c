#include "models/prices/board.h"

static double
peak_flops(const ZpGpu *gpu)
{
    return MAX(gpu->flops_bf16, gpu->flops_fp16);
}

/* The board whose constants stand for this one; NULL: there is none, or no way to scale. */
static const ZpGpu *
base_of(const ZpHardware *hardware, const ZpGpu *gpu, gboolean *own)
{
    const ZpChip *chip = zp_hardware_chip(hardware, gpu->chip);
    const ZpGpu *base = chip != NULL ? zp_hardware_gpu(hardware, chip->base) : NULL;
    if (base == NULL || peak_flops(gpu) <= 0.0 || zp_hardware_sustained_flops(hardware, gpu) <= 0.0)
        return NULL;
    *own = chip->own;
    return base;
}

static void
scale(ZpCalibration *constants, double products, double multiprocessors)
{
    constants->gemm_efficiency *= products;
    if (multiprocessors > 0.0)
        constants->multiprocessors = multiprocessors;
}

ZpCalibration *
zp_board_constants(const ZpHardware *hardware, const ZpGpu *gpu)
{
    const ZpCalibration *measured = zp_calibration_find(gpu->name);
    if (measured != NULL)
        return zp_calibration_copy(measured);
    gboolean own = FALSE;
    const ZpGpu *base = base_of(hardware, gpu, &own);
    if (base == NULL)
        return NULL;
    ZpCalibration *constants = zp_calibration_copy(zp_calibration_find(base->name));
    double ratio =
        zp_hardware_sustained_flops(hardware, gpu) / zp_hardware_sustained_flops(hardware, base);
    scale(constants, ratio * peak_flops(base) / peak_flops(gpu), gpu->sm_count);
    zp_calibration_scale_attention(constants, ratio);
    constants->gpu = g_intern_string(gpu->name);
    constants->grade = own ? ZP_GRADE_SCALED : ZP_GRADE_ASSUMED;
    g_autofree char *rule =
        g_strdup_printf("constants of %s, %s", base->name, own ? "scaled" : "assumed");
    constants->rule = g_intern_string(rule);
    return constants;
}

ZpGrade
zp_board_grade(const ZpHardware *hardware, const ZpGpu *gpu)
{
    gboolean own = FALSE;
    if (zp_calibration_find(gpu->name) != NULL)
        return ZP_GRADE_MEASURED;
    return base_of(hardware, gpu, &own) != NULL && own ? ZP_GRADE_SCALED : ZP_GRADE_ASSUMED;
}
