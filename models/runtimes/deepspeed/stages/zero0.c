/* Stage 0: gradients reduced once a step, then one of three optimizer wrappers.
 *
 * fp32: the bare optimizer.  fp16 and bf16 with FusedAdam: FP16_Optimizer, flat groups whose
 * moments exist from the start, because it runs one step on zero gradients at construction.  With
 * another Adam: the unfused wrapper, the same per parameter.
 *
 * Source: DeepSpeed 0.19, runtime/engine.py (buffered_allreduce_fallback, allreduce_bucket),
 * runtime/fp16/fused_optimizer.py and unfused_optimizer.py. */
#include "models/runtimes/deepspeed/stages/program.h"

/* A bucket closes when it holds strictly more; reduce_bucket_size is not used at this stage. */
#define BUCKET_ELEMENTS G_GINT64_CONSTANT(500000000)

typedef struct {
    gboolean fused, wrapped; /* wrapped: has fp32 masters */
} Stage0;

static gint64
group_elements(const ZpDsProgram *program, gint32 group)
{
    g_autoptr(GArray) ids = zp_ds_program_group(program, group);
    gint64 sum = 0;
    for (guint i = 0; i < ids->len; i++)
        sum += zp_ds_program_elements(program, g_array_index(ids, gint32, i));
    return sum;
}

/* Calls `make` for each tensor the optimizer works on: a flat group, or every parameter. */
static void
each_tensor(ZpDsProgram *program, void (*make)(ZpDsProgram *program, gint64 elements))
{
    const Stage0 *state = program->state;
    for (gint32 g = 0; g < program->n_groups; g++) {
        if (state->fused) {
            make(program, group_elements(program, g));
            continue;
        }
        g_autoptr(GArray) ids = zp_ds_program_group(program, g);
        for (guint i = 0; i < ids->len; i++)
            make(program, zp_ds_program_elements(program, g_array_index(ids, gint32, i)));
    }
}

static void
make_parameter(ZpDsProgram *program, gint64 elements)
{
    zp_ds_make(&program->ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD,
               zp_ds_bytes(program->ds.model, elements));
}

static void
make_master(ZpDsProgram *program, gint64 elements)
{
    zp_ds_make(&program->ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_MASTER, ZP_ROLE_SHARD,
               zp_ds_bytes(program->ds.master, elements));
}

static void
make_moments(ZpDsProgram *program, gint64 elements)
{
    zp_ds_program_make_moments(program, elements, FALSE);
}

static void
begin(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    Stage0 *state = g_new0(Stage0, 1);
    program->state = state;
    state->wrapped = ds->model != ZP_DTYPE_FP32;
    state->fused = state->wrapped && ds->adam == ZP_DS_FUSED_ADAM;
    zp_ds_program_broadcast_model(program);
    each_tensor(program, make_parameter);
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        if (!zp_ds_tree_parameter(program->tree, id)->trainable)
            make_parameter(program, zp_ds_program_elements(program, id));
    if (state->wrapped)
        each_tensor(program, make_master);
    if (state->wrapped) {
        /* One real step on zero gradients. */
        gint64 total = 0;
        for (gint32 g = 0; g < program->n_groups; g++)
            total += group_elements(program, g);
        gint32 zeros = zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY,
                                  ZP_ROLE_GRADIENT_TEMPORARY, zp_ds_bytes(ds->master, total));
        each_tensor(program, make_moments);
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &zeros);
    } else if (!program->first_step)
        each_tensor(program, make_moments);
}

static void
gradient(ZpDsProgram *program, gint32 id)
{
    (void)program;
    (void)id; /* accumulates in param.grad until the boundary */
}

static void
reduce_bucket(ZpDsProgram *program, gint64 elements)
{
    ZpDs *ds = &program->ds;
    gint64 bytes = zp_ds_bytes(ds->model, elements);
    guint8 stream = ZP_DS_STREAM_COMPUTE;
    gint32 flat = zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_ALL_REDUCE_INPUT, bytes);
    gint32 cast = ds->communicate == ds->model
                      ? ZP_TAPE_NONE
                      : zp_ds_make(ds, stream, ZP_CLASS_COMMUNICATION, ZP_ROLE_ALL_REDUCE_INPUT,
                                   zp_ds_bytes(ds->communicate, elements));
    zp_ds_memory_kernel(ds, stream, 2 * bytes);
    ZpDsCollective reduce = {ZP_KIND_ALL_REDUCE, elements, ds->communicate,
                             ZP_DS_GROUP_WORLD,  stream,   0};
    zp_ds_collective(ds, &reduce);
    zp_ds_drop(ds, stream, &cast);
    zp_ds_memory_kernel(ds, stream, 4 * bytes); /* scale, copy back */
    zp_ds_drop(ds, stream, &flat);
}

static void
micro_batch_end(ZpDsProgram *program)
{
    if (!program->boundary)
        return;
    gint64 held = 0;
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++) {
        if (!zp_ds_tree_parameter(program->tree, id)->trainable)
            continue;
        held += zp_ds_program_elements(program, id);
        if (held > BUCKET_ELEMENTS) {
            reduce_bucket(program, held);
            held = 0;
        }
    }
    if (held > 0)
        reduce_bucket(program, held);
}

static void
drop_gradients(ZpDsProgram *program)
{
    for (gint32 id = 0; id < (gint32)program->tree->parameters->len; id++)
        zp_ds_drop(&program->ds, ZP_DS_STREAM_COMPUTE, &program->gradients[id]);
}

/* Unwrapped, the optimizer has the model's own tensors. */
static gint64
largest_tensor(const ZpDsProgram *program, gint32 g)
{
    g_autoptr(GArray) ids = zp_ds_program_group(program, g);
    gint64 largest = 0;
    for (guint i = 0; i < ids->len; i++)
        largest = MAX(largest, zp_ds_program_elements(program, g_array_index(ids, gint32, i)));
    return largest;
}

/* fp32 casts of every gradient and their concatenation coexist; then the low-precision gradients
 * are dropped and the flat fp32 gradient lives until the end of the step. */
static void
step_wrapped(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const Stage0 *state = program->state;
    guint8 stream = ZP_DS_STREAM_COMPUTE;
    gint32 *flats = g_new(gint32, (gsize)program->n_groups);
    for (gint32 g = 0; g < program->n_groups; g++) {
        g_autoptr(GArray) ids = zp_ds_program_group(program, g);
        gint64 elements = group_elements(program, g);
        gint64 bytes = zp_ds_bytes(ds->master, elements);
        gint32 casts =
            zp_ds_make(ds, stream, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_GRADIENT_TEMPORARY, bytes);
        zp_ds_memory_kernel(ds, stream, bytes + zp_ds_bytes(ds->model, elements));
        flats[g] = casts;
        if (state->fused && ids->len > 1) {
            flats[g] = zp_ds_make(ds, stream, ZP_CLASS_OPTIMIZER_TEMPORARY,
                                  ZP_ROLE_GRADIENT_TEMPORARY, bytes);
            zp_ds_memory_kernel(ds, stream, 2 * bytes);
            zp_ds_drop(ds, stream, &casts);
        }
        for (guint i = 0; i < ids->len; i++)
            zp_ds_drop(ds, stream, &program->gradients[g_array_index(ids, gint32, i)]);
    }
    for (gint32 g = 0; g < program->n_groups; g++) {
        zp_ds_program_optimize(program, group_elements(program, g), group_elements(program, g));
        zp_ds_drop(ds, stream, &flats[g]);
        zp_ds_memory_kernel(ds, stream,
                            zp_ds_bytes(ds->master, group_elements(program, g)) +
                                zp_ds_bytes(ds->model, group_elements(program, g)));
    }
    g_free(flats);
}

static void
step(ZpDsProgram *program)
{
    const Stage0 *state = program->state;
    if (state->wrapped)
        step_wrapped(program);
    else {
        if (program->ds.settings->gradient_clipping > 0.0) {
            ZpDsCollective norm = {ZP_KIND_ALL_REDUCE,   1, ZP_DTYPE_FP32, ZP_DS_GROUP_WORLD,
                                   ZP_DS_STREAM_COMPUTE, 0};
            zp_ds_collective(&program->ds, &norm);
        }
        if (program->first_step)
            each_tensor(program, make_moments);
        for (gint32 g = 0; g < program->n_groups; g++)
            zp_ds_program_optimize(program, group_elements(program, g), largest_tensor(program, g));
    }
    drop_gradients(program);
}

static void
end(ZpDsProgram *program)
{
    g_free(program->state);
}

const ZpDsStage zp_ds_stage0 = {begin, gradient, micro_batch_end, step, end};
