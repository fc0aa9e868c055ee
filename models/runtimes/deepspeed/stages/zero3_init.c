/* Stage 3: partitions, sub-groups and what lives before the first step.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage3.py (__init__, _setup_for_real_optimizer,
 * _create_fp16_partitions_with_defragmentation, _create_fp32_partitions,
 * initialize_optimizer_states, create_reduce_and_remove_grad_hooks). */
#include "models/runtimes/deepspeed/modules/flat.h"
#include "models/runtimes/deepspeed/stages/zero3.h"

static void
make_sub_groups(ZpDsProgram *program, ZpDs3 *state, gint32 g)
{
    g_autoptr(GArray) ids = zp_ds_program_group(program, g);
    g_autofree gint64 *partitions = g_new(gint64, MAX(ids->len, 1));
    g_autofree gint32 *member = g_new(gint32, MAX(ids->len, 1));
    for (guint i = 0; i < ids->len; i++)
        partitions[i] = zp_ds3_partition(program, g_array_index(ids, gint32, i));
    gint32 n = zp_ds_sub_groups(partitions, (gint32)ids->len,
                                program->ds.settings->sub_group_elements, member);
    guint first = state->sub_groups->len;
    for (gint32 s = 0; s < n; s++) {
        ZpDsSubGroup group = {.ids = g_array_new(FALSE, FALSE, sizeof(gint32))};
        g_array_append_val(state->sub_groups, group);
    }
    for (guint i = 0; i < ids->len; i++) {
        gint32 id = g_array_index(ids, gint32, i);
        guint index = first + (guint)member[i];
        ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, index);
        g_array_append_val(group->ids, id);
        group->elements += partitions[i];
        state->sub_group_of[id] = (gint32)index;
        state->partition_elements += partitions[i];
    }
}

/* Sub-groups from int((1 - ratio) x n) on are updated by the CPU. */
static void
place_sub_groups(ZpDsProgram *program, ZpDs3 *state)
{
    const ZpDsOffload *offload = &program->ds.settings->offload_optimizer;
    gint32 n = (gint32)state->sub_groups->len;
    gint32 first = (gint32)((1.0 - offload->ratio) * (double)n);
    for (gint32 s = 0; s < n && state->offload; s++) {
        ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, (guint)s);
        group->on_host = s >= first;
        group->on_nvme = offload->device == ZP_DS_NVME &&
                         zp_ds3_nvme_swaps(zp_ds_bytes(program->ds.master, group->elements));
    }
}

/* Built outside zero.Init the whole model is on the device once, broadcast twice; inside, each
 * parameter is broadcast when it is made.  Then the gradient hooks gather every trainable one. */
static void
initial_collectives(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    zp_ds_program_broadcast_model(program);
    if (!ds->settings->zero_init)
        zp_ds_program_broadcast_model(program);
    for (guint s = 0; s < state->sub_groups->len; s++) {
        const GArray *ids = g_array_index(state->sub_groups, ZpDsSubGroup, s).ids;
        for (guint i = 0; i < ids->len; i++) {
            gint32 id = g_array_index(ids, gint32, i);
            ZpDsCollective gather = {ZP_KIND_ALL_GATHER,
                                     zp_ds3_partition(program, id) * ds->shard_ranks,
                                     ds->model,
                                     ZP_DS_GROUP_SHARD,
                                     ZP_DS_STREAM_COMPUTE,
                                     0};
            zp_ds_collective(ds, &gather);
        }
    }
}

static void
make_parameters(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    gboolean on_host = ds->settings->offload_param.device != ZP_DS_NOWHERE;
    if (!on_host)
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
                   zp_ds_bytes(ds->model, state->partition_elements));
    /* Frozen partitions stay apart; quantised ones are int8 and a scale a group. */
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++) {
        if (zp_ds_tree_parameter(program->tree, id)->trainable)
            continue;
        gint64 n = zp_ds3_partition(program, id);
        gboolean quantised = ds->settings->quantized_nontrainable && n > 2048 &&
                             zp_ds_program_elements(program, id) > 500000;
        gint64 bytes =
            quantised ? n + 4 * MAX(zp_ds_quantizer_groups(n), 1) : zp_ds_bytes(ds->model, n);
        if (on_host)
            zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes, TRUE);
        else
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, bytes);
    }
}

/* Optimizer state of sub-groups on the device. */
static void
make_states(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    for (guint s = 0; s < state->sub_groups->len; s++) {
        const ZpDsSubGroup *group = &g_array_index(state->sub_groups, ZpDsSubGroup, s);
        if (group->on_host || group->on_nvme)
            continue;
        gint64 bytes = zp_ds_bytes(ds->master, group->elements);
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_MASTER, ZP_ROLE_SHARD, bytes);
        if (state->offload) /* beside offloaded ones: a permanent fp32 gradient */
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT,
                       bytes);
        if (!program->first_step)
            zp_ds_program_make_moments(program, group->elements, FALSE);
    }
}

static void
make_secondaries(ZpDsProgram *program, ZpDs3 *state)
{
    ZpDs *ds = &program->ds;
    gint32 group = ds->tape->groups[ZP_DS_GROUP_SECONDARY].size;
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len && group > 1; id++) {
        /* After a step only frozen parameters still have theirs. */
        if (!program->first_step && zp_ds_tree_parameter(program->tree, id)->trainable)
            continue;
        gint64 bytes =
            zp_ds_bytes(ds->model, zp_ds_secondary_elements(zp_ds_program_elements(program, id),
                                                            ds->shard_ranks, group));
        state->gathers.secondary[id] =
            ds->settings->offload_param.device == ZP_DS_NOWHERE
                ? zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SECONDARY_SHARD,
                             bytes)
                : zp_ds_make_host(ds, ZP_CLASS_PARAMETER, ZP_ROLE_SECONDARY_SHARD, bytes, TRUE);
    }
}

void
zp_ds3_begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    ZpDs3 *state = program->state;
    state->sub_groups = g_array_new(FALSE, TRUE, sizeof(ZpDsSubGroup));
    state->sub_group_of = g_new0(gint32, MAX(program->tree->parameters->len, 1));
    for (gint32 g = 0; g < program->n_groups; g++)
        make_sub_groups(program, state, g);
    place_sub_groups(program, state);
    initial_collectives(program, state);
    make_parameters(program, state);
    make_states(program, state);
    gint64 gradients = zp_ds_bytes(ds->accumulate, state->partition_elements);
    if (state->offload)
        zp_ds3_offload_begin(program);
    else
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT,
                   gradients);
    if (ds->settings->contiguous_gradients)
        zp_ds_make(ds, ZP_DS_STREAM_REDUCE, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET,
                   zp_ds_bytes(ds->communicate, ds->settings->reduce_bucket_elements));
    make_secondaries(program, state);
}
