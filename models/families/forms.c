#include "models/families/forms_internal.h"

#include <math.h>

ZpModelPolicyBytes *
zp_forms_next(ZpModelActivation *activation, ZpModelPolicyBytes *policies)
{
    if (policies == NULL)
        return activation->policies;
    return policies == activation->policies && activation->differs_alone ? activation->alone : NULL;
}

void
zp_forms_add(ZpModelBytes *sum, const ZpModelBytes *part, gint64 times)
{
    sum->constant_bytes += times * part->constant_bytes;
    sum->bytes_per_token += times * part->bytes_per_token;
    sum->bytes_per_pair += times * part->bytes_per_pair;
    sum->bytes_per_position += times * part->bytes_per_position;
    sum->bytes_per_position_pair += times * part->bytes_per_position_pair;
    sum->bytes_per_sequence += times * part->bytes_per_sequence;
}

static void
scale(gint64 *bytes, double factor)
{
    *bytes = (gint64)llround((double)*bytes * factor);
}

void
zp_forms_scale(ZpModelBytes *bytes, double factor)
{
    scale(&bytes->constant_bytes, factor);
    scale(&bytes->bytes_per_token, factor);
    scale(&bytes->bytes_per_pair, factor);
    scale(&bytes->bytes_per_position, factor);
    scale(&bytes->bytes_per_position_pair, factor);
    scale(&bytes->bytes_per_sequence, factor);
}

void
zp_forms_scale_peak(ZpModelPeak *peak, double factor)
{
    for (gint32 f = 0; f < peak->n_forms; f++)
        zp_forms_scale(&peak->forms[f], factor);
}

static void
cut(gint64 *bytes, gint64 ways, gint64 times)
{
    gint64 up = *bytes > 0 ? ways - 1 : 0;
    *bytes = (*bytes + up) / ways * times;
}

static void
cut_bytes(ZpModelBytes *bytes, gint64 ways, gint64 times)
{
    bytes->constant_bytes *= times;
    bytes->bytes_per_sequence *= times;
    cut(&bytes->bytes_per_token, ways, times);
    cut(&bytes->bytes_per_pair, ways, times);
    cut(&bytes->bytes_per_position, ways, times);
    cut(&bytes->bytes_per_position_pair, ways, times);
}

static void
cut_peak(ZpModelPeak *peak, gint64 ways, gint64 times)
{
    for (gint32 f = 0; f < peak->n_forms; f++)
        cut_bytes(&peak->forms[f], ways, times);
}

static void
cut_policy(ZpModelPolicyBytes *policy, gint64 ways, gint64 times)
{
    cut_bytes(&policy->kept, ways, times);
    cut_bytes(&policy->recomputed, ways, times);
    cut_peak(&policy->forward, ways, times);
    cut_peak(&policy->recompute, ways, times);
    cut_peak(&policy->backward, ways, times);
}

void
zp_forms_cut(ZpModelActivation *activation, gint64 ways, gint64 times)
{
    if (ways == 1 && times == 1)
        return;
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++)
            cut_policy(&set[p], ways, times);
}

gint64
zp_forms_pairs(const ZpModelPeak *peak)
{
    gint64 most = 0;
    for (gint32 f = 0; f < peak->n_forms; f++)
        most = MAX(most, peak->forms[f].bytes_per_pair);
    return most;
}

/* base + each tokens + pair tokens^2, held inside of what sums of layers can add up. */
static gint64
fixed(gint64 base, gint64 each, gint64 pair, gint64 tokens)
{
    const __int128 far = G_MAXINT64 >> 20;
    __int128 pairs = (__int128)tokens * tokens;
    __int128 sum = base + (__int128)each * tokens + CLAMP(pair * pairs, -far, far);
    return (gint64)CLAMP(sum, -far, far);
}

void
zp_forms_fix_bytes(ZpModelBytes *bytes, gint64 tokens)
{
    *bytes = (ZpModelBytes){
        .constant_bytes = fixed(bytes->constant_bytes, bytes->bytes_per_position,
                                bytes->bytes_per_position_pair, tokens),
        .bytes_per_sequence =
            fixed(bytes->bytes_per_sequence, bytes->bytes_per_token, bytes->bytes_per_pair, tokens),
    };
}

static void
fix_peak(ZpModelPeak *peak, gint64 tokens)
{
    for (gint32 f = 0; f < peak->n_forms; f++)
        zp_forms_fix_bytes(&peak->forms[f], tokens);
}

void
zp_forms_fix(ZpModelActivation *activation, gint64 tokens)
{
    g_assert(activation != NULL);
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
            zp_forms_fix_bytes(&set[p].kept, tokens);
            zp_forms_fix_bytes(&set[p].recomputed, tokens);
            fix_peak(&set[p].forward, tokens);
            fix_peak(&set[p].recompute, tokens);
            fix_peak(&set[p].backward, tokens);
        }
    zp_forms_fix_bytes(&activation->handed, tokens);
}
