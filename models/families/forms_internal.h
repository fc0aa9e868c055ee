/* Sums and shares of the forms in which activations are counted. */
#pragma once

#include "models/job/model.h"

/* The policies of more sequences, and those of one where they differ; NULL after the last. */
ZpModelPolicyBytes *zp_forms_next(ZpModelActivation *activation, ZpModelPolicyBytes *policies);

void zp_forms_add(ZpModelBytes *sum, const ZpModelBytes *part, gint64 times);
/* Times `factor`, to the nearest byte; what is constant too. */
void zp_forms_scale(ZpModelBytes *bytes, double factor);
void zp_forms_scale_peak(ZpModelPeak *peak, double factor);
/* All forms of all policies: what grows with tokens and pairs over `ways`, rounded up, the rest as
 * it is; then times `times`. */
void zp_forms_cut(ZpModelActivation *activation, gint64 ways, gint64 times);
/* The largest coefficient of pairs among the forms. */
gint64 zp_forms_pairs(const ZpModelPeak *peak);
/* All forms at a sequence of `tokens`, whatever the job's is: what is left grows with sequences. */
void zp_forms_fix(ZpModelActivation *activation, gint64 tokens);
void zp_forms_fix_bytes(ZpModelBytes *bytes, gint64 tokens);
