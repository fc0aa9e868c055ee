#include "models/published/validate.h"

#include <math.h>
#include <string.h>

#include "models/parallel/parallel.h"
#include "models/prices/layer.h"
#include "models/published/figures_internal.h"
#include "models/published/job_internal.h"
#include "models/step/step.h"

static void
free_row(gpointer data)
{
    ZpValidateRow *row = data;
    g_free(row->id);
    g_free(row->subset);
    g_free(row->gpu);
    g_free(row->family);
    g_free(row->model);
    g_free(row->key);
    g_free(row->strategy);
    g_free(row->reason);
    g_array_unref(row->memory);
    g_free(row);
}

void
zp_validation_free(ZpValidation *validation)
{
    if (validation == NULL)
        return;
    g_ptr_array_unref(validation->rows);
    g_free(validation);
}

/* What most of a step goes to.  Computation is judged by its longest layer pass. */
static const char *
dominant_rule(const ZpValidateJob *job, const ZpStepSummary *summary)
{
    double exposed = (double)summary->exposed_ps / (double)MAX(1, summary->step_ps);
    if (exposed > 0.3) {
        const ZpWorld *world = &job->job.world;
        return zp_cost_collective(&job->job.network, ZP_KIND_ALL_GATHER, 1 << 28,
                                  job->job.zero.stage == 0 ? world->ranks : world->shard_group, 1)
            .rule;
    }
    ZpCostParts sum = {0};
    for (guint l = 0; l < job->model->layers->len; l++) {
        ZpCostParts parts =
            zp_cost_layer_parts(&job->job, zp_model_layer(job->model, (gint32)l), ZP_KIND_BACKWARD);
        sum.products += parts.products;
        sum.attention += parts.attention;
        sum.elementwise += parts.elementwise;
        sum.host += MAX(0.0, parts.host - parts.products - parts.attention - parts.elementwise);
    }
    if (sum.host > MAX(sum.products, sum.attention))
        return "launches of the host";
    if (sum.elementwise > MAX(sum.products, sum.attention))
        return "elementwise kernels by bytes";
    return sum.attention > sum.products ? "attention by sequence and head size"
                                        : "matrix products by shape";
}

/* A card filled to this share makes the caching allocator flush and retry: OpenTau measured steps
 * 12 to 41 % longer there. */
#define CROWDED_SHARE 0.85
#define WRONG 0.1

/* Why a row may be wrong, where something is known; its error stays as it is. */
static char *
known_reason(const ZpValidateCsv *csv, guint record, const ZpValidateJob *job,
             const ZpStepSummary *summary, double error)
{
    if (fabs(error) < WRONG)
        return NULL;
    if (strstr(zp_validate_csv_get(csv, record, "notes"), "data loader") != NULL)
        return g_strdup("the source suspects its data loader");
    if (g_str_has_prefix(job->calibration->gpu, "V100"))
        return g_strdup("this GPU's constants are assumed, not measured");
    double share = (double)summary->peak_bytes / (double)job->memory_bytes;
    if (error < 0.0 && share > CROWDED_SHARE && share < 1.0)
        return g_strdup_printf(
            "memory %.0f %% allocated: the allocator's retries take time that is "
            "not modelled",
            100.0 * share);
    return NULL;
}

/* A step of its own for each row: a workspace remembers the units of a model by its address. */
static void
simulate(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware,
         const ZpCalibration *own, ZpValidateRow *row)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpValidateJob) job = zp_validate_job_new(csv, record, hardware, own, &error);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    if (job == NULL || !zp_step_simulate(step, &job->job, NULL, NULL, &summary, &error)) {
        row->reason = g_strdup(error->message);
        return;
    }
    row->accumulation = job->job.training.accumulation;
    const ZpParallel *parallel = &job->job.world.parallel;
    row->cut = (gint64)zp_parallel_tensor(parallel) * zp_parallel_context(parallel) *
               zp_parallel_pipeline(parallel);
    row->simulated_ms = zp_time_to_seconds(summary.step_ps) * 1e3;
    row->error = row->simulated_ms / row->measured_ms - 1.0;
    row->exposed = (double)summary.exposed_ps / (double)MAX(1, summary.step_ps);
    row->grade = job->calibration->grade;
    row->ideal = strcmp(job->job.runtime, "ideal") == 0;
    row->rule = dominant_rule(job, &summary);
    row->reason = known_reason(csv, record, job, &summary, row->error);
}

/* The part of an id before its number; "" where it does not end in one. */
static char *
family_of(const char *id)
{
    gsize end = strlen(id), digits = 0;
    while (digits < end && g_ascii_isdigit(id[end - digits - 1]))
        digits++;
    if (digits == 0)
        return g_strdup("");
    end -= digits;
    if (end > 0 && strchr("-_", id[end - 1]) != NULL)
        end--;
    return g_strndup(id, end);
}

static ZpValidateRow *
new_row(const ZpValidateCsv *csv, guint r)
{
    ZpValidateRow *row = g_new0(ZpValidateRow, 1);
    row->id = g_strdup(zp_validate_csv_get(csv, r, "id"));
    row->subset = g_strdup(zp_validate_csv_get(csv, r, "subset"));
    row->gpu = g_strdup(zp_validate_csv_get(csv, r, "gpu"));
    row->model = g_strdup(zp_validate_csv_get(csv, r, "model_name"));
    row->strategy = g_strdup(zp_validate_csv_get(csv, r, "strategy"));
    row->family = family_of(row->id);
    row->key =
        g_strjoin("|", row->family, row->model, row->gpu, zp_validate_csv_get(csv, r, "seq_len"),
                  zp_validate_csv_get(csv, r, "activation_ckpt"), NULL);
    row->ranks = (gint64)zp_validate_csv_number(csv, r, "n_gpus", 0.0);
    row->micro_batch = (gint64)zp_validate_csv_number(csv, r, "micro_batch", 0.0);
    row->line = g_array_index(csv->lines, gint, r);
    row->measured_ms = zp_validate_csv_number(
        csv, r, "step_ms", zp_validate_csv_number(csv, r, "step_ms_derived", 0.0));
    row->memory = zp_validate_memory_array();
    row->null_error = NAN;
    row->rule = "";
    return row;
}

/* Memory figures that the row states, or that it went out of memory. */
static void
remember(const ZpValidateCsv *csv, guint record, const ZpHardware *hardware, ZpValidateRow *row)
{
    gboolean stated = zp_validate_csv_number(csv, record, "peak_alloc_gib", 0.0) > 0.0 ||
                      zp_validate_csv_number(csv, record, "peak_reserved_gib", 0.0) > 0.0 ||
                      strcmp(zp_validate_csv_get(csv, record, "oom"), "y") == 0;
    if (!stated)
        return;
    zp_validate_memory_row(csv, record, hardware, row->memory);
    for (guint i = 0; i < row->memory->len; i++) { /* the table goes, the row stays */
        ZpValidateMemory *memory = &g_array_index(row->memory, ZpValidateMemory, i);
        memory->id = row->id;
        memory->subset = row->subset;
        memory->name = row->model;
    }
}

static gboolean
wanted(const char *subsets, const char *subset)
{
    if (subsets == NULL)
        return TRUE;
    g_auto(GStrv) words = g_strsplit(subsets, " ", -1);
    return g_strv_contains((const char *const *)words, subset);
}

/* Hardware FLOPs of a step per GPU as the null model counts them; 0: not one of its rows. */
static double
null_flops(const ZpValidateCsv *csv, guint r, const ZpValidateRow *row)
{
    double n = zp_validate_csv_number(csv, r, "n_params", 0.0);
    double layers = zp_validate_csv_number(csv, r, "n_layers", 0.0);
    double hidden = zp_validate_csv_number(csv, r, "d_model", 0.0);
    double sequence = zp_validate_csv_number(csv, r, "seq_len", 0.0);
    double tokens = (double)(row->micro_batch * row->accumulation) * sequence;
    const char *policy = zp_validate_csv_get(csv, r, "activation_ckpt");
    gboolean full = strcmp(policy, "full") == 0;
    if (n <= 0.0 || layers <= 0.0 || (!full && strcmp(policy, "none") != 0) ||
        g_str_has_prefix(zp_validate_csv_get(csv, r, "cpu_offload"), "y"))
        return 0.0;
    return (6.0 * n + 12.0 * layers * hidden * sequence) * tokens * (full ? 4.0 / 3.0 : 1.0) /
           (double)row->cut;
}

typedef struct {
    double flops;
    char *class_name; /* first four letters of the GPU and the checkpointing policy */
} Null;

static void
fill_null_errors(ZpValidation *validation, const Null *nulls)
{
    for (guint i = 0; i < validation->rows->len; i++) {
        ZpValidateRow *row = g_ptr_array_index(validation->rows, i);
        if (nulls[i].flops <= 0.0)
            continue;
        g_autoptr(GArray) rates = g_array_new(FALSE, FALSE, sizeof(double));
        for (guint j = 0; j < validation->rows->len; j++) {
            const ZpValidateRow *other = g_ptr_array_index(validation->rows, j);
            double rate = nulls[j].flops / other->measured_ms;
            if (nulls[j].flops > 0.0 && strcmp(other->subset, "time_val") == 0 &&
                g_strcmp0(nulls[i].class_name, nulls[j].class_name) == 0)
                g_array_append_val(rates, rate);
        }
        row->null_error =
            nulls[i].flops / zp_validate_figures_median(rates) / row->measured_ms - 1.0;
    }
}

/* Nothing to say is no answer: the table is empty, or a subset is spelt wrongly. */
static void
refuse_empty(const ZpValidateCsv *csv, const char *subsets, GError **error)
{
    if (csv->records->len == 0) {
        g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                            "the table has no rows below its header");
        return;
    }
    g_autoptr(GString) there = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint r = 0; r < csv->records->len; r++) {
        const char *subset = zp_validate_csv_get(csv, r, "subset");
        if (*subset != '\0' && g_hash_table_add(seen, (gpointer)subset))
            g_string_append_printf(there, "%s%s", there->len > 0 ? ", " : "", subset);
    }
    g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                "none of the %u rows is of subset %s; there %s %s", csv->records->len, subsets,
                there->len > 0 ? "are" : "is none", there->str);
}

ZpValidation *
zp_validate_run(const char *text, const ZpCalibration *own, const char *subsets, GError **error)
{
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, error);
    if (csv == NULL)
        return NULL;
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    g_autoptr(ZpValidation) validation = g_new0(ZpValidation, 1);
    validation->rows = g_ptr_array_new_with_free_func(free_row);
    g_autofree Null *nulls = g_new0(Null, csv->records->len + 1);
    for (guint r = 0; r < csv->records->len; r++) {
        ZpValidateRow *row = new_row(csv, r);
        if (!wanted(subsets, row->subset)) {
            free_row(row);
            continue;
        }
        if (row->measured_ms > 0.0)
            simulate(csv, r, hardware, own, row);
        else
            row->reason = g_strdup("no step time is printed or follows from what is");
        remember(csv, r, hardware, row);
        Null *null = &nulls[validation->rows->len];
        if (row->simulated_ms > 0.0)
            null->flops = null_flops(csv, r, row);
        g_autofree char *head = g_strndup(row->gpu, 4);
        g_autofree char *name =
            g_strconcat(head, zp_validate_csv_get(csv, r, "activation_ckpt"), NULL);
        null->class_name = (char *)g_intern_string(name);
        g_ptr_array_add(validation->rows, row);
    }
    if (validation->rows->len == 0) {
        refuse_empty(csv, subsets, error);
        return NULL;
    }
    fill_null_errors(validation, nulls);
    return g_steal_pointer(&validation);
}
