#include "models/prices/layer.h"
#include "models/runtimes/fsdp/emit.h"
#include "models/runtimes/shared/work.h"

gint32
zp_fsdp_emit_kernel_work(ZpFsdpEmit *emit, ZpKind kind, ZpTime duration_ps, double flops,
                         const char *rule)
{
    ZpTapeWork work = zp_work_kernel(kind, duration_ps, flops, zp_fsdp_emit_rule(emit, rule));
    return zp_tape_add_work(emit->tape, &work);
}

static double
forward_flops(const ZpFsdpEmit *emit, const ZpModelLayer *layer)
{
    return (double)layer->flops_per_token * (double)emit->tokens +
           (double)layer->flops_per_pair * (double)emit->pairs;
}

/* `passes` forward-equivalents of a layer: 1 forward, 2 backward. */
static void
launch_layer(ZpFsdpEmit *emit, ZpKind kind, const ZpModelLayer *layer, double flops, double passes)
{
    const char *rule = zp_cost_layer_rule(emit->job);
    if (emit->job->device.calibration != NULL) {
        ZpTime priced = zp_cost_layer(emit->job, layer, kind);
        zp_tape_launch(emit->tape, ZP_FSDP_STREAM_DEFAULT,
                       zp_fsdp_emit_kernel_work(emit, kind, priced, passes * flops, rule));
        return;
    }
    int bytes = zp_fsdp_plan_compute_bytes(emit->plan);
    double weights = (double)((layer->elements + layer->tied_elements) * bytes);
    double traffic = (double)layer->traffic_bytes_per_token * (double)emit->tokens + weights;
    if (layer->kind == ZP_LAYER_EMBEDDING)
        traffic -= weights; /* a look-up touches the rows of its tokens alone */
    ZpTime duration = zp_cost_kernel(&emit->job->device, passes * flops, passes * traffic);
    gint32 work = zp_fsdp_emit_kernel_work(emit, kind, duration, passes * flops, rule);
    zp_tape_launch(emit->tape, ZP_FSDP_STREAM_DEFAULT, work);
}

static double
recomputed_flops(const ZpFsdpEmit *emit, const ZpModelLayer *layer)
{
    if (emit->job->training.checkpointing == ZP_CHECKPOINTING_FULL)
        return forward_flops(emit, layer);
    return (double)layer->selective_flops_per_token * (double)emit->tokens +
           (double)layer->selective_flops_per_pair * (double)emit->pairs;
}

void
zp_fsdp_emit_kernel(ZpFsdpEmit *emit, gint32 l, ZpKind kind)
{
    const ZpModelLayer *layer = zp_model_layer(emit->job->model, l);
    double flops =
        kind == ZP_KIND_RECOMPUTE ? recomputed_flops(emit, layer) : forward_flops(emit, layer);
    double passes = kind == ZP_KIND_BACKWARD
                        ? zp_model_backward_passes(layer, (double)emit->job->training.sequence)
                        : 1.0;
    if (kind != ZP_KIND_RECOMPUTE || flops > 0.0 ||
        zp_layer_bytes_get(&emit->bytes, l)->recomputed_bytes > 0)
        launch_layer(emit, kind, layer, flops, passes);
}
