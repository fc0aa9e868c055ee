#include "models/runtimes/ideal/ideal_internal.h"

void
ideal_launch_kernel(Ideal *ideal, ZpKind kind, ZpTime duration_ps, double flops, const char *rule)
{
    ZpTapeWork work = {
        .solo_ps = duration_ps,
        .flops = flops,
        .kind = (gint16)kind,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COMPUTE,
        .rule = zp_tape_add_rule(ideal->tape, rule),
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(ideal->tape, IDEAL_COMPUTE, zp_tape_add_work(ideal->tape, &work));
}

void
ideal_launch_collective(Ideal *ideal, guint8 stream, ZpKind kind, gint64 bytes, int group)
{
    const ZpTapeGroup *ranks = &ideal->tape->groups[group];
    if (ranks->size == 1 || bytes == 0)
        return;
    ZpCost cost = zp_cost_collective(&ideal->job->network, kind, bytes, ranks->size, ranks->stride);
    ZpTapeWork work = {
        .fixed_ps = cost.fixed_ps,
        .solo_ps = cost.solo_ps,
        .bytes = bytes,
        .wire_bytes = cost.wire_bytes,
        .kind = (gint16)kind,
        .link = (gint8)cost.link,
        .group = (gint8)group,
        .category = ZP_TAPE_COMMUNICATION,
        .rule = zp_tape_add_rule(ideal->tape, cost.rule),
        .label = ZP_TAPE_NONE,
    };
    zp_communicators_launch(&ideal->communicators, ideal->tape, stream,
                            zp_tape_add_work(ideal->tape, &work));
}
