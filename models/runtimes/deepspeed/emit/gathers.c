#include "models/runtimes/deepspeed/emit/gathers.h"

void
zp_ds_gathers_init(ZpDsGathers *self, ZpDs *ds, const ZpDsTree *tree)
{
    self->ds = ds;
    self->tree = tree;
    guint n = MAX(tree->parameters->len, 1);
    self->buffers = g_new(gint32, n);
    self->flat_of = g_new(gint32, n);
    self->secondary = g_new(gint32, n);
    self->saved = g_new(gint32, n);
    for (guint i = 0; i < n; i++) {
        self->buffers[i] = self->secondary[i] = self->saved[i] = ZP_TAPE_NONE;
        self->flat_of[i] = -1;
    }
    self->flats = g_hash_table_new_full(NULL, NULL, NULL, g_free);
}

void
zp_ds_gathers_clear(ZpDsGathers *self)
{
    g_clear_pointer(&self->buffers, g_free);
    g_clear_pointer(&self->flat_of, g_free);
    g_clear_pointer(&self->secondary, g_free);
    g_clear_pointer(&self->saved, g_free);
    g_clear_pointer(&self->flats, g_hash_table_unref);
    g_queue_clear(&self->fetched);
}

static void
free_flat(ZpDsGathers *self, gint32 gather)
{
    ZpDsFlat *flat = g_hash_table_lookup(self->flats, GINT_TO_POINTER(gather));
    if (flat == NULL || flat->users > 0)
        return;
    zp_ds_drop(self->ds, ZP_DS_STREAM_GATHER, &flat->flat);
    zp_ds_drop(self->ds, ZP_DS_STREAM_GATHER, &flat->payload);
    zp_ds_drop(self->ds, ZP_DS_STREAM_GATHER, &flat->scales);
    g_hash_table_remove(self->flats, GINT_TO_POINTER(gather));
}

static void
release(ZpDsGathers *self, gint32 id)
{
    gint32 gather = self->flat_of[id];
    if (gather >= 0) {
        ZpDsFlat *flat = g_hash_table_lookup(self->flats, GINT_TO_POINTER(gather));
        self->flat_of[id] = -1;
        flat->users--;
        free_flat(self, gather);
        return;
    }
    if (self->buffers[id] != ZP_TAPE_NONE && !self->ds->silent)
        zp_tape_use(self->ds->tape, ZP_DS_STREAM_COMPUTE, self->buffers[id]);
    if (self->saves && self->saved[id] == ZP_TAPE_NONE) {
        self->saved[id] = self->buffers[id];
        self->buffers[id] = ZP_TAPE_NONE;
        return;
    }
    zp_ds_drop(self->ds, ZP_DS_STREAM_GATHER, &self->buffers[id]);
}

/* Without memory_efficient_linear autograd keeps a view of a linear's weight from its forward to
 * its backward: the release in between frees nothing.  Not under checkpointing, whose first
 * forward keeps no graph. */
static void
follow_linear(ZpDsGathers *self, const ZpDsEvent *event)
{
    if (self->ds->settings->memory_efficient_linear || event->module == ZP_MODEL_NONE)
        return;
    const ZpDsModule *module = zp_ds_tree_module(self->tree, event->module);
    self->saves = FALSE;
    if (event->kind == ZP_DS_FORWARD_POST) {
        gboolean graph = TRUE;
        for (gint32 m = event->module; m != ZP_MODEL_NONE;
             m = zp_ds_tree_module(self->tree, m)->parent)
            graph &= !zp_ds_tree_module(self->tree, m)->checkpointed;
        self->saves = module->linear && (graph || event->recompute);
    }
    for (gint32 i = 0; event->kind == ZP_DS_BACKWARD_POST && i < module->n_need; i++)
        zp_ds_drop(self->ds, ZP_DS_STREAM_GATHER,
                   &self->saved[zp_ds_tree_need(self->tree, module)[i]]);
}

static void
make_secondary(ZpDsGathers *self, gint32 id)
{
    ZpDs *ds = self->ds;
    gint32 group = ds->tape->groups[ZP_DS_GROUP_SECONDARY].size;
    gint64 bytes = zp_ds_bytes(
        ds->model, zp_ds_secondary_elements(zp_ds_tree_parameter(self->tree, id)->elements,
                                            ds->shard_ranks, group));
    self->secondary[id] =
        ds->settings->offload_param.device == ZP_DS_NOWHERE
            ? zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SECONDARY_SHARD,
                         bytes)
            : zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SECONDARY_SHARD, bytes, TRUE);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, 2 * bytes);
    zp_ds_sync_stream(ds, ZP_DS_STREAM_COMPUTE);
}

/* max_ongoing_fetch_events = 2: with more unfinished waits than that the host synchronises the
 * oldest before the next. */
static void
bound_run_ahead(ZpDsGathers *self)
{
    if (self->fetched.length > 2)
        zp_tape_sync(self->ds->tape, GPOINTER_TO_INT(g_queue_pop_head(&self->fetched)));
}

static void
record_fetch(ZpDsGathers *self)
{
    if (self->ds->silent || self->fast)
        return;
    gint32 event = zp_tape_record(self->ds->tape, ZP_DS_STREAM_GATHER);
    g_queue_push_tail(&self->fetched, GINT_TO_POINTER(event));
}

void
zp_ds_gathers_handle(ZpDsGathers *self, const ZpDsEvent *event)
{
    ZpDs *ds = self->ds;
    switch (event->kind) {
    case ZP_DS_GATHER:
        zp_ds_gathers_launch(self, event);
        break;
    case ZP_DS_WAIT:
        zp_ds_gathers_wait(self, event);
        break;
    case ZP_DS_POP:
        bound_run_ahead(self);
        break;
    case ZP_DS_POPPED:
        record_fetch(self);
        break;
    case ZP_DS_RELEASE:
        release(self, event->ids[0]);
        break;
    case ZP_DS_FLAT_FREED:
        free_flat(self, event->gather);
        break;
    case ZP_DS_COMPUTE_WAIT:
        zp_ds_wait_stream(ds, ZP_DS_STREAM_COMPUTE, ZP_DS_STREAM_GATHER);
        break;
    case ZP_DS_PERSIST:
        zp_ds_gathers_persist(self, event);
        break;
    case ZP_DS_SWAP_IN:
    case ZP_DS_READ_AHEAD:
        zp_ds_nvme(ds, ZP_KIND_NVME_READ, zp_ds_bytes(ds->model, event->elements),
                   event->kind == ZP_DS_SWAP_IN);
        break;
    case ZP_DS_SECONDARY:
        make_secondary(self, event->ids[0]);
        break;
    case ZP_DS_DROP_SECONDARY:
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &self->secondary[event->ids[0]]);
        break;
    case ZP_DS_CHECK:
        for (int i = 0; i < 2; i++) {
            ZpDsCollective check = {ZP_KIND_BROADCAST, i == 0 ? 1 : event->elements, ZP_DS_INT64,
                                    ZP_DS_GROUP_WORLD, ZP_DS_STREAM_COMPUTE,         0};
            zp_ds_collective(ds, &check);
        }
        break;
    case ZP_DS_FORWARD_PRE:
    case ZP_DS_FORWARD_POST:
    case ZP_DS_BACKWARD_PRE:
    case ZP_DS_BACKWARD_POST:
        follow_linear(self, event);
        break;
    case ZP_DS_LEFTOVERS:
        self->saves = FALSE;
        for (guint id = 0; id < self->tree->parameters->len; id++)
            zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &self->saved[id]);
        break;
    case ZP_DS_FORWARD_RUN:
    case ZP_DS_BACKWARD_RUN:
    case ZP_DS_STEP:
    case ZP_DS_INVALID:
        break;
    }
}
