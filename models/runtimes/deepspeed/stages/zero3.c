/* Stage 3: the coordinator's events meet the tape.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage3.py. */
#include "models/runtimes/deepspeed/stages/zero3.h"

/* The phase and unit that the events after a hook belong to. */
static void
tag_hook(ZpDsProgram *program, const ZpDsEvent *event)
{
    switch (event->kind) {
    case ZP_DS_FORWARD_PRE:
    case ZP_DS_FORWARD_POST:
        zp_ds_program_tag(program, event->recompute ? ZP_PHASE_BACKWARD : ZP_PHASE_FORWARD,
                          event->module);
        break;
    case ZP_DS_BACKWARD_PRE:
    case ZP_DS_BACKWARD_POST:
        zp_ds_program_tag(program, ZP_PHASE_BACKWARD, event->module);
        break;
    case ZP_DS_LEFTOVERS:
        zp_ds_program_tag(program, ZP_PHASE_BACKWARD, ZP_MODEL_NONE);
        break;
    case ZP_DS_STEP:
        zp_ds_program_tag(program, ZP_PHASE_OPTIMIZER, ZP_MODEL_NONE);
        break;
    case ZP_DS_FORWARD_RUN:
    case ZP_DS_BACKWARD_RUN:
    case ZP_DS_GATHER:
    case ZP_DS_POP:
    case ZP_DS_POPPED:
    case ZP_DS_WAIT:
    case ZP_DS_RELEASE:
    case ZP_DS_FLAT_FREED:
    case ZP_DS_COMPUTE_WAIT:
    case ZP_DS_PERSIST:
    case ZP_DS_SWAP_IN:
    case ZP_DS_READ_AHEAD:
    case ZP_DS_SECONDARY:
    case ZP_DS_DROP_SECONDARY:
    case ZP_DS_CHECK:
    case ZP_DS_INVALID:
        break;
    }
}

static void
listen(const ZpDsEvent *event, gpointer data)
{
    ZpDsProgram *program = data;
    ZpDs3 *state = program->state;
    tag_hook(program, event);
    zp_ds_gathers_handle(&state->gathers, event);
    if (program->ds.tap != NULL)
        program->ds.tap(event, program->ds.tap_data);
}

/* Iterations before the tape begins: the trace is recorded, then completed. */
static void
warm_up(ZpDsProgram *program)
{
    ZpDs3 *state = program->state;
    ZpDsWalk walk = {0};
    zp_ds_walk_init(&walk, program->tree, state->coordinator);
    gint64 accumulation = MAX(program->ds.job->training.accumulation, 1);
    enum { WARM_STEPS = 2 };
    for (int step = 0; step < WARM_STEPS; step++) {
        for (gint64 m = 0; m < accumulation; m++) {
            zp_ds_walk_forward(&walk);
            zp_ds_walk_backward(&walk);
            zp_ds_coordinator_leftovers(state->coordinator);
        }
        zp_ds_coordinator_step(state->coordinator);
        if (step == WARM_STEPS - 1)
            /* What the last step leaves gathered is there when the tape begins. */
            zp_ds_coordinator_listen(state->coordinator, listen, program);
        zp_ds_coordinator_persist(state->coordinator);
    }
    zp_ds_walk_clear(&walk);
}

static void
begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDeepspeed *settings = ds->settings;
    ZpDs3 *state = g_new0(ZpDs3, 1);
    program->state = state;
    state->bucket = g_array_new(FALSE, FALSE, sizeof(gint32));
    state->offload = settings->offload_optimizer.device != ZP_DS_NOWHERE;
    ZpDsCoordinatorConfig config = {
        .prefetch_bucket_elements =
            settings->allgather_sequential && settings->prefetch_bucket_elements > 0
                ? 1
                : settings->prefetch_bucket_elements,
        .max_live_elements = settings->max_live_elements,
        .max_reuse_distance_elements = settings->max_reuse_distance_elements,
        .ranks = ds->shard_ranks,
        .secondary_ranks = ds->tape->groups[ZP_DS_GROUP_SECONDARY].size,
        .sequential = settings->allgather_sequential,
        .nvme_buffers =
            settings->offload_param.device == ZP_DS_NVME ? settings->offload_param.buffer_count : 0,
    };
    state->coordinator = zp_ds_coordinator_new(program->tree, &config);
    zp_ds_gathers_init(&state->gathers, ds, program->tree);
    state->gathers.fast = settings->module_granularity > 0;
    program->walk.coordinator = state->coordinator;
    zp_ds3_begin(program);
    if (settings->cold)
        zp_ds_coordinator_listen(state->coordinator, listen, program);
    else
        warm_up(program);
}

static void
micro_batch_end(ZpDsProgram *program)
{
    ZpDs3 *state = program->state;
    zp_ds3_flush(program);
    zp_ds_sync_stream(&program->ds, ZP_DS_STREAM_REDUCE);
    g_queue_clear(&state->reduced);
    zp_ds_coordinator_leftovers(state->coordinator);
}

static void
end(ZpDsProgram *program)
{
    ZpDs3 *state = program->state;
    zp_ds_coordinator_free(state->coordinator);
    zp_ds_gathers_clear(&state->gathers);
    for (guint i = 0; state->sub_groups != NULL && i < state->sub_groups->len; i++)
        g_array_unref(g_array_index(state->sub_groups, ZpDsSubGroup, i).ids);
    g_clear_pointer(&state->sub_groups, g_array_unref);
    g_free(state->sub_group_of);
    g_array_unref(state->bucket);
    g_queue_clear(&state->reduced);
    g_free(state);
}

const ZpDsStage zp_ds_stage3 = {begin, zp_ds3_gradient, micro_batch_end, zp_ds3_step, end};
