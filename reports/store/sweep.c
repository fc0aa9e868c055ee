#include "reports/store/sql.h"

/* Small enough that a crash loses little, large enough that syncing the disk costs nothing. */
#define POINTS_PER_TRANSACTION 1000

static gboolean
write_axes(ZpStore *store, const ZpReportSweep *sweep, GError **error)
{
    g_autoptr(ZpStatement) insert =
        zp_store_prepare(store, "INSERT INTO sweep_axis VALUES (?,?,?)", error);
    if (insert == NULL)
        return FALSE;
    for (gsize i = 0; i < sweep->n_axes; i++) {
        if (!zp_store_insert(store, insert, error, ZP_INT(store->sweep), ZP_INT(i),
                             ZP_TEXT(sweep->axes[i])))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_sweep(ZpStore *store, const ZpReportSweep *sweep, GError **error)
{
    g_autoptr(ZpStatement) insert = zp_store_prepare(
        store, "INSERT INTO sweep (name, version, source, complete) VALUES (?,?,?,0)", error);
    if (insert == NULL || !zp_store_insert(store, insert, error, ZP_TEXT(sweep->name),
                                           ZP_TEXT(ZP_VERSION), ZP_TEXT(sweep->source)))
        return FALSE;
    store->sweep = sqlite3_last_insert_rowid(store->db);
    return write_axes(store, sweep, error) &&
           zp_store_write_inputs(store, "sweep_input", store->sweep, sweep->inputs, sweep->n_inputs,
                                 error);
}

static void
finish_statements(ZpStore *store)
{
    g_clear_pointer(&store->insert_point, sqlite3_finalize);
    g_clear_pointer(&store->insert_value, sqlite3_finalize);
    g_clear_pointer(&store->insert_peak, sqlite3_finalize);
}

static void
abandon(ZpStore *store)
{
    finish_statements(store);
    zp_store_rollback(store);
    store->sweep = 0;
}

gint64
zp_store_begin_sweep(ZpStore *store, const ZpReportSweep *sweep, GError **error)
{
    g_assert(store->sweep == 0);
    if (!zp_store_begin(store, error))
        return -1;
    store->n_axes = sweep->n_axes;
    store->n_points = 0;
    if (!write_sweep(store, sweep, error)) {
        abandon(store);
        return -1;
    }
    store->insert_point = zp_store_prepare(
        store, "INSERT INTO sweep_point VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        error);
    store->insert_value =
        store->insert_point
            ? zp_store_prepare(store, "INSERT INTO sweep_value VALUES (?,?,?,?)", error)
            : NULL;
    store->insert_peak =
        store->insert_value
            ? zp_store_prepare(store, "INSERT INTO sweep_peak VALUES (?,?,?,?)", error)
            : NULL;
    if (store->insert_peak == NULL) {
        abandon(store);
        return -1;
    }
    return store->sweep;
}

static gboolean
write_peak(ZpStore *store, const ZpStepSummary *summary, GError **error)
{
    for (int c = 0; c < ZP_N_CLASSES; c++) {
        if (summary->peak_by_class[c] == 0)
            continue;
        if (!zp_store_insert(store, store->insert_peak, error, ZP_INT(store->sweep),
                             ZP_INT(store->n_points), ZP_NAME(zp_vocabulary_class_name((ZpClass)c)),
                             ZP_INT(summary->peak_by_class[c])))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_point(ZpStore *store, const ZpReportPoint *point, GError **error)
{
    const ZpStepSummary *s = point->summary;
    ZpAllocatorBytes allocator =
        s != NULL && s->has_allocator ? s->allocator.peak : (ZpAllocatorBytes){0};
    sqlite3_clear_bindings(store->insert_point);
    gboolean ok =
        s == NULL ? zp_store_insert(store, store->insert_point, error, ZP_INT(store->sweep),
                                    ZP_INT(store->n_points), ZP_TEXT(point->error))
                  : zp_store_insert(
                        store, store->insert_point, error, ZP_INT(store->sweep),
                        ZP_INT(store->n_points), ZP_TEXT(NULL), ZP_INT(s->step_ps),
                        ZP_INT(s->step_low_ps), ZP_INT(s->step_high_ps), ZP_INT(s->exposed_ps),
                        ZP_INT(s->tokens_per_step), ZP_INT(s->tokens_per_rank), ZP_REAL(s->mfu),
                        ZP_INT(s->peak_bytes), ZP_INT(s->persistent_bytes),
                        ZP_INT(s->host_peak_bytes), ZP_INT(s->capacity_bytes),
                        ZP_INT(s->contingency_bytes), ZP_INT(s->headroom_bytes),
                        ZP_INT(s->needed_low_bytes), ZP_INT(s->needed_high_bytes),
                        ZP_FLAG_UNLESS(s->verdict == ZP_VERDICT_NONE, s->fits),
                        ZP_NAME(s->verdict == ZP_VERDICT_NONE ? NULL : zp_verdict_name(s->verdict)),
                        ZP_ID(allocator.allocated_bytes), ZP_ID(allocator.active_bytes),
                        ZP_ID(allocator.reserved_bytes));
    if (!ok)
        return FALSE;
    for (gsize axis = 0; axis < store->n_axes; axis++) {
        if (!zp_store_insert(store, store->insert_value, error, ZP_INT(store->sweep),
                             ZP_INT(store->n_points), ZP_INT(axis), ZP_NAME(point->values[axis])))
            return FALSE;
    }
    return s == NULL || write_peak(store, s, error);
}

gboolean
zp_store_add_point(ZpStore *store, const ZpReportPoint *point, GError **error)
{
    g_assert(store->sweep > 0 && (point->summary == NULL) != (point->error == NULL));
    if ((!store->in_transaction && !zp_store_begin(store, error)) ||
        !write_point(store, point, error) ||
        (++store->n_points % POINTS_PER_TRANSACTION == 0 && !zp_store_commit(store, error))) {
        abandon(store);
        return FALSE;
    }
    return TRUE;
}

gboolean
zp_store_end_sweep(ZpStore *store, GError **error)
{
    g_assert(store->sweep > 0);
    g_autofree char *sql =
        g_strdup_printf("UPDATE sweep SET complete = 1 WHERE id = %" G_GINT64_FORMAT, store->sweep);
    if ((!store->in_transaction && !zp_store_begin(store, error)) ||
        !zp_store_exec(store, sql, error) || !zp_store_commit(store, error)) {
        abandon(store);
        return FALSE;
    }
    finish_statements(store);
    store->sweep = 0;
    return TRUE;
}
