/* The module tree as DeepSpeed stage 3 sees it: what hooks hang on and what each hook fetches.
 *
 * A parameter has one number, its ds_id: the order of first appearance when the tree is walked in
 * registration order, a module's own parameters before its children.  A tied parameter is one
 * parameter owned by several modules.
 *
 * Source: DeepSpeed 0.19, runtime/zero/parameter_offload.py (hooks, leaf modules by granularity,
 * mark_persistent_parameters) and runtime/zero/partition_parameters.py (ds_id). */
#pragma once

#include "models/job/model.h"

typedef struct {
    const char *name;
    gint64 elements;
    gboolean trainable;
    gboolean persistent; /* never released by hooks: zp_ds_tree_mark_persistent() */
    gboolean on_nvme;    /* its partition is swapped out when nobody uses it */
    gboolean quantised;  /* its partition is kept in int8: gathered apart from the others */
    gint32 model_index;  /* index in ZpModel, or ZP_MODEL_NONE */
} ZpDsParameter;

typedef struct {
    const char *name;
    gint32 parent;              /* ZP_MODEL_NONE for the root */
    gint32 subtree_end;         /* modules [self, subtree_end) are its subtree: pre-order */
    gboolean container;         /* a list of modules: never called itself, has no hooks */
    gboolean leaf;              /* fetched and released with its whole subtree as one module */
    gboolean hidden;            /* inside a leaf module: has no hooks */
    gboolean no_post_backward;  /* no input needs a gradient: its post-backward hook never fires */
    gboolean no_backward;       /* takes no part in the backward pass */
    gboolean linear;            /* torch.nn.Linear */
    gboolean checkpointed;      /* runs under reentrant activation checkpointing */
    gint32 layer;               /* layer of the model it computes in, or ZP_MODEL_NONE */
    gint32 first_own, n_own;    /* direct parameters: range of `owned` */
    gint32 first_need, n_need;  /* what its hooks fetch: range of `needed`, ascending ds_id */
    gint64 subtree_elements;    /* of the distinct parameters of the subtree */
    gint32 first_call, n_calls; /* children in execution order: range of `calls` */
} ZpDsModule;

typedef struct {
    GArray *parameters; /* ZpDsParameter, by ds_id */
    GArray *modules;    /* ZpDsModule, pre-order */
    GArray *owned;      /* gint32 ds_id, by module in pre-order */
    GArray *needed;     /* gint32 ds_id */
    GArray *calls;      /* gint32 module */
    GHashTable *ids;    /* parameter name -> ds_id + 1 */
    gboolean finished;
} ZpDsTree;

ZpDsTree *zp_ds_tree_new(void);
void zp_ds_tree_free(ZpDsTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpDsTree, zp_ds_tree_free)

/* Builders, in registration order: a module, its own parameters, then its children (pre-order).
 * Names are borrowed: interned strings, told apart by their address.  add_parameter gives the
 * ds_id; a name seen before is a tied parameter and keeps its first size. */
gint32 zp_ds_tree_add_module(ZpDsTree *tree, const char *name, gint32 parent);
gint32 zp_ds_tree_add_parameter(ZpDsTree *tree, gint32 module, const char *name, gint64 elements,
                                gboolean trainable);
/* Children in execution order; a child may be called more than once.  Without it: registration
 * order, each once.  Call before zp_ds_tree_finish(). */
void zp_ds_tree_set_calls(ZpDsTree *tree, gint32 module, const gint32 *children, gint32 n);
/* Computes subtrees, calls and needs; after it only leaf marks and persistence may change. */
void zp_ds_tree_finish(ZpDsTree *tree);
ZpDsTree *zp_ds_tree_new_from_model(const ZpModel *model);

/* stage3_module_granularity_threshold: modules whose parameters / (1 + modules with parameters
 * below) do not exceed the threshold become leaf modules, parents first.  FALSE if none did. */
gboolean zp_ds_tree_mark_leaves(ZpDsTree *tree, gint64 granularity);
/* Makes one module a leaf (leaf_module.classes and names). */
void zp_ds_tree_set_leaf(ZpDsTree *tree, gint32 module);
/* Parameters of at most `parameter_threshold` elements stay gathered, greedily in ds_id order
 * while their sum does not exceed `model_threshold`. */
void zp_ds_tree_mark_persistent(ZpDsTree *tree, gint64 parameter_threshold, gint64 model_threshold);
gint32 zp_ds_tree_find_module(const ZpDsTree *tree, const char *name); /* or ZP_MODEL_NONE */

static inline ZpDsModule *
zp_ds_tree_module(const ZpDsTree *tree, gint32 index)
{
    return &g_array_index(tree->modules, ZpDsModule, (guint)index);
}

static inline ZpDsParameter *
zp_ds_tree_parameter(const ZpDsTree *tree, gint32 index)
{
    return &g_array_index(tree->parameters, ZpDsParameter, (guint)index);
}

static inline const gint32 *
zp_ds_tree_need(const ZpDsTree *tree, const ZpDsModule *module)
{
    return &g_array_index(tree->needed, gint32, (guint)module->first_need);
}

/* Elements of one rank's partition: every parameter is padded to a multiple of `ranks` alone
 * (partition_parameters.py, _aligned_size). */
static inline gint64
zp_ds_partition_elements(gint64 elements, gint32 ranks)
{
    return elements / ranks + (elements % ranks != 0);
}
