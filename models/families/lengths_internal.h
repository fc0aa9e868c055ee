/* Layers whose sequences have a length of their own: an encoder's, or where the configuration
 * states it (ZpArchitectureTraits.own_tokens, source_tokens). */
#pragma once

#include "models/families/traits_internal.h"

gboolean zp_lengths_blocks_follow(const ZpModel *model, gint32 index);
/* Does the layer stand before the end of an encoder? */
gboolean zp_lengths_in_encoder(const ZpModel *model, gint32 index);
/* The length of the layer's sequences, where the configuration states it; else 0. */
gint64 zp_lengths_fixed(const ZpArchitectureTraits *traits, const ZpModel *model, gint32 layer);
/* A reference, or (tokens > 0) a copy for sequences of that length. */
ZpModelScript *zp_lengths_script(ZpModelScript *script, gint64 tokens);
