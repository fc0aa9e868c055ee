/* Gathers and prefetch: DeepSpeed 0.19, partitioned_param_coordinator.py
 * (_fetch_sub_module_impl, __all_gather_params_, __release_param). */
#include "models/runtimes/deepspeed/coordinator/coordinator_internal.h"

static void
emit(ZpDsCoordinator *self, const ZpDsEvent *event)
{
    if (self->listener != NULL)
        self->listener(event, self->data);
}

void
zp_ds_emit_parameter(ZpDsCoordinator *self, ZpDsEventKind kind, gint32 id)
{
    gint64 elements = zp_ds_tree_parameter(self->tree, id)->elements;
    ZpDsEvent event = {
        .kind = kind,
        .module = ZP_MODEL_NONE,
        .ids = &id,
        .n_ids = 1,
        .elements = elements,
        .flat_elements =
            zp_ds_partition_elements(elements, self->config.ranks) * self->config.ranks,
        .gather = -1,
    };
    emit(self, &event);
}

void
zp_ds_emit_plain(ZpDsCoordinator *self, ZpDsEventKind kind, gint32 module, gboolean recompute,
                 gint64 elements)
{
    ZpDsEvent event = {
        .kind = kind, .module = module, .recompute = recompute, .elements = elements, .gather = -1};
    emit(self, &event);
}

static void
emit_gather(ZpDsCoordinator *self, ZpDsEventKind kind, const ZpDsGatherHandle *gather,
            gboolean secondary)
{
    ZpDsEvent event = {
        .kind = kind,
        .module = ZP_MODEL_NONE,
        .ids = &g_array_index(self->gathered, gint32, (guint)gather->first),
        .n_ids = gather->n,
        .elements = gather->elements,
        .flat_elements = gather->flat_elements,
        .gather = gather->number,
        .secondary = secondary,
        .quantised = zp_ds_tree_parameter(
                         self->tree, g_array_index(self->gathered, gint32, (guint)gather->first))
                         ->quantised,
    };
    emit(self, &event);
}

static void
launch(ZpDsCoordinator *self, const gint32 *ids, gint32 n, gboolean secondary)
{
    if (n == 0)
        return;
    if (self->registry->len == 0) {
        /* No handle is referred to any more: their storage can be used again. */
        g_array_set_size(self->gathers, 0);
        g_array_set_size(self->gathered, 0);
    }
    ZpDsGatherHandle gather = {
        .number = self->n_gathers++, .references = n, .first = (gint32)self->gathered->len, .n = n};
    g_array_append_vals(self->gathered, ids, (guint)n);
    for (gint32 i = 0; i < n; i++) {
        gint64 elements = zp_ds_tree_parameter(self->tree, ids[i])->elements;
        gather.elements += elements;
        gather.flat_elements +=
            zp_ds_partition_elements(elements, self->config.ranks) * self->config.ranks;
        ZpDsParameterState *state = &self->states[ids[i]];
        state->status = ZP_DS_IN_FLIGHT;
        state->gather = (gint32)self->gathers->len;
    }
    g_array_append_val(self->gathers, gather);
    g_array_append_vals(self->registry, ids, (guint)n);
    emit_gather(self, ZP_DS_GATHER, &gather, secondary);
}

/* Partitions in self->scratch that are on NVMe get a host buffer each. */
static void
swap_in(ZpDsCoordinator *self, ZpDsEventKind kind, const gint32 *ids, gint32 n)
{
    g_autoptr(GArray) read = NULL;
    gint64 elements = 0;
    for (gint32 i = 0; i < n; i++) {
        ZpDsParameterState *state = &self->states[ids[i]];
        const ZpDsParameter *parameter = zp_ds_tree_parameter(self->tree, ids[i]);
        if (!parameter->on_nvme || state->swapped)
            continue;
        if (read == NULL)
            read = g_array_new(FALSE, FALSE, sizeof(gint32));
        state->swapped = TRUE;
        elements += zp_ds_partition_elements(parameter->elements, self->config.ranks);
        g_array_append_val(read, ids[i]);
    }
    if (read == NULL)
        return;
    self->buffers_used += (gint32)read->len;
    if (self->buffers_used > self->config.nvme_buffers)
        self->error = "not enough NVMe buffers: raise offload_param.buffer_count";
    ZpDsEvent event = {.kind = kind,
                       .module = ZP_MODEL_NONE,
                       .ids = &g_array_index(read, gint32, 0),
                       .n_ids = (gint32)read->len,
                       .elements = elements,
                       .gather = -1};
    emit(self, &event);
}

static void
swap_out(ZpDsCoordinator *self, gint32 id)
{
    if (!self->states[id].swapped)
        return;
    self->states[id].swapped = FALSE;
    self->buffers_used--;
}

static void
gather_some(ZpDsCoordinator *self, const gint32 *ids, gint32 n, gboolean quantised,
            gboolean secondary)
{
    g_array_set_size(self->scratch, 0);
    for (gint32 i = 0; i < n; i++) {
        const ZpDsParameterState *state = &self->states[ids[i]];
        const ZpDsParameter *parameter = zp_ds_tree_parameter(self->tree, ids[i]);
        if (state->status != ZP_DS_NOT_AVAILABLE || state->secondary != secondary ||
            parameter->quantised != quantised)
            continue;
        self->n_available += parameter->elements;
        g_array_append_val(self->scratch, ids[i]);
    }
    gint32 count = (gint32)self->scratch->len;
    if (count == 0)
        return;
    const gint32 *batch = &g_array_index(self->scratch, gint32, 0);
    swap_in(self, ZP_DS_SWAP_IN, batch, count);
    if (!self->config.sequential)
        launch(self, batch, count, secondary);
    for (gint32 i = 0; self->config.sequential && i < count; i++)
        launch(self, batch + i, 1, secondary);
    /* Persistent parameters are never partitioned again by hooks: their buffers are given back. */
    for (gint32 i = 0; i < count; i++)
        if (zp_ds_tree_parameter(self->tree, batch[i])->persistent)
            swap_out(self, batch[i]);
}

/* Ascending ids; quantised ones are gathered apart, as are those with an hpZ secondary
 * partition. */
static void
gather_parameters(ZpDsCoordinator *self, const gint32 *ids, gint32 n)
{
    for (int quantised = 1; quantised >= 0; quantised--)
        for (int secondary = 1; secondary >= 0; secondary--)
            gather_some(self, ids, n, quantised, secondary);
}

static void
wait_for(ZpDsCoordinator *self, gint32 index)
{
    ZpDsGatherHandle *gather = &g_array_index(self->gathers, ZpDsGatherHandle, (guint)index);
    if (gather->waited)
        return;
    gather->waited = TRUE;
    const gint32 *ids = &g_array_index(self->gathered, gint32, (guint)gather->first);
    for (gint32 i = 0; i < gather->n; i++)
        self->states[ids[i]].status = ZP_DS_AVAILABLE;
    emit_gather(self, ZP_DS_WAIT, gather, FALSE);
}

/* The registry lets go of a handle; the flat buffer dies with the last reference. */
static void
drop_reference(ZpDsCoordinator *self, gint32 index)
{
    ZpDsGatherHandle *gather = &g_array_index(self->gathers, ZpDsGatherHandle, (guint)index);
    if (--gather->references == 0 && gather->n > 1)
        emit_gather(self, ZP_DS_FLAT_FREED, gather, FALSE);
}

/* Takes a parameter out of the registry and waits for its handle. */
void
zp_ds_pop_and_wait(ZpDsCoordinator *self, gint32 id)
{
    gint32 index = self->states[id].gather;
    if (index < 0)
        return;
    for (guint i = 0; i < self->registry->len; i++)
        if (g_array_index(self->registry, gint32, i) == id) {
            g_array_remove_index(self->registry, i);
            break;
        }
    self->states[id].gather = -1;
    zp_ds_emit_parameter(self, ZP_DS_POP, id);
    wait_for(self, index);
    zp_ds_emit_parameter(self, ZP_DS_POPPED, id);
    drop_reference(self, index);
}

void
zp_ds_release_parameter(ZpDsCoordinator *self, gint32 id)
{
    ZpDsParameterState *state = &self->states[id];
    if (state->status != ZP_DS_AVAILABLE || state->active != 0 || state->attributed > 0)
        return;
    state->status = ZP_DS_NOT_AVAILABLE;
    if (self->config.secondary_ranks > 1 && !state->secondary) {
        state->secondary = TRUE;
        zp_ds_emit_parameter(self, ZP_DS_SECONDARY, id);
    }
    zp_ds_emit_parameter(self, ZP_DS_RELEASE, id);
    swap_out(self, id);
    self->n_available -= zp_ds_tree_parameter(self->tree, id)->elements;
}

/* Whatever is in flight is waited for and released, then the registry is emptied. */
void
zp_ds_clean_registry(ZpDsCoordinator *self)
{
    for (guint i = 0; i < self->registry->len; i++) {
        gint32 id = g_array_index(self->registry, gint32, i);
        wait_for(self, self->states[id].gather);
        zp_ds_release_parameter(self, id);
    }
    for (guint i = 0; i < self->registry->len; i++) {
        gint32 id = g_array_index(self->registry, gint32, i);
        drop_reference(self, self->states[id].gather);
        self->states[id].gather = -1;
    }
    g_array_set_size(self->registry, 0);
}

static void
prefetch(ZpDsCoordinator *self)
{
    gint64 budget = MIN(self->config.max_live_elements - self->n_available,
                        self->config.prefetch_bucket_elements);
    g_autoptr(GArray) batch = NULL;
    gint64 collected = 0;
    while (self->queue < self->parameters->len && collected < budget) {
        const ZpDsTraced *traced = &g_array_index(self->parameters, ZpDsTraced, self->queue);
        ZpDsParameterState *state = &self->states[traced->parameter];
        if (zp_ds_tree_parameter(self->tree, traced->parameter)->on_nvme && !state->swapped)
            break; /* the read-ahead brings it first: order is kept */
        self->queue++;
        state->fetched_for = MAX(state->fetched_for, traced->step);
        if (state->status != ZP_DS_NOT_AVAILABLE)
            continue;
        if (batch == NULL)
            batch = g_array_new(FALSE, FALSE, sizeof(gint32));
        guint at = batch->len;
        while (at > 0 && g_array_index(batch, gint32, at - 1) > traced->parameter)
            at--;
        if (at > 0 && g_array_index(batch, gint32, at - 1) == traced->parameter)
            continue;
        g_array_insert_val(batch, at, traced->parameter);
        collected += zp_ds_tree_parameter(self->tree, traced->parameter)->elements;
    }
    if (batch != NULL)
        gather_parameters(self, &g_array_index(batch, gint32, 0), (gint32)batch->len);
}

/* Reads ahead what follows the gathers in flight: up to twice their elements, while there are
 * buffers. */
static void
read_ahead(ZpDsCoordinator *self)
{
    gint64 in_flight = 0, considered = 0;
    for (guint i = 0; i < self->registry->len; i++)
        in_flight +=
            zp_ds_tree_parameter(self->tree, g_array_index(self->registry, gint32, i))->elements;
    g_array_set_size(self->scratch, 0);
    for (guint q = self->queue; q < self->parameters->len; q++) {
        gint32 id = g_array_index(self->parameters, ZpDsTraced, q).parameter;
        const ZpDsParameter *parameter = zp_ds_tree_parameter(self->tree, id);
        if (!parameter->on_nvme)
            continue;
        gint32 wanted = self->buffers_used + (gint32)self->scratch->len;
        if (considered > 2 * in_flight || wanted >= self->config.nvme_buffers)
            break;
        gboolean listed = self->states[id].swapped;
        for (guint i = 0; i < self->scratch->len && !listed; i++)
            listed = g_array_index(self->scratch, gint32, i) == id;
        if (!listed)
            g_array_append_val(self->scratch, id);
        considered += parameter->elements;
    }
    if (self->scratch->len > 0)
        swap_in(self, ZP_DS_READ_AHEAD, &g_array_index(self->scratch, gint32, 0),
                (gint32)self->scratch->len);
}

/* Pops the module's own entries, unless an earlier prefetch already did. */
static void
advance_queue(ZpDsCoordinator *self, const gint32 *ids, gint32 n)
{
    gint32 missing = 0;
    for (gint32 i = 0; i < n; i++)
        missing += self->states[ids[i]].fetched_for < self->step_id;
    for (; missing > 0 && self->queue < self->parameters->len; missing--) {
        const ZpDsTraced *traced = &g_array_index(self->parameters, ZpDsTraced, self->queue++);
        if (traced->step != self->step_id)
            self->error = "tracing error: the fetch queue does not start with this module";
        self->states[traced->parameter].fetched_for = traced->step;
    }
    if (missing > 0)
        self->error = "tracing error: the fetch queue is empty";
}

/* The position of a parameter among a module's needs, or -1. */
static gint32
find_need(const ZpDsCoordinator *self, const ZpDsModule *module, gint32 id)
{
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    for (gint32 i = 0; i < module->n_need; i++)
        if (ids[i] == id)
            return i;
    return -1;
}

/* A frozen parameter has no gradient hook to release it after a recomputation: the module that is
 * in backward becomes its user and releases it. */
static void
attribute_recomputation(ZpDsCoordinator *self, gint32 id)
{
    gint32 owner = g_array_index(self->backward, gint32, self->backward->len - 1);
    const ZpDsModule *module = zp_ds_tree_module(self->tree, owner);
    gint32 need = find_need(self, module, id);
    if (need >= 0)
        self->states[id].active |= G_GUINT64_CONSTANT(1)
                                   << self->need_bits[module->first_need + need];
    GArray **list = &self->recompute[owner];
    if (*list == NULL)
        *list = g_array_new(FALSE, FALSE, sizeof(gint32));
    guint at = (*list)->len;
    while (at > 0 && g_array_index(*list, gint32, at - 1) > id)
        at--;
    if (at > 0 && g_array_index(*list, gint32, at - 1) == id)
        return;
    g_array_insert_val(*list, at, id);
    self->states[id].attributed += need < 0;
}

void
zp_ds_fetch(ZpDsCoordinator *self, gint32 index, gboolean recompute)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    gather_parameters(self, ids, module->n_need);
    for (gint32 i = 0; i < module->n_need; i++) {
        self->states[ids[i]].active |= G_GUINT64_CONSTANT(1)
                                       << self->need_bits[module->first_need + i];
        if (recompute && self->backward->len > 0 &&
            !zp_ds_tree_parameter(self->tree, ids[i])->trainable)
            attribute_recomputation(self, ids[i]);
        zp_ds_pop_and_wait(self, ids[i]);
    }
    zp_ds_emit_plain(self, ZP_DS_COMPUTE_WAIT, index, recompute, 0);
    if (self->mode == ZP_DS_TRACE_COMPLETE) {
        advance_queue(self, ids, module->n_need);
        if (self->config.prefetch_bucket_elements > 0) {
            prefetch(self);
            if (self->config.nvme_buffers > 0)
                read_ahead(self);
        }
    }
    self->step_id++;
    self->max_available = MAX(self->max_available, self->n_available);
}
