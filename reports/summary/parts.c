#include "reports/summary/parts_internal.h"

#include "reports/text/format.h"

/* Parameters above are those of one GPU, ranks are those that hold the same ones. */
static void
append_cuts(const ZpJob *job, GString *out)
{
    const ZpParallel *parallel = &job->world.parallel;
    gint64 gpus = (gint64)job->world.ranks * MAX(1, parallel->tensor) * MAX(1, parallel->pipeline);
    const struct {
        const char *name;
        gint32 count;
    } cuts[] = {{"tensor", parallel->tensor},
                {"context", parallel->context},
                {"pipeline", parallel->pipeline}};
    g_autofree char *first = g_strdup_printf(" of %" G_GINT64_FORMAT " GPUs; cut ", gpus);
    const char *before = first;
    for (gsize c = 0; c < G_N_ELEMENTS(cuts); c++) {
        if (cuts[c].count <= 1)
            continue;
        g_string_append_printf(out, "%s%s x %d%s", before, cuts[c].name, cuts[c].count,
                               c == 0 && parallel->sequence ? " with sequence" : "");
        before = ", ";
    }
}

static void
append_training(const ZpJob *job, GString *out)
{
    static const char *const policies[] = {"no checkpointing", "selective checkpointing",
                                           "full checkpointing"};
    const ZpTraining *training = &job->training;
    g_string_append_printf(out,
                           "micro-batch %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT
                           " tokens x %" G_GINT64_FORMAT ", %s",
                           training->micro_batch, training->sequence, training->accumulation,
                           policies[training->checkpointing]);
}

static void
append_machine(const ZpReportRun *run, GString *out)
{
    const ZpJob *job = run->job;
    g_string_append_printf(out, "%d rank%s", job->world.ranks, job->world.ranks == 1 ? "" : "s");
    if (job->world.shard_group != job->world.ranks)
        g_string_append_printf(out, ", shard groups of %d", job->world.shard_group);
    append_cuts(job, out);
    if (job->device.name != NULL)
        g_string_append_printf(
            out, "; %s (%s)", job->device.name,
            zp_grade_name(run->summary != NULL ? run->summary->grade : ZP_GRADE_ASSUMED));
    if (job->network.node != NULL)
        g_string_append_printf(out, ", %s of %d", job->network.node, job->network.gpus_per_node);
}

void
zp_summary_head(const ZpReportRun *run, gboolean color, GString *out)
{
    const ZpJob *job = run->job;
    g_string_append_printf(out, "%s%s%s", color ? "\033[1m" : "", run->name,
                           color ? "\033[0m" : "");
    if (run->source != NULL)
        g_string_append_printf(out, "  (%s)", run->source);
    g_string_append_printf(out, "\n%s, ", job->model->name);
    zp_format_count(out, job->model->n_elements);
    g_string_append_printf(out, " parameters in %d units; runtime %s, stage %d, %s\n",
                           run->units->n_units, job->runtime, job->zero.stage,
                           zp_dtype_name(job->precision.gathered));
    append_machine(run, out);
    g_string_append(out, "\n");
    append_training(job, out);
    g_string_append(out, "\n\n");
}

static void
amount(ZpTable *table, gint64 bytes, double unit)
{
    GString *cell = zp_table_open_cell(table);
    if (bytes == 0)
        g_string_append_c(cell, '0');
    else
        zp_format_double(cell, (double)bytes / unit, 3);
}

void
zp_summary_amount_cells(ZpTable *table, gint64 bytes)
{
    amount(table, bytes, 1e9);
    amount(table, bytes, 1073741824.0);
}

void
zp_summary_bytes_cells(ZpTable *table, gint64 bytes, gint64 whole)
{
    zp_summary_amount_cells(table, bytes);
    zp_format_share(zp_table_open_cell(table), (double)bytes, (double)whole);
}

static void
append_both(GString *out, gint64 bytes)
{
    zp_format_gb(out, bytes);
    g_string_append(out, " GB (");
    zp_format_gib(out, bytes);
    g_string_append(out, " GiB)");
}

void
zp_summary_verdict(const ZpSummaryVerdict *what, gboolean color, GString *out)
{
    static const char *const colors[ZP_N_VERDICTS] = {"", "\033[32m", "\033[33m", "\033[31m"};
    if (what->verdict == ZP_VERDICT_NONE) {
        g_string_append(out, "No verdict: no capacity given\n");
        return;
    }
    g_string_append_printf(out, "Verdict: %s%s%s, ", color ? colors[what->verdict] : "",
                           zp_verdict_name(what->verdict), color ? "\033[0m" : "");
    append_both(out, ABS(what->headroom_bytes));
    g_string_append(out, what->headroom_bytes >= 0 ? " to spare of " : " too much for ");
    append_both(out, what->capacity_bytes);
    if (what->contingency_bytes > 0) {
        g_string_append(out, "\n         after a contingency of ");
        append_both(out, what->contingency_bytes);
    }
    if (what->high_bytes > 0) {
        g_string_append(out, "\n         needed are, with 90 %, ");
        zp_format_bytes(out, what->low_bytes);
        g_string_append(out, " to ");
        zp_format_bytes(out, what->high_bytes);
    }
    if (what->n_flushes > 0)
        g_string_append_printf(
            out, "\n         the allocator had to empty its cache %" G_GINT64_FORMAT " times",
            what->n_flushes);
    g_string_append_c(out, '\n');
}
