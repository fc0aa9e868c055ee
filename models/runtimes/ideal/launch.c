#include "models/runtimes/ideal/ideal_internal.h"
#include "models/runtimes/shared/work.h"

void
ideal_launch_kernel(Ideal *ideal, ZpKind kind, ZpTime duration_ps, double flops, const char *rule)
{
    ZpTapeWork work = zp_work_kernel(kind, duration_ps, flops, zp_tape_add_rule(ideal->tape, rule));
    zp_tape_launch(ideal->tape, IDEAL_COMPUTE, zp_tape_add_work(ideal->tape, &work));
}

void
ideal_launch_collective(Ideal *ideal, guint8 stream, ZpKind kind, gint64 bytes, int group)
{
    const ZpTapeGroup *ranks = &ideal->tape->groups[group];
    if (ranks->size == 1 || bytes == 0)
        return;
    ZpCost cost = zp_cost_collective(&ideal->job->network, kind, bytes, ranks->size, ranks->stride);
    ZpTapeWork work =
        zp_work_collective(kind, bytes, &cost, group, zp_tape_add_rule(ideal->tape, cost.rule));
    zp_communicators_launch(&ideal->communicators, ideal->tape, stream,
                            zp_tape_add_work(ideal->tape, &work));
}
