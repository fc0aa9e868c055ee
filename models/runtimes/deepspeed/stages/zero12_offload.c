/* Stages 1 and 2 with the optimizer in host memory.
 *
 * Host: master and its gradient (a slice each, fp32), moments from the first step, a low-precision
 * staging slice, a buffer of the largest parameter, and with gradient accumulation one full-size
 * buffer for every parameter that touches the slice.  Device: the flat parameters, the buckets and
 * one buffer of the largest parameter.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage_1_and_2.py (__init__, copy_grads_in_partition,
 * async_accumulate_grad_in_cpu_via_gpu, async_inplace_copy_grad_to_fp32_buffer_from_gpu, step). */
#include "models/runtimes/deepspeed/stages/zero12.h"

static gint32
make_accumulator(ZpDsProgram *program, gint32 id)
{
    ZpDs *ds = &program->ds;
    return zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR,
                           zp_ds_bytes(ds->model, zp_ds_program_elements(program, id)),
                           ds->settings->offload_optimizer.pin_memory);
}

void
zp_ds12_offload_begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDs12 *state = program->state;
    gboolean pin = ds->settings->offload_optimizer.pin_memory;
    for (gint32 g = 0; g < program->n_groups; g++) {
        gint64 slice = state->groups[g].slice_elements;
        gint64 master = zp_ds_bytes(ds->master, slice);
        zp_ds_make_host(ds, ZP_CLASS_MASTER, ZP_ROLE_SHARD, master, pin);
        zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT, master, pin);
        zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_PINNED, zp_ds_bytes(ds->model, slice), pin);
        if (!program->first_step)
            zp_ds_program_make_moments(program, slice, TRUE);
    }
    /* Made by the first accumulating step, kept for ever. */
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        if (!program->first_step && ds->job->training.accumulation > 1 && state->in_slice[id])
            state->on_host[id] = make_accumulator(program, id);
    gint64 largest = zp_ds_bytes(ds->model, state->largest_elements);
    zp_ds_make_host(ds, ZP_CLASS_GRADIENT, ZP_ROLE_PINNED, largest, pin);
    zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_TEMPORARY, largest);
}

static void
to_host(ZpDsProgram *program, gint64 bytes)
{
    ZpDs *ds = &program->ds;
    const ZpDs12 *state = program->state;
    zp_ds_wait_stream(ds, ZP_DS_STREAM_TO_HOST, state->stream);
    zp_ds_transfer(ds, ZP_DS_STREAM_TO_HOST, ZP_KIND_DEVICE_TO_HOST, bytes);
    zp_ds_wait_stream(ds, state->stream, ZP_DS_STREAM_TO_HOST);
}

void
zp_ds12_offload_gradient(ZpDsProgram *program, gint32 id)
{
    ZpDs *ds = &program->ds;
    ZpDs12 *state = program->state;
    gint64 bytes = zp_ds_bytes(ds->model, zp_ds_program_elements(program, id));
    if (program->micro > 0 || !program->boundary) {
        if (state->on_host[id] == ZP_TAPE_NONE)
            state->on_host[id] = make_accumulator(program, id);
        if (program->micro > 0) {
            zp_ds_wait_stream(ds, ZP_DS_STREAM_TO_DEVICE, state->stream);
            zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE, bytes);
            zp_ds_wait_stream(ds, state->stream, ZP_DS_STREAM_TO_DEVICE);
            zp_ds_memory_kernel(ds, state->stream, 3 * bytes);
        }
        to_host(program, bytes);
    }
    if (program->boundary) {
        gint64 n = zp_ds_flat_group_inside(&state->groups[program->group_of[id]],
                                           state->place_of[id], program->rank);
        gint32 norm = zp_ds_make(ds, state->stream, ZP_CLASS_OPTIMIZER_TEMPORARY,
                                 ZP_ROLE_GRADIENT_TEMPORARY, 8 * n);
        zp_ds_memory_kernel(ds, state->stream, 8 * n + zp_ds_bytes(ds->model, n));
        zp_ds_drop(ds, state->stream, &norm);
        gint32 cast = ds->model == ds->master
                          ? ZP_TAPE_NONE
                          : zp_ds_make(ds, state->stream, ZP_CLASS_OPTIMIZER_TEMPORARY,
                                       ZP_ROLE_GRADIENT_TEMPORARY, zp_ds_bytes(ds->master, n));
        to_host(program, zp_ds_bytes(ds->master, n));
        zp_ds_drop(ds, state->stream, &cast);
    }
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
}

void
zp_ds12_offload_step(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDs12 *state = program->state;
    zp_ds_sync_stream(ds, ZP_DS_STREAM_TO_HOST);
    for (gint32 g = 0; g < program->n_groups; g++) {
        gint64 slice = state->groups[g].slice_elements;
        if (program->first_step)
            zp_ds_program_make_moments(program, slice, TRUE);
        zp_ds_host_adam(ds, slice);
        zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE,
                       zp_ds_bytes(ds->model, slice));
        zp_ds_wait_stream(ds, ZP_DS_STREAM_COMPUTE, ZP_DS_STREAM_TO_DEVICE);
    }
}
