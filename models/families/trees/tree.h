/* Expands a module tree into a model: parameters, modules, and layers without their costs. */
#pragma once

#include "models/families/trees/template.h"

/* What a layer's costs depend on, read off the tree; parallel to model->layers. */
typedef struct {
    gint64 norms_width;                        /* sum of the widths of its block norms */
    gint64 residual_width;                     /* width of the stream it reads and writes */
    gint64 heads, kv_heads, qk_width, v_width; /* of the attention core; heads 0: none */
    gint64 inner_width;                        /* of the MLP, the dense part and shared experts */
    gint64 expert_inner_width;                 /* of the chosen experts together */
    gint64 chosen_experts;                     /* a token goes to so many experts; 0: no mixture */
    gint64 experts;                            /* of the mixture */
    gint64 latent_width;                       /* other norms (query, key, latent) */
    gint64 matrix_elements;                    /* used by one token, without experts */
    gint64 expert_matrix_elements;             /* of the chosen experts */
    gint64 active_elements;                    /* used by one token, tables and experts included */
    gint64 table_elements;
} ZpTreeLayer;

/* A value computed anew for every block; `block_index` is the symbol `i`. */
typedef struct {
    gint32 symbol;
    ZpExpression value;
} ZpTreeRule;

/* A symbol that is 1 in the listed blocks and 0 elsewhere. */
typedef struct {
    gint32 symbol;
    GArray *blocks; /* gint64; borrowed */
} ZpTreeList;

typedef struct {
    const char *text, *tree;
    GHashTable *uses; /* KEY -> text, for {KEY} in the tree */
    ZpSymbols *symbols;
    ZpExpressions *expressions;
    const GArray *rules; /* ZpTreeRule or NULL */
    const GArray *lists; /* ZpTreeList or NULL */
} ZpTreeInput;

/* What a module says about its layer, parallel to model->modules. */
typedef struct {
    const char *layer_name; /* NULL: none */
    ZpLayerKind layer_kind;
    ZpTreeLayer facts; /* of this module alone */
} ZpTreeNote;

/* Appends to an empty model; `layers` gets a ZpTreeLayer per layer.  Fails beyond
 * ZP_TREE_MAX_ELEMENTS elements or ZP_TREE_MAX_PARTS modules and parameters
 * (ZP_ARCHITECTURE_ERROR_RANGE).
 */
gboolean zp_tree_expand(const ZpTreeInput *input, ZpModel *model, GArray *layers,
                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

#define ZP_TREE_MAX_PARTS 500000
#define ZP_TREE_MAX_ELEMENTS (G_GINT64_CONSTANT(1) << 52)

/* Second half of the expansion: modules visited in call order, grouped into layers by block and
 * layer name. */
void zp_tree_assign_layers(ZpModel *model, const GArray *notes, GArray *layers);
