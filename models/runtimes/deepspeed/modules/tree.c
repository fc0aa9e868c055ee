#include "models/runtimes/deepspeed/modules/tree.h"

#include <string.h>

ZpDsTree *
zp_ds_tree_new(void)
{
    ZpDsTree *tree = g_new0(ZpDsTree, 1);
    tree->parameters = g_array_new(FALSE, TRUE, sizeof(ZpDsParameter));
    tree->modules = g_array_new(FALSE, TRUE, sizeof(ZpDsModule));
    tree->owned = g_array_new(FALSE, FALSE, sizeof(gint32));
    tree->needed = g_array_new(FALSE, FALSE, sizeof(gint32));
    tree->calls = g_array_new(FALSE, FALSE, sizeof(gint32));
    tree->ids = g_hash_table_new(NULL, NULL);
    return tree;
}

void
zp_ds_tree_free(ZpDsTree *tree)
{
    if (tree == NULL)
        return;
    g_array_unref(tree->parameters);
    g_array_unref(tree->modules);
    g_array_unref(tree->owned);
    g_array_unref(tree->needed);
    g_array_unref(tree->calls);
    g_hash_table_unref(tree->ids);
    g_free(tree);
}

gint32
zp_ds_tree_add_module(ZpDsTree *tree, const char *name, gint32 parent)
{
    g_assert(!tree->finished);
    ZpDsModule module = {
        .name = name,
        .parent = parent,
        .layer = ZP_MODEL_NONE,
        .first_own = (gint32)tree->owned->len,
        .n_calls = ZP_MODEL_NONE,
    };
    g_array_append_val(tree->modules, module);
    return (gint32)tree->modules->len - 1;
}

gint32
zp_ds_tree_add_parameter(ZpDsTree *tree, gint32 module, const char *name, gint64 elements,
                         gboolean trainable)
{
    ZpDsModule *owner = zp_ds_tree_module(tree, module);
    g_assert(!tree->finished && owner->first_own + owner->n_own == (gint32)tree->owned->len);
    gpointer known = g_hash_table_lookup(tree->ids, name);
    gint32 id = GPOINTER_TO_INT(known) - 1;
    if (known == NULL) {
        ZpDsParameter parameter = {
            .name = name,
            .elements = elements,
            .trainable = trainable,
            .model_index = ZP_MODEL_NONE,
        };
        g_array_append_val(tree->parameters, parameter);
        id = (gint32)tree->parameters->len - 1;
        g_hash_table_insert(tree->ids, (gpointer)name, GINT_TO_POINTER(id + 1));
    }
    g_array_append_val(tree->owned, id);
    owner->n_own++;
    return id;
}

void
zp_ds_tree_set_calls(ZpDsTree *tree, gint32 module, const gint32 *children, gint32 n)
{
    ZpDsModule *caller = zp_ds_tree_module(tree, module);
    caller->first_call = (gint32)tree->calls->len;
    caller->n_calls = n;
    g_array_append_vals(tree->calls, children, (guint)n);
}

static int
compare_ids(gconstpointer a, gconstpointer b)
{
    gint32 x = *(const gint32 *)a, y = *(const gint32 *)b;
    return (x > y) - (x < y);
}

/* Sorted, without duplicates: what Python's set of parameters holds. */
static void
set_need(ZpDsTree *tree, ZpDsModule *module, gint32 first, gint32 n)
{
    gint32 begin = (gint32)tree->needed->len;
    if (n > 0) {
        g_array_append_vals(tree->needed, &g_array_index(tree->owned, gint32, (guint)first),
                            (guint)n);
        gint32 *ids = &g_array_index(tree->needed, gint32, (guint)begin);
        gboolean sorted = TRUE;
        for (gint32 i = 1; i < n; i++)
            sorted &= ids[i] > ids[i - 1];
        if (!sorted)
            qsort(ids, (gsize)n, sizeof *ids, compare_ids);
        gint32 kept = 0;
        for (gint32 i = 0; i < n; i++)
            if (i == 0 || ids[i] != ids[i - 1])
                ids[kept++] = ids[i];
        g_array_set_size(tree->needed, (guint)(begin + kept));
        n = kept;
    }
    module->first_need = begin;
    module->n_need = n;
}

static gint32
end_of_own(const ZpDsTree *tree, gint32 end)
{
    return end < (gint32)tree->modules->len ? zp_ds_tree_module(tree, end)->first_own
                                            : (gint32)tree->owned->len;
}

void
zp_ds_tree_finish(ZpDsTree *tree)
{
    g_assert(!tree->finished);
    tree->finished = TRUE;
    gint32 n = (gint32)tree->modules->len;
    for (gint32 i = n - 1; i >= 0; i--) {
        ZpDsModule *module = zp_ds_tree_module(tree, i);
        module->subtree_end = MAX(module->subtree_end, i + 1);
        if (module->parent == ZP_MODEL_NONE)
            continue;
        ZpDsModule *parent = zp_ds_tree_module(tree, module->parent);
        parent->subtree_end = MAX(parent->subtree_end, module->subtree_end);
    }
    for (gint32 i = 0; i < n; i++) {
        ZpDsModule *module = zp_ds_tree_module(tree, i);
        if (module->n_calls == ZP_MODEL_NONE) {
            module->first_call = (gint32)tree->calls->len;
            module->n_calls = 0;
            for (gint32 child = i + 1; child < module->subtree_end;
                 child = zp_ds_tree_module(tree, child)->subtree_end) {
                g_array_append_val(tree->calls, child);
                module->n_calls++;
            }
        }
        /* The subtree's distinct elements, through the same set as a leaf's need. */
        gint32 begin = (gint32)tree->needed->len;
        set_need(tree, module, module->first_own,
                 end_of_own(tree, module->subtree_end) - module->first_own);
        for (gint32 k = 0; k < module->n_need; k++)
            module->subtree_elements +=
                zp_ds_tree_parameter(tree, zp_ds_tree_need(tree, module)[k])->elements;
        g_array_set_size(tree->needed, (guint)begin);
        set_need(tree, module, module->first_own, module->n_own);
    }
}

void
zp_ds_tree_set_leaf(ZpDsTree *tree, gint32 index)
{
    g_assert(tree->finished);
    ZpDsModule *module = zp_ds_tree_module(tree, index);
    module->leaf = TRUE;
    for (gint32 i = index + 1; i < module->subtree_end; i++)
        zp_ds_tree_module(tree, i)->hidden = TRUE;
    set_need(tree, module, module->first_own,
             end_of_own(tree, module->subtree_end) - module->first_own);
}

/* Modules and elements of the subtree as the granularity rule counts them: modules without
 * parameters do not count, tied parameters count each time. */
typedef struct {
    gint64 modules, elements;
} Grain;

static Grain
measure_granularity(const ZpDsTree *tree, gint32 index, gint64 *granularity)
{
    static const gint64 max_leaf_elements = 1000000000;
    const ZpDsModule *module = zp_ds_tree_module(tree, index);
    granularity[index] = G_MAXINT64;
    if (module->first_own == end_of_own(tree, module->subtree_end))
        return (Grain){0, 0};
    Grain sum = {0, 0};
    for (gint32 i = 0; i < module->n_need; i++)
        sum.elements += zp_ds_tree_parameter(tree, zp_ds_tree_need(tree, module)[i])->elements;
    if (module->subtree_end == index + 1)
        return (Grain){1, sum.elements};
    for (gint32 child = index + 1; child < module->subtree_end;
         child = zp_ds_tree_module(tree, child)->subtree_end) {
        Grain below = measure_granularity(tree, child, granularity);
        sum.modules += below.modules;
        sum.elements += below.elements;
    }
    if (module->container)
        return sum;
    sum.modules++;
    if (sum.elements <= max_leaf_elements)
        granularity[index] = sum.elements / sum.modules;
    return sum;
}

gboolean
zp_ds_tree_mark_leaves(ZpDsTree *tree, gint64 threshold)
{
    gint32 n = (gint32)tree->modules->len;
    g_autofree gint64 *granularity = g_new(gint64, (gsize)n);
    for (gint32 i = 0; i < n; i++)
        granularity[i] = G_MAXINT64;
    measure_granularity(tree, 0, granularity);
    gboolean any = FALSE;
    for (gint32 i = 0; i < n;) {
        if (granularity[i] <= threshold) {
            zp_ds_tree_set_leaf(tree, i);
            any = TRUE;
            i = zp_ds_tree_module(tree, i)->subtree_end;
        } else
            i++;
    }
    return any;
}

void
zp_ds_tree_mark_persistent(ZpDsTree *tree, gint64 parameter_threshold, gint64 model_threshold)
{
    gint64 total = 0;
    for (guint i = 0; i < tree->parameters->len; i++) {
        ZpDsParameter *parameter = zp_ds_tree_parameter(tree, (gint32)i);
        parameter->persistent = parameter->elements <= parameter_threshold &&
                                parameter->elements <= model_threshold - total;
        if (parameter->persistent)
            total += parameter->elements;
    }
}

gint32
zp_ds_tree_find_module(const ZpDsTree *tree, const char *name)
{
    const char *interned = g_intern_string(name);
    for (guint i = 0; i < tree->modules->len; i++)
        if (zp_ds_tree_module(tree, (gint32)i)->name == interned)
            return (gint32)i;
    return ZP_MODEL_NONE;
}
