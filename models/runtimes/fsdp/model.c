#include "models/runtimes/fsdp/model.h"

#include "models/runtimes/fsdp/own_units_internal.h"
#include "models/runtimes/fsdp/script_order_internal.h"
#include "models/runtimes/fsdp/settings_internal.h"

typedef struct {
    const ZpJob *job;
    const ZpUnits *units;
    ZpFsdpPlan *plan;
    gint32 *index; /* model parameter -> plan parameter, ZP_FSDP_NONE where it has none */
    const ZpFsdpOwnUnits *own;
} Builder;

static gint32
unit_of_parameter(const Builder *builder, const ZpModelParameter *parameter)
{
    if (zp_fsdp_own_unit(builder->own, parameter->module) != ZP_FSDP_NONE)
        return zp_fsdp_own_unit(builder->own, parameter->module);
    return parameter->layer == ZP_MODEL_NONE ? ZP_FSDP_NONE
                                             : builder->units->unit_of_layer[parameter->layer];
}

/* A unit that is everything, or that holds what no other unit holds, is the root module's. */
static gboolean
is_root(const Builder *builder, gint32 unit)
{
    if (unit >= builder->units->n_units)
        return FALSE;
    const ZpZero *zero = &builder->job->zero;
    const ZpUnit *span = &builder->units->units[unit];
    return builder->units->n_units == 1 ||
           ((zero->outer == ZP_OUTER_ROOT || zero->wrap == ZP_WRAP_MODEL) &&
            zp_model_layer(builder->job->model, span->first_layer)->block == ZP_MODEL_NONE);
}

/* torchtitan does not reshard the unit with the output head after forward: backward starts with
 * it (torchtitan/distributed/fsdp.py, apply_fsdp_to_decoder). */
static gboolean
holds_the_end(const Builder *builder, gint32 unit)
{
    const ZpUnit *span = &builder->units->units[unit];
    return span->last_layer == builder->units->n_layers - 1 &&
           zp_model_layer(builder->job->model, span->last_layer)->block == ZP_MODEL_NONE;
}

static gint32
reshard_after_forward(const Builder *builder, gint32 unit)
{
    const ZpFsdp *settings = &builder->plan->settings;
    gint32 by_stage = builder->job->zero.stage >= 3 && builder->job->zero.reshard_after_forward;
    gint32 value = settings->reshard_after_forward < 0 ? by_stage : settings->reshard_after_forward;
    if (is_root(builder, unit)) {
        if (settings->root_reshard_after_forward == ZP_FSDP_AUTO)
            return 0;
        return settings->root_reshard_after_forward == ZP_FSDP_YES ? MAX(value, 1) : 0;
    }
    if (settings->reshard_after_forward < 0 && unit < builder->units->n_units &&
        holds_the_end(builder, unit))
        return 0;
    return value == builder->plan->shard ? MIN(value, 1) : value;
}

static void
add_units(Builder *builder)
{
    const ZpModel *model = builder->job->model;
    ZpFsdpPlan *plan = builder->plan;
    gint32 n_own = (gint32)builder->own->layers->len;
    g_autofree gint32 *count = g_new0(gint32, (gsize)(builder->units->n_units + n_own) + 1);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        gint32 unit = unit_of_parameter(builder, parameter);
        if (unit != ZP_FSDP_NONE && parameter->tied_to == ZP_MODEL_NONE)
            count[unit]++;
    }
    gint32 first = 0;
    for (gint32 u = 0; u < builder->units->n_units; u++) {
        ZpFsdpUnit unit = {
            .name = builder->units->units[u].name,
            .first_parameter = first,
            .root = is_root(builder, u),
            .reshard_after_forward = reshard_after_forward(builder, u),
            .unshard_in_backward =
                plan->settings.embedding_unshard_in_backward ||
                zp_model_layer(model, builder->units->units[u].last_layer)->kind !=
                    ZP_LAYER_EMBEDDING,
        };
        first += count[u];
        g_array_append_val(plan->units, unit);
    }
    for (gint32 u = builder->units->n_units; u < builder->units->n_units + n_own; u++) {
        ZpFsdpUnit unit = {
            .name = zp_fsdp_own_unit_name(builder->own, model, u),
            .first_parameter = first,
            .reshard_after_forward = reshard_after_forward(builder, u),
            .unshard_in_backward = TRUE,
        };
        first += count[u];
        g_array_append_val(plan->units, unit);
    }
    g_array_set_size(plan->parameters, (guint)first);
}

/* Is it cut along another dimension than the first, which the ranks do not divide? */
static gboolean
is_inner(const Builder *builder, const ZpModelParameter *parameter)
{
    gint32 ranks = builder->plan->shard;
    if (!builder->plan->settings.shard_even || parameter->n_dims < 2 ||
        parameter->shape[0] % ranks == 0)
        return FALSE;
    for (int d = 1; d < parameter->n_dims; d++) {
        if (parameter->shape[d] % ranks == 0)
            return TRUE;
    }
    return FALSE;
}

static void
add_parameters(Builder *builder)
{
    const ZpModel *model = builder->job->model;
    ZpFsdpPlan *plan = builder->plan;
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *source = zp_model_parameter(model, (gint32)p);
        gint32 u = unit_of_parameter(builder, source);
        builder->index[p] = ZP_FSDP_NONE;
        if (u == ZP_FSDP_NONE || source->tied_to != ZP_MODEL_NONE)
            continue;
        ZpFsdpUnit *unit = &g_array_index(plan->units, ZpFsdpUnit, (guint)u);
        gint32 at = unit->first_parameter + unit->n_parameters++;
        gint64 rows = source->n_dims > 0 ? source->shape[0] : source->elements;
        g_array_index(plan->parameters, ZpFsdpParameter, (guint)at) = (ZpFsdpParameter){
            .name = source->name,
            .rows = rows,
            .row_elements = rows > 0 ? source->elements / rows : 0,
            .trainable = source->trainable,
            .inner = is_inner(builder, source),
            .unit = u,
            .parameter = (gint32)p,
        };
        builder->index[p] = at;
        g_array_append_val(plan->optimizer_order, at);
    }
}

static void
push_step(Builder *builder, ZpFsdpStep step)
{
    g_array_append_val(builder->plan->steps, step);
}

static void
push_mark(Builder *builder, ZpFsdpStepKind kind, gint32 unit)
{
    push_step(builder, (ZpFsdpStep){.kind = (guint8)kind, .unit = unit, .region = ZP_FSDP_NONE});
}

/* One module's parameters: in backward their gradients appear together. */
static void
push_uses(Builder *builder, gint32 layer, gint32 own, gint32 birth, const gint32 *parameters,
          gint32 n)
{
    ZpFsdpPlan *plan = builder->plan;
    if (own != ZP_FSDP_NONE)
        push_mark(builder, ZP_FSDP_ENTER, own);
    ZpFsdpStep step = {
        .kind = ZP_FSDP_CALL,
        .unit = builder->units->unit_of_layer[layer],
        .first_use = (gint32)plan->uses->len,
        .n_uses = n,
        .first_layer = layer,
        .region = ZP_FSDP_NONE,
        .birth = birth,
    };
    g_array_append_vals(plan->uses, parameters, (guint)n);
    push_step(builder, step);
    if (own != ZP_FSDP_NONE)
        push_mark(builder, ZP_FSDP_LEAVE, own);
}

/* A layer is one step for its time and activations, in front of a step for each module that has
 * parameters: in backward the gradients come module by module, and the activations die last. */
static void
push_layer(Builder *builder, gint32 layer, GArray *uses, GArray *modules)
{
    push_step(builder, (ZpFsdpStep){
                           .kind = ZP_FSDP_CALL,
                           .unit = builder->units->unit_of_layer[layer],
                           .first_use = (gint32)builder->plan->uses->len,
                           .first_layer = layer,
                           .n_layers = 1,
                           .region = ZP_FSDP_NONE,
                           .birth = ZP_FSDP_NONE,
                       });
    const ZpModelLayer *described = zp_model_layer(builder->job->model, layer);
    const ZpTraining *training = &builder->job->training;
    const ZpModelScript *script = zp_model_script(
        builder->job->model, described, (int)training->checkpointing, training->micro_batch);
    g_autoptr(GArray) births =
        script ? zp_fsdp_script_order(script, described->part, builder->plan, uses, modules) : NULL;
    for (guint i = 0; i < uses->len;) {
        guint end = i + 1;
        gint32 module = g_array_index(modules, gint32, i);
        while (end < uses->len && module != ZP_MODEL_NONE &&
               g_array_index(modules, gint32, end) == module &&
               (births == NULL ||
                g_array_index(births, gint32, end) == g_array_index(births, gint32, i)))
            end++;
        push_uses(builder, layer, zp_fsdp_own_unit(builder->own, module),
                  births ? g_array_index(births, gint32, i) : ZP_FSDP_NONE,
                  &g_array_index(uses, gint32, i), (gint32)(end - i));
        i = end;
    }
}

/* Lists of parameters by layer, tied ones at each of their uses. */
static void
add_steps(Builder *builder)
{
    const ZpModel *model = builder->job->model;
    gint32 n_layers = builder->units->n_layers;
    g_autofree gint32 *first = g_new0(gint32, (gsize)n_layers + 2);
    for (guint p = 0; p < model->parameters->len; p++) {
        gint32 layer = zp_model_parameter(model, (gint32)p)->layer;
        if (layer != ZP_MODEL_NONE)
            first[layer + 1]++;
    }
    for (gint32 l = 0; l < n_layers; l++)
        first[l + 1] += first[l];
    g_autofree gint32 *sorted = g_new(gint32, model->parameters->len + 1);
    g_autofree gint32 *fill = g_memdup2(first, ((gsize)n_layers + 2) * sizeof(gint32));
    for (guint p = 0; p < model->parameters->len; p++) {
        gint32 layer = zp_model_parameter(model, (gint32)p)->layer;
        if (layer != ZP_MODEL_NONE)
            sorted[fill[layer]++] = (gint32)p;
    }
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(gint32));
    g_autoptr(GArray) modules = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (gint32 l = 0; l < n_layers; l++) {
        gint32 unit = builder->units->unit_of_layer[l];
        g_array_set_size(uses, 0);
        g_array_set_size(modules, 0);
        for (gint32 i = first[l]; i < first[l + 1]; i++) {
            const ZpModelParameter *parameter = zp_model_parameter(model, sorted[i]);
            gint32 owner = parameter->tied_to == ZP_MODEL_NONE ? sorted[i] : parameter->tied_to;
            if (builder->index[owner] == ZP_FSDP_NONE)
                continue;
            g_array_append_val(uses, builder->index[owner]);
            g_array_append_val(modules, parameter->module);
        }
        if (builder->units->units[unit].first_layer == l)
            push_mark(builder, ZP_FSDP_ENTER, unit);
        push_layer(builder, l, uses, modules);
        if (builder->units->units[unit].last_layer == l && !is_root(builder, unit))
            push_mark(builder, ZP_FSDP_LEAVE, unit);
    }
    for (gint32 u = 0; u < builder->units->n_units; u++) {
        if (is_root(builder, u))
            push_mark(builder, ZP_FSDP_LEAVE, u);
    }
}

/* Is the unit one that a checkpoint around `block` recomputes with its hooks? */
static gboolean
is_in_region(const Builder *builder, gint32 unit, gint32 block)
{
    const ZpModel *model = builder->job->model;
    const ZpUnit *span = &builder->units->units[unit];
    if (zp_model_layer(model, span->first_layer)->block != block ||
        zp_model_layer(model, span->last_layer)->block != block)
        return FALSE;
    gboolean whole =
        (span->first_layer == 0 || zp_model_layer(model, span->first_layer - 1)->block != block) &&
        (span->last_layer + 1 == builder->units->n_layers ||
         zp_model_layer(model, span->last_layer + 1)->block != block);
    return !whole || builder->plan->settings.checkpoint_outside;
}

static gint32
block_of_step(const Builder *builder, const ZpFsdpStep *step)
{
    const ZpModel *model = builder->job->model;
    if (step->kind == ZP_FSDP_CALL)
        return zp_model_layer(model, step->first_layer)->block;
    gint32 own = step->unit - builder->units->n_units;
    if (own >= 0)
        return zp_model_layer(model, g_array_index(builder->own->layers, gint32, (guint)own))
            ->block;
    gint32 block = zp_model_layer(model, builder->units->units[step->unit].first_layer)->block;
    return block != ZP_MODEL_NONE && is_in_region(builder, step->unit, block) ? block
                                                                              : ZP_MODEL_NONE;
}

/* Each block is checkpointed on its own. */
static void
add_regions(Builder *builder)
{
    ZpFsdpPlan *plan = builder->plan;
    if (builder->job->training.checkpointing == ZP_CHECKPOINTING_NONE)
        return;
    gint32 open = ZP_MODEL_NONE;
    for (guint s = 0; s < plan->steps->len; s++) {
        ZpFsdpStep *step = &g_array_index(plan->steps, ZpFsdpStep, s);
        gint32 block = block_of_step(builder, step);
        if (block != ZP_MODEL_NONE && block != open) {
            ZpFsdpRegion region = {.first_step = (gint32)s};
            g_array_append_val(plan->regions, region);
        }
        open = block;
        if (block == ZP_MODEL_NONE)
            continue;
        step->region = (gint32)plan->regions->len - 1;
        g_array_index(plan->regions, ZpFsdpRegion, plan->regions->len - 1).last_step = (gint32)s;
    }
}

/* Inputs of a unit need gradients once something trainable ran before it. */
static void
mark_inputs(Builder *builder)
{
    ZpFsdpPlan *plan = builder->plan;
    gboolean flows = FALSE;
    for (guint s = 0; s < plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(plan, (gint32)s);
        if (step->kind == ZP_FSDP_ENTER)
            g_array_index(plan->units, ZpFsdpUnit, (guint)step->unit).input_requires_grad = flows;
        for (gint32 i = 0; i < step->n_uses && !flows; i++)
            flows = zp_fsdp_plan_parameter(plan, zp_fsdp_plan_use(plan, step->first_use + i))
                        ->trainable;
    }
}

/* named_modules(): a unit, then those inside it. */
static void
order_states(Builder *builder)
{
    GArray *order = builder->plan->state_order;
    for (gint32 u = 0; u < builder->units->n_units; u++) {
        if (is_root(builder, u))
            g_array_prepend_val(order, u);
        else
            g_array_append_val(order, u);
        for (guint own = 0; own < builder->own->layers->len; own++) {
            gint32 layer = g_array_index(builder->own->layers, gint32, own);
            gint32 unit = builder->units->n_units + (gint32)own;
            if (builder->units->unit_of_layer[layer] == u)
                g_array_append_val(order, unit);
        }
    }
}

ZpFsdpPlan *
zp_fsdp_model_plan(const ZpJob *job, const ZpUnits *units, GError **error)
{
    const ZpFsdp *settings = job->fsdp ? job->fsdp : zp_fsdp_defaults();
    if (!zp_fsdp_settings_check(job, settings, error))
        return NULL;
    ZpFsdpPlan *plan = zp_fsdp_plan_new();
    zp_fsdp_settings_apply(plan, job, settings);
    g_autofree gint32 *index = g_new(gint32, job->model->parameters->len + 1);
    g_auto(ZpFsdpOwnUnits) own = {0};
    zp_fsdp_own_units_find(&own, job->model, settings->wrap_trainable, units->n_units);
    Builder builder = {job, units, plan, index, &own};
    add_units(&builder);
    add_parameters(&builder);
    add_steps(&builder);
    add_regions(&builder);
    mark_inputs(&builder);
    const ZpZero *zero = &job->zero;
    zp_fsdp_plan_add_prefetch(plan, units->n_units,
                              settings->forward_prefetch   ? settings->forward_prefetch
                              : zero->prefetch_forward > 1 ? zero->prefetch_forward
                                                           : 0,
                              TRUE);
    zp_fsdp_plan_add_prefetch(plan, units->n_units,
                              settings->backward_prefetch   ? settings->backward_prefetch
                              : zero->prefetch_backward > 1 ? zero->prefetch_backward
                                                            : 0,
                              FALSE);
    order_states(&builder);
    zp_fsdp_plan_finish(plan);
    return plan;
}
