#include "reports/pictures/plot_internal.h"

static char *
column_text(ZpStatement *statement, int column)
{
    return g_strdup((const char *)sqlite3_column_text(statement, column));
}

gboolean
zp_plot_read_run(ZpStore *store, gint64 id, ZpPlotRun *run, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store,
        "SELECT CASE WHEN (SELECT count(*) FROM run o WHERE o.name = r.name) > 1"
        " THEN r.name || ' #' || r.id ELSE r.name END, r.step_ps, r.peak_bytes, "
        "r.peak_ps, r.capacity_bytes, u.text, p.text,"
        " r.peak_event, r.step_low_ps, r.step_high_ps, r.needed_low_bytes, r.needed_high_bytes,"
        " v.text FROM run r LEFT JOIN name v ON v.id = r.verdict"
        " LEFT JOIN name u ON u.id = r.peak_unit"
        " LEFT JOIN name p ON p.id = r.peak_phase WHERE r.id = ?1",
        error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, id);
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE)
        g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING, "%s: no run %" G_GINT64_FORMAT,
                    store->path, id);
    else if (code != SQLITE_ROW)
        zp_store_fail(store, "read", error);
    if (code != SQLITE_ROW)
        return FALSE;
    *run = (ZpPlotRun){.name = column_text(statement, 0),
                       .step_ps = sqlite3_column_int64(statement, 1),
                       .peak_bytes = sqlite3_column_int64(statement, 2),
                       .peak_ps = sqlite3_column_int64(statement, 3),
                       .capacity_bytes = sqlite3_column_int64(statement, 4),
                       .peak_unit = column_text(statement, 5),
                       .peak_phase = column_text(statement, 6),
                       .peak_event = column_text(statement, 7),
                       .step_low_ps = sqlite3_column_int64(statement, 8),
                       .step_high_ps = sqlite3_column_int64(statement, 9),
                       .needed_low_bytes = sqlite3_column_int64(statement, 10),
                       .needed_high_bytes = sqlite3_column_int64(statement, 11),
                       .verdict = column_text(statement, 12)};
    return TRUE;
}

void
zp_plot_run_clear(ZpPlotRun *run)
{
    g_free(run->name);
    g_free(run->peak_unit);
    g_free(run->peak_phase);
    g_free(run->peak_event);
    g_free(run->verdict);
    *run = (ZpPlotRun){0};
}

/* States of one instant have no width but the last, yet the highest must be seen: of each instant
 * the highest and the last stay, in their order. */
static void
add_state(GArray *states, const ZpPlotState *state)
{
    guint n = states->len;
    if (n >= 2) {
        const ZpPlotState *before = &g_array_index(states, ZpPlotState, n - 2);
        ZpPlotState *last = &g_array_index(states, ZpPlotState, n - 1);
        if (before->time == state->time && last->time == state->time) {
            gboolean rising = last->total_bytes > before->total_bytes;
            if (rising)
                g_array_remove_index(states, n - 2);
            else
                g_array_set_size(states, n - 1);
        }
    }
    g_array_append_vals(states, state, 1);
}

/* Which of `n_bins` equal stretches of time a state falls into. */
static gsize
bin_of(const ZpPlotState *all, guint n, guint i, gsize n_bins)
{
    double range = (double)(all[n - 1].time - all[0].time) + 1.0;
    return (gsize)((double)(all[i].time - all[0].time) / range * (double)n_bins);
}

static GArray *
thin(const GArray *states, gsize max_states)
{
    GArray *kept = g_array_new(FALSE, FALSE, sizeof(ZpPlotState));
    const ZpPlotState *all = (const ZpPlotState *)(gpointer)states->data;
    guint n = states->len;
    gsize n_bins = MAX(max_states / 3, 1);
    for (guint i = 0; i < n;) {
        gsize bin = bin_of(all, n, i, n_bins);
        guint low = i, high = i, last = i;
        for (; i < n && bin_of(all, n, i, n_bins) == bin; i++) {
            low = all[i].total_bytes < all[low].total_bytes ? i : low;
            high = all[i].total_bytes > all[high].total_bytes ? i : high;
            last = i;
        }
        guint a = MIN(low, high), b = MAX(low, high);
        g_array_append_val(kept, all[a]);
        if (b != a)
            g_array_append_val(kept, all[b]);
        if (last != b)
            g_array_append_val(kept, all[last]);
    }
    return kept;
}

static GArray *
read_states(ZpStore *store, gint64 run, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store,
        "SELECT m.time_ps, c.text, m.class_bytes, m.total_bytes FROM memory m"
        " JOIN name c ON c.id = m.class JOIN name s ON s.id = m.space"
        " WHERE m.run = ?1 AND s.text = 'device'"
        " AND m.rank = (SELECT min(rank) FROM memory WHERE run = ?1) ORDER BY m.ordinal",
        error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_int64(statement, 1, run);
    g_autoptr(GArray) states = g_array_new(FALSE, FALSE, sizeof(ZpPlotState));
    ZpPlotState state = {0};
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        int class_id = zp_plot_class_of((const char *)sqlite3_column_text(statement, 1));
        if (class_id < 0)
            continue;
        state.time = sqlite3_column_int64(statement, 0);
        state.bytes[class_id] = sqlite3_column_int64(statement, 2);
        state.total_bytes = sqlite3_column_int64(statement, 3);
        add_state(states, &state);
    }
    if (code != SQLITE_DONE) {
        zp_store_fail(store, "read", error);
        return NULL;
    }
    return g_steal_pointer(&states);
}

GArray *
zp_plot_read_timeline(ZpStore *store, gint64 run, gsize max_states, GError **error)
{
    g_autoptr(GArray) states = read_states(store, run, error);
    if (states == NULL)
        return NULL;
    if (states->len == 0) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "run %" G_GINT64_FORMAT " was recorded without a timeline", run);
        return NULL;
    }
    return states->len > max_states ? thin(states, max_states) : g_steal_pointer(&states);
}
