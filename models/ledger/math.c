#include "models/ledger/ledger_internal.h"

gint64
ledger_saturate(LedgerMath *math)
{
    if (math->overflow == NULL)
        math->overflow = math->figure;
    return G_MAXINT64;
}

gint64
ledger_add(LedgerMath *math, gint64 a, gint64 b)
{
    gint64 sum;
    return __builtin_add_overflow(a, b, &sum) ? ledger_saturate(math) : sum;
}

gint64
ledger_multiply(LedgerMath *math, gint64 a, gint64 b)
{
    gint64 product;
    return __builtin_mul_overflow(a, b, &product) ? ledger_saturate(math) : product;
}

gint64
ledger_bytes(LedgerMath *math, ZpDtype dtype, gint64 elements)
{
    int bits = zp_dtype_bits(dtype);
    /* Fractions of a byte round up; whole eighths first, so that the product cannot overflow. */
    gint64 whole = ledger_multiply(math, elements / 8, bits);
    return ledger_add(math, whole, (elements % 8 * bits + 7) / 8);
}

gint64
ledger_padded(LedgerMath *math, gint64 elements, gint32 ranks)
{
    return ledger_multiply(math, zp_wrapping_shard_elements(elements, ranks), ranks);
}
