#include "models/runtimes/deepspeed/emit/compute.h"

#include "models/prices/layer.h"
#include "models/runtimes/shared/cuts.h"

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
    for (gint32 l = 0; l < self->n_layers; l++) {
        if (self->layers[l].first_module < 0)
            continue;
        self->starts[self->layers[l].first_module] = l;
        self->ends[self->layers[l].last_module] = l;
    }
}

void
zp_ds_compute_init(ZpDsCompute *self, ZpDs *ds, const ZpDsTree *tree)
{
    self->ds = ds;
    self->tree = tree;
    self->tokens = ds->job->training.micro_batch * ds->job->training.sequence;
    self->pairs = self->tokens * ds->job->training.sequence;
    self->brought_back = ZP_MODEL_NONE;
    self->n_layers = ds->job->model != NULL ? (gint32)ds->job->model->layers->len : 0;
    self->modules = g_new0(ZpDsModuleCost, MAX(tree->modules->len, 1));
    self->starts = g_new(gint32, MAX(tree->modules->len, 1));
    self->ends = g_new(gint32, MAX(tree->modules->len, 1));
    for (guint m = 0; m < tree->modules->len; m++)
        self->starts[m] = self->ends[m] = ZP_MODEL_NONE;
    self->layers = g_new(ZpDsLayerState, (gsize)MAX(self->n_layers, 1));
    for (gint32 l = 0; l < self->n_layers; l++)
        self->layers[l] = (ZpDsLayerState){ZP_MODEL_NONE, ZP_MODEL_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE,
                                           ZP_TAPE_NONE};
    if (self->n_layers == 0)
        return;
    zp_layer_bytes_init(&self->bytes, ds->job);
    share_layers(self);
}

void
zp_ds_compute_clear(ZpDsCompute *self)
{
    g_clear_pointer(&self->modules, g_free);
    g_clear_pointer(&self->layers, g_free);
    g_clear_pointer(&self->starts, g_free);
    g_clear_pointer(&self->ends, g_free);
    zp_layer_bytes_clear(&self->bytes);
}

static void
make(ZpDsCompute *self, gint32 l, gint32 *buffer, ZpRole role, gint64 bytes)
{
    gboolean head = zp_model_layer(self->ds->job->model, l)->kind == ZP_LAYER_HEAD;
    if (*buffer == ZP_TAPE_NONE) /* a module that is called twice holds its layer's once */
        *buffer = zp_ds_make(self->ds, ZP_DS_STREAM_COMPUTE,
                             head ? ZP_CLASS_LOGITS : ZP_CLASS_ACTIVATION, role, bytes);
}

static void
begin_forward(ZpDsCompute *self, gint32 l)
{
    const ZpJob *job = self->ds->job;
    gboolean input = job->training.checkpointing == ZP_CHECKPOINTING_FULL &&
                     zp_model_layer(job->model, l)->block != ZP_MODEL_NONE;
    self->brought_back = ZP_MODEL_NONE;
    const ZpLayerBytes *bytes = zp_layer_bytes_get(&self->bytes, l);
    make(self, l, &self->layers[l].kept, input ? ZP_ROLE_CHECKPOINT_INPUT : ZP_ROLE_NONE,
         bytes->kept_bytes);
    make(self, l, &self->layers[l].beside, ZP_ROLE_TEMPORARY, bytes->forward_bytes);
}

static void
begin_recompute(ZpDsCompute *self, gint32 l)
{
    const ZpLayerBytes *bytes = zp_layer_bytes_get(&self->bytes, l);
    make(self, l, &self->layers[l].recomputed, ZP_ROLE_NONE, bytes->recomputed_bytes);
    make(self, l, &self->layers[l].beside, ZP_ROLE_TEMPORARY, bytes->recompute_bytes);
}

static void
end_pass(ZpDsCompute *self, gint32 l)
{
    zp_ds_drop(self->ds, ZP_DS_STREAM_COMPUTE, &self->layers[l].beside);
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
        zp_cuts_communicate(self->ds->job, self->ds->tape, ZP_DS_STREAM_COMPUTE,
                            zp_model_layer(self->ds->job->model, layer), pass);
}

/* What the selective policy recomputes of a layer, as one kernel. */
static void
recompute_layer(ZpDsCompute *self, gint32 l)
{
    const ZpJob *job = self->ds->job;
    const ZpModelLayer *layer = zp_model_layer(job->model, l);
    double flops = (double)layer->selective_flops_per_token * (double)self->tokens +
                   (double)layer->selective_flops_per_pair * (double)self->pairs;
    begin_recompute(self, l);
    gboolean any = flops > 0.0 || self->layers[l].recomputed != ZP_TAPE_NONE;
    if (any && job->device.calibration != NULL)
        zp_ds_timed_kernel(self->ds, ZP_DS_STREAM_COMPUTE, ZP_KIND_RECOMPUTE,
                           zp_cost_layer(job, layer, ZP_KIND_RECOMPUTE), flops);
    else if (any)
        zp_ds_kernel(self->ds, ZP_DS_STREAM_COMPUTE, ZP_KIND_RECOMPUTE, flops,
                     (double)layer->traffic_bytes_per_token * (double)self->tokens);
    end_pass(self, l);
}

/* Before the first backward of a block: all of its layers. */
static void
recompute_block(ZpDsCompute *self, gint32 l)
{
    const ZpModel *model = self->ds->job->model;
    gint32 block = zp_model_layer(model, l)->block;
    if (self->ds->job->training.checkpointing != ZP_CHECKPOINTING_SELECTIVE ||
        block == ZP_MODEL_NONE || block == self->brought_back)
        return;
    self->brought_back = block;
    while (l > 0 && zp_model_layer(model, l - 1)->block == block)
        l--;
    for (; l < self->n_layers && zp_model_layer(model, l)->block == block; l++)
        if (self->layers[l].first_module >= 0) /* else it never runs */
            recompute_layer(self, l);
}

void
zp_ds_compute_forward(ZpDsCompute *self, gint32 module, gboolean recompute)
{
    gint32 started = self->starts[module], ended = self->ends[module];
    if (started != ZP_MODEL_NONE && recompute)
        begin_recompute(self, started);
    else if (started != ZP_MODEL_NONE)
        begin_forward(self, started);
    ZpKind pass = recompute ? ZP_KIND_RECOMPUTE : ZP_KIND_FORWARD;
    launch(self, &self->modules[module], pass, 1.0);
    if (ended != ZP_MODEL_NONE) {
        communicate(self, ended, pass);
        end_pass(self, ended);
    }
}

void
zp_ds_compute_backward(ZpDsCompute *self, gint32 module)
{
    gint32 started = self->starts[module], ended = self->ends[module];
    if (ended != ZP_MODEL_NONE) {
        recompute_block(self, ended);
        make(self, ended, &self->layers[ended].beside, ZP_ROLE_TEMPORARY,
             zp_layer_bytes_get(&self->bytes, ended)->backward_bytes);
    }
    const ZpDsModuleCost *cost = &self->modules[module];
    gboolean costs = cost->share > 0.0 && self->n_layers > 0;
    launch(self, cost, ZP_KIND_BACKWARD,
           costs ? zp_model_backward_passes(zp_model_layer(self->ds->job->model, cost->layer),
                                            (double)self->ds->job->training.sequence)
                 : 2.0);
    if (started != ZP_MODEL_NONE) {
        communicate(self, started, ZP_KIND_BACKWARD);
        end_pass(self, started);
    }
}

void
zp_ds_compute_backward_done(ZpDsCompute *self, gint32 module)
{
    if (self->starts[module] == ZP_MODEL_NONE)
        return;
    ZpDsLayerState *state = &self->layers[self->starts[module]];
    zp_ds_drop(self->ds, ZP_DS_STREAM_COMPUTE, &state->recomputed);
    zp_ds_drop(self->ds, ZP_DS_STREAM_COMPUTE, &state->kept);
}
