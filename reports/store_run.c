#include "reports/event.h"
#include "reports/store_internal.h"
#include "reports/words.h"

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
        if (!zp_store_insert(store, insert, error, "iitttt", owner, (gint64)i, input->section,
                             input->key, input->value, input->origin))
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
    ZpEvent event = {0};
    if (s->peak_instr != ZP_TAPE_NONE)
        zp_event_fill(run->tape, s->peak_instr, &event);
    g_autofree char *text = zp_event_text(run->tape, s->peak_instr);
    gint64 unit = zp_store_name(store, event.unit, error);
    gint64 phase = unit < 0 ? -1 : zp_store_name(store, event.phase, error);
    if (phase < 0)
        return -1;
    g_autoptr(ZpStatement) insert = zp_store_prepare(
        store,
        "INSERT INTO run (name, version, source, runtime, model, parameter_elements, stage, ranks,"
        " shard_group, step_ps, exposed_ps, host_blocked_ps, tokens_per_step, model_flops, mfu,"
        " peak_bytes, peak_ps, peak_rank, peak_event, peak_unit, peak_phase, persistent_bytes,"
        " host_peak_bytes, capacity_bytes, contingency_bytes, headroom_bytes, fits) VALUES"
        " (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        error);
    if (insert == NULL ||
        !zp_store_insert(store, insert, error, "tttttiiiiiiiiddiiitnniiiiii", run->name, ZP_VERSION,
                         run->source, job->runtime, job->model->name, job->model->n_elements,
                         (gint64)job->zero.stage, (gint64)job->world.ranks,
                         (gint64)job->world.shard_group, s->step_ps, s->exposed_ps,
                         s->host_blocked_ps, s->tokens_per_step, s->model_flops, s->mfu,
                         s->peak_bytes, s->peak_time, (gint64)s->peak_rank, text, unit, phase,
                         s->persistent_bytes, s->host_peak_bytes, s->capacity_bytes,
                         s->contingency_bytes, s->headroom_bytes, (gint64)(s->fits ? 1 : 0)))
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
        gint64 name = zp_store_name(store, unit->name, error);
        if (name < 0 || !zp_store_insert(store, insert, error, "iiniiii", run, (gint64)i, name,
                                         unit->elements, unit->trainable_elements,
                                         (gint64)unit->first_layer, (gint64)unit->last_layer))
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
        gint64 name = zp_store_name(store, zp_vocabulary_class_name((ZpClass)c), error);
        if (name < 0 || !zp_store_insert(store, insert, error, "ini", run, name, bytes[c]))
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
        gint64 class_name = zp_store_name(store, tape->vocabulary->classes[entry->class_id], error);
        gint64 role = zp_store_name(store, tape->vocabulary->roles[buffer->role], error);
        gint64 unit = zp_store_name(store, unit_name, error);
        if (class_name < 0 || role < 0 || unit < 0 ||
            !zp_store_insert(store, insert, error, "iinnni", run, (gint64)i, class_name, role, unit,
                             buffer->bytes))
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
        gint64 class_name = zp_store_name(store, zp_vocabulary_class_name(row->class_id), error);
        gint64 name = zp_store_name(store, row->name, error);
        gint64 dtype = zp_store_name(store, zp_dtype_name(row->dtype), error);
        gint64 evidence = zp_store_name(store, row->evidence, error);
        if (class_name < 0 || name < 0 || dtype < 0 || evidence < 0 ||
            !zp_store_insert(store, insert, error, "iinnndiiiiin", run, (gint64)i, class_name, name,
                             dtype, row->bytes_per_element, (gint64)row->copies,
                             (gint64)row->owners, row->elements, row->padding_bytes,
                             row->persistent_bytes, evidence))
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
        gint64 part = zp_store_name(store, parts[i].name, error);
        if (part < 0 ||
            !zp_store_insert(store, insert, error, "iini", run, i, part, parts[i].bytes))
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
        gint64 kind = zp_store_name(store, zp_vocabulary_kind_name(t->kind), error);
        gint64 phase = zp_store_name(store, zp_vocabulary_phase_name(t->phase), error);
        if (kind < 0 || phase < 0 ||
            !zp_store_insert(store, insert, error, "inniiii", run, kind, phase, t->count, t->bytes,
                             t->wire_bytes, t->busy_ps))
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
        if (!zp_store_insert(store, insert, error, "iit", run, i, warnings[i]))
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
        (recorder != NULL && !zp_store_write_recorder(store, id, run->tape, recorder, error)) ||
        !zp_store_commit(store, error)) {
        zp_store_rollback(store);
        return -1;
    }
    return id;
}
