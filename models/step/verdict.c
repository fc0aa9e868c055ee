#include "models/step/verdict.h"

#include <math.h>

static double
with_contingency(const ZpVerdictQuestion *question, gint64 bytes)
{
    return (double)bytes + ceil((double)bytes * question->contingency);
}

ZpVerdict
zp_verdict_of(const ZpVerdictQuestion *question)
{
    g_assert(question->low_bytes <= question->needed_bytes &&
             question->needed_bytes <= question->high_bytes);
    double capacity = (double)question->capacity_bytes;
    if (question->capacity_bytes == 0)
        return ZP_VERDICT_NONE;
    if (with_contingency(question, question->low_bytes) > capacity)
        return ZP_VERDICT_DOES_NOT_FIT;
    if (question->flushed || with_contingency(question, question->high_bytes) > capacity)
        return ZP_VERDICT_TIGHT;
    return ZP_VERDICT_FITS;
}

const char *
zp_verdict_name(ZpVerdict verdict)
{
    static const char *const names[ZP_N_VERDICTS] = {"unlimited", "fits", "tight", "does not fit"};
    return names[verdict];
}
