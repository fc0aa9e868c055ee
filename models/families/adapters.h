/* Training a part of a model: frozen parameters and low-rank adapters. */
#pragma once

#include "models/job/model.h"

/* Marks the parameters whose name matches the glob `pattern` (`*` any characters, `?` one; a tied
 * parameter follows the one it is tied to) as untrainable; returns how many elements that froze. */
gint64 zp_model_freeze(ZpModel *model, const char *pattern);

/* Low-rank adapters (Hu et al., arXiv 2106.09685; names as huggingface/peft gives them): for every
 * two-dimensional weight whose module matches one of the comma-separated `targets` - by its last
 * name ("q_proj") or by a glob over its full name ("*.self_attn.q_proj") - adds
 * lora_A.default.weight [rank, in] and lora_B.default.weight [out, rank], trainable, in the same
 * layer, and freezes everything else.  Experts kept one module each get adapters like any other.
 *
 * Costs follow: 2 FLOPs an adapter element and token, and the rank's activations, kept or brought
 * back as the layer's others; inputs of frozen products count as kept, though autograd drops those
 * that nothing else needs.  Fails, leaving the model as it was, where rank is not positive or
 * nothing matches (the message names targets there are). */
/* Bit k: the k-th parameter of a block's script belongs to a module that the comma-separated
 * `targets` name; the block's parts are `n_layers` layers from `first` on, and the n-th parameter
 * of a size in a part is the n-th of that size in the layer. */
guint64 zp_adapters_mask(const ZpModel *model, gint32 first, gint32 n_layers,
                         const ZpModelScript *script, const char *targets);
/* `counted`: the model was built with the adapters in its options, so that its layers tell what is
 * kept for them. */
gboolean zp_model_add_lora(ZpModel *model, gint32 rank, const char *targets, gboolean counted,
                           GError **error) G_GNUC_WARN_UNUSED_RESULT;

typedef enum { ZP_ADAPTERS_ERROR_RANGE, ZP_ADAPTERS_ERROR_NO_TARGET } ZpAdaptersError;
#define ZP_ADAPTERS_ERROR (zp_adapters_error_quark())
GQuark zp_adapters_error_quark(void);
