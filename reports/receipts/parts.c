#include "reports/receipts/json.h"

#include "reports/text/words.h"

void
zp_receipt_text(JsonBuilder *json, const char *key, const char *text)
{
    json_builder_set_member_name(json, key);
    if (text != NULL)
        json_builder_add_string_value(json, text);
    else
        json_builder_add_null_value(json);
}

void
zp_receipt_int(JsonBuilder *json, const char *key, gint64 value)
{
    json_builder_set_member_name(json, key);
    json_builder_add_int_value(json, value);
}

void
zp_receipt_double(JsonBuilder *json, const char *key, double value)
{
    json_builder_set_member_name(json, key);
    json_builder_add_double_value(json, value);
}

void
zp_receipt_bool(JsonBuilder *json, const char *key, gboolean value)
{
    json_builder_set_member_name(json, key);
    json_builder_add_boolean_value(json, value);
}

void
zp_receipt_verdict(JsonBuilder *json, const ZpStepSummary *summary)
{
    gboolean known = summary->verdict != ZP_VERDICT_NONE;
    zp_receipt_text(json, "verdict", known ? zp_verdict_name(summary->verdict) : NULL);
    if (known)
        zp_receipt_bool(json, "fits", summary->fits);
    else
        zp_receipt_text(json, "fits", NULL);
}

void
zp_receipt_object(JsonBuilder *json, const char *key)
{
    json_builder_set_member_name(json, key);
    json_builder_begin_object(json);
}

void
zp_receipt_array(JsonBuilder *json, const char *key)
{
    json_builder_set_member_name(json, key);
    json_builder_begin_array(json);
}

static void
job(JsonBuilder *json, const ZpReportRun *run)
{
    zp_receipt_object(json, "job");
    zp_receipt_text(json, "runtime", run->job->runtime);
    zp_receipt_text(json, "model", run->job->model->name);
    zp_receipt_int(json, "parameter_elements", run->job->model->n_elements);
    zp_receipt_int(json, "stage", run->job->zero.stage);
    zp_receipt_int(json, "ranks", run->job->world.ranks);
    zp_receipt_int(json, "shard_group", run->job->world.shard_group);
    const ZpParallel *parallel = &run->job->world.parallel;
    zp_receipt_int(json, "tensor_parallel", MAX(1, parallel->tensor));
    zp_receipt_bool(json, "sequence_parallel", parallel->sequence != FALSE);
    zp_receipt_int(json, "context_parallel", MAX(1, parallel->context));
    zp_receipt_int(json, "pipeline_stages", MAX(1, parallel->pipeline));
    zp_receipt_int(json, "units", run->units->n_units);
    json_builder_end_object(json);
}

void
zp_receipt_head(JsonBuilder *json, const ZpReportRun *run, const char *schema)
{
    json_builder_begin_object(json);
    zp_receipt_text(json, "schema", schema);
    zp_receipt_text(json, "zeropeak", ZP_VERSION);
    zp_receipt_text(json, "name", run->name);
    zp_receipt_text(json, "source", run->source);
    zp_receipt_array(json, "inputs");
    for (gsize i = 0; i < run->n_inputs; i++) {
        const ZpReportInput *input = &run->inputs[i];
        json_builder_begin_object(json);
        zp_receipt_text(json, "section", input->section);
        zp_receipt_text(json, "key", input->key);
        zp_receipt_text(json, "value", input->value);
        zp_receipt_text(json, "origin", input->origin);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    job(json, run);
}

static void
ledger_row(JsonBuilder *json, const ZpLedgerRow *row)
{
    json_builder_begin_object(json);
    zp_receipt_text(json, "name", row->name);
    zp_receipt_text(json, "class", zp_vocabulary_class_name(row->class_id));
    zp_receipt_text(json, "dtype", zp_dtype_name(row->dtype));
    zp_receipt_double(json, "bytes_per_element", row->bytes_per_element);
    zp_receipt_int(json, "copies", row->copies);
    zp_receipt_int(json, "owners", row->owners);
    zp_receipt_int(json, "elements", row->elements);
    zp_receipt_int(json, "padding_bytes", row->padding_bytes);
    zp_receipt_int(json, "persistent_bytes", row->persistent_bytes);
    zp_receipt_text(json, "evidence", row->evidence);
    json_builder_end_object(json);
}

void
zp_receipt_ledger(JsonBuilder *json, const ZpLedger *ledger)
{
    ZpWordsPart parts[ZP_WORDS_N_PARTS];
    zp_words_parts(ledger, parts);
    zp_receipt_object(json, "ledger");
    zp_receipt_array(json, "rows");
    for (int i = 0; i < ledger->n_rows; i++)
        ledger_row(json, &ledger->rows[i]);
    json_builder_end_array(json);
    zp_receipt_object(json, "bound");
    for (int i = 0; i < ZP_WORDS_N_PARTS; i++) {
        g_autofree char *key = g_strconcat(parts[i].name, "_bytes", NULL);
        zp_receipt_int(json, g_strdelimit(key, " ", '_'), parts[i].bytes);
    }
    json_builder_end_object(json);
    zp_receipt_int(json, "total_bytes", ledger->total_bytes);
    zp_receipt_int(json, "capacity_bytes", ledger->capacity_bytes);
    zp_receipt_int(json, "headroom_bytes", ledger->headroom_bytes);
    zp_receipt_bool(json, "fits", ledger->fits);
    json_builder_end_object(json);
}

char *
zp_receipt_finish(JsonBuilder *json)
{
    json_builder_end_object(json);
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    g_autofree char *text = json_to_string(root, TRUE);
    return g_strconcat(text, "\n", NULL);
}
