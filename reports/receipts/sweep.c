#include "reports/receipts/json.h"
#include "reports/receipts/receipt.h"
#include "reports/text/merit.h"

static void
add_json_point(JsonBuilder *builder, const ZpReportSweep *sweep, const ZpReportPoint *point,
               gboolean front, gboolean knee)
{
    json_builder_begin_object(builder);
    zp_receipt_array(builder, "values");
    for (gsize a = 0; a < sweep->n_axes; a++)
        json_builder_add_string_value(builder, point->values[a]);
    json_builder_end_array(builder);
    if (point->summary == NULL) {
        zp_receipt_text(builder, "error", point->error);
        json_builder_end_object(builder);
        return;
    }
    const struct {
        const char *name;
        gint64 value;
    } numbers[] = {
        {"step_ps", point->summary->step_ps},
        {"step_low_ps", point->summary->step_low_ps},
        {"step_high_ps", point->summary->step_high_ps},
        {"needed_low_bytes", point->summary->needed_low_bytes},
        {"needed_high_bytes", point->summary->needed_high_bytes},
        {"exposed_ps", point->summary->exposed_ps},
        {"tokens_per_rank", point->summary->tokens_per_rank},
        {"peak_bytes", point->summary->peak_bytes},
        {"persistent_bytes", point->summary->persistent_bytes},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        zp_receipt_int(builder, numbers[i].name, numbers[i].value);
    zp_receipt_verdict(builder, point->summary);
    zp_receipt_bool(builder, "front", front);
    zp_receipt_bool(builder, "knee", knee);
    json_builder_end_object(builder);
}

char *
zp_receipt_sweep_json(const ZpReportSweep *sweep, const ZpReportPoint *points, gsize n_points)
{
    gboolean per_token;
    g_autofree ZpParetoPoint *merits = zp_merit_points(points, n_points, &per_token);
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(merits, n_points, &pareto);
    g_autofree gboolean *on_front = g_new0(gboolean, n_points + 1);
    for (gsize i = 0; i < pareto.n_front; i++)
        on_front[pareto.front[i]] = TRUE;
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    zp_receipt_text(builder, "schema", "zeropeak-sweep/1");
    zp_receipt_text(builder, "zeropeak", ZP_VERSION);
    zp_receipt_text(builder, "name", sweep->name);
    zp_receipt_text(builder, "source", sweep->source);
    zp_receipt_array(builder, "axes");
    for (gsize a = 0; a < sweep->n_axes; a++)
        json_builder_add_string_value(builder, sweep->axes[a]);
    json_builder_end_array(builder);
    zp_receipt_array(builder, "points");
    for (gsize i = 0; i < n_points; i++)
        add_json_point(builder, sweep, &points[i], on_front[i], (gint32)i == pareto.knee);
    json_builder_end_array(builder);
    return zp_receipt_finish(builder);
}
