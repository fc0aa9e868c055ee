/* Number formats by name and width.  A width is in bits: 4-bit formats exist. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_DTYPE_NONE, /* no such tensor (no master copy) */
    ZP_DTYPE_FP32,
    ZP_DTYPE_TF32, /* stored as 4 bytes */
    ZP_DTYPE_BF16,
    ZP_DTYPE_FP16,
    ZP_DTYPE_FP8,
    ZP_DTYPE_INT8,
    ZP_DTYPE_INT4,
    ZP_DTYPE_FP64,
    ZP_N_DTYPES,
} ZpDtype;

const char *zp_dtype_name(ZpDtype dtype); /* "bf16" */
int zp_dtype_bits(ZpDtype dtype);         /* 0 for NONE */
/* Accepts the canonical names and the usual aliases (bfloat16, float32, half, ...); FALSE if
 * unknown. */
gboolean zp_dtype_parse(const char *text, ZpDtype *dtype);
/* Bytes of `elements` numbers, rounded up to a byte. */
static inline gint64
zp_dtype_bytes(int bits, gint64 elements)
{
    return bits >= 8 ? elements * (bits / 8) : (elements * bits + 7) / 8;
}
