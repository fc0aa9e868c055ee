/* Stages 1 and 2: setting up, gradient hooks, the end of a micro-batch.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage_1_and_2.py (__init__, setup_buckets,
 * process_gradients, reduce_gradients, independent_gradient_partition_epilogue). */
#include "models/runtimes/deepspeed/stages/zero12.h"

#include <string.h>

static void
init_group(ZpDsProgram *program, ZpDs12 *state, gint32 g)
{
    ZpDs *ds = &program->ds;
    GArray *ids = state->members[g] = zp_ds_program_group(program, g);
    g_autofree gint64 *elements = g_new(gint64, MAX(ids->len, 1));
    for (guint i = 0; i < ids->len; i++)
        elements[i] = zp_ds_program_elements(program, g_array_index(ids, gint32, i));
    ZpDsFlatGroup *group = &state->groups[g];
    zp_ds_flat_group_init(group, elements, (gint32)ids->len, ds->ranks,
                          ds->settings->round_robin_gradients);
    for (gint32 place = 0; place < group->n; place++)
        state->place_of[g_array_index(ids, gint32, group->order[place])] = place;
}

/* The rank whose slices keep most gradients alive: its tape shows the worst case. */
static gint32
worst_rank(const ZpDs12 *state, gint32 n_groups, gint32 ranks)
{
    gint32 worst = 0;
    gint64 most = -1;
    for (gint32 rank = 0; rank < ranks; rank++) {
        gint64 held = 0;
        for (gint32 g = 0; g < n_groups; g++)
            held += zp_ds_flat_group_touching_elements(&state->groups[g], rank);
        if (held > most) {
            most = held;
            worst = rank;
        }
    }
    return worst;
}

static void
mark_slices(ZpDsProgram *program, ZpDs12 *state)
{
    for (gint32 g = 0; g < program->n_groups; g++) {
        const ZpDsFlatGroup *group = &state->groups[g];
        gint32 first, end;
        zp_ds_flat_group_touching(group, program->rank, &first, &end);
        for (gint32 place = first; place < end; place++)
            state->in_slice[g_array_index(state->members[g], gint32, group->order[place])] = TRUE;
        state->touching_elements += group->start[end] - group->start[first];
    }
}

static void
allocate_persistent(ZpDsProgram *program, ZpDs12 *state)
{
    ZpDs *ds = &program->ds;
    for (gint32 g = 0; g < program->n_groups; g++) {
        const ZpDsFlatGroup *group = &state->groups[g];
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
                   zp_ds_bytes(ds->model, group->flat_elements));
        if (state->offload)
            continue;
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_MASTER, ZP_ROLE_SHARD,
                   zp_ds_bytes(ds->master, group->slice_elements));
        gint32 zeros =
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY,
                       ZP_ROLE_GRADIENT_TEMPORARY, zp_ds_bytes(ds->master, group->slice_elements));
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &zeros);
        if (!program->first_step)
            zp_ds_program_make_moments(program, group->slice_elements, FALSE);
    }
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        if (!zp_ds_tree_parameter(program->tree, id)->trainable)
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
                       zp_ds_bytes(ds->model, zp_ds_program_elements(program, id)));
    if (state->offload)
        zp_ds12_offload_begin(program);
}

static gint32 *
no_buffers(gsize n)
{
    gint32 *buffers = g_new(gint32, MAX(n, 1));
    for (gsize i = 0; i < n; i++)
        buffers[i] = ZP_TAPE_NONE;
    return buffers;
}

static void
begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    gsize n = program->tree->parameters->len, n_groups = (gsize)program->n_groups;
    ZpDs12 *state = g_new0(ZpDs12, 1);
    program->state = state;
    state->groups = g_new0(ZpDsFlatGroup, n_groups);
    state->members = g_new0(GArray *, n_groups);
    state->place_of = g_new0(gint32, MAX(n, 1));
    state->in_slice = g_new0(gboolean, MAX(n, 1));
    state->own_storage = no_buffers(n);
    state->accumulator = no_buffers(n);
    state->on_host = no_buffers(n);
    state->padding = no_buffers(n_groups);
    state->bucket = g_array_new(FALSE, FALSE, sizeof(gint32));
    state->deferred = g_array_new(FALSE, FALSE, sizeof(gint32));
    state->ipg[0] = state->ipg[1] = state->in_partition = state->accumulated = ZP_TAPE_NONE;
    state->two_stage = ds->job->zero.stage == 2;
    state->offload = ds->settings->offload_optimizer.device != ZP_DS_NOWHERE;
    state->contiguous = ds->settings->contiguous_gradients || state->offload;
    state->stream = ds->overlap ? ZP_DS_STREAM_REDUCE : ZP_DS_STREAM_COMPUTE;
    for (gint32 g = 0; g < program->n_groups; g++)
        init_group(program, state, g);
    for (gint32 id = 0; id < (gint32)n; id++)
        state->largest_elements = MAX(state->largest_elements, zp_ds_program_elements(program, id));
    if (ds->settings->rank < 0)
        program->rank = worst_rank(state, program->n_groups, ds->ranks);
    mark_slices(program, state);
    zp_ds_program_broadcast_model(program);
    allocate_persistent(program, state);
}

/* The first gradient of a backward allocates the bucket buffers. */
static void
setup_buckets(ZpDsProgram *program, ZpDs12 *state)
{
    ZpDs *ds = &program->ds;
    if (state->n_ipg > 0 || !state->contiguous)
        return;
    state->n_ipg = ds->overlap ? 2 : 1;
    state->ipg_index = 0;
    for (gint32 i = 0; i < state->n_ipg; i++)
        state->ipg[i] = zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET,
                                   zp_ds_bytes(ds->model, ds->settings->reduce_bucket_elements));
}

/* Stage 1 with another accumulation format (fp16 and fp32): param.grad moves to param.grad_accum
 * in the hook. */
static void
accumulate_apart(ZpDsProgram *program, ZpDs12 *state, gint32 id)
{
    ZpDs *ds = &program->ds;
    gint64 n = zp_ds_program_elements(program, id);
    if (state->accumulator[id] == ZP_TAPE_NONE)
        state->accumulator[id] = zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_GRADIENT,
                                            ZP_ROLE_GRADIENT, zp_ds_bytes(ds->accumulate, n));
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE,
                        zp_ds_bytes(ds->model, n) + 2 * zp_ds_bytes(ds->accumulate, n));
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
}

static void
gradient(ZpDsProgram *program, gint32 id)
{
    ZpDs12 *state = program->state;
    ZpDs *ds = &program->ds;
    setup_buckets(program, state);
    if (!state->two_stage && ds->accumulate != ds->model)
        accumulate_apart(program, state, id);
    if (state->two_stage || (ds->overlap && program->boundary))
        zp_ds12_add_to_bucket(program, id);
}

/* What this backward reduced joins what earlier ones left, and becomes the averaged gradients. */
static void
keep_gradients(ZpDsProgram *program, ZpDs12 *state)
{
    ZpDs *ds = &program->ds;
    guint8 stream = ZP_DS_STREAM_COMPUTE;
    gint64 bytes = zp_ds_bytes(ds->model, state->touching_elements);
    if (state->in_partition != ZP_TAPE_NONE && state->accumulated == ZP_TAPE_NONE) {
        zp_tape_retag(ds->tape, ZP_TAPE_CLOCK_HOST, stream, state->in_partition, ZP_CLASS_GRADIENT,
                      ZP_ROLE_GRADIENT_ACCUMULATOR);
        state->accumulated = state->in_partition;
        state->in_partition = ZP_TAPE_NONE;
    } else if (state->in_partition != ZP_TAPE_NONE) {
        zp_ds_memory_kernel(ds, stream, 3 * bytes);
        zp_ds_drop(ds, stream, &state->in_partition);
    }
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len && !state->contiguous; id++) {
        if (program->gradients[id] == ZP_TAPE_NONE || !state->in_slice[id])
            continue;
        if (state->own_storage[id] == ZP_TAPE_NONE) {
            zp_tape_retag(ds->tape, ZP_TAPE_CLOCK_HOST, stream, program->gradients[id],
                          ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR);
            state->own_storage[id] = program->gradients[id];
            program->gradients[id] = ZP_TAPE_NONE;
        } else
            zp_ds_memory_kernel(ds, stream, 3 * bytes);
    }
    for (gint32 g = 0; program->boundary && g < program->n_groups; g++) {
        const ZpDsFlatGroup *group = &state->groups[g];
        gint64 begin_slice = program->rank * group->slice_elements;
        gint64 real = CLAMP(group->elements - begin_slice, 0, group->slice_elements);
        state->padding[g] = zp_ds_make(ds, stream, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR,
                                       zp_ds_bytes(ds->accumulate, group->slice_elements - real));
    }
}

static void
epilogue(ZpDsProgram *program, ZpDs12 *state)
{
    ZpDs *ds = &program->ds;
    zp_ds12_flush(program);
    if (ds->overlap) {
        zp_ds_sync_stream(ds, ZP_DS_STREAM_COMPUTE);
        zp_ds_sync_stream(ds, ZP_DS_STREAM_REDUCE);
    }
    if (!state->offload)
        keep_gradients(program, state);
    for (gint32 i = 0; i < state->n_ipg; i++)
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &state->ipg[i]);
    state->n_ipg = 0;
    g_array_set_size(state->deferred, 0);
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++) {
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &state->accumulator[id]);
    }
}

static void
micro_batch_end(ZpDsProgram *program)
{
    ZpDs12 *state = program->state;
    if (!state->two_stage && !program->boundary)
        return;
    zp_ds_program_tag(program, state->two_stage ? ZP_PHASE_BACKWARD : ZP_PHASE_REDUCE,
                      ZP_MODEL_NONE);
    /* Stage 1 without overlap walks the parameters in the optimizer's order. */
    for (gint32 g = 0; !state->two_stage && !program->ds.overlap && g < program->n_groups; g++)
        for (guint i = 0; i < state->members[g]->len; i++) {
            gint32 id = g_array_index(state->members[g], gint32, i);
            if (program->gradients[id] != ZP_TAPE_NONE || state->accumulator[id] != ZP_TAPE_NONE)
                zp_ds12_add_to_bucket(program, id);
        }
    epilogue(program, state);
}

static void
end(ZpDsProgram *program)
{
    ZpDs12 *state = program->state;
    for (gint32 g = 0; g < program->n_groups; g++) {
        zp_ds_flat_group_clear(&state->groups[g]);
        g_array_unref(state->members[g]);
    }
    g_free(state->groups);
    g_free(state->members);
    g_free(state->place_of);
    g_free(state->in_slice);
    g_free(state->own_storage);
    g_free(state->accumulator);
    g_free(state->on_host);
    g_free(state->padding);
    g_array_unref(state->bucket);
    g_array_unref(state->deferred);
    g_free(state);
}

const ZpDsStage zp_ds_stage12 = {begin, gradient, micro_batch_end, zp_ds12_step, end};
