/* Stage 3: the optimizer step, one sub-group after the other.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage3.py (step, _get_norm_groups,
 * _prepare_fp32_grad_for_sub_group, _post_step). */
#include "models/runtimes/deepspeed/stages/zero3.h"
#include "models/runtimes/deepspeed/stages/zeropp_internal.h"

static gint32
temporary(ZpDs *ds, gint64 bytes)
{
    return zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY,
                      ZP_ROLE_GRADIENT_TEMPORARY, bytes);
}

/* fp16 alone: isinf and isnan over the whole flat gradient. */
static void
check_overflow(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDs3 *state = program->state;
    if (ds->model != ZP_DTYPE_FP16)
        return;
    if (!state->offload) {
        gint32 masks = temporary(ds, 2 * state->partition_elements);
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE,
                            zp_ds_bytes(ds->accumulate, 2 * state->partition_elements));
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &masks);
    }
    zp_ds_reduce_scalar(ds, ZP_DS_UINT8);
}

/* An fp64 copy of each partition in turn; with an offloaded optimizer the norms of the parts were
 * taken in backward. */
static void
norm(ZpDsProgram *program, const ZpDsSubGroup *group)
{
    ZpDs *ds = &program->ds;
    const ZpDs3 *state = program->state;
    for (guint i = 0; !state->offload && i < group->ids->len; i++) {
        gint64 n = zp_ds3_partition(program, g_array_index(group->ids, gint32, i));
        gint32 copy = temporary(ds, 8 * n);
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, 8 * n + zp_ds_bytes(ds->accumulate, n));
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &copy);
    }
    zp_ds_reduce_scalar(ds, state->offload ? ZP_DTYPE_FP32 : ZP_DTYPE_FP64);
}

static void
update(ZpDsProgram *program, const ZpDsSubGroup *group)
{
    ZpDs *ds = &program->ds;
    const ZpDs3 *state = program->state;
    gint64 n = group->elements;
    gint64 accumulated = zp_ds_bytes(ds->accumulate, n);
    gint64 master = zp_ds_bytes(ds->master, n);
    gint32 gradient = ZP_TAPE_NONE;
    if (!state->offload) {
        gint32 flat = group->ids->len > 1 ? temporary(ds, accumulated) : ZP_TAPE_NONE;
        if (group->ids->len > 1)
            zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, 2 * accumulated);
        gradient = flat;
        if (ds->accumulate != ds->master) {
            gradient = temporary(ds, master);
            zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, accumulated + master);
            zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &flat);
        }
    }
    if (program->first_step)
        zp_ds_program_make_moments(program, n, FALSE);
    zp_ds_program_optimize(program, n, n);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, master + zp_ds_bytes(ds->model, n));
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &gradient);
}

void
zp_ds3_step(ZpDsProgram *program)
{
    ZpDs3 *state = program->state;
    zp_ds_mics_reduce_replicas(program);
    zp_ds_coordinator_step(state->coordinator);
    check_overflow(program);
    for (guint s = 0; s < state->sub_groups->len; s++)
        norm(program, &g_array_index(state->sub_groups, ZpDsSubGroup, s));
    for (guint s = 0; s < state->sub_groups->len; s++) {
        const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
        if (group->on_host || group->on_nvme)
            zp_ds3_offload_update(program, group);
        else
            update(program, group);
    }
    zp_ds_coordinator_persist(state->coordinator);
    zp_ds_sync_stream(&program->ds, ZP_DS_STREAM_COMPUTE);
    g_queue_clear(&state->gathers.fetched); /* all have happened */
}
