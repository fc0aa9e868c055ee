/* Counter-based random numbers: a draw depends on its key alone, never on how many draws were
 * made before, so event order and thread count cannot change a result. */
#pragma once

#include <glib.h>

/* 64 well-mixed bits of (seed, rank, counter). */
guint64 zp_rng_bits(guint64 seed, gint32 rank, gint64 counter);
/* Approximately normal with mean 0 and standard deviation 1e6 (Irwin-Hall sum of twelve 16-bit
 * uniforms, integer arithmetic only), within +-6e6. */
gint64 zp_rng_gaussian_ppm(guint64 seed, gint32 rank, gint64 counter);
