#include "models/runtimes/deepspeed/lifecycle.h"

#include "models/runtimes/deepspeed/compile.h"
#include "models/runtimes/deepspeed/construct_internal.h"

const char *
zp_ds_life_name(ZpDsLife life)
{
    static const char *const names[] = {"construction", "first step",  "later step",
                                        "save sharded", "save 16-bit", "load sharded"};
    G_STATIC_ASSERT(G_N_ELEMENTS(names) == ZP_DS_N_LIVES);
    return names[life];
}

/* What a rank writes or reads: one entry a tensor. */
static void
list_shard(const ZpTape *tape, GArray *sizes)
{
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op != ZP_TAPE_ALLOC)
            continue;
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        if (buffer->role != ZP_ROLE_SHARD && buffer->role != ZP_ROLE_OPTIMIZER_STATE)
            continue;
        g_array_append_val(sizes, buffer->bytes);
    }
}

/* torch.save copies one storage after the other to host memory, unless it is there already. */
static void
save_sharded(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    zp_tape_tag(ds->tape, ZP_PHASE_CHECKPOINT_SAVE, ZP_TAPE_NONE, ZP_TAPE_NONE);
    gint32 n = ds->tape->n_buffers;
    for (gint32 b = 0; b < n; b++) {
        const ZpTapeBuffer buffer = ds->tape->buffers[b];
        if (buffer.role != ZP_ROLE_SHARD && buffer.role != ZP_ROLE_OPTIMIZER_STATE)
            continue;
        if (buffer.space == ZP_TAPE_SPACE_HOST)
            continue;
        gint32 copy = zp_ds_make_host(ds, ZP_CLASS_CHECKPOINT, ZP_ROLE_NONE, buffer.bytes, FALSE);
        zp_ds_transfer(ds, ZP_DS_STREAM_TO_HOST, ZP_KIND_DEVICE_TO_HOST, buffer.bytes);
        zp_ds_sync_stream(ds, ZP_DS_STREAM_TO_HOST);
        zp_ds_drop(ds, ZP_DS_STREAM_HOST, &copy);
    }
}

/* One module's direct parameters are gathered at a time, one collective and one broadcast each;
 * rank 0 keeps a copy of everything in host memory. */
static void
save_consolidated(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    const ZpDsTree *tree = program->tree;
    zp_tape_tag(ds->tape, ZP_PHASE_CHECKPOINT_SAVE, ZP_TAPE_NONE, ZP_TAPE_NONE);
    g_autofree gboolean *saved = g_new0(gboolean, MAX(tree->parameters->len, 1));
    g_autoptr(GArray) copies = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (gint32 m = 0; m < (gint32)tree->modules->len; m++) {
        const ZpDsModule *module = zp_ds_tree_module(tree, m);
        g_autoptr(GArray) gathered = g_array_new(FALSE, FALSE, sizeof(gint32));
        zp_ds_program_tag(program, ZP_PHASE_CHECKPOINT_SAVE, m);
        for (gint32 i = 0; i < module->n_own; i++) {
            gint32 id = g_array_index(tree->owned, gint32, (guint)(module->first_own + i));
            gint64 elements = zp_ds_program_elements(program, id);
            gint64 padded = zp_ds_partition_elements(elements, ds->shard_ranks) * ds->shard_ranks;
            gint32 buffer = zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_CHECKPOINT,
                                       ZP_ROLE_UNSHARDED, zp_ds_bytes(ds->model, padded));
            g_array_append_val(gathered, buffer);
            ZpDsCollective gather = {ZP_KIND_ALL_GATHER,   padded, ds->model, ZP_DS_GROUP_SHARD,
                                     ZP_DS_STREAM_COMPUTE, 0};
            zp_ds_collective(ds, &gather);
            if (saved[id])
                continue; /* tied: saved under its first name */
            saved[id] = TRUE;
            gint64 bytes = zp_ds_bytes(ds->model, elements);
            gint32 copy = zp_ds_make_host(ds, ZP_CLASS_CHECKPOINT, ZP_ROLE_NONE, bytes, FALSE);
            g_array_append_val(copies, copy);
            zp_ds_transfer(ds, ZP_DS_STREAM_TO_HOST, ZP_KIND_DEVICE_TO_HOST, bytes);
        }
        for (gint32 i = 0; i < module->n_own; i++) {
            gint32 id = g_array_index(tree->owned, gint32, (guint)(module->first_own + i));
            ZpDsCollective broadcast = {ZP_KIND_BROADCAST,
                                        zp_ds_program_elements(program, id),
                                        ds->model,
                                        ZP_DS_GROUP_WORLD,
                                        ZP_DS_STREAM_COMPUTE,
                                        0};
            zp_ds_collective(ds, &broadcast);
            zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &g_array_index(gathered, gint32, (guint)i));
        }
        zp_ds_sync_stream(ds, ZP_DS_STREAM_TO_HOST);
    }
    for (guint i = 0; i < copies->len; i++)
        zp_ds_drop(ds, ZP_DS_STREAM_HOST, &g_array_index(copies, gint32, i));
}

/* A rank reads its whole shard into host memory, then copies it where it belongs. */
static void
load_sharded(ZpDsProgram *program)
{
    ZpDs *ds = &program->ds;
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(gint64));
    list_shard(ds->tape, sizes);
    zp_tape_tag(ds->tape, ZP_PHASE_CHECKPOINT_LOAD, ZP_TAPE_NONE, ZP_TAPE_NONE);
    g_autoptr(GArray) read = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (guint i = 0; i < sizes->len; i++) {
        gint32 buffer = zp_ds_make_host(ds, ZP_CLASS_CHECKPOINT, ZP_ROLE_NONE,
                                        g_array_index(sizes, gint64, i), FALSE);
        g_array_append_val(read, buffer);
    }
    for (guint i = 0; i < sizes->len; i++)
        zp_ds_transfer(ds, ZP_DS_STREAM_TO_DEVICE, ZP_KIND_HOST_TO_DEVICE,
                       g_array_index(sizes, gint64, i));
    zp_ds_sync_stream(ds, ZP_DS_STREAM_TO_DEVICE);
    for (guint i = 0; i < read->len; i++)
        zp_ds_drop(ds, ZP_DS_STREAM_HOST, &g_array_index(read, gint32, i));
}

/* Around both savings stage 3 lets go of every gathered parameter and gathers the persistent ones
 * again. */
static void
release_persistent(ZpDsProgram *program, GArray *sizes)
{
    ZpDs *ds = &program->ds;
    for (gint32 b = 0; b < ds->tape->n_buffers; b++) {
        if (ds->tape->buffers[b].role != ZP_ROLE_PERSISTENT_PARAMETER)
            continue;
        gint32 buffer = b;
        g_array_append_val(sizes, ds->tape->buffers[b].bytes);
        zp_ds_drop(ds, ZP_DS_STREAM_GATHER, &buffer);
    }
}

static void
gather_persistent(ZpDsProgram *program, const GArray *sizes)
{
    ZpDs *ds = &program->ds;
    for (guint i = 0; i < sizes->len; i++) {
        gint64 bytes = g_array_index(sizes, gint64, i);
        zp_ds_make(ds, ZP_DS_STREAM_GATHER, ZP_CLASS_PARAMETER, ZP_ROLE_PERSISTENT_PARAMETER,
                   bytes);
        ZpDsCollective gather = {ZP_KIND_ALL_GATHER,
                                 bytes * 8 / zp_ds_dtype_bits(ds->model),
                                 ds->model,
                                 ZP_DS_GROUP_SHARD,
                                 ZP_DS_STREAM_COMPUTE,
                                 0};
        zp_ds_collective(ds, &gather);
    }
}

static void
episode(ZpDsProgram *program, gpointer data)
{
    const ZpDsLife *life = data;
    g_autoptr(GArray) persistent = g_array_new(FALSE, FALSE, sizeof(gint64));
    zp_tape_tag(program->ds.tape, ZP_PHASE_CHECKPOINT_SAVE, ZP_TAPE_NONE, ZP_TAPE_NONE);
    if (*life != ZP_DS_LIFE_CONSTRUCT)
        release_persistent(program, persistent);
    switch (*life) {
    case ZP_DS_LIFE_CONSTRUCT:
        zp_ds_construct(program);
        break;
    case ZP_DS_LIFE_SAVE:
        save_sharded(program);
        break;
    case ZP_DS_LIFE_SAVE_16BIT:
        save_consolidated(program);
        break;
    case ZP_DS_LIFE_LOAD:
        load_sharded(program);
        break;
    case ZP_DS_LIFE_FIRST_STEP:
    case ZP_DS_LIFE_LATER_STEP:
    case ZP_DS_N_LIVES:
        g_assert_not_reached();
    }
    gather_persistent(program, persistent);
}

gboolean
zp_ds_lifecycle_compile(const ZpJob *job, ZpDsLife life, ZpTape *tape, GError **error)
{
    ZpDeepspeed settings;
    if (job->deepspeed != NULL)
        settings = *job->deepspeed;
    else
        zp_deepspeed_init(&settings);
    ZpJob one = *job;
    one.simulation.steps = 1;
    if (life == ZP_DS_LIFE_SAVE_16BIT && job->zero.stage != 3) {
        g_set_error_literal(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED,
                            "deepspeed: parameters are consolidated for saving at stage 3 only");
        return FALSE;
    }
    settings.cold = life == ZP_DS_LIFE_FIRST_STEP || life == ZP_DS_LIFE_CONSTRUCT;
    gboolean step = life == ZP_DS_LIFE_FIRST_STEP || life == ZP_DS_LIFE_LATER_STEP;
    ZpDsEpisode other = {life == ZP_DS_LIFE_CONSTRUCT, episode, &life};
    return zp_ds_compile_episode(&one, &settings, tape, step ? NULL : &other, error);
}

gboolean
zp_ds_lifecycle_peaks(const ZpJob *job, ZpDsLife life, ZpTape *scratch, ZpDsLifePeaks *peaks,
                      GError **error)
{
    *peaks = (ZpDsLifePeaks){0};
    zp_tape_clear(scratch);
    if (!zp_ds_lifecycle_compile(job, life, scratch, error))
        return FALSE;
    gint64 now[ZP_TAPE_N_SPACES] = {0}, peak[ZP_TAPE_N_SPACES] = {0};
    for (gint32 i = 0; i < scratch->n_instrs; i++) {
        if (i == scratch->step_begin[0])
            for (int s = 0; s < ZP_TAPE_N_SPACES; s++)
                peak[s] = now[s];
        const ZpTapeInstr *instr = &scratch->instrs[i];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        const ZpTapeBuffer *buffer = &scratch->buffers[instr->a];
        now[buffer->space] += instr->op == ZP_TAPE_ALLOC ? buffer->bytes : -buffer->bytes;
        peak[buffer->space] = MAX(peak[buffer->space], now[buffer->space]);
    }
    *peaks = (ZpDsLifePeaks){peak[ZP_TAPE_SPACE_DEVICE], peak[ZP_TAPE_SPACE_HOST],
                             now[ZP_TAPE_SPACE_DEVICE], now[ZP_TAPE_SPACE_HOST]};
    return TRUE;
}
