/* Source: DeepSpeed 0.19, runtime/comm/coalesced_collectives.py (all_to_all_quant_reduce),
 * runtime/zero/mics.py (allreduce_mics_shard_grads). */
#include "models/runtimes/deepspeed/stages/zeropp_internal.h"

gboolean
zp_ds_quantizes_gradients(const ZpDs *ds)
{
    return ds->settings->quantized_gradients && ds->tape->groups[ZP_DS_GROUP_ACROSS].size > 1;
}

ZpDsQuantizedSizes
zp_ds_quantized_sizes(gint64 elements, const gint64 *shape, gint32 n_dims, gint32 ranks,
                      gint32 node_ranks)
{
    gint64 groups = MAX(MAX(shape[0], n_dims > 1 ? shape[1] : 0), ranks);
    return (ZpDsQuantizedSizes){
        .intra_bytes = elements / 2,
        .intra_scale_bytes = 4 * groups,
        .inter_bytes = elements / (2 * (gint64)node_ranks),
        .inter_scale_bytes = 4 * groups / node_ranks,
        .result_elements = elements / ranks,
    };
}

static void
exchange(ZpDsProgram *program, int group, gint64 bytes, gint64 scale_bytes, GArray *held)
{
    ZpDs *ds = &program->ds;
    const gint64 sizes[] = {bytes, scale_bytes};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        /* What is sent and what arrives. */
        for (int side = 0; side < 2; side++) {
            gint32 buffer = zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_COMMUNICATION,
                                       ZP_ROLE_QUANTIZED, sizes[i]);
            g_array_append_val(held, buffer);
        }
        ZpDsCollective collective = {ZP_KIND_ALL_TO_ALL,  sizes[i], ZP_DS_UINT8, group,
                                     ZP_DS_STREAM_REDUCE, 0};
        zp_ds_collective(ds, &collective);
    }
}

void
zp_ds_quantized_reduce(ZpDsProgram *program, gint32 id, GArray *held)
{
    ZpDs *ds = &program->ds;
    gint64 n = zp_ds_program_elements(program, id);
    gint32 index = zp_ds_tree_parameter(program->tree, id)->model_index;
    const ZpModelParameter *parameter =
        index == ZP_MODEL_NONE ? NULL : zp_model_parameter(ds->job->model, index);
    if (parameter == NULL || parameter->n_dims < 2 || n % (2 * (gint64)ds->ranks) != 0) {
        gint64 padded = zp_ds3_partition(program, id) * ds->shard_ranks;
        gint32 flat = n == padded
                          ? ZP_TAPE_NONE
                          : zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_COMMUNICATION,
                                       ZP_ROLE_REDUCE_INPUT, zp_ds_bytes(ds->communicate, padded));
        g_array_append_val(held, flat);
        ZpDsCollective plain = {ZP_KIND_REDUCE_SCATTER, padded, ds->communicate, ZP_DS_GROUP_SHARD,
                                ZP_DS_STREAM_REDUCE,    0};
        zp_ds_collective(ds, &plain);
        return;
    }
    gint32 node = ds->tape->groups[ZP_DS_GROUP_NODE].size;
    ZpDsQuantizedSizes sizes =
        zp_ds_quantized_sizes(n, parameter->shape, parameter->n_dims, ds->ranks, node);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE, zp_ds_bytes(ds->model, n) + sizes.intra_bytes);
    exchange(program, ZP_DS_GROUP_NODE, sizes.intra_bytes, sizes.intra_scale_bytes, held);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE, sizes.intra_bytes + sizes.inter_bytes);
    exchange(program, ZP_DS_GROUP_ACROSS, sizes.inter_bytes, sizes.inter_scale_bytes, held);
    gint32 result =
        zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_COMMUNICATION, ZP_ROLE_REDUCE_OUTPUT,
                   zp_ds_bytes(ds->model, sizes.result_elements));
    g_array_append_val(held, result);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_REDUCE,
                        sizes.inter_bytes + zp_ds_bytes(ds->model, sizes.result_elements));
}

void
zp_ds_mics_reduce_replicas(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDs3 *state = program->state;
    if (ds->settings->mics_shard_ranks <= 0)
        return;
    ZpDsCollective reduce = {ZP_KIND_ALL_REDUCE,  state->partition_elements, ds->accumulate,
                             ZP_DS_GROUP_REPLICA, ZP_DS_STREAM_COMPUTE,      0};
    zp_ds_collective(ds, &reduce);
}
