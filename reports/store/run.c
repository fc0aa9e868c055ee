#include "models/step/prices.h"
#include "reports/store/sql.h"
#include "reports/text/event.h"
#include "reports/text/words.h"

gboolean
zp_store_write_inputs(ZpStore *store, const char *table, gint64 owner, const ZpReportInput *inputs,
                      gsize n_inputs, GError **error)
{
    g_autofree char *sql = g_strdup_printf("INSERT INTO %s VALUES (?, ?, ?, ?, ?, ?)", table);
    g_autoptr(ZpStatement) insert = zp_store_prepare(store, sql, error);
    if (insert == NULL)
        return FALSE;
    for (gsize i = 0; i < n_inputs; i++) {
        const ZpReportInput *input = &inputs[i];
        if (!zp_store_insert(store, insert, error, ZP_INT(owner), ZP_INT(i),
                             ZP_TEXT(input->section), ZP_TEXT(input->key), ZP_TEXT(input->value),
                             ZP_TEXT(input->origin)))
            return FALSE;
    }
    return TRUE;
}

/* The row of `run` itself; returns its id or -1. */
static gint64
write_run(ZpStore *store, const ZpReportRun *run, GError **error)
{
    const ZpStepSummary *s = run->summary;
    const ZpJob *job = run->job;
    ZpAllocatorBytes allocator = s->has_allocator ? s->allocator.peak : (ZpAllocatorBytes){0};
    ZpEvent event = {0};
    if (s->peak_instr != ZP_TAPE_NONE)
        zp_event_fill(run->tape, s->peak_instr, &event);
    g_autofree char *text = zp_event_text(run->tape, s->peak_instr);
    g_autoptr(ZpStatement) insert = zp_store_prepare(
        store,
        "INSERT INTO run (name, version, source, runtime, model, parameter_elements, stage, ranks,"
        " shard_group, step_ps, step_low_ps, step_high_ps, grade, exposed_ps, host_blocked_ps, "
        "tokens_per_step, model_flops, mfu,"
        " peak_bytes, peak_ps, peak_rank, peak_event, peak_unit, peak_phase, persistent_bytes,"
        " host_peak_bytes, capacity_bytes, contingency_bytes, headroom_bytes, "
        "needed_low_bytes, needed_high_bytes, fits, "
        "verdict, allocated_bytes,"
        " active_bytes, reserved_bytes) VALUES"
        " (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        error);
    if (insert == NULL ||
        !zp_store_insert(
            store, insert, error, ZP_TEXT(run->name), ZP_TEXT(ZP_VERSION), ZP_TEXT(run->source),
            ZP_TEXT(job->runtime), ZP_TEXT(job->model->name), ZP_INT(job->model->n_elements),
            ZP_INT(job->zero.stage), ZP_INT(job->world.ranks), ZP_INT(job->world.shard_group),
            ZP_INT(s->step_ps), ZP_INT(s->step_low_ps), ZP_INT(s->step_high_ps),
            ZP_NAME(zp_grade_name(s->grade)), ZP_INT(s->exposed_ps), ZP_INT(s->host_blocked_ps),
            ZP_INT(s->tokens_per_step), ZP_REAL(s->model_flops), ZP_REAL(s->mfu),
            ZP_INT(s->peak_bytes), ZP_INT(s->peak_time), ZP_INT(s->peak_rank), ZP_TEXT(text),
            ZP_NAME(event.unit), ZP_NAME(event.phase), ZP_INT(s->persistent_bytes),
            ZP_INT(s->host_peak_bytes), ZP_INT(s->capacity_bytes), ZP_INT(s->contingency_bytes),
            ZP_INT(s->headroom_bytes), ZP_INT(s->needed_low_bytes), ZP_INT(s->needed_high_bytes),
            ZP_FLAG_UNLESS(s->verdict == ZP_VERDICT_NONE, s->fits),
            ZP_NAME(s->verdict == ZP_VERDICT_NONE ? NULL : zp_verdict_name(s->verdict)),
            ZP_ID(allocator.allocated_bytes), ZP_ID(allocator.active_bytes),
            ZP_ID(allocator.reserved_bytes)))
        return -1;
    return sqlite3_last_insert_rowid(store->db);
}

static gboolean
write_units(ZpStore *store, gint64 run, const ZpUnits *units, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO unit VALUES (?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (gint32 i = 0; i < units->n_units; i++) {
        const ZpUnit *unit = &units->units[i];
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i), ZP_NAME(unit->name),
                             ZP_INT(unit->elements), ZP_INT(unit->trainable_elements),
                             ZP_INT(unit->first_layer), ZP_INT(unit->last_layer)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_classes(ZpStore *store, gint64 run, const char *table, const gint64 *bytes, GError **error)
{
    g_autofree char *sql = g_strdup_printf("INSERT INTO %s VALUES (?, ?, ?)", table);
    g_autoptr(ZpStatement) insert = zp_store_prepare(store, sql, error);
    if (insert == NULL)
        return FALSE;
    for (int c = 0; c < ZP_N_CLASSES; c++) {
        if (bytes[c] == 0)
            continue;
        if (!zp_store_insert(store, insert, error, ZP_INT(run),
                             ZP_NAME(zp_vocabulary_class_name((ZpClass)c)), ZP_INT(bytes[c])))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_live_set(ZpStore *store, gint64 run, const ZpTape *tape, const GArray *live, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO live_buffer VALUES (?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (guint i = 0; live != NULL && i < live->len; i++) {
        const ZpPlayLive *entry = &g_array_index(live, ZpPlayLive, i);
        const ZpTapeBuffer *buffer = &tape->buffers[entry->buffer];
        const char *unit_name = buffer->unit == ZP_TAPE_NONE
                                    ? NULL
                                    : g_ptr_array_index(tape->unit_names, (guint)buffer->unit);
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i),
                             ZP_NAME(tape->vocabulary->classes[entry->class_id]),
                             ZP_NAME(tape->vocabulary->roles[buffer->role]), ZP_NAME(unit_name),
                             ZP_INT(buffer->bytes)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_ledger_rows(ZpStore *store, gint64 run, const ZpLedger *ledger, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO ledger VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (int i = 0; i < ledger->n_rows; i++) {
        const ZpLedgerRow *row = &ledger->rows[i];
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i),
                             ZP_NAME(zp_vocabulary_class_name(row->class_id)), ZP_NAME(row->name),
                             ZP_NAME(zp_dtype_name(row->dtype)), ZP_REAL(row->bytes_per_element),
                             ZP_INT(row->copies), ZP_INT(row->owners), ZP_INT(row->elements),
                             ZP_INT(row->padding_bytes), ZP_INT(row->persistent_bytes),
                             ZP_NAME(row->evidence)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_ledger_bounds(ZpStore *store, gint64 run, const ZpLedger *ledger, GError **error)
{
    ZpWordsPart parts[ZP_WORDS_N_PARTS];
    zp_words_parts(ledger, parts);
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO ledger_bound VALUES (?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (gint64 i = 0; i < ZP_WORDS_N_PARTS; i++) {
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i), ZP_NAME(parts[i].name),
                             ZP_INT(parts[i].bytes)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_traffic(ZpStore *store, gint64 run, const ZpStepSummary *summary, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO traffic VALUES (?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (int i = 0; i < summary->n_traffic; i++) {
        const ZpStepTraffic *t = &summary->traffic[i];
        if (!zp_store_insert(store, insert, error, ZP_INT(run),
                             ZP_NAME(zp_vocabulary_kind_name(t->kind)),
                             ZP_NAME(zp_vocabulary_phase_name(t->phase)), ZP_INT(t->count),
                             ZP_INT(t->bytes), ZP_INT(t->wire_bytes), ZP_INT(t->busy_ps)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_prices(ZpStore *store, gint64 run, const ZpTape *tape, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO price VALUES (?,?,?,?,?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    g_autoptr(GArray) prices = zp_step_prices(tape);
    for (guint i = 0; i < prices->len; i++) {
        const ZpStepPrice *p = &g_array_index(prices, ZpStepPrice, i);
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i),
                             ZP_NAME(zp_words_categories[p->category]),
                             ZP_NAME(zp_vocabulary_kind_name(p->kind)), ZP_INT(p->ranks),
                             ZP_NAME(p->rule), ZP_INT(p->count), ZP_INT(p->bytes),
                             ZP_INT(p->wire_bytes), ZP_INT(p->busy_ps), ZP_REAL(p->flops)))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_warnings(ZpStore *store, gint64 run, const char *const *warnings, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO warning VALUES (?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (gint64 i = 0; warnings != NULL && warnings[i] != NULL; i++) {
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i), ZP_TEXT(warnings[i])))
            return FALSE;
    }
    return TRUE;
}

gint64
zp_store_add_run(ZpStore *store, const ZpReportRun *run, const ZpRecorder *recorder, GError **error)
{
    if (!zp_store_begin(store, error))
        return -1;
    gint64 id = write_run(store, run, error);
    if (id < 0 || !zp_store_write_inputs(store, "input", id, run->inputs, run->n_inputs, error) ||
        !write_warnings(store, id, run->warnings, error) ||
        !write_units(store, id, run->units, error) ||
        !write_classes(store, id, "peak", run->summary->peak_by_class, error) ||
        !write_classes(store, id, "persistent", run->summary->persistent_by_class, error) ||
        !write_live_set(store, id, run->tape, run->live_set, error) ||
        !write_ledger_rows(store, id, run->ledger, error) ||
        !write_ledger_bounds(store, id, run->ledger, error) ||
        !write_traffic(store, id, run->summary, error) ||
        !write_prices(store, id, run->tape, error) ||
        (recorder != NULL && !zp_store_write_recorder(store, id, run->tape, recorder, error)) ||
        !zp_store_commit(store, error)) {
        zp_store_rollback(store);
        return -1;
    }
    return id;
}
