/* Stage 3 with optimizer or parameters in host memory or on NVMe.
 *
 * Host memory: the flat parameters (always pinned), masters and moments (pageable), the flat
 * gradient and an fp32 gradient per sub-group (pinned).  NVMe: pools of pinned buffers; a tensor
 * below 1 MiB stays in memory.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage3.py (_create_param_groups_fp16_flat_cpu_memory,
 * _create_fp32_partitions, initialize_optimizer_states, partition_grads,
 * _offload_grad_partition_at_boundary), runtime/swap_tensor/partitioned_param_swapper.py
 * (_configure_aio), runtime/swap_tensor/optimizer_utils.py, utils.py. */
#include "models/runtimes/deepspeed/stages/zero3.h"

#define NVME_LEAST_BYTES G_GINT64_CONSTANT(1048576) /* max(1 MiB, aio.block_size) */
#define NVME_ALIGNMENT_BYTES 1024
#define NORM_CHUNK_ELEMENTS G_GINT64_CONSTANT(250000000)

gint64
zp_ds3_nvme_aligned_elements(int dtype, gint64 elements)
{
    gint64 unit = NVME_ALIGNMENT_BYTES / (zp_ds_dtype_bits(dtype) / 8);
    return (elements + unit - 1) / unit * unit;
}

gboolean
zp_ds3_nvme_swaps(gint64 bytes)
{
    return bytes >= NVME_LEAST_BYTES;
}

/* One flat buffer a parameter group, cut at max_in_cpu elements on the way to NVMe; a sub-group
 * that does not fit whole goes there. */
static void
place_parameters(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    const ZpDsOffload *offload = &ds->settings->offload_param;
    gint64 before = 0;
    for (gint32 g = 0; g < program->n_groups; g++) {
        gint64 total = 0, offset = 0;
        for (guint s = 0; s < state->sub_groups->len; s++) {
            const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
            if (program->group_of[g_array_index(group->ids, gint32, 0)] == g)
                total += group->elements;
        }
        gint64 kept = offload->device == ZP_DS_NVME
                          ? CLAMP(offload->max_in_cpu_elements - before, 0, total)
                          : total;
        before += total;
        state->host_flat_elements += kept;
        zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, zp_ds_bytes(ds->model, kept), TRUE);
        for (guint s = 0; s < state->sub_groups->len; s++) {
            ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
            if (program->group_of[g_array_index(group->ids, gint32, 0)] != g)
                continue;
            group->parameters_on_nvme = offset + group->elements > kept;
            offset += group->elements;
            for (guint i = 0; group->parameters_on_nvme && i < group->ids->len; i++) {
                gint32 id = g_array_index(group->ids, gint32, i);
                zp_ds_tree_parameter(program->tree, id)->on_nvme =
                    zp_ds3_nvme_swaps(zp_ds_bytes(ds->model, zp_ds3_partition(program, id)));
            }
        }
    }
}

static void
make_parameter_pools(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    const ZpDsOffload *offload = &ds->settings->offload_param;
    gint64 buffer = zp_ds3_nvme_aligned_elements(ds->model, offload->buffer_elements);
    zp_ds_make_locked(ds, ZP_CLASS_PARAMETER, ZP_ROLE_PINNED,
                      offload->buffer_count * zp_ds_bytes(ds->model, buffer));
    const ZpDsSubGroup *largest = NULL;
    gboolean any = FALSE;
    for (guint s = 0; s < state->sub_groups->len; s++) {
        const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
        if (largest == NULL || group->elements > largest->elements)
            largest = group;
        any |= group->parameters_on_nvme;
    }
    /* For swapping updated parameters out: sized, as in the framework, by the whole parameters of
     * the largest sub-group, not by their partitions. */
    gint64 padded = 0;
    for (guint i = 0; any && i < largest->ids->len; i++)
        padded += zp_ds3_nvme_aligned_elements(
            ds->model, zp_ds_program_elements(program, g_array_index(largest->ids, gint32, i)));
    zp_ds_make_locked(ds, ZP_CLASS_PARAMETER, ZP_ROLE_PINNED, zp_ds_bytes(ds->model, padded));
}

static void
make_optimizer_pool(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    gint64 largest = 0;
    for (guint s = 0; s < state->sub_groups->len; s++)
        largest = MAX(largest, g_array_index(state->sub_groups, ZpDsSubGroup, s).elements);
    gint64 buffer = zp_ds3_nvme_aligned_elements(ds->master, largest);
    for (gint32 i = 0; i < ds->settings->offload_optimizer.buffer_count; i++)
        zp_ds_make_locked(ds, ZP_CLASS_MASTER, ZP_ROLE_PINNED, zp_ds_bytes(ds->master, buffer));
}

void
zp_ds3_make_pools(ZpDsProgram *program)
{
    const ZpDeepspeed *settings = program->ds.settings;
    if (settings->offload_param.device == ZP_DS_NVME)
        make_parameter_pools(program, program->state);
    if (settings->offload_optimizer.device == ZP_DS_NVME)
        make_optimizer_pool(program, program->state);
}

void
zp_ds3_offload_begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    ZpDs3 *state = program->state;
    gboolean pin = ds->settings->offload_optimizer.pin_memory;
    if (ds->settings->offload_param.device != ZP_DS_NOWHERE)
        place_parameters(program, state);
    zp_ds3_make_pools(program);
    zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT,
                    zp_ds_bytes(ds->accumulate, state->partition_elements), pin);
    for (guint s = 0; s < state->sub_groups->len; s++) {
        const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
        if (!group->on_host || group->on_nvme)
            continue;
        gint64 bytes = zp_ds_bytes(ds->master, group->elements);
        zp_ds_make_host(ds, ZP_CLASS_MASTER, ZP_ROLE_SHARD, bytes, FALSE);
        zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT, bytes, pin);
        if (!program->first_step)
            zp_ds_program_make_moments(program, group->elements, TRUE);
    }
}

static void
move(ZpDs *ds, guint8 copy_stream, ZpKind kind, gint64 bytes)
{
    zp_ds_wait_stream(ds, copy_stream, ZP_DS_STREAM_REDUCE);
    zp_ds_transfer(ds, copy_stream, kind, bytes);
    zp_ds_wait_stream(ds, ZP_DS_STREAM_REDUCE, copy_stream);
}

static void
hold(ZpDs *ds, GArray *held, gint64 bytes)
{
    gint32 buffer =
        zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_OUTPUT, bytes);
    g_array_append_val(held, buffer);
}

void
zp_ds3_offload_gradient(ZpDsProgram *program, gint32 id, gint64 elements, GArray *held)
{
    ZpDs *ds = &program->ds;
    const ZpDs3 *state = program->state;
    const ZpDsSubGroup *group =
        &g_array_index(state->sub_groups, ZpDsSubGroup, (guint)state->sub_group_of[id]);
    gint64 bytes = zp_ds_bytes(ds->accumulate, elements);
    gboolean add = program->micro > 0;
    /* The accumulated partition makes a round trip through the device. */
    hold(ds, held, bytes);
    if (add) {
        move(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, bytes);
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE, 3 * bytes);
    }
    move(ds, ZP_DS_STREAM_TO_HOST, ZP_KIND_DEVICE_TO_HOST, bytes);
    if (!add)
        move(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, bytes);
    if (!program->boundary)
        return;
    gint32 norm = zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_OPTIMIZER_TEMPORARY,
                             ZP_ROLE_GRADIENT_TEMPORARY, 8 * MIN(elements, NORM_CHUNK_ELEMENTS));
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE, 8 * elements + bytes);
    zp_ds_drop(ds, ZP_DS_STREAM_REDUCE, &norm);
    gint64 master = zp_ds_bytes(ds->master, elements);
    gint32 cast = ds->accumulate == ds->master
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_OPTIMIZER_TEMPORARY,
                                   ZP_ROLE_GRADIENT_TEMPORARY, master);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE, bytes + master);
    if (group->on_host || group->on_nvme)
        move(ds, ZP_DS_STREAM_TO_HOST, ZP_KIND_DEVICE_TO_HOST, master);
    zp_ds_drop(ds, ZP_DS_STREAM_REDUCE, &cast);
    if (group->on_nvme)
        zp_ds_nvme(ds, ZP_KIND_NVME_WRITE, master, TRUE);
}

/* master, moments and the gradient come from NVMe; the gradient need not go back. */
void
zp_ds3_offload_update(ZpDsProgram *program, const ZpDsSubGroup *group)
{
    ZpDs *ds = &program->ds;
    gint64 n = group->elements;
    gint64 master = zp_ds_bytes(ds->master, n);
    const ZpOptimizer *optimizer = ds->job->optimizer;
    gint64 moments =
        ((optimizer->momentum != 0) + (optimizer->variance != 0)) * zp_ds_bytes(ds->moments, n);
    zp_ds_sync_stream(ds, ZP_DS_STREAM_TO_HOST);
    if (group->on_nvme)
        zp_ds_nvme(ds, ZP_KIND_NVME_READ, 2 * master + (program->first_step ? 0 : moments), TRUE);
    else if (program->first_step)
        zp_ds_program_make_moments(program, n, TRUE);
    zp_ds_host_adam(ds, n);
    if (group->on_nvme)
        zp_ds_nvme(ds, ZP_KIND_NVME_WRITE, master + moments, TRUE);
    gint64 updated = zp_ds_bytes(ds->model, n);
    if (ds->settings->offload_param.device == ZP_DS_NOWHERE) {
        zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, updated);
        zp_ds_wait_stream(ds, ZP_DS_STREAM_COMPUTE, ZP_DS_STREAM_TO_DEVICE);
    } else if (group->parameters_on_nvme)
        zp_ds_nvme(ds, ZP_KIND_NVME_WRITE, updated, TRUE);
}
