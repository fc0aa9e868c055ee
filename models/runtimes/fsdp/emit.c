#include "models/runtimes/fsdp/emit.h"

#include "models/prices/layer.h"
#include "models/runtimes/shared/cuts.h"
#include "models/runtimes/shared/work.h"

void
zp_fsdp_emit_init(ZpFsdpEmit *emit, const ZpFsdpPlan *plan, const ZpJob *job, ZpTape *tape)
{
    *emit = (ZpFsdpEmit){.plan = plan, .job = job, .tape = tape, .loss_due = ZP_FSDP_NONE};
    zp_communicators_init(&emit->communicators, plan->settings.separate_reduce_scatter);
    zp_tape_add_link(tape, "scale-up");
    zp_tape_add_link(tape, "network");
    zp_tape_add_link(tape, "host");
    zp_tape_add_group(tape, plan->shard, 1);
    zp_tape_add_group(tape, plan->replicate, plan->shard);
    gint32 post_forward = 1;
    for (guint u = 0; u < plan->units->len; u++) {
        const ZpFsdpUnit *unit = zp_fsdp_plan_unit(plan, (gint32)u);
        zp_tape_add_unit(tape, unit->name);
        post_forward = MAX(post_forward, unit->reshard_after_forward);
    }
    zp_tape_add_group(tape, post_forward, 1);
    gsize n_layers = job ? job->model->layers->len : 0;
    emit->kept = g_new(gint32, 2 * n_layers + 1);
    for (gsize i = 0; i < 2 * n_layers; i++)
        emit->kept[i] = ZP_TAPE_NONE;
    emit->recomputed = emit->kept + n_layers;
    emit->region_done = g_new0(gboolean, plan->regions->len + 1);
    if (job) {
        zp_layer_bytes_init(&emit->bytes, job);
        zp_fsdp_emit_head_init(emit);
        zp_fsdp_emit_script_init(emit);
        emit->tokens = job->training.micro_batch * job->training.sequence;
        emit->pairs = emit->tokens * job->training.sequence;
    }
}

void
zp_fsdp_emit_clear(ZpFsdpEmit *emit)
{
    zp_layer_bytes_clear(&emit->bytes);
    zp_fsdp_emit_script_clear(emit);
    g_free(emit->kept);
    g_free(emit->head_storages);
    g_free(emit->region_done);
}

gint32
zp_fsdp_emit_make_host(ZpFsdpEmit *emit, ZpClass class_id, ZpRole role, gint64 bytes,
                       gboolean pinned)
{
    if (bytes == 0)
        return ZP_TAPE_NONE;
    gint32 buffer = zp_tape_add_buffer(emit->tape, (guint8)class_id, (guint8)role, bytes);
    emit->tape->buffers[buffer].space = ZP_TAPE_SPACE_HOST;
    emit->tape->buffers[buffer].pinned = pinned != FALSE;
    zp_tape_alloc(emit->tape, ZP_TAPE_CLOCK_HOST, ZP_FSDP_STREAM_DEFAULT, buffer);
    return buffer;
}

void
zp_fsdp_emit_begin(ZpFsdpEmit *emit, int stream)
{
    emit->phase = ZP_PHASE_INIT;
    emit->micro_batch = ZP_TAPE_NONE;
    zp_fsdp_emit_tag(emit, ZP_FSDP_NONE);
    if (emit->job)
        zp_fsdp_emit_make(emit, stream, ZP_CLASS_RUNTIME, ZP_ROLE_NONE,
                          emit->job->device.overhead_bytes, ZP_FSDP_NONE);
}

gint32
zp_fsdp_emit_memory_work(ZpFsdpEmit *emit, gint64 moved_bytes)
{
    ZpTime duration = emit->job ? zp_cost_kernel(&emit->job->device, 0.0, (double)moved_bytes) : 0;
    return zp_fsdp_emit_kernel_work(emit, ZP_KIND_MEMORY, duration, 0.0, ZP_COST_ROOFLINE);
}

gint32
zp_fsdp_emit_collective_work(ZpFsdpEmit *emit, ZpKind kind, gint64 bytes, gint8 group)
{
    const ZpTapeGroup *ranks = &emit->tape->groups[group];
    if (bytes == 0)
        return ZP_TAPE_NONE;
    ZpTapeWork work = {
        .bytes = bytes,
        .kind = (gint16)kind,
        .link = ZP_TAPE_NONE,
        .group = group,
        .category = ZP_TAPE_COMMUNICATION,
        .label = ZP_TAPE_NONE,
    };
    if (emit->job) {
        ZpCost cost =
            zp_cost_collective(&emit->job->network, kind, bytes, ranks->size, ranks->stride);
        work = zp_work_collective(kind, bytes, &cost, group, zp_fsdp_emit_rule(emit, cost.rule));
    }
    return zp_tape_add_work(emit->tape, &work);
}

gint32
zp_fsdp_emit_transfer_work(ZpFsdpEmit *emit, ZpKind kind, gint64 bytes)
{
    ZpTapeWork work = {
        .bytes = bytes,
        .kind = (gint16)kind,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COPY,
        .label = ZP_TAPE_NONE,
    };
    if (emit->job) {
        ZpCost cost = zp_cost_transfer(&emit->job->network, kind, bytes);
        work = zp_work_copy(kind, bytes, &cost, zp_fsdp_emit_rule(emit, cost.rule));
    }
    return zp_tape_add_work(emit->tape, &work);
}

void
zp_fsdp_emit_wait_stream(ZpFsdpEmit *emit, int stream, int other)
{
    gint32 event = zp_tape_record(emit->tape, (guint8)other);
    zp_tape_wait(emit->tape, (guint8)stream, event);
}

static void
communicate(ZpFsdpEmit *emit, const ZpModelLayer *layer, ZpKind pass)
{
    zp_cuts_communicate(emit->job, emit->tape, ZP_FSDP_STREAM_DEFAULT, layer, pass);
}

static gint32
make_of_layer(ZpFsdpEmit *emit, const ZpModelLayer *layer, ZpRole role, gint64 bytes)
{
    ZpClass class_id = layer->kind == ZP_LAYER_HEAD ? ZP_CLASS_LOGITS : ZP_CLASS_ACTIVATION;
    return zp_fsdp_emit_make(emit, ZP_FSDP_STREAM_DEFAULT, class_id, role, bytes, ZP_FSDP_NONE);
}

static gboolean
in_storages(const ZpFsdpEmit *emit, const ZpModelLayer *layer)
{
    return layer->kind == ZP_LAYER_HEAD && emit->n_head_storages > 0;
}

void
zp_fsdp_emit_forward(ZpFsdpEmit *emit, const ZpFsdpStep *step)
{
    zp_fsdp_emit_forward_to_loss(emit, step);
    zp_fsdp_emit_loss(emit);
}

void
zp_fsdp_emit_loss(ZpFsdpEmit *emit)
{
    if (emit->loss_due == ZP_FSDP_NONE)
        return;
    zp_fsdp_emit_tag(emit, emit->loss_unit);
    zp_fsdp_emit_head_loss(emit, emit->loss_due, FALSE);
    emit->loss_due = ZP_FSDP_NONE;
}

void
zp_fsdp_emit_loss_backward(ZpFsdpEmit *emit)
{
    if (emit->job == NULL || emit->n_head_storages == 0 || emit->loss_done)
        return;
    gint32 head = (gint32)emit->job->model->layers->len - 1;
    while (zp_model_layer(emit->job->model, head)->kind != ZP_LAYER_HEAD)
        head--;
    zp_fsdp_emit_tag(emit, emit->loss_unit);
    zp_fsdp_emit_head_loss(emit, head, TRUE);
    emit->loss_done = TRUE;
}

void
zp_fsdp_emit_forward_to_loss(ZpFsdpEmit *emit, const ZpFsdpStep *step)
{
    if (emit->job == NULL)
        return;
    for (gint32 l = step->first_layer; l < step->first_layer + step->n_layers; l++) {
        const ZpModelLayer *layer = zp_model_layer(emit->job->model, l);
        if (zp_fsdp_emit_is_scripted(emit, l)) {
            zp_fsdp_emit_script_pass(emit, l, ZP_MODEL_FORWARD);
            communicate(emit, layer, ZP_KIND_FORWARD);
            continue;
        }
        const ZpLayerBytes *bytes = zp_layer_bytes_get(&emit->bytes, l);
        zp_fsdp_emit_script_leave(emit);
        if (in_storages(emit, layer)) {
            zp_fsdp_emit_head_product(emit, l, FALSE);
            emit->loss_due = l;
            emit->loss_unit = step->unit;
        } else {
            emit->kept[l] = make_of_layer(emit, layer, ZP_ROLE_NONE, bytes->kept_bytes);
            gint32 beside = make_of_layer(emit, layer, ZP_ROLE_TEMPORARY, bytes->forward_bytes);
            zp_fsdp_emit_kernel(emit, l, ZP_KIND_FORWARD);
            zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &beside);
        }
        communicate(emit, layer, ZP_KIND_FORWARD);
    }
}

void
zp_fsdp_emit_recompute(ZpFsdpEmit *emit, const ZpFsdpStep *step)
{
    if (emit->job == NULL)
        return;
    for (gint32 l = step->first_layer; l < step->first_layer + step->n_layers; l++) {
        const ZpModelLayer *layer = zp_model_layer(emit->job->model, l);
        if (zp_fsdp_emit_is_scripted(emit, l)) {
            zp_fsdp_emit_script_pass(emit, l, ZP_MODEL_RECOMPUTE);
            communicate(emit, layer, ZP_KIND_RECOMPUTE);
            continue;
        }
        const ZpLayerBytes *bytes = zp_layer_bytes_get(&emit->bytes, l);
        emit->recomputed[l] = make_of_layer(emit, layer, ZP_ROLE_NONE, bytes->recomputed_bytes);
        gint32 beside = make_of_layer(emit, layer, ZP_ROLE_TEMPORARY, bytes->recompute_bytes);
        zp_fsdp_emit_kernel(emit, l, ZP_KIND_RECOMPUTE);
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &beside);
        communicate(emit, layer, ZP_KIND_RECOMPUTE);
    }
}

static void
backward_layer(ZpFsdpEmit *emit, gint32 l)
{
    const ZpModelLayer *layer = zp_model_layer(emit->job->model, l);
    const ZpLayerBytes *bytes = zp_layer_bytes_get(&emit->bytes, l);
    if (zp_fsdp_emit_is_scripted(emit, l)) {
        zp_fsdp_emit_script_backward(emit, l, ZP_FSDP_NONE);
        communicate(emit, layer, ZP_KIND_BACKWARD);
        return;
    }
    zp_fsdp_emit_script_leave(emit);
    if (in_storages(emit, layer)) {
        zp_fsdp_emit_loss_backward(emit);
        zp_fsdp_emit_head_product(emit, l, TRUE);
        emit->loss_done = FALSE;
    } else {
        gint32 beside = make_of_layer(emit, layer, ZP_ROLE_TEMPORARY, bytes->backward_bytes);
        zp_fsdp_emit_kernel(emit, l, ZP_KIND_BACKWARD);
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &beside);
    }
    communicate(emit, layer, ZP_KIND_BACKWARD);
}

/* A layer's kernels come with the last of its steps, but a head's with the first: the loss has let
 * go of its temporaries when the gradient of the head's weight is made. */
void
zp_fsdp_emit_backward(ZpFsdpEmit *emit, const ZpFsdpStep *step)
{
    if (emit->job == NULL)
        return;
    gint32 first = step->first_layer;
    if (step->n_layers == 0 && step->birth != ZP_FSDP_NONE && zp_fsdp_emit_is_scripted(emit, first))
        zp_fsdp_emit_script_backward(emit, first, step->birth);
    if (step->n_layers == 0 && !emit->head_done &&
        zp_model_layer(emit->job->model, first)->kind == ZP_LAYER_HEAD) {
        backward_layer(emit, first);
        emit->head_done = TRUE;
    }
    for (gint32 l = first + step->n_layers - 1; l >= first; l--) {
        if (emit->head_done && zp_model_layer(emit->job->model, l)->kind == ZP_LAYER_HEAD)
            emit->head_done = FALSE;
        else
            backward_layer(emit, l);
    }
}

void
zp_fsdp_emit_release(ZpFsdpEmit *emit, const ZpFsdpStep *step)
{
    if (emit->job == NULL)
        return;
    for (gint32 l = step->first_layer + step->n_layers - 1; l >= step->first_layer; l--) {
        if (in_storages(emit, zp_model_layer(emit->job->model, l)))
            zp_fsdp_emit_head_release(emit);
        if (zp_fsdp_emit_is_scripted(emit, l))
            zp_fsdp_emit_script_release(emit, l);
        else
            zp_fsdp_emit_script_leave(emit);
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &emit->recomputed[l]);
        zp_fsdp_emit_drop(emit, ZP_FSDP_STREAM_DEFAULT, &emit->kept[l]);
    }
}

void
zp_fsdp_emit_begin_backward(ZpFsdpEmit *emit)
{
    for (guint r = 0; r < emit->plan->regions->len; r++)
        emit->region_done[r] = FALSE;
    zp_fsdp_emit_script_begin_backward(emit);
}
