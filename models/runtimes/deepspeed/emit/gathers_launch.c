/* The gathers themselves: what is allocated, sent and waited for. */
#include "models/runtimes/deepspeed/emit/gathers.h"

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

void
zp_ds_gathers_launch(ZpDsGathers *self, const ZpDsEvent *event)
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

void
zp_ds_gathers_wait(ZpDsGathers *self, const ZpDsEvent *event)
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

/* Blocking: one collective a parameter, in place. */
void
zp_ds_gathers_persist(ZpDsGathers *self, const ZpDsEvent *event)
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
