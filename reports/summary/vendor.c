#include "reports/summary/vendor.h"
#include "reports/summary/parts_internal.h"
#include "reports/text/format.h"

#define CLASS(id) (1u << ZP_CLASS_##id)

/* A part of the gap: tensor classes, and why the estimator differs there. */
typedef struct {
    const char *name;
    guint32 classes;
    const char *why;
} Part;

static const Part parts[] = {
    {"model states",
     CLASS(PARAMETER) | CLASS(GRADIENT) | CLASS(MASTER) | CLASS(MOMENTUM) | CLASS(VARIANCE),
     "padding; what lives at the peak"},
    {"gathered parameters", CLASS(GATHERED), "a layer in fp32; fetched ahead, kept"},
    {"buckets", CLASS(COMMUNICATION), "not in the estimator"},
    {"activations", CLASS(ACTIVATION), "not in the estimator"},
    {"logits", CLASS(LOGITS), "not in the estimator"},
    {"temporaries", CLASS(WORKSPACE) | CLASS(OPTIMIZER_TEMPORARY) | CLASS(CHECKPOINT),
     "not in the estimator"},
    {"overhead", CLASS(RUNTIME), "not in the estimator"},
};

static void
heads(ZpTable *table, const char *const *texts)
{
    zp_table_header(table);
    for (; *texts != NULL; texts++)
        zp_table_cell(table, *texts);
}

static void
choice_row(ZpTable *table, int stage, const ZpVendorQuestion *question, gboolean is_job)
{
    ZpVendorEstimate estimate = zp_vendor_estimate_stage(stage, question);
    zp_table_row(table);
    zp_table_cell(table, question->offload_param       ? "optimizer and parameters"
                         : question->offload_optimizer ? "optimizer"
                                                       : "none");
    zp_table_cell(table, stage < 3 ? "" : question->zero_init ? "yes" : "no");
    zp_summary_amount_cells(table, estimate.device_bytes);
    zp_summary_amount_cells(table, estimate.host_bytes);
    zp_table_cell(table, is_job ? "this job" : "");
}

/* As the vendor prints them: every choice at once. */
static void
choices(int stage, const ZpVendorQuestion *job, gboolean color, GString *out)
{
    static const char *const titles[] = {"Estimator: offload of", "zero.Init", "GPU GB", "GiB",
                                         "node's host GB",        "GiB",       "",       NULL};
    g_autoptr(ZpTable) table = zp_table_new("llrrrrl", 0);
    heads(table, titles);
    for (int offload = stage == 3 ? 2 : 1; offload >= 0; offload--) {
        for (int init = stage == 3 ? 1 : 0; init >= 0; init--) {
            ZpVendorQuestion question = *job;
            question.offload_optimizer = offload >= 1;
            question.offload_param = offload == 2;
            question.zero_init = init == 1;
            gboolean is_job = question.offload_optimizer == job->offload_optimizer &&
                              question.offload_param == job->offload_param &&
                              (stage < 3 || question.zero_init == (job->zero_init != FALSE));
            choice_row(table, stage, &question, is_job);
        }
    }
    zp_table_print(table, color, out);
}

static void
gap_row(ZpTable *table, const char *name, gint64 estimate, gint64 simulated, const char *why)
{
    zp_table_row(table);
    zp_table_cell(table, name);
    zp_format_gb(zp_table_open_cell(table), estimate);
    zp_format_gb(zp_table_open_cell(table), simulated);
    zp_format_gb(zp_table_open_cell(table), simulated - estimate);
    zp_format_gib(zp_table_open_cell(table), simulated - estimate);
    zp_table_cell(table, why);
}

static void
gap(const ZpStepSummary *summary, const ZpVendorEstimate *estimate, gboolean color, GString *out)
{
    static const char *const titles[] = {
        "Device, GB", "estimate", "simulated peak", "gap", "gap GiB", "why", NULL};
    g_autoptr(ZpTable) table = zp_table_new("lrrrrl", 0);
    heads(table, titles);
    gint64 sum = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        gint64 simulated = 0, estimated = 0;
        for (int c = 0; c < ZP_N_CLASSES; c++)
            if (parts[i].classes & (1u << c))
                simulated += summary->peak_by_class[c];
        if (i == 0)
            estimated = estimate->device_bytes - estimate->largest_layer_bytes;
        else if (parts[i].classes == CLASS(GATHERED))
            estimated = estimate->largest_layer_bytes;
        sum += simulated;
        gap_row(table, parts[i].name, estimated, simulated, parts[i].why);
    }
    g_assert(sum == summary->peak_bytes);
    zp_table_rule(table);
    gap_row(table, "total", estimate->device_bytes, summary->peak_bytes, "");
    zp_table_print(table, color, out);
}

void
zp_summary_vendor(const ZpReportRun *run, const ZpVendorQuestion *question, gboolean color,
                  GString *out)
{
    int stage = run->job->zero.stage;
    ZpVendorEstimate estimate = zp_vendor_estimate_stage(stage, question);
    zp_summary_head(run, color, out);
    g_string_append_printf(out, "DeepSpeed 0.19, estimate_zero%d_model_states_mem_needs\n  ",
                           stage);
    zp_format_count(out, question->total_elements);
    g_string_append(out, " parameters");
    if (stage == 3) {
        g_string_append(out, ", largest layer ");
        zp_format_count(out, question->largest_layer_elements);
    }
    g_string_append_printf(out, ", %d x %d GPUs\n\n", question->nodes, question->gpus_per_node);
    choices(stage, question, color, out);
    g_string_append_c(out, '\n');
    gap(run->summary, &estimate, color, out);
    gint64 ranks_host = run->summary->host_peak_bytes * question->gpus_per_node;
    g_string_append(out, "\nHost of a node: in a step ");
    zp_format_bytes(out, ranks_host);
    g_string_append(out, ", estimate ");
    zp_format_bytes(out, estimate.host_bytes);
    g_string_append(out, "\n  (1.5 x, for the larger of building the model and training it)\n");
}
