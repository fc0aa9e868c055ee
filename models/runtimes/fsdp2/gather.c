/* FSDPParamGroup.unshard, wait_for_unshard and reshard; foreach_all_gather and its copy-out
 * (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py). */
#include "models/runtimes/fsdp2/fsdp2_internal.h"

void
fsdp2_gather_streams_wait(Fsdp2 *fsdp, gint32 event)
{
    zp_fsdp_emit_wait(&fsdp->emit, FSDP2_COPY_IN, event);
    zp_fsdp_emit_wait(&fsdp->emit, FSDP2_GATHER, event);
}

static gboolean
gathers_slices(const Fsdp2Unit *state)
{
    return state->sharded == FSDP2_SHARDED_POST_FORWARD;
}

/* CPU offload takes no foreach path: each shard is copied to the device and, where the compute
 * dtype differs, cast there; the copy dies at once, the cast (or the copy) feeds the copy-in.
 * Fills fsdp->pending with what the caller must free. */
static void
bring_to_device(Fsdp2 *fsdp, gint32 unit, int stream)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        gint64 elements = fsdp->params[p].chunk_elements;
        gint32 index = zp_fsdp_plan_parameter(plan, p)->parameter;
        gint32 copy = zp_fsdp_emit_make(&fsdp->emit, stream, ZP_CLASS_GATHERED, ZP_ROLE_CAST,
                                        elements * plan->stored_bytes, index);
        fsdp->pending[p] = copy;
        if (plan->param_bytes) {
            fsdp->pending[p] = zp_fsdp_emit_make(&fsdp->emit, stream, ZP_CLASS_GATHERED,
                                                 ZP_ROLE_CAST, elements * plan->param_bytes, index);
            zp_fsdp_emit_drop(&fsdp->emit, stream, &copy);
        }
    }
    zp_fsdp_emit_launch(&fsdp->emit, stream, fsdp->units[unit].works.to_device);
    if (plan->param_bytes)
        zp_fsdp_emit_launch(&fsdp->emit, stream, fsdp->units[unit].works.cast);
}

static void
drop_pending(Fsdp2 *fsdp, gint32 unit, int stream)
{
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++)
        zp_fsdp_emit_drop(&fsdp->emit, stream, &fsdp->pending[p]);
}

static gint64
gather_input_elements(const Fsdp2 *fsdp, gint32 unit)
{
    const Fsdp2Unit *state = &fsdp->units[unit];
    if (!gathers_slices(state))
        return state->shard_elements;
    return state->shard_elements * fsdp->plan->shard /
           fsdp2_unit(fsdp, unit)->reshard_after_forward;
}

/* foreach_all_gather: the rank's input is a slot of the output, so there is no input buffer. */
static void
all_gather(Fsdp2 *fsdp, gint32 unit)
{
    ZpFsdpEmit *emit = &fsdp->emit;
    Fsdp2Unit *state = &fsdp->units[unit];
    const Fsdp2Works *works = &state->works;
    gboolean slices = gathers_slices(state);
    gboolean offload = fsdp->plan->settings.cpu_offload && !slices;
    gint32 cast = ZP_TAPE_NONE;
    if (offload)
        bring_to_device(fsdp, unit, FSDP2_COPY_IN);
    else if (fsdp->plan->param_bytes) {
        cast = zp_fsdp_emit_make(emit, FSDP2_COPY_IN, ZP_CLASS_GATHERED, ZP_ROLE_CAST,
                                 gather_input_elements(fsdp, unit) * fsdp->plan->param_bytes,
                                 ZP_FSDP_NONE);
        zp_fsdp_emit_launch(emit, FSDP2_COPY_IN, slices ? works->cast_slice : works->cast);
    }
    state->gather_output = zp_fsdp_emit_make(
        emit, FSDP2_COPY_IN, ZP_CLASS_GATHERED, ZP_ROLE_ALL_GATHER,
        state->shard_elements * fsdp->plan->shard * zp_fsdp_plan_compute_bytes(fsdp->plan),
        ZP_FSDP_NONE);
    zp_fsdp_emit_launch(emit, FSDP2_COPY_IN, slices ? works->copy_in_slice : works->copy_in);
    zp_fsdp_emit_wait_stream(emit, FSDP2_GATHER, FSDP2_COPY_IN);
    zp_fsdp_emit_launch(emit, FSDP2_GATHER, slices ? works->gather_slice : works->gather);
    state->gather_event = zp_tape_record(fsdp->tape, FSDP2_GATHER);
    zp_fsdp_emit_drop(emit, FSDP2_COPY_IN, &cast);
    if (offload)
        drop_pending(fsdp, unit, FSDP2_COPY_IN);
}

void
fsdp2_unshard(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    if (state->gather_pending || state->sharded == FSDP2_UNSHARDED)
        return;
    if (!fsdp2_unit(fsdp, unit)->unshard_in_backward && state->training == FSDP2_PRE_BACKWARD)
        return;
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    if (state->reshard_event != ZP_TAPE_NONE) {
        fsdp2_gather_streams_wait(fsdp, state->reshard_event);
        state->reshard_event = ZP_TAPE_NONE;
    }
    state->gather_pending = TRUE;
    state->gather_event = ZP_TAPE_NONE;
    if (fsdp->plan->shard > 1)
        all_gather(fsdp, unit);
}

static void
make_unsharded(Fsdp2 *fsdp, gint32 p)
{
    gint64 bytes =
        fsdp->params[p].chunk_elements * fsdp->plan->shard * zp_fsdp_plan_compute_bytes(fsdp->plan);
    fsdp->params[p].unsharded =
        zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GATHERED, ZP_ROLE_UNSHARDED, bytes,
                          zp_fsdp_plan_parameter(fsdp->plan, p)->parameter);
}

/* What is cut along another dimension than the first arrives as chunks, which are joined into the
 * parameter from a buffer of its size. */
static void
make_chunks(Fsdp2 *fsdp, gint32 p)
{
    const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(fsdp->plan, p);
    if (parameter->inner)
        fsdp->params[p].rearranged = zp_fsdp_emit_make(
            &fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GATHERED, ZP_ROLE_UNSHARDED,
            zp_fsdp_parameter_elements(parameter) * zp_fsdp_plan_compute_bytes(fsdp->plan),
            parameter->parameter);
}

/* One rank alone copies its shard, through a cast that lives until the next parameter's is made:
 * the loop variable all_gather_input holds it.  Returns the last one. */
static gint32
copy_own_shard(Fsdp2 *fsdp, gint32 unit)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    gint32 held = ZP_TAPE_NONE;
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        gint64 elements = fsdp->params[p].chunk_elements;
        gint32 input = ZP_TAPE_NONE;
        if (plan->settings.cpu_offload)
            input = zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GATHERED, ZP_ROLE_CAST,
                                      elements * plan->stored_bytes, ZP_FSDP_NONE);
        if (plan->param_bytes) {
            gint32 cast =
                zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GATHERED, ZP_ROLE_CAST,
                                  elements * plan->param_bytes, ZP_FSDP_NONE);
            zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &input);
            input = cast;
        }
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &held);
        held = input;
        make_unsharded(fsdp, p);
    }
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, fsdp->units[unit].works.to_device);
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, fsdp->units[unit].works.cast);
    return held;
}

/* foreach_all_gather_copy_out and FSDPParam.to_unsharded. */
static gint32
copy_out(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    gint32 held = ZP_TAPE_NONE;
    if (fsdp->plan->shard == 1) {
        held = copy_own_shard(fsdp, unit);
    } else {
        zp_fsdp_emit_wait(&fsdp->emit, FSDP2_DEFAULT, state->gather_event);
        for (gint32 p = 0; p < desc->n_parameters; p++) {
            make_unsharded(fsdp, desc->first_parameter + p);
            make_chunks(fsdp, desc->first_parameter + p);
        }
    }
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, state->works.copy_out);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &fsdp->params[p].rearranged);
    for (gint32 p = 0; p < desc->n_parameters && gathers_slices(state); p++)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT,
                          &fsdp->params[desc->first_parameter + p].post_forward);
    state->sharded = FSDP2_UNSHARDED;
    return held;
}

/* Implicit prefetch in forward: the output of a gather stays until the next unit's copy-out is
 * issued, so that this copy-out and the next all-gather can overlap. */
void
fsdp2_wait_for_unshard(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    if (!state->gather_pending)
        return;
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    gint32 previous = ZP_TAPE_NONE;
    if (state->training == FSDP2_FORWARD && fsdp->parked.buffer != ZP_TAPE_NONE) {
        fsdp2_gather_streams_wait(fsdp, fsdp->parked.event);
        previous = fsdp->parked.buffer;
        fsdp->parked.buffer = ZP_TAPE_NONE;
    }
    gint32 held = copy_out(fsdp, unit);
    gint32 event = zp_tape_record(fsdp->tape, FSDP2_DEFAULT);
    state->gather_pending = FALSE;
    if (state->training == FSDP2_FORWARD && fsdp->plan->shard > 1) {
        fsdp->parked = (Fsdp2Retained){.buffer = state->gather_output, .event = event};
        state->gather_output = ZP_TAPE_NONE;
    } else {
        fsdp2_gather_streams_wait(fsdp, event);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_COPY_IN, &state->gather_output);
    }
    zp_fsdp_emit_drop(&fsdp->emit, FSDP2_COPY_IN, &previous);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &held);
}

void
fsdp2_free_parked(Fsdp2 *fsdp)
{
    if (fsdp->parked.buffer == ZP_TAPE_NONE)
        return;
    fsdp2_gather_streams_wait(fsdp, fsdp->parked.event);
    zp_fsdp_emit_drop(&fsdp->emit, FSDP2_COPY_IN, &fsdp->parked.buffer);
}

/* FSDPParam.to_sharded_post_forward, for each parameter: keep a clone of the slice of this rank,
 * then free the whole. */
static void
keep_slices(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    int width = zp_fsdp_plan_compute_bytes(fsdp->plan);
    if (state->sharded == FSDP2_SHARDED_POST_FORWARD)
        return;
    zp_fsdp_emit_launch(&fsdp->emit, FSDP2_DEFAULT, state->works.slice);
    for (gint32 p = desc->first_parameter; p < desc->first_parameter + desc->n_parameters; p++) {
        Fsdp2Param *param = &fsdp->params[p];
        gint64 elements = param->chunk_elements * fsdp->plan->shard / desc->reshard_after_forward;
        gint32 slice =
            zp_fsdp_emit_make(&fsdp->emit, FSDP2_DEFAULT, ZP_CLASS_GATHERED,
                              ZP_ROLE_POST_FORWARD_SHARD, elements * width, ZP_FSDP_NONE);
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &param->post_forward);
        param->post_forward = slice;
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT, &param->unsharded);
    }
    state->sharded = FSDP2_SHARDED_POST_FORWARD;
    state->reshard_event = zp_tape_record(fsdp->tape, FSDP2_DEFAULT);
}

void
fsdp2_reshard(Fsdp2 *fsdp, gint32 unit)
{
    Fsdp2Unit *state = &fsdp->units[unit];
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    zp_fsdp_emit_tag(&fsdp->emit, unit);
    if (state->training == FSDP2_FORWARD) {
        if (desc->reshard_after_forward == 0)
            return;
        if (desc->reshard_after_forward > 1) {
            keep_slices(fsdp, unit);
            return;
        }
    }
    for (gint32 p = 0; p < desc->n_parameters; p++)
        zp_fsdp_emit_drop(&fsdp->emit, FSDP2_DEFAULT,
                          &fsdp->params[desc->first_parameter + p].unsharded);
    state->sharded = FSDP2_SHARDED;
}

void
fsdp2_prefetch(Fsdp2 *fsdp, gint32 unit, Fsdp2Training training)
{
    Fsdp2Training own = fsdp->units[unit].training;
    fsdp->units[unit].training = training;
    fsdp2_unshard(fsdp, unit);
    fsdp->units[unit].training = own;
}
