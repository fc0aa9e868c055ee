#include "reports/summary/parts_internal.h"
#include "reports/summary/summary.h"
#include "reports/text/format.h"

static void
name_part(const ZpStepPart *part, GString *cell)
{
    const char *kind = zp_vocabulary_kind_name(part->kind);
    switch (part->part) {
    case ZP_STEP_PART_COMPUTE:
        g_string_append(cell, part->kind == ZP_KIND_WAIT     ? "waiting for other stages"
                              : part->kind == ZP_KIND_MEMORY ? "casts and copies"
                                                             : kind);
        break;
    case ZP_STEP_PART_SLOWED:
        g_string_append(cell, "slowed by communication beside");
        break;
    case ZP_STEP_PART_WAITING:
        g_string_append_printf(cell, "waiting for %s", kind);
        break;
    case ZP_STEP_PART_HOST:
        g_string_append_printf(cell, "host: %s", kind);
        break;
    case ZP_STEP_PART_IDLE:
        g_string_append(cell, "nothing runs: launches, other ranks");
        break;
    }
}

void
zp_summary_parts(const ZpReportRun *run, gboolean color, GString *out)
{
    if (run->parts == NULL || run->parts->len == 0)
        return;
    ZpTime step_ps = run->summary->step_ps;
    g_autoptr(ZpTable) table = zp_table_new("lrr", 0);
    zp_table_header(table);
    zp_table_cell(table, "Where the step goes");
    zp_table_cell(table, "time");
    zp_table_cell(table, "share");
    for (guint p = 0; p < run->parts->len; p++) {
        const ZpStepPart *part = &g_array_index(run->parts, ZpStepPart, p);
        zp_table_row(table);
        name_part(part, zp_table_open_cell(table));
        zp_format_time(zp_table_open_cell(table), part->time_ps);
        zp_format_share(zp_table_open_cell(table), (double)part->time_ps, (double)step_ps);
    }
    zp_table_rule(table);
    zp_table_row(table);
    zp_table_cell(table, "the step");
    zp_format_time(zp_table_open_cell(table), step_ps);
    zp_format_share(zp_table_open_cell(table), (double)step_ps, (double)step_ps);
    g_string_append_c(out, '\n');
    zp_table_print(table, color, out);
}
