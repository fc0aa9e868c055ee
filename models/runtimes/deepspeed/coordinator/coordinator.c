#include "models/runtimes/deepspeed/coordinator/coordinator_internal.h"

/* Which bit of ZpDsParameterState.active a module has for each parameter it needs. */
static void
number_users(ZpDsCoordinator *self)
{
    const ZpDsTree *tree = self->tree;
    g_autofree gint8 *users = g_new0(gint8, tree->parameters->len);
    self->need_bits = g_new0(gint8, MAX(tree->needed->len, 1));
    for (guint m = 0; m < tree->modules->len; m++) {
        const ZpDsModule *module = zp_ds_tree_module(tree, (gint32)m);
        for (gint32 i = 0; i < module->n_need && !module->hidden; i++) {
            gint32 id = zp_ds_tree_need(tree, module)[i];
            g_assert(users[id] < 64);
            self->need_bits[module->first_need + i] = users[id]++;
        }
    }
}

ZpDsCoordinator *
zp_ds_coordinator_new(const ZpDsTree *tree, const ZpDsCoordinatorConfig *config)
{
    ZpDsCoordinator *self = g_new0(ZpDsCoordinator, 1);
    self->tree = tree;
    self->config = *config;
    self->states = g_new0(ZpDsParameterState, MAX(tree->parameters->len, 1));
    for (guint i = 0; i < tree->parameters->len; i++) {
        self->states[i].gather = -1;
        self->states[i].fetched_for = ZP_DS_NEVER;
        /* Partitioning at construction makes the first secondary partitions. */
        self->states[i].secondary = config->secondary_ranks > 1;
    }
    number_users(self);
    self->modules = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->parameters = g_array_new(FALSE, FALSE, sizeof(ZpDsTraced));
    self->gathers = g_array_new(FALSE, TRUE, sizeof(ZpDsGatherHandle));
    self->gathered = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->registry = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->scratch = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->backward = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->recompute = g_new0(GArray *, tree->modules->len);
    self->memo_of_step = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->memos = g_array_new(FALSE, FALSE, sizeof(ZpDsMemo));
    self->decisions = g_byte_array_new();
    return self;
}

void
zp_ds_coordinator_free(ZpDsCoordinator *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < self->tree->modules->len; i++)
        if (self->recompute[i] != NULL)
            g_array_unref(self->recompute[i]);
    g_free(self->recompute);
    g_free(self->states);
    g_free(self->need_bits);
    g_array_unref(self->modules);
    g_array_unref(self->parameters);
    g_array_unref(self->gathers);
    g_array_unref(self->gathered);
    g_array_unref(self->registry);
    g_array_unref(self->scratch);
    g_array_unref(self->backward);
    g_array_unref(self->memo_of_step);
    g_array_unref(self->memos);
    g_byte_array_unref(self->decisions);
    g_free(self);
}

void
zp_ds_coordinator_listen(ZpDsCoordinator *self, ZpDsListener listener, gpointer data)
{
    self->listener = listener;
    self->data = data;
}

gint64
zp_ds_coordinator_take_max_available(ZpDsCoordinator *self)
{
    gint64 max = self->max_available;
    self->max_available = 0;
    return max;
}

const char *
zp_ds_coordinator_error(const ZpDsCoordinator *self)
{
    return self->error;
}

/* Trace */

static void
forget_fetches(ZpDsCoordinator *self)
{
    for (guint i = 0; i < self->tree->parameters->len; i++)
        self->states[i].fetched_for = ZP_DS_NEVER;
}

static void
build_parameter_trace(ZpDsCoordinator *self)
{
    g_array_set_size(self->parameters, 0);
    for (guint step = 0; step < self->modules->len; step++) {
        const ZpDsModule *module =
            zp_ds_tree_module(self->tree, g_array_index(self->modules, gint32, step));
        for (gint32 i = 0; i < module->n_need; i++) {
            ZpDsTraced traced = {zp_ds_tree_need(self->tree, module)[i], (gint32)step};
            g_array_append_val(self->parameters, traced);
        }
    }
}

void
zp_ds_coordinator_reset_step(ZpDsCoordinator *self)
{
    zp_ds_clean_registry(self);
    if (self->mode != ZP_DS_TRACE_COMPLETE) {
        zp_ds_emit_plain(self, ZP_DS_CHECK, ZP_MODEL_NONE, FALSE, self->modules->len);
        if (self->mode == ZP_DS_TRACE_RECORD) {
            build_parameter_trace(self);
            zp_ds_emit_plain(self, ZP_DS_CHECK, ZP_MODEL_NONE, FALSE, self->parameters->len);
            zp_ds_emit_plain(self, ZP_DS_CHECK, ZP_MODEL_NONE, FALSE, self->parameters->len);
            self->mode = ZP_DS_TRACE_COMPLETE;
        } else
            self->mode = ZP_DS_TRACE_RECORD;
    }
    self->queue = 0;
    forget_fetches(self);
    self->step_id = 0;
    self->n_available = 0;
}

static void
invalidate(ZpDsCoordinator *self)
{
    self->mode = ZP_DS_TRACE_INVALID;
    g_array_set_size(self->modules, 0);
    g_array_set_size(self->parameters, 0);
    forget_fetches(self);
    zp_ds_emit_plain(self, ZP_DS_INVALID, ZP_MODEL_NONE, FALSE, 0);
    zp_ds_clean_registry(self);
}

/* What a pre-hook does first: the trace must expect this module, or it is recorded. */
static void
follow_trace(ZpDsCoordinator *self, gint32 module)
{
    if (self->mode == ZP_DS_TRACE_COMPLETE &&
        ((guint)self->step_id >= self->modules->len ||
         g_array_index(self->modules, gint32, (guint)self->step_id) != module))
        invalidate(self);
    else if (self->mode == ZP_DS_TRACE_RECORD)
        g_array_append_val(self->modules, module);
}

/* Hooks */

static void
leave_backward(ZpDsCoordinator *self, gint32 index)
{
    for (guint i = 0; i < self->backward->len; i++)
        if (g_array_index(self->backward, gint32, i) == index) {
            g_array_remove_index(self->backward, i);
            return;
        }
}

void
zp_ds_coordinator_pre_forward(ZpDsCoordinator *self, gint32 module, gboolean recompute)
{
    zp_ds_emit_plain(self, ZP_DS_FORWARD_PRE, module, recompute, 0);
    follow_trace(self, module);
    zp_ds_fetch(self, module, recompute);
}

void
zp_ds_coordinator_post_forward(ZpDsCoordinator *self, gint32 module, gboolean recompute)
{
    zp_ds_emit_plain(self, ZP_DS_FORWARD_POST, module, recompute, 0);
    zp_ds_release_needs(self, module, FALSE,
                        self->mode == ZP_DS_TRACE_COMPLETE ? zp_ds_decide_release(self, module)
                                                           : NULL);
}

void
zp_ds_coordinator_pre_backward(ZpDsCoordinator *self, gint32 module)
{
    zp_ds_emit_plain(self, ZP_DS_BACKWARD_PRE, module, FALSE, 0);
    follow_trace(self, module);
    gboolean present = FALSE;
    for (guint i = 0; i < self->backward->len; i++)
        present |= g_array_index(self->backward, gint32, i) == module;
    if (!present)
        g_array_append_val(self->backward, module);
    zp_ds_fetch(self, module, FALSE);
}

void
zp_ds_coordinator_post_backward(ZpDsCoordinator *self, gint32 module)
{
    zp_ds_emit_plain(self, ZP_DS_BACKWARD_POST, module, FALSE, 0);
    const guint8 *decision =
        self->mode == ZP_DS_TRACE_COMPLETE ? zp_ds_decide_release(self, module) : NULL;
    leave_backward(self, module);
    zp_ds_release_needs(self, module, TRUE, decision);
}

void
zp_ds_coordinator_leftovers(ZpDsCoordinator *self)
{
    zp_ds_emit_plain(self, ZP_DS_LEFTOVERS, ZP_MODEL_NONE, FALSE, 0);
    while (self->backward->len > 0) {
        gint32 index = g_array_index(self->backward, gint32, self->backward->len - 1);
        g_array_set_size(self->backward, self->backward->len - 1);
        const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
        g_autofree guint8 *decision = g_new(guint8, (gsize)module->n_need);
        for (gint32 i = 0; i < module->n_need; i++)
            decision[i] = !zp_ds_tree_parameter(self->tree, zp_ds_tree_need(self->tree, module)[i])
                               ->persistent;
        zp_ds_release_needs(self, index, TRUE, decision);
    }
}

void
zp_ds_coordinator_step(ZpDsCoordinator *self)
{
    zp_ds_emit_plain(self, ZP_DS_STEP, ZP_MODEL_NONE, FALSE, 0);
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        zp_ds_pop_and_wait(self, id);
        self->states[id].active = 0;
        self->states[id].attributed = 0;
        zp_ds_release_parameter(self, id);
    }
}

void
zp_ds_coordinator_persist(ZpDsCoordinator *self)
{
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        if (!zp_ds_tree_parameter(self->tree, id)->persistent)
            continue;
        self->states[id].status = ZP_DS_AVAILABLE;
        zp_ds_emit_parameter(self, ZP_DS_PERSIST, id);
    }
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        const ZpDsParameter *parameter = zp_ds_tree_parameter(self->tree, id);
        ZpDsParameterState *state = &self->states[id];
        if (parameter->trainable && state->secondary) {
            state->secondary = FALSE;
            zp_ds_emit_parameter(self, ZP_DS_DROP_SECONDARY, id);
        }
    }
}
