#include <math.h>

#include "reports/receipts/json.h"
#include "reports/receipts/receipt.h"

static void
known(JsonBuilder *json, const char *key, double value, gboolean is_known)
{
    if (is_known && isfinite(value)) {
        zp_receipt_double(json, key, value);
        return;
    }
    json_builder_set_member_name(json, key);
    json_builder_add_null_value(json);
}

static void
add_memory(JsonBuilder *json, const ZpValidateMemory *memory)
{
    gboolean simulated = memory->reason == NULL, verdict = memory->figure == ZP_VALIDATE_FITS;
    json_builder_begin_object(json);
    zp_receipt_text(json, "figure", zp_validate_figure_name(memory->figure));
    known(json, "measured_mib", memory->measured_mib, !verdict);
    known(json, "simulated_mib", memory->simulated_mib, simulated);
    known(json, "error", simulated ? zp_validate_memory_error(memory) : 0.0, simulated);
    zp_receipt_bool(json, "measured_fits", memory->measured_fits);
    if (simulated)
        zp_receipt_bool(json, "simulated_fits", memory->simulated_fits);
    zp_receipt_text(json, "reason", memory->reason);
    json_builder_end_object(json);
}

static void
add_row(JsonBuilder *json, const ZpValidateRow *row)
{
    gboolean simulated = row->simulated_ms > 0.0;
    json_builder_begin_object(json);
    zp_receipt_text(json, "id", row->id);
    zp_receipt_text(json, "subset", row->subset);
    zp_receipt_text(json, "gpu", row->gpu);
    zp_receipt_text(json, "family", row->family);
    zp_receipt_text(json, "model", row->model);
    zp_receipt_text(json, "strategy", row->strategy);
    zp_receipt_int(json, "ranks", row->ranks);
    zp_receipt_int(json, "micro_batch", row->micro_batch);
    if (simulated)
        zp_receipt_int(json, "cut", row->cut);
    known(json, "measured_ms", row->measured_ms, row->measured_ms > 0.0);
    known(json, "simulated_ms", row->simulated_ms, simulated);
    known(json, "error", row->error, simulated);
    known(json, "null_error", row->null_error, simulated);
    known(json, "exposed", row->exposed, simulated);
    zp_receipt_text(json, "rule", simulated ? row->rule : NULL);
    zp_receipt_text(json, "reason", row->reason);
    zp_receipt_array(json, "memory");
    for (guint m = 0; m < row->memory->len; m++)
        add_memory(json, &g_array_index(row->memory, ZpValidateMemory, m));
    json_builder_end_array(json);
    json_builder_end_object(json);
}

static void
add_figures(JsonBuilder *json, const char *key, const ZpValidateFigures *figures)
{
    zp_receipt_object(json, key);
    zp_receipt_int(json, "rows", figures->n);
    known(json, "mean", figures->mean, figures->n > 0);
    known(json, "median", figures->median, figures->n > 0);
    known(json, "p90", figures->p90, figures->n > 0);
    known(json, "max", figures->max, figures->n > 0);
    known(json, "bias", figures->bias, figures->n > 0);
    json_builder_end_object(json);
}

static void
add_subset(JsonBuilder *json, const ZpValidation *validation, const char *subset)
{
    json_builder_begin_object(json);
    zp_receipt_text(json, "subset", subset);
    ZpValidateFigures figures = zp_validate_figures(validation, subset, NULL, NULL, FALSE);
    add_figures(json, "time", &figures);
    figures = zp_validate_figures(validation, subset, NULL, NULL, TRUE);
    add_figures(json, "null_model", &figures);
    figures = zp_validate_ratios(validation, subset, FALSE);
    add_figures(json, "ratios", &figures);
    zp_receipt_object(json, "memory");
    for (int f = 0; f < ZP_N_VALIDATE_FIGURES; f++) {
        figures = zp_validate_memory_figures(validation, subset, (ZpValidateFigure)f);
        if (figures.n > 0)
            add_figures(json, zp_validate_figure_name((ZpValidateFigure)f), &figures);
    }
    json_builder_end_object(json);
    json_builder_end_object(json);
}

char *
zp_receipt_validation_json(const ZpValidation *validation)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_autoptr(GPtrArray) subsets = g_ptr_array_new();
    json_builder_begin_object(json);
    zp_receipt_text(json, "schema", "zeropeak-validation/1");
    zp_receipt_text(json, "zeropeak", ZP_VERSION);
    zp_receipt_array(json, "rows");
    for (guint i = 0; i < validation->rows->len; i++) {
        const ZpValidateRow *row = g_ptr_array_index(validation->rows, i);
        add_row(json, row);
        if (!g_ptr_array_find_with_equal_func(subsets, row->subset, g_str_equal, NULL))
            g_ptr_array_add(subsets, row->subset);
    }
    json_builder_end_array(json);
    zp_receipt_array(json, "subsets");
    for (guint s = 0; s < subsets->len; s++)
        add_subset(json, validation, g_ptr_array_index(subsets, s));
    json_builder_end_array(json);
    return zp_receipt_finish(json);
}
