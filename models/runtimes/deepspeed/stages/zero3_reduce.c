/* Stage 3: gradient buckets, reduce-scatter, and what becomes of the partitions.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage3.py (reduce_independent_p_g_buckets_and_remove_grads,
 * __add_grad_to_ipg_bucket, __reduce_and_partition_ipg_grads, __avg_scatter_grads,
 * __avg_scatter_contiguous_grads, partition_grads), runtime/comm/coalesced_collectives.py. */
#include "models/runtimes/deepspeed/stages/zero3.h"
#include "models/runtimes/deepspeed/stages/zeropp_internal.h"

static gint64
aligned(const ZpDsProgram *program, gint32 id)
{
    return zp_ds3_partition(program, id) * program->ds.shard_ranks;
}

static int
compare_ids(gconstpointer a, gconstpointer b)
{
    gint32 x = *(const gint32 *)a, y = *(const gint32 *)b;
    return (x > y) - (x < y);
}

/* Gradients outside the bucket buffer are cast on their own when the formats differ. */
static gint64
loose_elements(const ZpDsProgram *program, const ZpDs3 *state)
{
    gint64 sum = 0;
    for (guint i = 0; i < state->bucket->len; i++) {
        gint32 id = g_array_index(state->bucket, gint32, i);
        if (program->gradients[id] != ZP_TAPE_NONE)
            sum += zp_ds_program_elements(program, id);
    }
    return sum;
}

static void
reduce_scatter(ZpDsProgram *program, ZpDs3 *state, GArray *held)
{
    ZpDs *ds = &program->ds;
    guint8 stream = ZP_DS_STREAM_REDUCE;
    if (ds->communicate != ds->model) {
        gint64 loose = zp_ds_bytes(ds->communicate, loose_elements(program, state));
        gint32 cast = zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_INPUT, loose);
        zp_ds_memory_kernel(ds, stream, 2 * loose);
        g_array_append_val(held, cast);
    }
    if (zp_ds_quantizes_gradients(ds)) {
        for (guint i = 0; i < state->bucket->len; i++)
            zp_ds_quantized_reduce(program, g_array_index(state->bucket, gint32, i), held);
        return;
    }
    gint64 elements = 0;
    for (guint i = 0; i < state->bucket->len; i++)
        elements += aligned(program, g_array_index(state->bucket, gint32, i));
    gint32 only = g_array_index(state->bucket, gint32, 0);
    gboolean in_place =
        state->bucket->len == 1 && zp_ds_program_elements(program, only) % ds->shard_ranks == 0;
    gint64 bytes = zp_ds_bytes(ds->communicate, elements);
    gint32 flat = in_place
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_INPUT, bytes);
    zp_ds_memory_kernel(ds, stream, (in_place ? 2 : 4) * bytes); /* interleave, divide */
    g_array_append_val(held, flat);
    ZpDsCollective collective = {ZP_KIND_REDUCE_SCATTER, elements, ds->communicate,
                                 ZP_DS_GROUP_SHARD,      stream,   0};
    zp_ds_collective(ds, &collective);
}

/* reduce_scatter = false: the bucket buffer is all-reduced as it is, then sliced. */
static void
all_reduce_bucket(ZpDsProgram *program, ZpDs3 *state, GArray *held)
{
    ZpDs *ds = &program->ds;
    guint8 stream = ZP_DS_STREAM_REDUCE;
    zp_ds_memory_kernel(ds, stream, zp_ds_bytes(ds->communicate, 2 * state->bucket_elements));
    ZpDsCollective collective = {
        ZP_KIND_ALL_REDUCE, state->bucket_elements, ds->communicate, ZP_DS_GROUP_SHARD, stream, 0};
    zp_ds_collective(ds, &collective);
    if (ds->communicate != ds->accumulate) {
        gint32 cast = zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_OUTPUT,
                                 zp_ds_bytes(ds->accumulate, state->bucket_elements));
        g_array_append_val(held, cast);
    }
}

static void
partition_gradients(ZpDsProgram *program, ZpDs3 *state, GArray *held)
{
    ZpDs *ds = &program->ds;
    guint8 stream = ZP_DS_STREAM_REDUCE;
    gint32 rank = program->rank % ds->shard_ranks;
    gint64 stored = 0, cast_elements = 0;
    for (guint i = 0; i < state->bucket->len; i++)
        cast_elements += zp_ds3_partition(program, g_array_index(state->bucket, gint32, i));
    gint32 cast = ds->communicate == ds->accumulate || !ds->settings->reduce_scatter
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_OUTPUT,
                                   zp_ds_bytes(ds->accumulate, cast_elements));
    g_array_append_val(held, cast);
    for (guint i = 0; i < state->bucket->len; i++) {
        gint32 id = g_array_index(state->bucket, gint32, i);
        gint64 part = zp_ds3_partition(program, id);
        gint64 real = MIN(part, zp_ds_program_elements(program, id) - part * rank);
        if (real > 0) { /* a rank past the end holds padding alone */
            stored += real;
            if (state->offload)
                zp_ds3_offload_gradient(program, id, real, held);
        }
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
    }
    if (!state->offload)
        zp_ds_memory_kernel(ds, stream,
                            zp_ds_bytes(ds->accumulate, (program->micro > 0 ? 3 : 2) * stored));
}

void
zp_ds3_flush(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    ZpDs3 *state = program->state;
    if (state->bucket->len == 0)
        return;
    /* max_param_reduce_events = 2. */
    if (state->reduced.length > 2)
        zp_tape_sync(ds->tape, GPOINTER_TO_INT(g_queue_pop_head(&state->reduced)));
    g_autoptr(GArray) held = g_array_new(FALSE, FALSE, sizeof(gint32));
    gboolean whole = ds->settings->contiguous_gradients && !ds->settings->reduce_scatter &&
                     state->bucket_elements <= ds->settings->reduce_bucket_elements;
    if (whole)
        all_reduce_bucket(program, state, held);
    else {
        qsort(state->bucket->data, state->bucket->len, sizeof(gint32), compare_ids);
        reduce_scatter(program, state, held);
    }
    partition_gradients(program, state, held);
    for (guint i = 0; i < held->len; i++)
        zp_ds_drop(ds, ZP_DS_STREAM_REDUCE, &g_array_index(held, gint32, i));
    g_array_set_size(state->bucket, 0);
    state->bucket_elements = 0;
    g_queue_push_tail(&state->reduced,
                      GINT_TO_POINTER(zp_tape_record(ds->tape, ZP_DS_STREAM_REDUCE)));
}

void
zp_ds3_gradient(ZpDsProgram *program, gint32 id)
{
    ZpDs *ds = &program->ds;
    ZpDs3 *state = program->state;
    gint64 n = zp_ds_program_elements(program, id);
    gint64 limit = ds->settings->reduce_bucket_elements;
    if (state->bucket_elements > 0 && state->bucket_elements + n > limit)
        zp_ds3_flush(program);
    zp_ds_wait_stream(ds, ZP_DS_STREAM_REDUCE, ZP_DS_STREAM_COMPUTE);
    if (ds->settings->contiguous_gradients && state->bucket_elements + n <= limit) {
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE,
                            zp_ds_bytes(ds->model, n) + zp_ds_bytes(ds->communicate, n));
        zp_tape_use(ds->tape, ZP_DS_STREAM_REDUCE, program->gradients[id]);
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
    }
    state->bucket_elements += n;
    g_array_append_val(state->bucket, id);
}
