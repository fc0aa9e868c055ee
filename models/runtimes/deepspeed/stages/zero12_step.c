/* Stages 1 and 2: the optimizer step.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage_1_and_2.py (step, get_grad_norm_direct,
 * _has_inf_or_nan), runtime/utils.py (all_gather_into_tensor_dp_groups). */
#include "models/runtimes/deepspeed/stages/zero12.h"

static gint32
temporary(ZpDs *ds, gint64 bytes)
{
    return zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY,
                      ZP_ROLE_GRADIENT_TEMPORARY, bytes);
}

/* Visits the parts of this rank's averaged gradients, one by one: a copy of bits_per_element. */
static void
scan_gradients(ZpDsProgram *program, gint32 g, int bits_per_element)
{
    ZpDs *ds = &program->ds;
    const ZpDs12 *state = program->state;
    const ZpDsFlatGroup *group = &state->groups[g];
    gint32 first, end;
    zp_ds_flat_group_touching(group, program->rank, &first, &end);
    for (gint32 place = first; place < end; place++) {
        gint64 n = zp_ds_flat_group_inside(group, place, program->rank);
        gint32 copy = temporary(ds, zp_dtype_bytes(bits_per_element, n));
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE,
                            zp_ds_bytes(ds->model, n) + zp_dtype_bytes(bits_per_element, n));
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &copy);
    }
}

static void
check_and_norm(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDs12 *state = program->state;
    gboolean check = ds->model == ZP_DTYPE_FP16 ||
                     (ds->model == ZP_DTYPE_BF16 && ds->settings->check_grad_overflow);
    if (check) {
        /* fp32 copy, two masks and their union. */
        for (gint32 g = 0; !state->offload && g < program->n_groups; g++)
            scan_gradients(program, g, 32 + 3 * 8);
        zp_ds_reduce_scalar(ds, ZP_DS_UINT8);
    }
    for (gint32 g = 0; g < program->n_groups; g++) {
        if (!state->offload)
            scan_gradients(program, g, 64);
        zp_ds_reduce_scalar(ds, ZP_DTYPE_FP32);
    }
}

/* The averaged gradients of all groups are views of one buffer: it dies with the last group. */
static void
drop_averaged(ZpDsProgram *program, ZpDs12 *state, gint32 g)
{
    ZpDs *ds = &program->ds;
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &state->padding[g]);
    for (guint i = 0; i < state->members[g]->len; i++)
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE,
                   &state->own_storage[g_array_index(state->members[g], gint32, i)]);
    gint32 last = -1;
    for (gint32 other = 0; other < program->n_groups; other++)
        if (zp_ds_flat_group_touching_elements(&state->groups[other], program->rank) > 0)
            last = other;
    if (g == MAX(last, 0))
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &state->accumulated);
}

static void
update_group(ZpDsProgram *program, ZpDs12 *state, gint32 g)
{
    ZpDs *ds = &program->ds;
    const ZpDsFlatGroup *group = &state->groups[g];
    gint64 slice = group->slice_elements;
    gint64 lp_bytes = zp_ds_bytes(ds->model, slice);
    gint64 master_bytes = zp_ds_bytes(ds->master, slice);
    gint32 first, end;
    zp_ds_flat_group_touching(group, program->rank, &first, &end);
    gint32 tensors = end - first + (state->padding[g] != ZP_TAPE_NONE);
    gint32 flat = tensors > 1 ? temporary(ds, lp_bytes) : ZP_TAPE_NONE;
    if (tensors > 1)
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, 2 * lp_bytes);
    gint32 gradient = flat;
    if (ds->model != ds->master) {
        gradient = temporary(ds, master_bytes);
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, lp_bytes + master_bytes);
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &flat);
    }
    drop_averaged(program, state, g);
    if (program->first_step)
        zp_ds_program_make_moments(program, slice, FALSE);
    zp_ds_program_optimize(program, slice, slice);
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &gradient);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, lp_bytes + master_bytes);
}

void
zp_ds12_step(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    ZpDs12 *state = program->state;
    check_and_norm(program);
    if (state->offload)
        zp_ds12_offload_step(program);
    for (gint32 g = 0; !state->offload && g < program->n_groups; g++)
        update_group(program, state, g);
    zp_ds_program_tag(program, ZP_PHASE_GATHER, ZP_MODEL_NONE);
    /* One collective a group, in place; allgather_bucket_size plays no part. */
    for (gint32 g = 0; g < program->n_groups; g++) {
        ZpDsCollective gather = {ZP_KIND_ALL_GATHER, state->groups[g].flat_elements, ds->model,
                                 ZP_DS_GROUP_WORLD,  ZP_DS_STREAM_COMPUTE,           0};
        zp_ds_collective(ds, &gather);
    }
}
