/* Queries, keys and values as heads: projections as families write them, rotation, and back.
 * Private to models/activation/. */
#pragma once

#include "models/activation/program_internal.h"

typedef struct {
    ZpTensor *query, *key, *value; /* [b, heads, s, d] */
    ZpTensor *whole;               /* the fused product, while it is named */
} ZpHeads;

ZpHeads zp_heads_project(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a,
                         gboolean bias);
/* One projection; its norm, when there is one, sees [b, s, heads, d]. */
ZpTensor *zp_heads_project_one(const ZpProgram *program, const ZpActivationBlock *block,
                               ZpTensor *a, gint64 heads, gboolean bias, gboolean normed);
void zp_heads_clear(ZpHeads *heads);
void zp_heads_make_contiguous(const ZpProgram *program, ZpTensor **heads);
/* Position embeddings of queries and keys; fills the names that stay to the function's end. */
enum { ZP_HEADS_NAMES = 4 };
void zp_heads_rotate(const ZpProgram *program, const ZpActivationBlock *block, ZpHeads *heads,
                     ZpTensor *names[ZP_HEADS_NAMES]);
/* [b, heads, s, d] to [b, s, heads * d] */
ZpTensor *zp_heads_join(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a);
