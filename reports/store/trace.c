#include "reports/store/sql.h"

#include "reports/text/words.h"

/* Name ids of the tape's tables, looked up once per run rather than once per row. */
typedef struct {
    gint64 *classes, *phases, *kinds, *streams, *units, *rules;
    gint64 categories[ZP_TAPE_N_CATEGORIES], spaces[ZP_TAPE_N_SPACES];
} NameIds;

static void
name_ids_clear(NameIds *ids)
{
    g_free(ids->classes);
    g_free(ids->phases);
    g_free(ids->kinds);
    g_free(ids->streams);
    g_free(ids->units);
    g_free(ids->rules);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NameIds, name_ids_clear)

static gboolean
intern(ZpStore *store, const char *const *texts, int n, gint64 *ids, GError **error)
{
    for (int i = 0; i < n; i++) {
        ids[i] = zp_store_name(store, texts[i], error);
        if (ids[i] < 0)
            return FALSE;
    }
    return TRUE;
}

static gint64 *
intern_new(ZpStore *store, const char *const *texts, int n, GError **error)
{
    g_autofree gint64 *ids = g_new0(gint64, (gsize)n + 1);
    return intern(store, texts, n, ids, error) ? g_steal_pointer(&ids) : NULL;
}

static gboolean
name_ids_fill(ZpStore *store, const ZpTape *tape, NameIds *ids, GError **error)
{
    const ZpTapeVocabulary *words = tape->vocabulary;
    const char *streams[ZP_TAPE_MAX_STREAMS];
    for (int i = 0; i < tape->n_streams; i++)
        streams[i] = tape->streams[i].name;
    ids->classes = intern_new(store, words->classes, words->n_classes, error);
    ids->phases = ids->classes ? intern_new(store, words->phases, words->n_phases, error) : NULL;
    ids->kinds = ids->phases ? intern_new(store, words->kinds, words->n_kinds, error) : NULL;
    ids->streams = ids->kinds ? intern_new(store, streams, tape->n_streams, error) : NULL;
    ids->units = ids->streams ? intern_new(store, (const char *const *)tape->unit_names->pdata,
                                           (int)tape->unit_names->len, error)
                              : NULL;
    ids->rules = ids->units ? intern_new(store, (const char *const *)tape->rules->pdata,
                                         (int)tape->rules->len, error)
                            : NULL;
    return ids->rules != NULL &&
           intern(store, zp_words_categories, ZP_TAPE_N_CATEGORIES, ids->categories, error) &&
           intern(store, zp_words_spaces, ZP_TAPE_N_SPACES, ids->spaces, error);
}

static gboolean
write_operations(ZpStore *store, gint64 run, const ZpTape *tape, const ZpRecorder *recorder,
                 const NameIds *ids, GError **error)
{
    g_autoptr(ZpStatement) insert = zp_store_prepare(
        store, "INSERT INTO operation VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    g_autofree ZpTime *exposed = zp_recorder_exposed(recorder, tape);
    gsize n;
    const ZpObserverSpan *spans = zp_recorder_spans(recorder, &n);
    for (gsize i = 0; i < n; i++) {
        const ZpTapeInstr *instr = &tape->instrs[spans[i].instr];
        const ZpTapeWork *work = &tape->works[instr->a];
        gint64 unit = instr->unit == ZP_TAPE_NONE ? 0 : ids->units[instr->unit];
        const gint64 row[] = {run,
                              (gint64)i,
                              spans[i].rank,
                              spans[i].instr,
                              zp_recorder_step_of(tape, spans[i].instr),
                              instr->micro_batch,
                              ids->streams[instr->stream],
                              ids->categories[work->category],
                              ids->kinds[work->kind],
                              ids->phases[instr->phase],
                              unit,
                              spans[i].start,
                              spans[i].end,
                              exposed[i],
                              work->bytes,
                              work->wire_bytes,
                              work->rule == 0 ? 0 : ids->rules[work->rule - 1]};
        for (int c = 0; c < (int)G_N_ELEMENTS(row); c++)
            sqlite3_bind_int64(insert, c + 1, row[c]);
        if (instr->micro_batch == ZP_TAPE_NONE)
            sqlite3_bind_null(insert, 6);
        if (unit == 0)
            sqlite3_bind_null(insert, 11);
        if (work->rule == 0)
            sqlite3_bind_null(insert, 17);
        if (sqlite3_step(insert) != SQLITE_DONE)
            return zp_store_fail(store, "write", error);
        sqlite3_reset(insert);
    }
    return TRUE;
}

static gboolean
write_memory(ZpStore *store, gint64 run, const ZpRecorder *recorder, const NameIds *ids,
             GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO memory VALUES (?,?,?,?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    gsize n;
    const ZpObserverChange *changes = zp_recorder_changes(recorder, &n);
    for (gsize i = 0; i < n; i++) {
        const ZpObserverChange *change = &changes[i];
        const gint64 row[] = {run,
                              (gint64)i,
                              change->rank,
                              change->instr,
                              ids->spaces[change->space],
                              ids->classes[change->class_id],
                              change->time,
                              change->delta_bytes,
                              change->class_bytes,
                              change->total_bytes};
        for (int c = 0; c < (int)G_N_ELEMENTS(row); c++)
            sqlite3_bind_int64(insert, c + 1, row[c]);
        if (sqlite3_step(insert) != SQLITE_DONE)
            return zp_store_fail(store, "write", error);
        sqlite3_reset(insert);
    }
    return TRUE;
}

static gboolean
write_pools(ZpStore *store, gint64 run, const ZpRecorder *recorder, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO allocator VALUES (?,?,?,?,?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    gsize n;
    const ZpObserverPools *pools = zp_recorder_pools(recorder, &n);
    for (gsize i = 0; i < n; i++) {
        if (!zp_store_insert(store, insert, error, ZP_INT(run), ZP_INT(i), ZP_INT(pools[i].instr),
                             ZP_INT(pools[i].time), ZP_INT(pools[i].allocated_bytes),
                             ZP_INT(pools[i].active_bytes), ZP_INT(pools[i].reserved_bytes)))
            return FALSE;
    }
    return TRUE;
}

gboolean
zp_store_write_recorder(ZpStore *store, gint64 run, const ZpTape *tape, const ZpRecorder *recorder,
                        GError **error)
{
    g_auto(NameIds) ids = {0};
    return name_ids_fill(store, tape, &ids, error) &&
           write_operations(store, run, tape, recorder, &ids, error) &&
           write_memory(store, run, recorder, &ids, error) &&
           write_pools(store, run, recorder, error);
}
