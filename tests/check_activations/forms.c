#include "check_activations/forms.h"

#include "models/activation/script_internal.h"

enum { SCALAR_BYTES = 4, FIGURES = 3 };

/* Kept bytes and both peaks, as the parts add up to them. */
static void
figures_of_forms(const ActivationCase *item, gint64 *figures, FormsTally *tally)
{
    gint64 b = item->is_loss ? item->loss.batch : item->block.batch;
    gint64 s = item->is_loss ? item->loss.tokens : item->block.tokens;
    ZpScriptSource source = {item->is_loss ? ZP_SCRIPT_LOSS : ZP_SCRIPT_BLOCK, item->block,
                             item->loss};
    ZpModelPolicyBytes bytes[ZP_ACTIVATION_PARTS] = {0}, *parts[ZP_ACTIVATION_PARTS];
    for (int p = 0; p < ZP_ACTIVATION_PARTS; p++)
        parts[p] = &bytes[p];
    ZpScript script = zp_script_new(&source, b == 1);
    tally->joined += (guint)zp_script_policy_bytes(&script, parts);
    gint64 kept = 0, before = 0, recomputed = 0, forward = 0, backward = 0;
    for (int p = 0; p < script.n_parts; p++)
        kept += zp_model_bytes_at(&bytes[p].kept, b, s);
    for (int p = 0; p < script.n_parts; p++) {
        before += zp_model_bytes_at(&bytes[p].kept, b, s);
        recomputed += zp_model_bytes_at(&bytes[p].recomputed, b, s);
        gint64 again = kept + recomputed + zp_model_peak_at(&bytes[p].recompute, b, s);
        gint64 back = before + recomputed + zp_model_peak_at(&bytes[p].backward, b, s);
        forward = MAX(forward, before + zp_model_peak_at(&bytes[p].forward, b, s));
        backward = MAX(backward, bytes[p].recompute.n_forms > 0 ? MAX(again, back) : back);
    }
    zp_script_clear(&script);
    figures[0] = kept;
    figures[1] = forward;
    figures[2] = backward + (item->is_loss ? 0 : SCALAR_BYTES);
}

/* Whether all figures are equal, or above by up to `slack`. */
static gboolean
within(const gint64 *figures, const gint64 *expected, gint64 slack)
{
    gboolean all = TRUE;
    for (int i = 0; i < FIGURES; i++)
        all = all && figures[i] >= expected[i] && figures[i] <= expected[i] + slack;
    return all;
}

gboolean
activation_case_check_forms(const ActivationCase *item, FormsTally *tally)
{
    gint64 figures[FIGURES];
    gint64 tokens = item->is_loss ? item->loss.batch * item->loss.tokens
                                  : item->block.batch * item->block.tokens;
    gboolean shared =
        item->is_loss ? item->loss.kind >= ZP_LOSS_CHUNKS : item->block.experts == ZP_EXPERTS_LOOP;
    const gint64 *measured = item->measured;
    const gint64 expected[FIGURES] = {measured[CASE_KEPT],
                                      measured[CASE_FORWARD_PEAK] + measured[CASE_INPUT],
                                      measured[CASE_BACKWARD_PEAK]};
    figures_of_forms(item, figures, tally);
    if (within(figures, expected, 0)) {
        tally->exact++;
        return TRUE;
    }
    if (shared && within(figures, expected, tokens - 1)) {
        tally->rounded++;
        return TRUE;
    }
    ActivationCase plain = *item;
    plain.block.gradients_by_shape = FALSE;
    figures_of_forms(&plain, figures, tally);
    ZpActivationBytes bytes = zp_activation_measure_block(&plain.block);
    const gint64 own[FIGURES] = {bytes.kept_bytes, bytes.forward_peak_bytes + bytes.input_bytes,
                                 bytes.backward_peak_bytes};
    gboolean right = !item->is_loss && within(figures, own, 0);
    *(right ? &tally->by_shape : &tally->wrong) += 1;
    return right;
}
