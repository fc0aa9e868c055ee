#include "models/runtimes/deepspeed_gathers.h"

gint64
zp_ds_secondary_elements(gint64 elements, gint32 ranks, gint32 secondary_ranks)
{
    return zp_ds_partition_elements(elements, ranks) * ranks / secondary_ranks;
}

gint64
zp_ds_quantizer_groups(gint64 elements)
{
    if (elements <= 0 || elements % 8 != 0)
        return -1;
    gint64 eighths = elements / 8;
    gint64 least = (elements + 7999) / 8000;
    gint64 best = eighths;
    for (gint64 d = 1; d <= eighths / d; d++) {
        if (eighths % d != 0)
            continue;
        if (d >= least)
            return MIN(best, d);
        if (eighths / d >= least)
            best = MIN(best, eighths / d);
    }
    return best;
}

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

static gint64
aligned_elements(const ZpDsGathers *self, gint32 id)
{
    gint32 ranks = self->ds->shard_ranks;
    return zp_ds_partition_elements(zp_ds_tree_parameter(self->tree, id)->elements, ranks) * ranks;
}

static void
make_parameter(ZpDsGathers *self, gint32 id, gint64 elements, ZpClass class_id, ZpRole role)
{
    ZpDs *ds = self->ds;
    self->buffers[id] =
        zp_ds_make(ds, ZP_DS_STREAM_GATHER, class_id, role, zp_ds_bytes(ds->model, elements));
    if (self->buffers[id] != ZP_TAPE_NONE)
        ds->tape->buffers[self->buffers[id]].parameter =
            zp_ds_tree_parameter(self->tree, id)->model_index;
}

static int
gather_group(const ZpDsEvent *event)
{
    return event->secondary ? ZP_DS_GROUP_SECONDARY : ZP_DS_GROUP_SHARD;
}

/* int8 travels: qwZ quantises at every gather, frozen partitions may be stored so. */
static gboolean
is_quantised(const ZpDsGathers *self, const ZpDsEvent *event)
{
    return self->ds->settings->quantized_weights || event->quantised;
}

/* The local partitions come from the host first when parameters are offloaded. */
static void
fetch_partitions(ZpDsGathers *self, const ZpDsEvent *event)
{
    ZpDs *ds = self->ds;
    if (ds->settings->offload_param.device == ZP_DS_NOWHERE || event->secondary)
        return;
    gint64 elements = event->flat_elements / ds->shard_ranks;
    gint64 local = is_quantised(self, event) ? elements : zp_ds_bytes(ds->model, elements);
    gint32 staging = zp_ds_make(ds, ZP_DS_STREAM_GATHER, ZP_CLASS_GATHERED, ZP_ROLE_SHARD, local);
    zp_ds_wait_stream(ds, ZP_DS_STREAM_TO_DEVICE, ZP_DS_STREAM_GATHER);
    if (ds->settings->offload_param.device == ZP_DS_NVME)
        zp_ds_wait_stream(ds, ZP_DS_STREAM_TO_DEVICE, ZP_DS_STREAM_NVME);
    zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, local);
    zp_ds_wait_stream(ds, ZP_DS_STREAM_GATHER, ZP_DS_STREAM_TO_DEVICE);
    /* A blocking .to(): the host waits for the copy. */
    zp_ds_sync_stream(ds, ZP_DS_STREAM_TO_DEVICE);
    zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &staging);
}

/* int8 and scales instead of the model's format; temporaries die with the launch. */
static void
launch_quantized(ZpDsGathers *self, const ZpDsEvent *event, ZpDsFlat *flat)
{
    ZpDs *ds = self->ds;
    gint32 group_size = ds->tape->groups[gather_group(event)].size;
    gint64 local = event->flat_elements / group_size;
    gint64 groups = MAX(zp_ds_quantizer_groups(local), 1);
    guint8 stream = ZP_DS_STREAM_GATHER;
    gint32 half = event->quantised
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_GATHERED, ZP_ROLE_QUANTIZED, 2 * local);
    gint32 cast = ds->model == ZP_DTYPE_FP16 || event->quantised
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_GATHERED, ZP_ROLE_QUANTIZED,
                                   zp_ds_bytes(ds->model, local));
    gint32 own = zp_ds_make(ds, stream, ZP_CLASS_GATHERED, ZP_ROLE_QUANTIZED, local);
    gint32 own_scales = zp_ds_make(ds, stream, ZP_CLASS_GATHERED, ZP_ROLE_QUANTIZED, 4 * groups);
    zp_ds_memory_kernel(ds, stream, 7 * local);
    zp_ds_drop(ds, stream, &half);
    zp_ds_drop(ds, stream, &cast);
    flat->payload =
        zp_ds_make(ds, stream, ZP_CLASS_GATHERED, ZP_ROLE_QUANTIZED, event->flat_elements);
    flat->scales =
        zp_ds_make(ds, stream, ZP_CLASS_GATHERED, ZP_ROLE_QUANTIZED, 4 * groups * group_size);
    ZpDsCollective payload = {
        ZP_KIND_ALL_GATHER, event->flat_elements, ZP_DTYPE_INT8, gather_group(event), stream, 0};
    zp_ds_launch(ds, &payload);
    ZpDsCollective scales = {
        ZP_KIND_ALL_GATHER, groups * group_size, ZP_DTYPE_FP32, gather_group(event), stream, 0};
    flat->done = zp_ds_launch(ds, &scales);
    zp_ds_drop(ds, stream, &own);
    zp_ds_drop(ds, stream, &own_scales);
}

static gboolean
uses_all_reduce(const ZpDsGathers *self, const ZpDsEvent *event)
{
    const ZpDeepspeed *settings = self->ds->settings;
    return settings->all_reduce_for_fetch && event->n_ids > 1 && !event->secondary &&
           !is_quantised(self, event);
}

/* MiCS gathers straight into one buffer a parameter (MI:_flat_all_gather_with_coalescing). */
static gboolean
gathers_in_place(const ZpDsGathers *self, const ZpDsEvent *event)
{
    return event->n_ids == 1 || self->ds->settings->mics_shard_ranks > 0;
}

/* Hierarchical MiCS: between the nodes first, whose output is cloned, then inside the node. */
static gint32
gather_in_two(ZpDsGathers *self, const ZpDsEvent *event, ZpDsFlat *flat)
{
    ZpDs *ds = self->ds;
    gint64 across = event->flat_elements / ds->tape->groups[ZP_DS_GROUP_SHARD_NODE].size;
    ZpDsCollective first = {ZP_KIND_ALL_GATHER,  across, ds->model, ZP_DS_GROUP_SHARD_ACROSS,
                            ZP_DS_STREAM_GATHER, 0};
    zp_ds_collective(ds, &first);
    flat->payload = zp_ds_make(ds, ZP_DS_STREAM_GATHER, ZP_CLASS_GATHERED, ZP_ROLE_ALL_GATHER,
                               zp_ds_bytes(ds->model, across));
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_GATHER, zp_ds_bytes(ds->model, 2 * across));
    ZpDsCollective second = {ZP_KIND_ALL_GATHER,     event->flat_elements, ds->model,
                             ZP_DS_GROUP_SHARD_NODE, ZP_DS_STREAM_GATHER,  0};
    return zp_ds_launch(ds, &second);
}

static gboolean
gathers_in_two(const ZpDsGathers *self)
{
    const ZpDs *ds = self->ds;
    return ds->settings->mics_shard_ranks > 0 && ds->settings->mics_hierarchical &&
           ds->tape->groups[ZP_DS_GROUP_SHARD_ACROSS].size > 1;
}

/* A single rank gathers nothing: a parameter is its partition, or a copy of the host's. */
static void
copy_alone(ZpDsGathers *self, const ZpDsEvent *event, ZpClass class_id, ZpRole role)
{
    if (self->ds->settings->offload_param.device == ZP_DS_NOWHERE)
        return;
    for (gint32 i = 0; i < event->n_ids; i++)
        make_parameter(self, event->ids[i],
                       zp_ds_tree_parameter(self->tree, event->ids[i])->elements, class_id, role);
    fetch_partitions(self, event);
}

static void
launch(ZpDsGathers *self, const ZpDsEvent *event)
{
    ZpDs *ds = self->ds;
    if (ds->shard_ranks == 1) {
        copy_alone(self, event, ZP_CLASS_GATHERED, ZP_ROLE_UNSHARDED);
        return;
    }
    ZpDsFlat *flat = g_new(ZpDsFlat, 1);
    *flat =
        (ZpDsFlat){ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, 0, event->flat_elements};
    g_hash_table_insert(self->flats, GINT_TO_POINTER(event->gather), flat);
    fetch_partitions(self, event);
    if (is_quantised(self, event)) {
        launch_quantized(self, event, flat);
        return;
    }
    if (gathers_in_place(self, event))
        for (gint32 i = 0; i < event->n_ids; i++)
            make_parameter(self, event->ids[i], aligned_elements(self, event->ids[i]),
                           ZP_CLASS_GATHERED, ZP_ROLE_UNSHARDED);
    else
        flat->flat = zp_ds_make(ds, ZP_DS_STREAM_GATHER, ZP_CLASS_GATHERED, ZP_ROLE_ALL_GATHER,
                                zp_ds_bytes(ds->model, event->flat_elements));
    gboolean all_reduce = uses_all_reduce(self, event);
    if (all_reduce) {
        flat->users = event->n_ids;
        for (gint32 i = 0; i < event->n_ids; i++)
            self->flat_of[event->ids[i]] = event->gather;
    }
    if (!gathers_in_place(self, event))
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_GATHER,
                            zp_ds_bytes(ds->model, 2 * event->flat_elements / ds->shard_ranks));
    ZpDsCollective collective = {all_reduce ? ZP_KIND_ALL_REDUCE : ZP_KIND_ALL_GATHER,
                                 event->flat_elements,
                                 ds->model,
                                 gather_group(event),
                                 ZP_DS_STREAM_GATHER,
                                 0};
    flat->done =
        gathers_in_two(self) ? gather_in_two(self, event, flat) : zp_ds_launch(ds, &collective);
}

static void
wait(ZpDsGathers *self, const ZpDsEvent *event)
{
    ZpDs *ds = self->ds;
    ZpDsFlat *flat = g_hash_table_lookup(self->flats, GINT_TO_POINTER(event->gather));
    if (flat == NULL)
        return;
    zp_ds_join(ds, ZP_DS_STREAM_GATHER, flat->done);
    flat->done = ZP_TAPE_NONE;
    gboolean quantized = is_quantised(self, event);
    if (quantized) {
        flat->flat = zp_ds_make(ds, ZP_DS_STREAM_GATHER, ZP_CLASS_GATHERED, ZP_ROLE_ALL_GATHER,
                                2 * flat->elements);
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_GATHER, 3 * flat->elements);
    }
    if (gathers_in_place(self, event) && !quantized) {
        zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &flat->payload);
        return;
    }
    if (flat->users > 0)
        return;
    for (gint32 i = 0; i < event->n_ids; i++)
        make_parameter(self, event->ids[i],
                       zp_ds_tree_parameter(self->tree, event->ids[i])->elements, ZP_CLASS_GATHERED,
                       ZP_ROLE_UNSHARDED);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_GATHER, zp_ds_bytes(ds->model, 2 * event->elements));
    /* A handle of one parameter is dropped with its wait. */
    if (quantized && event->n_ids == 1) {
        zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &flat->flat);
        zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &flat->payload);
        zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &flat->scales);
    }
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

/* Blocking: one collective a parameter, in place. */
static void
persist(ZpDsGathers *self, const ZpDsEvent *event)
{
    ZpDs *ds = self->ds;
    if (ds->shard_ranks == 1) {
        copy_alone(self, event, ZP_CLASS_PARAMETER, ZP_ROLE_PERSISTENT_PARAMETER);
        return;
    }
    make_parameter(self, event->ids[0], event->flat_elements, ZP_CLASS_PARAMETER,
                   ZP_ROLE_PERSISTENT_PARAMETER);
    fetch_partitions(self, event);
    ZpDsCollective collective = {ZP_KIND_ALL_GATHER, event->flat_elements, ds->model,
                                 ZP_DS_GROUP_SHARD,  ZP_DS_STREAM_COMPUTE, 0};
    zp_ds_collective(ds, &collective);
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
        launch(self, event);
        break;
    case ZP_DS_WAIT:
        wait(self, event);
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
        persist(self, event);
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
