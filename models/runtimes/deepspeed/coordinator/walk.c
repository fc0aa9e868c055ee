#include "models/runtimes/deepspeed/coordinator/walk.h"

void
zp_ds_walk_init(ZpDsWalk *walk, const ZpDsTree *tree, ZpDsCoordinator *coordinator)
{
    walk->tree = tree;
    walk->coordinator = coordinator;
    walk->pending = g_new0(gint32, MAX(tree->modules->len, 1));
}

void
zp_ds_walk_listen(ZpDsWalk *walk, ZpDsListener listener, gpointer data)
{
    walk->listener = listener;
    walk->data = data;
}

void
zp_ds_walk_clear(ZpDsWalk *walk)
{
    g_clear_pointer(&walk->pending, g_free);
}

static void
run(ZpDsWalk *walk, ZpDsEventKind kind, gint32 index, gboolean recompute)
{
    ZpDsEvent event = {.kind = kind, .module = index, .recompute = recompute, .gather = -1};
    if (walk->listener != NULL)
        walk->listener(&event, walk->data);
}

static void
forward(ZpDsWalk *walk, gint32 index, gboolean recompute)
{
    const ZpDsModule *module = zp_ds_tree_module(walk->tree, index);
    gboolean hooked = walk->coordinator != NULL && !module->container && !module->hidden;
    if (hooked)
        zp_ds_coordinator_pre_forward(walk->coordinator, index, recompute);
    run(walk, ZP_DS_FORWARD_RUN, index, recompute);
    for (gint32 i = 0; i < module->n_calls; i++)
        forward(walk, g_array_index(walk->tree->calls, gint32, (guint)(module->first_call + i)),
                recompute);
    if (!hooked)
        return;
    walk->pending[index] = 1;
    zp_ds_coordinator_post_forward(walk->coordinator, index, recompute);
}

static void
backward(ZpDsWalk *walk, gint32 index)
{
    const ZpDsModule *module = zp_ds_tree_module(walk->tree, index);
    if (module->no_backward)
        return;
    if (module->checkpointed)
        forward(walk, index, TRUE);
    gboolean hooked = walk->coordinator != NULL && !module->container && !module->hidden;
    if (hooked)
        zp_ds_coordinator_pre_backward(walk->coordinator, index);
    for (gint32 i = module->n_calls - 1; i >= 0; i--)
        backward(walk, g_array_index(walk->tree->calls, gint32, (guint)(module->first_call + i)));
    run(walk, ZP_DS_BACKWARD_RUN, index, FALSE);
    if (hooked && --walk->pending[index] == 0 && !module->no_post_backward)
        zp_ds_coordinator_post_backward(walk->coordinator, index);
}

void
zp_ds_walk_forward(ZpDsWalk *walk)
{
    if (walk->coordinator != NULL)
        zp_ds_coordinator_reset_step(walk->coordinator);
    forward(walk, 0, FALSE);
}

void
zp_ds_walk_backward(ZpDsWalk *walk)
{
    backward(walk, 0);
}
