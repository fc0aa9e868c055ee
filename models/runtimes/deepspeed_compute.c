#include "models/runtimes/deepspeed_compute.h"

#include "models/cost_layer.h"
#include "models/parallel.h"

/* The layer a module computes in: its own, or that of its first parameter. */
static gint32
layer_of(const ZpDsCompute *self, gint32 index)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    if (module->layer != ZP_MODEL_NONE || module->n_own == 0)
        return module->layer;
    gint32 id = g_array_index(self->tree->owned, gint32, (guint)module->first_own);
    gint32 parameter = zp_ds_tree_parameter(self->tree, id)->model_index;
    return parameter == ZP_MODEL_NONE ? ZP_MODEL_NONE
                                      : zp_model_parameter(self->ds->job->model, parameter)->layer;
}

static gint64
own_elements(const ZpDsCompute *self, const ZpDsModule *module)
{
    gint64 sum = 0;
    for (gint32 i = 0; i < module->n_own; i++)
        sum += zp_ds_tree_parameter(self->tree, g_array_index(self->tree->owned, gint32,
                                                              (guint)(module->first_own + i)))
                   ->elements;
    return sum;
}

/* Modules in the order of their first forward call. */
static void
order_calls(const ZpDsCompute *self, gint32 index, gint32 *position, gint32 *next)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    if (position[index] < 0)
        position[index] = (*next)++;
    for (gint32 i = 0; i < module->n_calls; i++)
        order_calls(self, g_array_index(self->tree->calls, gint32, (guint)(module->first_call + i)),
                    position, next);
}

static void
share_layers(ZpDsCompute *self)
{
    const ZpModel *model = self->ds->job->model;
    gint32 n = (gint32)self->tree->modules->len;
    g_assert(n > 0);
    g_autofree gint32 *layer = g_new(gint32, (gsize)n);
    g_autofree gint64 *weight = g_new0(gint64, (gsize)n);
    g_autofree gint64 *total = g_new0(gint64, (gsize)MAX(self->n_layers, 1));
    g_autofree gint32 *position = g_new(gint32, (gsize)n);
    for (gint32 m = 0; m < n; m++)
        position[m] = -1;
    gint32 next = 0;
    order_calls(self, 0, position, &next);
    for (gint32 m = 0; m < n; m++) {
        layer[m] = layer_of(self, m);
        if (layer[m] == ZP_MODEL_NONE || layer[m] >= self->n_layers || position[m] < 0) {
            layer[m] = ZP_MODEL_NONE;
            continue;
        }
        weight[m] = own_elements(self, zp_ds_tree_module(self->tree, m));
        total[layer[m]] += weight[m];
    }
    for (gint32 m = 0; m < n; m++) {
        if (layer[m] == ZP_MODEL_NONE)
            continue;
        ZpDsLayerState *state = &self->layers[layer[m]];
        /* A layer without parameters runs in its first module. */
        if (total[layer[m]] == 0) {
            weight[m] = total[layer[m]] = 1;
        }
        if (weight[m] == 0)
            continue;
        if (state->first_module < 0 || position[m] < position[state->first_module])
            state->first_module = m;
        if (state->last_module < 0 || position[m] > position[state->last_module])
            state->last_module = m;
        const ZpModelLayer *spent = zp_model_layer(model, layer[m]);
        double share = (double)weight[m] / (double)total[layer[m]];
        self->modules[m].layer = layer[m];
        self->modules[m].share = share;
        self->modules[m].flops = share * (double)spent->flops_per_token * (double)self->tokens;
        self->modules[m].traffic_bytes =
            share * (double)spent->traffic_bytes_per_token * (double)self->tokens;
        if (spent->kind != ZP_LAYER_EMBEDDING)
            self->modules[m].traffic_bytes +=
                (double)zp_ds_bytes(self->ds->model, total[layer[m]] > 1 ? weight[m] : 0);
    }
    /* The attention core runs before the layer's last projection. */
    for (gint32 l = 0; l < self->n_layers; l++)
        if (self->layers[l].last_module >= 0)
            self->modules[self->layers[l].last_module].flops +=
                (double)zp_model_layer(model, l)->flops_per_pair * (double)self->pairs;
    for (gint32 l = 0; l < self->n_layers; l++)
        if (self->layers[l].first_module >= 0)
            self->starts[self->layers[l].first_module] = l;
}

void
zp_ds_compute_init(ZpDsCompute *self, ZpDs *ds, const ZpDsTree *tree)
{
    self->ds = ds;
    self->tree = tree;
    self->tokens = ds->job->training.micro_batch * ds->job->training.sequence;
    self->pairs = self->tokens * ds->job->training.sequence;
    self->n_layers = ds->job->model != NULL ? (gint32)ds->job->model->layers->len : 0;
    self->modules = g_new0(ZpDsModuleCost, MAX(tree->modules->len, 1));
    self->starts = g_new(gint32, MAX(tree->modules->len, 1));
    for (guint m = 0; m < tree->modules->len; m++)
        self->starts[m] = ZP_MODEL_NONE;
    self->layers = g_new(ZpDsLayerState, (gsize)MAX(self->n_layers, 1));
    for (gint32 l = 0; l < self->n_layers; l++)
        self->layers[l] = (ZpDsLayerState){ZP_MODEL_NONE, ZP_MODEL_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE,
                                           ZP_TAPE_NONE};
    if (self->n_layers > 0)
        share_layers(self);
}

void
zp_ds_compute_clear(ZpDsCompute *self)
{
    g_clear_pointer(&self->modules, g_free);
    g_clear_pointer(&self->layers, g_free);
    g_clear_pointer(&self->starts, g_free);
}

static gint64
full_kept_bytes(const ZpDsCompute *self, const ZpModelLayer *layer)
{
    return layer->kept_bytes_per_token * self->tokens + layer->kept_bytes_per_pair * self->pairs;
}

/* What the checkpointing policy keeps of a layer from forward to backward. */
static gint64
kept_bytes(const ZpDsCompute *self, const ZpModelLayer *layer)
{
    if (layer->block == ZP_MODEL_NONE)
        return full_kept_bytes(self, layer);
    switch (self->ds->job->training.checkpointing) {
    case ZP_CHECKPOINTING_NONE:
        return full_kept_bytes(self, layer);
    case ZP_CHECKPOINTING_SELECTIVE:
        return layer->selective_bytes_per_token * self->tokens +
               layer->selective_bytes_per_pair * self->pairs;
    case ZP_CHECKPOINTING_FULL:
        return layer->input_bytes_per_token * self->tokens;
    }
    g_assert_not_reached();
}

/* A block keeps its input once: its first layer does. */
static gboolean
starts_block(const ZpDsCompute *self, gint32 l)
{
    const ZpModel *model = self->ds->job->model;
    gint32 block = zp_model_layer(model, l)->block;
    return l == 0 || block == ZP_MODEL_NONE || zp_model_layer(model, l - 1)->block != block;
}

static gint32
make(ZpDsCompute *self, ZpClass class_id, ZpRole role, gint64 bytes)
{
    return zp_ds_make(self->ds, ZP_DS_STREAM_COMPUTE, class_id, role, bytes);
}

static void
begin_layer(ZpDsCompute *self, gint32 l, gboolean recompute)
{
    ZpDsLayerState *state = &self->layers[l];
    const ZpModelLayer *layer = zp_model_layer(self->ds->job->model, l);
    if (recompute) {
        if (state->recomputed == ZP_TAPE_NONE)
            state->recomputed =
                make(self, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE, full_kept_bytes(self, layer));
        return;
    }
    gboolean input = self->ds->job->training.checkpointing == ZP_CHECKPOINTING_FULL &&
                     layer->block != ZP_MODEL_NONE;
    if (state->kept == ZP_TAPE_NONE && (!input || starts_block(self, l)))
        state->kept =
            make(self, ZP_CLASS_ACTIVATION, input ? ZP_ROLE_CHECKPOINT_INPUT : ZP_ROLE_NONE,
                 kept_bytes(self, layer));
    if (state->logits == ZP_TAPE_NONE)
        state->logits =
            make(self, ZP_CLASS_LOGITS, ZP_ROLE_NONE, layer->logits_bytes_per_token * self->tokens);
}

/* `passes` forward-equivalents of the module: 1 forward, 2 backward. */
static void
launch(const ZpDsCompute *self, const ZpDsModuleCost *cost, ZpKind kind, double passes)
{
    const ZpJob *job = self->ds->job;
    if (cost->flops <= 0.0 && cost->traffic_bytes <= 0.0)
        return;
    if (job->device.calibration == NULL || cost->share <= 0.0) {
        zp_ds_kernel(self->ds, ZP_DS_STREAM_COMPUTE, kind, passes * cost->flops,
                     passes * cost->traffic_bytes);
        return;
    }
    ZpTime whole = zp_cost_layer(job, zp_model_layer(job->model, cost->layer), kind);
    zp_ds_timed_kernel(self->ds, ZP_DS_STREAM_COMPUTE, kind,
                       zp_time_from_seconds(zp_time_to_seconds(whole) * cost->share),
                       passes * cost->flops);
}

/* Of the model's own cuts: when the last module of a layer has run, in either direction. */
static void
communicate(const ZpDsCompute *self, gint32 layer, ZpKind pass)
{
    if (layer != ZP_MODEL_NONE && !self->ds->silent)
        zp_parallel_communicate(self->ds->job, self->ds->tape, ZP_DS_STREAM_COMPUTE,
                                zp_model_layer(self->ds->job->model, layer), pass);
}

void
zp_ds_compute_forward(ZpDsCompute *self, gint32 module, gboolean recompute)
{
    if (self->starts[module] != ZP_MODEL_NONE)
        begin_layer(self, self->starts[module], recompute);
    ZpKind pass = recompute ? ZP_KIND_RECOMPUTE : ZP_KIND_FORWARD;
    launch(self, &self->modules[module], pass, 1.0);
    gint32 layer = self->modules[module].layer;
    if (self->modules[module].share > 0.0 && self->layers[layer].last_module == module)
        communicate(self, layer, pass);
}

void
zp_ds_compute_backward(ZpDsCompute *self, gint32 module)
{
    launch(self, &self->modules[module], ZP_KIND_BACKWARD, 2.0);
    communicate(self, self->starts[module], ZP_KIND_BACKWARD);
}

void
zp_ds_compute_backward_done(ZpDsCompute *self, gint32 module)
{
    if (self->starts[module] == ZP_MODEL_NONE)
        return;
    ZpDsLayerState *state = &self->layers[self->starts[module]];
    zp_ds_drop(self->ds, ZP_DS_STREAM_COMPUTE, &state->recomputed);
    zp_ds_drop(self->ds, ZP_DS_STREAM_COMPUTE, &state->logits);
    zp_ds_drop(self->ds, ZP_DS_STREAM_COMPUTE, &state->kept);
}
