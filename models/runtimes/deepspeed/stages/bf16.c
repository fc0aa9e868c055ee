/* BF16_Optimizer: stage 1 with bf16 parameters and fp32 gradient accumulation.
 *
 * Every rank keeps a full fp32 gradient of each flat group for ever; the low-precision gradients
 * are added to it after each backward (or in the gradient hook: immediate_grad_update) and kept,
 * zeroed, until the step.  The boundary casts and all-reduces the fp32 groups together.  The step
 * reduces neither a norm nor an overflow flag.
 *
 * Source: DeepSpeed 0.19, runtime/bf16_optimizer.py (_setup_for_real_optimizer,
 * get_grads_for_reduction, update_hp_grads, step), runtime/engine.py (allreduce_bucket). */
#include "models/runtimes/deepspeed/modules/flat.h"
#include "models/runtimes/deepspeed/stages/program.h"

#define BUCKET_ELEMENTS G_GINT64_CONSTANT(500000000)

typedef struct {
    ZpDsFlatGroup *groups;
} StageBf16;

static void
begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    StageBf16 *state = g_new0(StageBf16, 1);
    program->state = state;
    state->groups = g_new0(ZpDsFlatGroup, (gsize)program->n_groups);
    zp_ds_program_broadcast_model(program);
    for (gint32 g = 0; g < program->n_groups; g++) {
        g_autoptr(GArray) ids = zp_ds_program_group(program, g);
        g_autofree gint64 *elements = g_new(gint64, MAX(ids->len, 1));
        for (guint i = 0; i < ids->len; i++)
            elements[i] = zp_ds_program_elements(program, g_array_index(ids, gint32, i));
        ZpDsFlatGroup *group = &state->groups[g];
        zp_ds_flat_group_init(group, elements, (gint32)ids->len, ds->ranks, FALSE);
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
                   zp_ds_bytes(ds->model, group->flat_elements));
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_MASTER, ZP_ROLE_SHARD,
                   zp_ds_bytes(ds->master, group->slice_elements));
        zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR,
                   zp_ds_bytes(ds->accumulate, group->flat_elements));
        if (!program->first_step)
            zp_ds_program_make_moments(program, group->slice_elements, FALSE);
    }
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        if (!zp_ds_tree_parameter(program->tree, id)->trainable)
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
                       zp_ds_bytes(ds->model, zp_ds_program_elements(program, id)));
}

/* fp32 += bf16, then the bf16 gradient is zeroed but kept. */
static void
accumulate(ZpDsProgram *program, gint32 id)
{
    ZpDs *ds = &program->ds;
    gint64 n = zp_ds_program_elements(program, id);
    zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE,
                        2 * zp_ds_bytes(ds->accumulate, n) + 2 * zp_ds_bytes(ds->model, n));
}

static void
gradient(ZpDsProgram *program, gint32 id)
{
    if (program->ds.settings->immediate_grad_update)
        accumulate(program, id);
}

static void
reduce(ZpDsProgram *program, gint64 elements)
{
    ZpDs *ds = &program->ds;
    guint8 stream = ZP_DS_STREAM_COMPUTE;
    gint32 cast = ds->communicate == ds->accumulate
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_ALL_REDUCE_INPUT,
                                   zp_ds_bytes(ds->communicate, elements));
    zp_ds_memory_kernel(
        ds, stream, zp_ds_bytes(ds->accumulate, elements) + zp_ds_bytes(ds->communicate, elements));
    ZpDsCollective all_reduce = {ZP_KIND_ALL_REDUCE, elements, ds->communicate,
                                 ZP_DS_GROUP_WORLD,  stream,   0};
    zp_ds_collective(ds, &all_reduce);
    zp_ds_memory_kernel(
        ds, stream, zp_ds_bytes(ds->accumulate, elements) + zp_ds_bytes(ds->communicate, elements));
    zp_ds_drop(ds, stream, &cast);
}

static void
micro_batch_end(ZpDsProgram *program)
{
    const StageBf16 *state = program->state;
    if (!program->ds.settings->immediate_grad_update)
        for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
            if (program->gradients[id] != ZP_TAPE_NONE)
                accumulate(program, id);
    if (!program->boundary)
        return;
    /* Groups are concatenated until their sum exceeds the bucket. */
    gint64 held = 0;
    for (gint32 g = 0; g < program->n_groups; g++) {
        held += state->groups[g].flat_elements;
        if (held > BUCKET_ELEMENTS) {
            reduce(program, held);
            held = 0;
        }
    }
    if (held > 0)
        reduce(program, held);
}

static void
step(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const StageBf16 *state = program->state;
    for (gint32 g = 0; g < program->n_groups; g++) {
        gint64 slice = state->groups[g].slice_elements;
        if (program->first_step)
            zp_ds_program_make_moments(program, slice, FALSE);
        zp_ds_program_optimize(program, slice, slice);
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE,
                            zp_ds_bytes(ds->master, slice) + zp_ds_bytes(ds->model, slice));
    }
    zp_ds_program_tag(program, ZP_PHASE_GATHER, ZP_MODEL_NONE);
    for (gint32 g = 0; g < program->n_groups; g++) {
        ZpDsCollective gather = {ZP_KIND_ALL_GATHER, state->groups[g].flat_elements, ds->model,
                                 ZP_DS_GROUP_WORLD,  ZP_DS_STREAM_COMPUTE,           0};
        zp_ds_collective(ds, &gather);
    }
    zp_ds_program_tag(program, ZP_PHASE_ZERO_GRAD, ZP_MODEL_NONE);
    for (gint32 g = 0; g < program->n_groups; g++)
        zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE,
                            zp_ds_bytes(ds->accumulate, state->groups[g].flat_elements));
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
}

static void
end(ZpDsProgram *program)
{
    StageBf16 *state = program->state;
    for (gint32 g = 0; g < program->n_groups; g++)
        zp_ds_flat_group_clear(&state->groups[g]);
    g_free(state->groups);
    g_free(state);
}

const ZpDsStage zp_ds_stage_bf16 = {begin, gradient, micro_batch_end, step, end};
