/* The works of each unit: made once a tape, launched in every micro-batch. */
#include "models/runtimes/fsdp2/fsdp2_internal.h"

static gint8
group_of_size(ZpTape *tape, gint32 size)
{
    for (int g = ZP_FSDP_GROUP_POST_FORWARD; g < tape->n_groups; g++) {
        if (tape->groups[g].size == size)
            return (gint8)g;
    }
    return zp_tape_add_group(tape, size, 1);
}

static void
make_gather_works(Fsdp2 *fsdp, gint32 unit)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    ZpFsdpEmit *emit = &fsdp->emit;
    const ZpFsdpUnit *desc = fsdp2_unit(fsdp, unit);
    Fsdp2Unit *state = &fsdp->units[unit];
    Fsdp2Works *works = &state->works;
    int width = zp_fsdp_plan_compute_bytes(plan);
    gint64 shard = state->shard_elements;
    gint64 whole_bytes = shard * plan->shard * width;
    if (plan->settings.cpu_offload)
        works->to_device =
            zp_fsdp_emit_transfer_work(emit, ZP_KIND_HOST_TO_DEVICE, shard * plan->stored_bytes);
    if (plan->param_bytes)
        works->cast = zp_fsdp_emit_memory_work(emit, shard * (plan->stored_bytes + width));
    works->copy_in = zp_fsdp_emit_memory_work(emit, 2 * shard * width);
    works->gather =
        zp_fsdp_emit_collective_work(emit, ZP_KIND_ALL_GATHER, whole_bytes, ZP_FSDP_GROUP_SHARD);
    works->copy_out = zp_fsdp_emit_memory_work(emit, 2 * whole_bytes);
    if (desc->reshard_after_forward <= 1)
        return;
    gint64 slice_bytes = whole_bytes / desc->reshard_after_forward;
    works->slice = zp_fsdp_emit_memory_work(emit, 2 * slice_bytes);
    works->cast_slice = works->copy_in_slice = works->slice;
    works->gather_slice =
        zp_fsdp_emit_collective_work(emit, ZP_KIND_ALL_GATHER, whole_bytes,
                                     group_of_size(fsdp->tape, desc->reshard_after_forward));
}

static void
make_reduce_works(Fsdp2 *fsdp, gint32 unit)
{
    const ZpFsdpPlan *plan = fsdp->plan;
    ZpFsdpEmit *emit = &fsdp->emit;
    Fsdp2Unit *state = &fsdp->units[unit];
    Fsdp2Works *works = &state->works;
    int grad_width = zp_fsdp_plan_compute_bytes(plan);
    int width = zp_fsdp_plan_reduce_bytes(plan);
    gint64 shard = state->reduced_elements;
    gint64 whole = shard * plan->shard;
    if (shard == 0)
        return;
    works->copy_to_input = zp_fsdp_emit_memory_work(emit, whole * (grad_width + width));
    works->reduce_scatter = plan->shard > 1
                                ? zp_fsdp_emit_collective_work(emit, ZP_KIND_REDUCE_SCATTER,
                                                               whole * width, ZP_FSDP_GROUP_SHARD)
                                : zp_fsdp_emit_memory_work(emit, 2 * whole * width);
    works->all_reduce = zp_fsdp_emit_collective_work(emit, ZP_KIND_ALL_REDUCE, shard * width,
                                                     ZP_FSDP_GROUP_REPLICATE);
    works->cast_output = zp_fsdp_emit_memory_work(emit, shard * (width + plan->stored_bytes));
    works->add_output = zp_fsdp_emit_memory_work(emit, 3 * shard * MAX(width, plan->stored_bytes));
    works->accumulate = zp_fsdp_emit_memory_work(emit, whole * (grad_width + 2 * width));
    if (plan->settings.cpu_offload)
        works->to_host =
            zp_fsdp_emit_transfer_work(emit, ZP_KIND_DEVICE_TO_HOST, shard * plan->stored_bytes);
}

void
fsdp2_make_works(Fsdp2 *fsdp)
{
    for (guint u = 0; u < fsdp->plan->units->len; u++) {
        Fsdp2Works *works = &fsdp->units[u].works;
        *works = (Fsdp2Works){
            ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE,
            ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE,
            ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE, ZP_TAPE_NONE,
        };
        make_gather_works(fsdp, (gint32)u);
        make_reduce_works(fsdp, (gint32)u);
    }
}
