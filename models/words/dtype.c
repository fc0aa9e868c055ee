#include "models/words/dtype.h"

typedef struct {
    const char *name;
    const char *aliases[4];
    int bits;
} Entry;

static const Entry entries[ZP_N_DTYPES] = {
    [ZP_DTYPE_NONE] = {"none", {0}, 0},
    [ZP_DTYPE_FP32] = {"fp32", {"float32", "float", "f32"}, 32},
    [ZP_DTYPE_TF32] = {"tf32", {0}, 32},
    [ZP_DTYPE_BF16] = {"bf16", {"bfloat16"}, 16},
    [ZP_DTYPE_FP16] = {"fp16", {"float16", "half", "f16"}, 16},
    [ZP_DTYPE_FP8] = {"fp8", {"float8", "float8_e4m3fn"}, 8},
    [ZP_DTYPE_INT8] = {"int8", {"i8"}, 8},
    [ZP_DTYPE_INT4] = {"int4", {"i4", "nf4", "fp4"}, 4},
    [ZP_DTYPE_FP64] = {"fp64", {"float64", "double"}, 64},
};

const char *
zp_dtype_name(ZpDtype dtype)
{
    return entries[dtype].name;
}

int
zp_dtype_bits(ZpDtype dtype)
{
    return entries[dtype].bits;
}

gboolean
zp_dtype_parse(const char *text, ZpDtype *dtype)
{
    if (g_ascii_strncasecmp(text, "torch.", 6) == 0)
        text += 6;
    for (int i = 0; i < ZP_N_DTYPES; i++) {
        gboolean found = g_ascii_strcasecmp(text, entries[i].name) == 0;
        for (gsize a = 0; !found && a < G_N_ELEMENTS(entries[i].aliases); a++)
            found = entries[i].aliases[a] && g_ascii_strcasecmp(text, entries[i].aliases[a]) == 0;
        if (found) {
            *dtype = (ZpDtype)i;
            return TRUE;
        }
    }
    return FALSE;
}
