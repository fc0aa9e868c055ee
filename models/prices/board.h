/* Constants for any board: one price model for every GPU.
 *
 * A chip owns the constants that depend on its design (shapes of products, attention, contention,
 * the host's time for a kernel); a board scales them.  From the base board of the chip
 * (models/catalog/chips.csv) to another, products and attention go by the ratio of sustained large
 * products (zp_hardware_sustained_flops()), elementwise kernels by the ratio of memory bandwidths,
 * waves of tiles by the multiprocessors.  Over 15 pairs of boards of one chip with both products
 * measured that is 4.7 % off in the mean, 12.8 % at the 90th percentile; with one product by rule G
 * 13 and 30 %; from another chip 16 and 33 %. */
#pragma once

#include "models/prices/calibration.h"

/* Constants of `gpu`: measured on it, scaled from its chip's base, or assumed from another chip's.
 * NULL for one without a chip or without a 16-bit rate.  Free with zp_calibration_free(). */
ZpCalibration *zp_board_constants(const ZpHardware *hardware, const ZpGpu *gpu);
/* The grade that they have; ASSUMED without any. */
ZpGrade zp_board_grade(const ZpHardware *hardware, const ZpGpu *gpu);
