#include "models/runtimes/deepspeed/construct_internal.h"

#include "models/runtimes/deepspeed/stages/zero12.h"
#include "models/runtimes/deepspeed/stages/zero3.h"

#define STREAM ZP_DS_STREAM_COMPUTE

static gint64
total_elements(const ZpDsProgram *program, gboolean trainable_only)
{
    gint64 sum = 0;
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        if (!trainable_only || zp_ds_tree_parameter(program->tree, id)->trainable)
            sum += zp_ds_program_elements(program, id);
    return sum;
}

static gint32
device(ZpDsProgram *program, ZpClass class_id, gint64 bytes)
{
    return zp_ds_make(&program->ds, STREAM, class_id, ZP_ROLE_NONE, bytes);
}

/* The user builds the model in fp32 in host memory; the engine casts it there, then moves it to
 * the device, one parameter after the other, and broadcasts it.  Gives the device buffers. */
static gint32 *
move_model(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    gint32 n = (gint32)program->tree->parameters->len;
    gint32 *on_device = g_new(gint32, (gsize)MAX(n, 1));
    g_autofree gint32 *on_host = g_new(gint32, (gsize)MAX(n, 1));
    for (gint32 id = 0; id < n; id++)
        on_host[id] =
            zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_UNSHARDED,
                            zp_ds_bytes(ZP_DTYPE_FP32, zp_ds_program_elements(program, id)), FALSE);
    for (gint32 id = 0; id < n && ds->model != ZP_DTYPE_FP32; id++) {
        gint32 cast =
            zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_UNSHARDED,
                            zp_ds_bytes(ds->model, zp_ds_program_elements(program, id)), FALSE);
        zp_ds_drop(ds, ZP_DS_STREAM_HOST, &on_host[id]);
        on_host[id] = cast;
    }
    for (gint32 id = 0; id < n; id++) {
        gint64 bytes = zp_ds_bytes(ds->model, zp_ds_program_elements(program, id));
        on_device[id] = device(program, ZP_CLASS_PARAMETER, bytes);
        zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, bytes);
        zp_ds_drop(ds, ZP_DS_STREAM_HOST, &on_host[id]);
    }
    zp_ds_program_broadcast_model(program);
    return on_device;
}

/* Flattening copies: on the device when it has room for the flat buffer, else in host memory. */
static void
flatten(ZpDsProgram *program, gint32 *on_device, gint64 flat_bytes, gint64 used_bytes)
{
    ZpDs *ds = &program->ds;
    gint32 n = (gint32)program->tree->parameters->len;
    gint64 capacity = ds->job->device.capacity_bytes;
    gboolean room = capacity == 0 || capacity - used_bytes >= flat_bytes;
    gint32 staged = ZP_TAPE_NONE;
    if (!room) {
        for (gint32 id = 0; id < n; id++)
            if (zp_ds_tree_parameter(program->tree, id)->trainable)
                zp_ds_drop(ds, STREAM, &on_device[id]);
        staged = zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_UNSHARDED, flat_bytes, FALSE);
    }
    device(program, ZP_CLASS_PARAMETER, flat_bytes);
    for (gint32 id = 0; id < n; id++)
        if (zp_ds_tree_parameter(program->tree, id)->trainable)
            zp_ds_drop(ds, STREAM, &on_device[id]);
    zp_ds_drop(ds, ZP_DS_STREAM_HOST, &staged);
}

/* FP16_Optimizer clones what it flattens, then runs one step on zero gradients. */
static void
construct_stage0(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    gint64 n = total_elements(program, TRUE);
    g_autofree gint32 *on_device = move_model(program);
    if (ds->model == ZP_DTYPE_FP32)
        return;
    if (ds->adam == ZP_DS_FUSED_ADAM) {
        gint32 clones = device(program, ZP_CLASS_PARAMETER, zp_ds_bytes(ds->model, n));
        flatten(program, on_device, zp_ds_bytes(ds->model, n), 0);
        zp_ds_drop(ds, STREAM, &clones);
    }
    device(program, ZP_CLASS_MASTER, zp_ds_bytes(ds->master, n));
    gint32 zeros = device(program, ZP_CLASS_OPTIMIZER_TEMPORARY, zp_ds_bytes(ds->master, n));
    zp_ds_program_make_moments(program, n, FALSE);
    zp_ds_drop(ds, STREAM, &zeros);
}

static void
construct_stage12(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    gboolean offload = ds->settings->offload_optimizer.device != ZP_DS_NOWHERE;
    g_autofree gint32 *on_device = move_model(program);
    for (gint32 g = 0; g < program->n_groups; g++) {
        g_autoptr(GArray) ids = zp_ds_program_group(program, g);
        gint64 elements = 0, unit = 2 * (gint64)ds->ranks;
        for (guint i = 0; i < ids->len; i++)
            elements += zp_ds_program_elements(program, g_array_index(ids, gint32, i));
        gint64 flat = (elements + unit - 1) / unit * unit, slice = flat / ds->ranks;
        if (g == 0)
            flatten(program, on_device, zp_ds_bytes(ds->model, flat),
                    zp_ds_bytes(ds->model, total_elements(program, FALSE)));
        else
            device(program, ZP_CLASS_PARAMETER, zp_ds_bytes(ds->model, flat));
        gint64 master = zp_ds_bytes(ds->master, slice);
        if (offload)
            continue;
        /* .clone().float(): the low-precision clone dies when the cast is made. */
        gint32 clone = device(program, ZP_CLASS_PARAMETER, zp_ds_bytes(ds->model, slice));
        device(program, ZP_CLASS_MASTER, master);
        zp_ds_drop(ds, STREAM, &clone);
        gint32 zeros = device(program, ZP_CLASS_OPTIMIZER_TEMPORARY, master);
        zp_ds_drop(ds, STREAM, &zeros);
    }
    if (offload)
        zp_ds12_offload_begin(program);
}

/* A partition where it belongs, and its hpZ secondary. */
static gint32
make_partition(ZpDsProgram *program, gint32 id)
{
    ZpDs *ds = &program->ds;
    ZpDsDevice place = ds->settings->offload_param.device;
    gint32 group = ds->tape->groups[ZP_DS_GROUP_SECONDARY].size;
    if (group > 1) {
        gint64 secondary =
            zp_ds_bytes(ds->model, zp_ds_secondary_elements(zp_ds_program_elements(program, id),
                                                            ds->shard_ranks, group));
        if (place == ZP_DS_NOWHERE)
            device(program, ZP_CLASS_PARAMETER, secondary);
        else
            zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SECONDARY_SHARD, secondary, TRUE);
    }
    gint64 bytes = zp_ds_bytes(ds->model, zp_ds3_partition(program, id));
    if (place == ZP_DS_NOWHERE)
        return device(program, ZP_CLASS_PARAMETER, bytes);
    if (zp_ds_tree_parameter(program->tree, id)->on_nvme) {
        zp_ds_nvme(ds, ZP_KIND_NVME_WRITE, bytes, FALSE);
        return ZP_TAPE_NONE;
    }
    return zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes, TRUE);
}

/* Under zero.Init a module's own parameters are full-size until its __init__ ends. */
static void
build_partitioned(ZpDsProgram *program, gint32 *partitions)
{
    ZpDs *ds = &program->ds;
    const ZpDsTree *tree = program->tree;
    g_autofree gboolean *built = g_new0(gboolean, MAX(tree->parameters->len, 1));
    for (gint32 m = 0; m < (gint32)tree->modules->len; m++) {
        const ZpDsModule *module = zp_ds_tree_module(tree, m);
        g_autofree gint32 *full = g_new(gint32, (gsize)MAX(module->n_own, 1));
        for (gint32 i = 0; i < module->n_own; i++) {
            gint32 id = g_array_index(tree->owned, gint32, (guint)(module->first_own + i));
            gint64 n = zp_ds_program_elements(program, id);
            full[i] = ZP_TAPE_NONE;
            if (built[id])
                continue; /* tied */
            built[id] = TRUE;
            gint32 fp32 = device(program, ZP_CLASS_PARAMETER, zp_ds_bytes(ZP_DTYPE_FP32, n));
            full[i] = fp32;
            if (ds->model != ZP_DTYPE_FP32) {
                full[i] = device(program, ZP_CLASS_PARAMETER, zp_ds_bytes(ds->model, n));
                zp_ds_drop(ds, STREAM, &fp32);
            }
        }
        for (gint32 i = 0; i < module->n_own; i++) {
            gint32 id = g_array_index(tree->owned, gint32, (guint)(module->first_own + i));
            if (full[i] == ZP_TAPE_NONE)
                continue;
            ZpDsCollective broadcast = {ZP_KIND_BROADCAST,
                                        zp_ds_program_elements(program, id),
                                        ds->model,
                                        ZP_DS_GROUP_WORLD,
                                        STREAM,
                                        0};
            zp_ds_collective(ds, &broadcast);
            partitions[id] = make_partition(program, id);
            zp_ds_drop(ds, STREAM, &full[i]);
        }
    }
}

/* Partitions go through an unpinned host buffer so that the device never holds them twice. */
static void
defragment(ZpDsProgram *program, gint32 *partitions, const ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    gint32 n = (gint32)program->tree->parameters->len;
    gboolean on_host = ds->settings->offload_param.device != ZP_DS_NOWHERE;
    gint64 bytes =
        zp_ds_bytes(ds->model, on_host ? state->host_flat_elements : state->partition_elements);
    gint32 flat = zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes, on_host);
    for (gint32 id = 0; id < n; id++)
        if (zp_ds_tree_parameter(program->tree, id)->trainable)
            zp_ds_drop(ds, on_host ? ZP_DS_STREAM_HOST : STREAM, &partitions[id]);
    if (on_host)
        return;
    zp_ds_transfer(ds, ZP_DS_STREAM_TO_HOST, ZP_KIND_DEVICE_TO_HOST, bytes);
    device(program, ZP_CLASS_PARAMETER, bytes);
    zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, bytes);
    zp_ds_drop(ds, ZP_DS_STREAM_HOST, &flat);
}

/* Cast, then clone: the cast of one sub-group lives until the next one's is made. */
static void
make_masters(ZpDsProgram *program, const ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    gint32 previous = ZP_TAPE_NONE;
    gint64 largest = 0;
    for (guint s = 0; s < state->sub_groups->len; s++) {
        const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
        gint64 bytes = zp_ds_bytes(ds->master, group->elements);
        largest = MAX(largest, bytes);
        if (group->on_nvme)
            continue;
        gboolean host = group->on_host;
        gint32 cast = host ? zp_ds_make_host(ds, ZP_CLASS_MASTER, ZP_ROLE_CAST, bytes, FALSE)
                           : device(program, ZP_CLASS_MASTER, bytes);
        zp_ds_drop(ds, host ? ZP_DS_STREAM_HOST : STREAM, &previous);
        previous = cast;
        if (host)
            zp_ds_make_host(ds, ZP_CLASS_MASTER, ZP_ROLE_SHARD, bytes, FALSE);
        else
            device(program, ZP_CLASS_MASTER, bytes);
    }
    zp_ds_drop(ds, state->offload ? ZP_DS_STREAM_HOST : STREAM, &previous);
    gint32 zeros = state->offload ? zp_ds_make_host(ds, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_NONE,
                                                    largest, FALSE)
                                  : device(program, ZP_CLASS_OPTIMIZER_TEMPORARY, largest);
    for (guint s = 0; state->offload && s < state->sub_groups->len; s++) {
        const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
        gint64 bytes = zp_ds_bytes(ds->master, group->elements);
        if (group->on_nvme)
            continue;
        if (group->on_host)
            zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT, bytes,
                            ds->settings->offload_optimizer.pin_memory);
        else
            device(program, ZP_CLASS_GRADIENT, bytes);
    }
    zp_ds_drop(ds, state->offload ? ZP_DS_STREAM_HOST : STREAM, &zeros);
}

static void
construct_stage3(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDs3 *state = program->state;
    gint32 n = (gint32)program->tree->parameters->len;
    g_autofree gint32 *partitions = g_new(gint32, (gsize)MAX(n, 1));
    for (gint32 id = 0; id < n; id++)
        partitions[id] = ZP_TAPE_NONE;
    if (ds->settings->zero_init)
        build_partitioned(program, partitions);
    else {
        g_autofree gint32 *full = move_model(program);
        for (gint32 id = 0; id < n; id++) {
            partitions[id] = make_partition(program, id);
            zp_ds_drop(ds, STREAM, &full[id]);
        }
    }
    if (ds->settings->contiguous_gradients)
        zp_ds_make(ds, STREAM, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET,
                   zp_ds_bytes(ds->communicate, ds->settings->reduce_bucket_elements));
    defragment(program, partitions, state);
    zp_ds3_make_pools(program);
    make_masters(program, state);
    gint64 gradients = zp_ds_bytes(ds->accumulate, state->partition_elements);
    if (state->offload)
        zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT, gradients,
                        ds->settings->offload_optimizer.pin_memory);
    else
        device(program, ZP_CLASS_GRADIENT, gradients);
    /* The gradient hooks need every trainable parameter whole, one at a time. */
    for (gint32 id = 0; id < n; id++) {
        if (!zp_ds_tree_parameter(program->tree, id)->trainable)
            continue;
        gint64 padded = zp_ds3_partition(program, id) * ds->shard_ranks;
        gint32 full = device(program, ZP_CLASS_GATHERED, zp_ds_bytes(ds->model, padded));
        zp_ds_drop(ds, STREAM, &full);
    }
}

void
zp_ds_construct(ZpDsProgram *program)
{
    zp_tape_tag(program->ds.tape, ZP_PHASE_INIT, ZP_TAPE_NONE, ZP_TAPE_NONE);
    zp_ds_make(&program->ds, STREAM, ZP_CLASS_RUNTIME, ZP_ROLE_NONE,
               program->ds.job->device.overhead_bytes);
    switch (program->ds.job->zero.stage) {
    case 0:
        construct_stage0(program);
        break;
    case 1:
    case 2:
        construct_stage12(program);
        break;
    default:
        construct_stage3(program);
    }
}
