#include "models/runtimes/deepspeed/emit/context.h"
#include "models/parallel/parallel.h"
#include "models/prices/layer.h"
#include "models/runtimes/shared/work.h"

int
zp_ds_dtype_bits(int dtype)
{
    if (dtype == ZP_DS_UINT8)
        return 8;
    if (dtype == ZP_DS_INT64)
        return 64;
    return zp_dtype_bits((ZpDtype)dtype);
}

/* The streams of process groups that the settings make DeepSpeed create beside the data-parallel
 * one (_create_zero_param_parallel_group and _get_local_all_to_all_group in deepspeed/utils/
 * groups.py, create_mics_comm_groups in runtime/zero/mics_utils.py). */
static void
declare_communicators(ZpDs *ds)
{
    const ZpDeepspeed *settings = ds->settings;
    gboolean mics = ds->shard_ranks != ds->ranks;
    const struct {
        const char *name;
        gboolean made;
    } groups[] = {
        [ZP_DS_GROUP_WORLD] = {"nccl", FALSE}, /* declared with the rest */
        [ZP_DS_GROUP_SHARD] = {"nccl shard", mics},
        [ZP_DS_GROUP_REPLICA] = {"nccl replica", mics},
        [ZP_DS_GROUP_SECONDARY] = {"nccl secondary", settings->hpz_partition_ranks > 1},
        [ZP_DS_GROUP_NODE] = {"nccl node", settings->quantized_gradients},
        [ZP_DS_GROUP_ACROSS] = {"nccl across", settings->quantized_gradients},
        [ZP_DS_GROUP_SHARD_NODE] = {"nccl shard node", mics && settings->mics_hierarchical},
        [ZP_DS_GROUP_SHARD_ACROSS] = {"nccl shard across", mics && settings->mics_hierarchical},
    };
    for (gsize g = 0; g < G_N_ELEMENTS(groups); g++) {
        gboolean own = groups[g].made && ds->tape->groups[g].size > 1;
        ds->communicators[g] =
            own ? zp_tape_add_stream(ds->tape, groups[g].name, ZP_TAPE_COMMUNICATION)
                : ZP_DS_STREAM_NCCL;
    }
}

static void
declare(ZpDs *ds)
{
    ZpTape *tape = ds->tape;
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "reduce", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "nccl", ZP_TAPE_COMMUNICATION);
    zp_tape_add_stream(tape, "to host", ZP_TAPE_COPY);
    zp_tape_add_stream(tape, "to device", ZP_TAPE_COPY);
    zp_tape_add_stream(tape, "host", ZP_TAPE_HOST_COMPUTE);
    zp_tape_add_stream(tape, "nvme", ZP_TAPE_COPY);
    /* In the order of ZpLink, then storage. */
    zp_tape_add_link(tape, "scale-up");
    zp_tape_add_link(tape, "network");
    zp_tape_add_link(tape, "host");
    zp_tape_add_link(tape, "nvme");
    gint32 secondary = MIN(MAX(ds->settings->hpz_partition_ranks, 1), ds->ranks);
    gint32 node = CLAMP(zp_parallel_ranks_per_node(&ds->job->network), 1, ds->ranks);
    if (ds->ranks % node != 0)
        node = 1;
    zp_tape_add_group(tape, ds->ranks, 1);
    zp_tape_add_group(tape, ds->shard_ranks, 1);
    zp_tape_add_group(tape, ds->ranks / ds->shard_ranks, ds->shard_ranks);
    zp_tape_add_group(tape, secondary, 1);
    zp_tape_add_group(tape, node, 1);
    zp_tape_add_group(tape, ds->ranks / node, node);
    gint32 local = ds->shard_ranks % node == 0 ? node : ds->shard_ranks;
    zp_tape_add_group(tape, local, 1);
    zp_tape_add_group(tape, ds->shard_ranks / local, local);
    declare_communicators(ds);
    for (int i = 0; i < ZP_N_DTYPES; i++)
        ds->labels[i] = zp_tape_add_label(tape, zp_dtype_name((ZpDtype)i));
    ds->labels[ZP_DS_UINT8] = zp_tape_add_label(tape, "uint8");
    ds->labels[ZP_DS_INT64] = zp_tape_add_label(tape, "int64");
}

gboolean
zp_ds_init(ZpDs *ds, const ZpJob *job, const ZpDeepspeed *settings, ZpTape *tape, GError **error)
{
    if (!zp_deepspeed_check(settings, job, error))
        return FALSE;
    ds->job = job;
    ds->settings = settings;
    ds->tape = tape;
    const ZpPrecision *precision = &job->precision;
    ZpDtype model = precision->parameter;
    ZpDtype accumulate = settings->gradient_accumulation, communicate = settings->communication;
    ds->model = (int)model;
    ds->accumulate = (int)(accumulate != ZP_DTYPE_NONE ? accumulate : model);
    ds->communicate = (int)(communicate != ZP_DTYPE_NONE ? communicate : model);
    ds->master = (int)(precision->master != ZP_DTYPE_NONE ? precision->master : ZP_DTYPE_FP32);
    ds->moments = precision->moments != ZP_DTYPE_NONE ? (int)precision->moments : ds->master;
    ds->adam = settings->adam;
    if (ds->adam == ZP_DS_DEFAULT_ADAM)
        ds->adam =
            settings->offload_optimizer.device == ZP_DS_NOWHERE ? ZP_DS_FUSED_ADAM : ZP_DS_CPU_ADAM;
    ds->ranks = job->world.ranks;
    ds->shard_ranks = job->zero.stage == 3 && settings->mics_shard_ranks > 0
                          ? settings->mics_shard_ranks
                          : ds->ranks;
    ds->overlap = zp_deepspeed_overlap(settings, job->zero.stage);
    declare(ds);
    return TRUE;
}

/* Every collective is labelled with its format. */
static gint32
label_of(ZpDs *ds, const ZpDsCollective *collective)
{
    gint32 label = ds->labels[collective->dtype];
    if (collective->kind != ZP_KIND_REDUCE)
        return label;
    g_autofree char *text =
        g_strdup_printf("%s to %d", (const char *)g_ptr_array_index(ds->tape->labels, label),
                        collective->destination);
    return zp_tape_add_label(ds->tape, g_intern_string(text));
}

gint32
zp_ds_launch(ZpDs *ds, const ZpDsCollective *collective)
{
    const ZpTapeGroup *group = &ds->tape->groups[collective->group];
    if (ds->silent || group->size == 1)
        return ZP_TAPE_NONE;
    gint64 bytes = zp_ds_bytes(collective->dtype, collective->elements);
    ZpCost cost =
        zp_cost_collective(&ds->job->network, collective->kind, bytes, group->size, group->stride);
    ZpTapeWork work = zp_work_collective(collective->kind, bytes, &cost, collective->group,
                                         zp_tape_add_rule(ds->tape, cost.rule));
    work.label = label_of(ds, collective);
    guint8 communicator = ds->communicators[collective->group];
    zp_ds_wait_stream(ds, communicator, collective->stream);
    zp_tape_launch(ds->tape, communicator, zp_tape_add_work(ds->tape, &work));
    return zp_tape_record(ds->tape, communicator);
}

void
zp_ds_join(ZpDs *ds, guint8 stream, gint32 event)
{
    if (event != ZP_TAPE_NONE)
        zp_tape_wait(ds->tape, stream, event);
}

void
zp_ds_collective(ZpDs *ds, const ZpDsCollective *collective)
{
    zp_ds_join(ds, collective->stream, zp_ds_launch(ds, collective));
}

void
zp_ds_reduce_scalar(ZpDs *ds, int dtype)
{
    ZpDsCollective scalar = {ZP_KIND_ALL_REDUCE,   1, dtype, ZP_DS_GROUP_WORLD,
                             ZP_DS_STREAM_COMPUTE, 0};
    zp_ds_collective(ds, &scalar);
    zp_ds_sync_stream(ds, ZP_DS_STREAM_COMPUTE);
}

static void
launch_kernel(ZpDs *ds, guint8 stream, ZpKind kind, ZpTime duration_ps, double flops,
              const char *rule)
{
    if (ds->silent)
        return;
    ZpTapeWork work = zp_work_kernel(kind, duration_ps, flops, zp_tape_add_rule(ds->tape, rule));
    zp_tape_launch(ds->tape, stream, zp_tape_add_work(ds->tape, &work));
}

void
zp_ds_timed_kernel(ZpDs *ds, guint8 stream, ZpKind kind, ZpTime duration_ps, double flops)
{
    launch_kernel(ds, stream, kind, duration_ps, flops, zp_cost_layer_rule(ds->job));
}

void
zp_ds_kernel(ZpDs *ds, guint8 stream, ZpKind kind, double flops, double bytes)
{
    ZpTime duration_ps = zp_cost_kernel(&ds->job->device, flops, bytes);
    launch_kernel(ds, stream, kind, duration_ps, flops, ZP_COST_ROOFLINE);
}

void
zp_ds_memory_kernel(ZpDs *ds, guint8 stream, gint64 bytes)
{
    if (bytes > 0)
        zp_ds_kernel(ds, stream, ZP_KIND_MEMORY, 0.0, (double)bytes);
}

void
zp_ds_transfer(ZpDs *ds, guint8 stream, ZpKind kind, gint64 bytes)
{
    if (ds->silent || bytes == 0)
        return;
    ZpCost cost = zp_cost_transfer(&ds->job->network, kind, bytes);
    ZpTapeWork work = zp_work_copy(kind, bytes, &cost, zp_tape_add_rule(ds->tape, cost.rule));
    zp_tape_launch(ds->tape, stream, zp_tape_add_work(ds->tape, &work));
}

void
zp_ds_nvme(ZpDs *ds, ZpKind kind, gint64 bytes, gboolean blocking)
{
    if (ds->silent || bytes == 0)
        return;
    double rate = kind == ZP_KIND_NVME_READ ? ds->settings->nvme_read_bytes_per_s
                                            : ds->settings->nvme_write_bytes_per_s;
    ZpTapeWork work = {
        .solo_ps = zp_time_from_seconds((double)bytes / rate),
        .bytes = bytes,
        .wire_bytes = bytes,
        .kind = (gint16)kind,
        .link = ZP_N_LINKS,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COPY,
        .rule = zp_tape_add_rule(ds->tape, "rate of the storage"),
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(ds->tape, ZP_DS_STREAM_NVME, zp_tape_add_work(ds->tape, &work));
    if (blocking)
        zp_ds_sync_stream(ds, ZP_DS_STREAM_NVME);
}

void
zp_ds_host_adam(ZpDs *ds, gint64 elements)
{
    if (ds->silent || elements == 0)
        return;
    ZpTapeWork work = {
        .solo_ps = zp_time_from_seconds((double)elements / ds->settings->cpu_adam_elements_per_s),
        .kind = ZP_KIND_HOST_OPTIMIZER,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_HOST_COMPUTE,
        .rule = zp_tape_add_rule(ds->tape, "rate of the CPU's Adam"),
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(ds->tape, ZP_DS_STREAM_HOST, zp_tape_add_work(ds->tape, &work));
    zp_ds_sync_stream(ds, ZP_DS_STREAM_HOST);
}

void
zp_ds_wait_stream(ZpDs *ds, guint8 stream, guint8 other)
{
    if (stream != other && !ds->silent)
        zp_tape_wait(ds->tape, stream, zp_tape_record(ds->tape, other));
}

void
zp_ds_sync_stream(ZpDs *ds, guint8 stream)
{
    if (!ds->silent)
        zp_tape_sync(ds->tape, zp_tape_record(ds->tape, stream));
}

gint32
zp_ds_make(ZpDs *ds, guint8 stream, ZpClass class_id, ZpRole role, gint64 bytes)
{
    return zp_tape_make(ds->tape, ZP_TAPE_CLOCK_HOST, stream, (guint8)class_id, (guint8)role,
                        bytes);
}

static gint32
make_on_host(ZpDs *ds, ZpClass class_id, ZpRole role, gint64 bytes, gboolean pinned)
{
    if (bytes == 0)
        return ZP_TAPE_NONE;
    gint32 buffer = zp_tape_add_buffer(ds->tape, (guint8)class_id, (guint8)role, bytes);
    ds->tape->buffers[buffer].space = ZP_TAPE_SPACE_HOST;
    ds->tape->buffers[buffer].pinned = pinned != FALSE;
    zp_tape_alloc(ds->tape, ZP_TAPE_CLOCK_HOST, ZP_DS_STREAM_HOST, buffer);
    return buffer;
}

gint32
zp_ds_make_host(ZpDs *ds, ZpClass class_id, ZpRole role, gint64 bytes, gboolean pinned)
{
    gint64 rounded = 1;
    while (rounded < bytes)
        rounded *= 2;
    gboolean rounds = bytes > 0 && pinned && ds->settings->pinned_power_of_two;
    return make_on_host(ds, class_id, role, rounds ? rounded : bytes, pinned);
}

gint32
zp_ds_make_locked(ZpDs *ds, ZpClass class_id, ZpRole role, gint64 bytes)
{
    return make_on_host(ds, class_id, role, bytes, TRUE);
}

void
zp_ds_drop(ZpDs *ds, guint8 stream, gint32 *buffer)
{
    zp_tape_drop(ds->tape, ZP_TAPE_CLOCK_HOST, stream, *buffer);
    *buffer = ZP_TAPE_NONE;
}
