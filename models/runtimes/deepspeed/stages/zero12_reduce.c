/* Stages 1 and 2: gradient buckets and their reduction.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage_1_and_2.py
 * (reduce_independent_p_g_buckets_and_remove_grads, average_tensor, allreduce_and_scatter,
 * allreduce_no_retain, gradient_reduction_w_predivide, copy_grads_in_partition). */
#include "models/runtimes/deepspeed/stages/zero12.h"

typedef struct {
    gint32 rank; /* the owner, -1: nobody in particular */
    gint64 elements;
} Slice;

/* Gradients of the bucket cut by owner; neighbours of one owner are one slice. */
static GArray *
cut_bucket(const ZpDsProgram *program, const ZpDs12 *state)
{
    GArray *slices = g_array_new(FALSE, FALSE, sizeof(Slice));
    for (guint i = 0; i < state->bucket->len; i++) {
        gint32 id = g_array_index(state->bucket, gint32, i);
        const ZpDsFlatGroup *group = &state->groups[program->group_of[id]];
        gint32 place = state->place_of[id];
        gint64 at = group->start[place], end = group->start[place + 1];
        while (at < end) {
            gint32 rank = (gint32)(at / group->slice_elements);
            gint64 stop = MIN(end, (rank + 1) * group->slice_elements);
            Slice *last = slices->len > 0 ? &g_array_index(slices, Slice, slices->len - 1) : NULL;
            if (last != NULL && last->rank == rank)
                last->elements += stop - at;
            else {
                Slice slice = {rank, stop - at};
                g_array_append_val(slices, slice);
            }
            at = stop;
        }
    }
    return slices;
}

/* One collective over n slices flattened together: an all-reduce, or a reduce to their owner.  A
 * single slice is not copied. */
static void
reduce_together(ZpDsProgram *program, gint32 owner, gint64 elements, gint32 n, gint64 kept)
{
    ZpDs *ds = &program->ds;
    const ZpDs12 *state = program->state;
    guint8 stream = state->stream;
    gint64 bytes = zp_ds_bytes(ds->model, elements);
    gint32 flat =
        n <= 1 ? ZP_TAPE_NONE
               : zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_ALL_REDUCE_INPUT, bytes);
    if (n > 1)
        zp_ds_memory_kernel(ds, stream, 2 * bytes);
    gint32 cast = ds->communicate == ds->model
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_ALL_REDUCE_INPUT,
                                   zp_ds_bytes(ds->communicate, elements));
    if (cast != ZP_TAPE_NONE)
        zp_ds_memory_kernel(ds, stream, bytes + zp_ds_bytes(ds->communicate, elements));
    ZpDsCollective reduce = {.kind = owner < 0 ? ZP_KIND_ALL_REDUCE : ZP_KIND_REDUCE,
                             .elements = elements,
                             .dtype = ds->communicate,
                             .group = ZP_DS_GROUP_WORLD,
                             .stream = stream,
                             .destination = owner};
    zp_ds_collective(ds, &reduce);
    if (cast != ZP_TAPE_NONE)
        zp_ds_memory_kernel(ds, stream, bytes + zp_ds_bytes(ds->communicate, elements));
    zp_ds_drop(ds, stream, &cast);
    zp_ds_memory_kernel(ds, stream, zp_ds_bytes(ds->model, 2 * kept));
    zp_ds_drop(ds, stream, &flat);
}

/* Slices of `rank` (-1: all) in collectives that close when they hold more than a bucket. */
static void
reduce_slices(ZpDsProgram *program, const GArray *slices, gint32 rank)
{
    gint64 held = 0, kept = 0;
    gint32 n = 0;
    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = &g_array_index(slices, Slice, i);
        if (rank >= 0 && slice->rank != rank)
            continue;
        held += slice->elements;
        kept += slice->rank == program->rank ? slice->elements : 0;
        n++;
        if (held > program->ds.settings->reduce_bucket_elements) {
            reduce_together(program, rank, held, n, kept);
            held = kept = n = 0;
        }
    }
    if (n > 0)
        reduce_together(program, rank, held, n, kept);
}

/* Destinations in the order in which they appear in the bucket. */
static void
reduce_to_owners(ZpDsProgram *program, const GArray *slices)
{
    for (guint i = 0; i < slices->len; i++) {
        gint32 rank = g_array_index(slices, Slice, i).rank;
        gboolean seen = FALSE;
        for (guint k = 0; k < i; k++)
            seen |= g_array_index(slices, Slice, k).rank == rank;
        if (!seen)
            reduce_slices(program, slices, rank);
    }
}

static void
average(ZpDsProgram *program, ZpDs12 *state)
{
    ZpDs *ds = &program->ds;
    if (ds->overlap) {
        /* At most one reduction in flight: each launch makes compute wait for the ones before. */
        zp_ds_wait_stream(ds, ZP_DS_STREAM_REDUCE, ZP_DS_STREAM_COMPUTE);
        zp_ds_wait_stream(ds, ZP_DS_STREAM_COMPUTE, ZP_DS_STREAM_REDUCE);
    }
    if (!state->contiguous) {
        reduce_together(program, -1, state->bucket_elements, (gint32)state->bucket->len,
                        state->bucket_elements);
        return;
    }
    zp_ds_memory_kernel(ds, state->stream,
                        zp_ds_bytes(ds->model, 2 * state->bucket_elements)); /* divide */
    if (!ds->settings->reduce_scatter) {
        reduce_together(program, -1, state->bucket_elements, 1, 0);
        return;
    }
    g_autoptr(GArray) slices = cut_bucket(program, state);
    if (ds->settings->multi_rank_bucket)
        reduce_slices(program, slices, -1);
    else
        reduce_to_owners(program, slices);
}

/* A reduced gradient that touches this rank's slice moves whole into one buffer. */
static void
copy_into_partition(ZpDsProgram *program, ZpDs12 *state, gint32 id)
{
    ZpDs *ds = &program->ds;
    if (state->offload) {
        zp_ds12_offload_gradient(program, id);
        return;
    }
    if (state->in_partition == ZP_TAPE_NONE)
        state->in_partition =
            zp_ds_make(ds, state->stream, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT,
                       zp_ds_bytes(ds->model, state->touching_elements));
    zp_ds_memory_kernel(ds, state->stream,
                        zp_ds_bytes(ds->model, 2 * zp_ds_program_elements(program, id)));
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
}

static void
settle(ZpDsProgram *program, ZpDs12 *state, gint32 id)
{
    ZpDs *ds = &program->ds;
    if (state->in_slice[id]) {
        if (state->contiguous)
            copy_into_partition(program, state, id);
    } else if (state->two_stage && ds->overlap && !state->contiguous)
        g_array_append_val(state->deferred, id);
    else if (state->two_stage)
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
}

void
zp_ds12_flush(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    ZpDs12 *state = program->state;
    if (state->bucket->len == 0)
        return;
    if (ds->overlap && !state->contiguous) {
        for (guint i = 0; i < state->deferred->len; i++)
            zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE,
                       &program->gradients[g_array_index(state->deferred, gint32, i)]);
        g_array_set_size(state->deferred, 0);
    }
    average(program, state);
    for (guint i = 0; i < state->bucket->len; i++)
        settle(program, state, g_array_index(state->bucket, gint32, i));
    g_array_set_size(state->bucket, 0);
    state->bucket_elements = 0;
    state->extra_large = FALSE;
}

void
zp_ds12_add_to_bucket(ZpDsProgram *program, gint32 id)
{
    ZpDs *ds = &program->ds;
    ZpDs12 *state = program->state;
    gint64 n = zp_ds_program_elements(program, id);
    gint64 limit = ds->settings->reduce_bucket_elements;
    if (n == 0)
        return;
    if (state->bucket_elements + n > limit) {
        zp_ds12_flush(program);
        if (state->n_ipg == 2)
            state->ipg_index = 1 - state->ipg_index;
    }
    if (state->contiguous && n <= limit) {
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, zp_ds_bytes(ds->model, 2 * n));
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &state->accumulator[id]);
    } else
        state->extra_large = state->contiguous;
    state->bucket_elements += n;
    g_array_append_val(state->bucket, id);
}
