/* Release decisions: DeepSpeed 0.19, partitioned_param_coordinator.py (__params_to_release,
 * release_sub_module). */
#include "models/runtimes/deepspeed/coordinator/coordinator_internal.h"

static const ZpDsMemo *
find_memo(const ZpDsCoordinator *self, gint32 module)
{
    if ((guint)self->step_id >= self->memo_of_step->len)
        return NULL;
    for (gint32 m = g_array_index(self->memo_of_step, gint32, self->step_id); m >= 0;) {
        const ZpDsMemo *memo = &g_array_index(self->memos, ZpDsMemo, m);
        if (memo->module == module)
            return memo;
        m = memo->previous;
    }
    return NULL;
}

static void
remember(ZpDsCoordinator *self, gint32 module, guint offset)
{
    const gint32 none = -1;
    while (self->memo_of_step->len <= (guint)self->step_id)
        g_array_append_val(self->memo_of_step, none);
    gint32 *last = &g_array_index(self->memo_of_step, gint32, self->step_id);
    ZpDsMemo memo = {module, *last, offset};
    *last = (gint32)self->memos->len;
    g_array_append_val(self->memos, memo);
}

/* Which of the module's needs may be released at this step of the trace.  The decision is
 * memoised for ever, even when the trace is recorded again. */
const guint8 *
zp_ds_decide_release(ZpDsCoordinator *self, gint32 index)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    const ZpDsMemo *known = find_memo(self, index);
    if (known != NULL)
        return self->decisions->data + known->offset;
    guint offset = self->decisions->len;
    g_byte_array_set_size(self->decisions, offset + (guint)module->n_need);
    guint8 *decision = self->decisions->data + offset;
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    gint32 candidates = 0;
    for (gint32 i = 0; i < module->n_need; i++) {
        decision[i] = !zp_ds_tree_parameter(self->tree, ids[i])->persistent &&
                      self->states[ids[i]].fetched_for <= self->step_id;
        candidates += decision[i];
    }
    gint64 traversed = 0;
    for (guint step = (guint)self->step_id; step < self->modules->len && candidates > 0 &&
                                            traversed < self->config.max_reuse_distance_elements;
         step++) {
        const ZpDsModule *visited =
            zp_ds_tree_module(self->tree, g_array_index(self->modules, gint32, step));
        /* The scan recurses according to the released module, not the visited one. */
        gint32 first = visited->first_own;
        gint32 end = module->leaf
                         ? (visited->subtree_end < (gint32)self->tree->modules->len
                                ? zp_ds_tree_module(self->tree, visited->subtree_end)->first_own
                                : (gint32)self->tree->owned->len)
                         : first + visited->n_own;
        gint64 own = 0;
        for (gint32 k = first; k < end; k++) {
            gint32 id = g_array_index(self->tree->owned, gint32, (guint)k);
            own += zp_ds_tree_parameter(self->tree, id)->elements;
            for (gint32 i = 0; i < module->n_need; i++)
                if (ids[i] == id && decision[i]) {
                    decision[i] = FALSE;
                    candidates--;
                }
        }
        traversed += module->leaf ? visited->subtree_elements : own;
    }
    remember(self, index, offset);
    return decision;
}

/* Sets the module inactive on what it needs and on what recomputations fetched for it, and
 * releases what may go, in ascending order. */
void
zp_ds_release_needs(ZpDsCoordinator *self, gint32 index, gboolean backward, const guint8 *decision)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    GArray *extra = backward ? self->recompute[index] : NULL;
    guint n_extra = extra != NULL ? extra->len : 0;
    guint k = 0;
    for (gint32 i = 0; i < module->n_need || k < n_extra;) {
        gint32 own = i < module->n_need ? ids[i] : G_MAXINT32;
        gint32 other = k < n_extra ? g_array_index(extra, gint32, k) : G_MAXINT32;
        gint32 id = MIN(own, other);
        gboolean allowed = FALSE;
        if (own == id) {
            self->states[id].active &=
                ~(G_GUINT64_CONSTANT(1) << self->need_bits[module->first_need + i]);
            allowed = decision == NULL || decision[i];
            i++;
        }
        if (other == id) {
            allowed |= !zp_ds_tree_parameter(self->tree, id)->persistent;
            if (own != id && self->states[id].attributed > 0)
                self->states[id].attributed--;
            k++;
        }
        if (allowed)
            zp_ds_release_parameter(self, id);
    }
    if (extra != NULL)
        g_array_set_size(extra, 0);
}
