#include "models/runtimes/deepspeed/compile.h"

#include <string.h>

/* Gradients */

static gint32
owned(const ZpDsProgram *self, const ZpDsModule *module, gint32 i)
{
    return g_array_index(self->tree->owned, gint32, (guint)(module->first_own + i));
}

static void
count_uses(ZpDsProgram *self, const ZpDsModule *module)
{
    for (gint32 i = 0; i < module->n_own && !module->no_backward; i++)
        self->pending[owned(self, module, i)]++;
}

/* The last parameters of a module get their gradients first (a bias before its weight), unless
 * stage 3 replaced the linear function by its own, which delivers weight, then bias.  A parameter
 * used twice hands its gradient over once, after the last use's backward. */
static void
make_gradients(ZpDsProgram *self, const ZpDsModule *module)
{
    ZpDs *ds = &self->ds;
    gboolean own_linear =
        module->linear && ds->job->zero.stage == 3 && ds->settings->memory_efficient_linear;
    for (gint32 k = 0; k < module->n_own; k++) {
        gint32 id = owned(self, module, own_linear ? k : module->n_own - 1 - k);
        if (!zp_ds_tree_parameter(self->tree, id)->trainable)
            continue;
        gint64 bytes = zp_ds_bytes(ds->model, zp_ds_program_elements(self, id));
        gint32 fresh =
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT, bytes);
        if (self->gradients[id] == ZP_TAPE_NONE)
            self->gradients[id] = fresh;
        else { /* added in place, then dropped */
            zp_ds_memory_kernel(ds, ZP_DS_STREAM_COMPUTE, 3 * bytes);
            zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &fresh);
        }
        if (--self->pending[id] == 0 && !module->hidden && !module->leaf)
            self->stage->gradient(self, id);
    }
}

/* A leaf module's gradients wait for the end of its backward. */
static void
finish_leaf(ZpDsProgram *self, const ZpDsModule *module)
{
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    for (gint32 i = 0; i < module->n_need; i++)
        if (zp_ds_tree_parameter(self->tree, ids[i])->trainable && self->pending[ids[i]] == 0)
            self->stage->gradient(self, ids[i]);
}

/* Handles FORWARD_RUN and BACKWARD_RUN. */
static void
run_module(const ZpDsEvent *event, gpointer data)
{
    ZpDsProgram *self = data;
    const ZpDsModule *module = zp_ds_tree_module(self->tree, event->module);
    if (event->kind == ZP_DS_FORWARD_RUN) {
        if (!event->recompute)
            count_uses(self, module);
        zp_ds_program_tag(self, event->recompute ? ZP_PHASE_BACKWARD : ZP_PHASE_FORWARD,
                          event->module);
        zp_ds_compute_forward(&self->compute, event->module, event->recompute);
        return;
    }
    zp_ds_program_tag(self, ZP_PHASE_BACKWARD, event->module);
    zp_ds_compute_backward(&self->compute, event->module);
    make_gradients(self, module);
    if (module->leaf)
        finish_leaf(self, module);
    zp_ds_compute_backward_done(&self->compute, event->module);
}

/* Setting up */

static void
add_units(ZpDsProgram *self)
{
    gint32 n = (gint32)self->tree->modules->len;
    for (gint32 m = 0; m < n; m++) {
        const ZpDsModule *module = zp_ds_tree_module(self->tree, m);
        if (module->n_own > 0)
            self->unit_of[m] =
                zp_tape_add_unit(self->ds.tape, *module->name != '\0' ? module->name : "root");
        else
            self->unit_of[m] =
                module->parent != ZP_MODEL_NONE ? self->unit_of[module->parent] : ZP_TAPE_NONE;
    }
}

static gboolean
is_listed(const char *const *list, const char *name)
{
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return TRUE;
    return FALSE;
}

/* Leaf modules by class and name, blocks under checkpointing: what the model's modules say. */
static void
mark_modules(const ZpJob *job, const ZpDeepspeed *settings, ZpDsTree *tree)
{
    for (gint32 m = 0; m < (gint32)job->model->modules->len; m++) {
        const ZpModelModule *source = zp_model_module(job->model, m);
        ZpDsModule *module = zp_ds_tree_module(tree, m);
        module->checkpointed =
            source->is_block && job->training.checkpointing == ZP_CHECKPOINTING_FULL;
        if (job->zero.stage == 3 && !module->hidden &&
            (is_listed(settings->leaf_classes, source->class_name) ||
             is_listed(settings->leaf_names, source->name)))
            zp_ds_tree_set_leaf(tree, m);
    }
}

/* The same where the model has no modules: each layer is a module of the tree, and a block. */
static void
mark_layers(const ZpJob *job, ZpDsTree *tree)
{
    for (guint m = 0; m < tree->modules->len; m++) {
        ZpDsModule *module = zp_ds_tree_module(tree, (gint32)m);
        module->checkpointed = job->training.checkpointing == ZP_CHECKPOINTING_FULL &&
                               module->layer != ZP_MODEL_NONE &&
                               zp_model_layer(job->model, module->layer)->block != ZP_MODEL_NONE;
    }
}

static void
assign_groups(ZpDsProgram *self)
{
    const ZpDeepspeed *settings = self->ds.settings;
    self->n_groups = MAX(settings->n_parameter_groups, 1);
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        gint32 index = zp_ds_tree_parameter(self->tree, id)->model_index;
        if (index == ZP_MODEL_NONE)
            index = id;
        self->group_of[id] = settings->n_parameter_groups > 1 && settings->parameter_groups != NULL
                                 ? settings->parameter_groups[index]
                                 : 0;
    }
}

static const ZpDsStage *
choose_stage(const ZpDs *ds)
{
    switch (ds->job->zero.stage) {
    case 0:
        return &zp_ds_stage0;
    case 1:
        if (ds->model == ZP_DTYPE_BF16 && ds->accumulate == ZP_DTYPE_FP32 &&
            ds->settings->offload_optimizer.device == ZP_DS_NOWHERE)
            return &zp_ds_stage_bf16;
        return &zp_ds_stage12;
    case 2:
        return &zp_ds_stage12;
    default:
        return &zp_ds_stage3;
    }
}

static void
run_step(ZpDsProgram *self)
{
    zp_tape_begin_step(self->ds.tape);
    gint64 accumulation = MAX(self->ds.job->training.accumulation, 1);
    for (self->micro = 0; self->micro < accumulation; self->micro++) {
        self->boundary = self->micro == accumulation - 1;
        zp_ds_program_tag(self, ZP_PHASE_FORWARD, ZP_MODEL_NONE);
        memset(self->pending, 0, self->tree->parameters->len * sizeof *self->pending);
        zp_ds_walk_forward(&self->walk);
        zp_ds_program_tag(self, ZP_PHASE_BACKWARD, ZP_MODEL_NONE);
        zp_ds_walk_backward(&self->walk);
        zp_ds_program_tag(self, ZP_PHASE_BACKWARD, ZP_MODEL_NONE);
        self->stage->micro_batch_end(self);
    }
    zp_ds_program_tag(self, ZP_PHASE_OPTIMIZER, ZP_MODEL_NONE);
    self->stage->step(self);
    self->first_step = FALSE;
    self->step++;
}

static void
clear(ZpDsProgram *self)
{
    if (self->state != NULL)
        self->stage->end(self);
    zp_ds_compute_clear(&self->compute);
    zp_ds_walk_clear(&self->walk);
    g_free(self->unit_of);
    g_free(self->group_of);
    g_free(self->gradients);
    g_free(self->pending);
    zp_ds_tree_free(self->tree);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpDsProgram, clear)

/* Takes the tree. */
static gboolean
prepare(ZpDsProgram *self, const ZpJob *job, const ZpDeepspeed *settings, ZpDsTree *tree,
        ZpTape *tape, GError **error)
{
    self->tree = tree;
    if (!zp_ds_init(&self->ds, job, settings, tape, error))
        return FALSE;
    gsize modules = tree->modules->len, parameters = MAX(tree->parameters->len, 1);
    self->unit_of = g_new(gint32, modules);
    self->group_of = g_new0(gint32, parameters);
    self->gradients = g_new(gint32, parameters);
    self->pending = g_new0(gint32, parameters);
    for (gsize i = 0; i < parameters; i++)
        self->gradients[i] = ZP_TAPE_NONE;
    if (job->zero.stage == 3) {
        if (settings->module_granularity > 0)
            zp_ds_tree_mark_leaves(tree, settings->module_granularity);
        zp_ds_tree_mark_persistent(tree, settings->param_persistence_elements,
                                   settings->model_persistence_elements);
    }
    add_units(self);
    assign_groups(self);
    self->rank = MAX(settings->rank, 0);
    self->first_step = settings->cold;
    zp_ds_compute_init(&self->compute, &self->ds, tree);
    zp_ds_walk_init(&self->walk, tree, NULL);
    zp_ds_walk_listen(&self->walk, run_module, self);
    self->stage = choose_stage(&self->ds);
    return TRUE;
}

static void
write_prologue(ZpDsProgram *self)
{
    ZpDs *ds = &self->ds;
    zp_ds_program_tag(self, ZP_PHASE_INIT, ZP_MODEL_NONE);
    ds->silent = !ds->settings->cold;
    zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_RUNTIME, ZP_ROLE_NONE,
               ds->job->device.overhead_bytes);
    self->stage->begin(self);
    ds->silent = FALSE;
}

gboolean
zp_ds_compile_tree(const ZpJob *job, const ZpDeepspeed *settings, ZpDsTree *tree, ZpTape *tape,
                   ZpDsListener tap, gpointer tap_data, GError **error)
{
    g_auto(ZpDsProgram) self = {.ds = {.tap = tap, .tap_data = tap_data}};
    if (!prepare(&self, job, settings, tree, tape, error))
        return FALSE;
    write_prologue(&self);
    for (gint32 s = 0; s < job->simulation.steps; s++)
        run_step(&self);
    const char *refused =
        self.walk.coordinator != NULL ? zp_ds_coordinator_error(self.walk.coordinator) : NULL;
    if (refused != NULL)
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED, "deepspeed: %s",
                    refused);
    return refused == NULL;
}

static ZpDsTree *
build_tree(const ZpJob *job, const ZpDeepspeed *settings)
{
    ZpDsTree *tree = zp_ds_tree_new_from_model(job->model);
    if (job->model->modules->len > 0)
        mark_modules(job, settings, tree);
    else
        mark_layers(job, tree);
    return tree;
}

gboolean
zp_ds_compile(const ZpJob *job, const ZpDeepspeed *settings, ZpTape *tape, ZpDsListener tap,
              gpointer tap_data, GError **error)
{
    return zp_ds_compile_tree(job, settings, build_tree(job, settings), tape, tap, tap_data, error);
}

gboolean
zp_ds_compile_episode(const ZpJob *job, const ZpDeepspeed *settings, ZpTape *tape,
                      const ZpDsEpisode *episode, GError **error)
{
    if (episode == NULL)
        return zp_ds_compile(job, settings, tape, NULL, NULL, error);
    g_auto(ZpDsProgram) self = {0};
    if (!prepare(&self, job, settings, build_tree(job, settings), tape, error))
        return FALSE;
    if (!episode->alone) {
        write_prologue(&self);
    } else {
        /* The prologue goes to a tape of its own, for the stage's state alone. */
        g_autoptr(ZpTape) aside = zp_tape_new(tape->vocabulary);
        ZpDs kept = self.ds;
        if (!zp_ds_init(&self.ds, job, settings, aside, error))
            return FALSE;
        add_units(&self);
        write_prologue(&self);
        self.ds = kept;
    }
    zp_tape_begin_step(tape);
    episode->write(&self, episode->data);
    return TRUE;
}
