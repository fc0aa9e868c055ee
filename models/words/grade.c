#include "models/words/grade.h"

#include <math.h>

const char *
zp_grade_name(ZpGrade grade)
{
    static const char *const names[ZP_N_GRADES] = {"counted", "measured", "scaled", "assumed"};
    return names[grade];
}

ZpBand
zp_band_of_sum(const ZpBandPart *parts, gsize n)
{
    double sum = 0.0, low = 0.0, high = 0.0;
    for (gsize i = 0; i < n; i++) {
        double rule_low = 0.0, rule_high = 0.0;
        gboolean first = TRUE;
        for (gsize k = 0; k < i && first; k++)
            first = parts[k].rule != parts[i].rule;
        sum += parts[i].value;
        for (gsize k = i; k < n && first; k++) {
            if (parts[k].rule != parts[i].rule)
                continue;
            rule_low += parts[k].value * parts[k].band.low;
            rule_high += parts[k].value * parts[k].band.high;
        }
        low += rule_low * rule_low;
        high += rule_high * rule_high;
    }
    return sum > 0.0 ? (ZpBand){MIN(1.0, sqrt(low) / sum), sqrt(high) / sum} : (ZpBand){0.0, 0.0};
}
