#include "reports/pictures/plot_internal.h"

static char *
column_text(ZpStatement *statement, int column)
{
    return g_strdup((const char *)sqlite3_column_text(statement, column));
}

gboolean
zp_plot_read_run(ZpStore *store, gint64 id, ZpPlotRun *run, GError **error)
{
    g_autoptr(ZpStatement) statement =
        zp_store_prepare(store,
                         "SELECT CASE WHEN (SELECT count(*) FROM run o WHERE o.name = r.name) > 1"
                         " THEN r.name || ' #' || r.id ELSE r.name END, r.step_ps, r.peak_bytes, "
                         "r.peak_ps, r.capacity_bytes, u.text, p.text,"
                         " r.peak_event FROM run r LEFT JOIN name u ON u.id = r.peak_unit"
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
                       .peak_event = column_text(statement, 7)};
    return TRUE;
}

void
zp_plot_run_clear(ZpPlotRun *run)
{
    g_free(run->name);
    g_free(run->peak_unit);
    g_free(run->peak_phase);
    g_free(run->peak_event);
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

/* Frameworks allocate in the order of the host, which runs far ahead of the device: a step's whole
 * memory would stand in its first milliseconds.  Such a change is drawn where the compute stream
 * has done what was launched before it; that keeps the order, and with it every peak. */
typedef struct {
    GArray *ends; /* Launched, by instruction */
    guint next;
    gint64 done_ps;
} DeviceClock;

typedef struct {
    gint64 instruction, end_ps;
} Launched;

static gboolean
changes_in_tape_order(ZpStore *store, gint64 run, gboolean *ordered, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store,
        "SELECT NOT EXISTS (SELECT 1 FROM (SELECT instruction, lag(instruction) OVER (ORDER BY"
        " ordinal) AS earlier FROM memory WHERE run = ?1 AND rank = (SELECT min(rank) FROM memory"
        " WHERE run = ?1)) WHERE instruction < earlier)",
        error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, run);
    int code = sqlite3_step(statement);
    *ordered = code == SQLITE_ROW && sqlite3_column_int(statement, 0) != 0;
    if (code != SQLITE_ROW)
        zp_store_fail(store, "read", error);
    return code == SQLITE_ROW;
}

static gboolean
read_clock(ZpStore *store, gint64 run, DeviceClock *clock, GError **error)
{
    gboolean ordered = FALSE;
    clock->ends = g_array_new(FALSE, FALSE, sizeof(Launched));
    if (!changes_in_tape_order(store, run, &ordered, error))
        return FALSE;
    if (!ordered)
        return TRUE; /* the device's own clock */
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store,
        "SELECT o.instruction, o.end_ps FROM operation o JOIN name c ON c.id = o.category"
        " WHERE o.run = ?1 AND c.text = 'compute' AND o.rank = (SELECT min(rank) FROM memory"
        " WHERE run = ?1) ORDER BY o.instruction",
        error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, run);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        Launched launched = {sqlite3_column_int64(statement, 0),
                             sqlite3_column_int64(statement, 1)};
        g_array_append_val(clock->ends, launched);
    }
    if (code != SQLITE_DONE)
        zp_store_fail(store, "read", error);
    return code == SQLITE_DONE;
}

static gint64
device_time(DeviceClock *clock, gint64 instruction, gint64 host_ps)
{
    while (clock->next < clock->ends->len) {
        const Launched *launched = &g_array_index(clock->ends, Launched, clock->next);
        if (launched->instruction >= instruction)
            break;
        clock->done_ps = MAX(clock->done_ps, launched->end_ps);
        clock->next++;
    }
    return MAX(host_ps, clock->done_ps);
}

static GArray *
read_states(ZpStore *store, gint64 run, DeviceClock *clock, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store,
        "SELECT m.time_ps, c.text, m.class_bytes, m.total_bytes, m.instruction FROM memory m"
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
        state.time = device_time(clock, sqlite3_column_int64(statement, 4),
                                 sqlite3_column_int64(statement, 0));
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
    DeviceClock clock = {0};
    g_autoptr(GArray) states =
        read_clock(store, run, &clock, error) ? read_states(store, run, &clock, error) : NULL;
    g_array_unref(clock.ends);
    if (states == NULL)
        return NULL;
    if (states->len == 0) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "run %" G_GINT64_FORMAT " was recorded without a timeline", run);
        return NULL;
    }
    return states->len > max_states ? thin(states, max_states) : g_steal_pointer(&states);
}
