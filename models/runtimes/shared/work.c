#include "models/runtimes/shared/work.h"

ZpTapeWork
zp_work_kernel(ZpKind kind, ZpTime duration_ps, double flops, guint16 rule)
{
    return (ZpTapeWork){
        .solo_ps = duration_ps,
        .flops = flops,
        .kind = (gint16)kind,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COMPUTE,
        .rule = rule,
        .label = ZP_TAPE_NONE,
    };
}

ZpTapeWork
zp_work_collective(ZpKind kind, gint64 bytes, const ZpCost *cost, int group, guint16 rule)
{
    ZpTapeWork work = zp_work_copy(kind, bytes, cost, rule);
    work.group = (gint8)group;
    work.category = ZP_TAPE_COMMUNICATION;
    return work;
}

ZpTapeWork
zp_work_copy(ZpKind kind, gint64 bytes, const ZpCost *cost, guint16 rule)
{
    return (ZpTapeWork){
        .fixed_ps = cost->fixed_ps,
        .solo_ps = cost->solo_ps,
        .bytes = bytes,
        .wire_bytes = cost->wire_bytes,
        .kind = (gint16)kind,
        .link = (gint8)cost->link,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COPY,
        .rule = rule,
        .label = ZP_TAPE_NONE,
    };
}
