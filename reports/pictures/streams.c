#include "reports/pictures/plot_internal.h"

/* More boxes than this on one stream are thinner than a point: neighbours of one kind merge. */
#define MAX_BOXES_PER_STREAM 4000
/* A white border sets apart boxes wider than this part of the time and would swallow others. */
#define WIDE_SHARE 300
/* More changes of phase than this are a pattern, not something to shade. */
#define MAX_PHASES 400

typedef struct {
    ZpTime start, end;
    int stream, kind;
} Box;

typedef struct {
    char *name;
    ZpTime start, end;
} Phase;

static void
clear_phase(gpointer data)
{
    g_free(((Phase *)data)->name);
}

/* Stretches of compute of one phase; with too many of them none are worth showing. */
static GArray *
read_phases(ZpStore *store, gint64 run, GError **error)
{
    g_autoptr(ZpStatement) statement =
        zp_store_prepare(store,
                         "SELECT phase, start_ps, end_ps FROM operations WHERE run = ?1 AND"
                         " category = 'compute' AND rank = (SELECT min(rank) FROM operation WHERE"
                         " run = ?1) ORDER BY start_ps, ordinal",
                         error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_int64(statement, 1, run);
    g_autoptr(GArray) phases = g_array_new(FALSE, FALSE, sizeof(Phase));
    g_array_set_clear_func(phases, clear_phase);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        Phase phase = {NULL, sqlite3_column_int64(statement, 1),
                       sqlite3_column_int64(statement, 2)};
        Phase *last = phases->len > 0 ? &g_array_index(phases, Phase, phases->len - 1) : NULL;
        if (last != NULL && g_strcmp0(last->name, name) == 0) {
            last->end = MAX(last->end, phase.end);
            continue;
        }
        phase.name = g_strdup(name != NULL ? name : "");
        g_array_append_val(phases, phase);
    }
    if (code != SQLITE_DONE) {
        zp_store_fail(store, "read", error);
        return NULL;
    }
    if (phases->len > MAX_PHASES)
        g_array_set_size(phases, 0);
    return g_steal_pointer(&phases);
}

static void
write_times(GString *script, const char *name, const GArray *phases, gboolean ends)
{
    g_string_append_printf(script, "array %s[%u] = [", name, MAX(phases->len, 1));
    for (guint i = 0; i < phases->len; i++) {
        const Phase *phase = &g_array_index(phases, Phase, i);
        if (i > 0)
            g_string_append(script, ", ");
        zp_plot_number(script, (double)(ends ? phase->end : phase->start) / ZP_PLOT_MS);
        g_string_truncate(script, script->len - 1);
    }
    g_string_append(script, phases->len > 0 ? "]\n" : "0]\n");
}

gboolean
zp_plot_phases(ZpStore *store, gint64 run, GString *script, GError **error)
{
    g_autoptr(GArray) phases = read_phases(store, run, error);
    if (phases == NULL)
        return FALSE;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < phases->len; i++)
        g_ptr_array_add(names, g_array_index(phases, Phase, i).name);
    if (phases->len == 0)
        g_ptr_array_add(names, "");
    g_string_append_printf(script, "zp_n_phases = %u\n", phases->len);
    zp_plot_set_texts(script, "zp_phase", (const char *const *)names->pdata, names->len);
    write_times(script, "zp_phase_start", phases, FALSE);
    write_times(script, "zp_phase_end", phases, TRUE);
    return TRUE;
}

/* Streams of compute first, then in order of their first work. */
static gboolean
read_streams(ZpStore *store, gint64 run, GPtrArray *streams, GError **error)
{
    g_autoptr(ZpStatement) statement =
        zp_store_prepare(store,
                         "SELECT stream FROM operations WHERE run = ?1 GROUP BY stream"
                         " ORDER BY min(category <> 'compute'), min(start_ps), stream",
                         error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, run);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        g_ptr_array_add(streams, g_strdup((const char *)sqlite3_column_text(statement, 0)));
    return code == SQLITE_DONE || zp_store_fail(store, "read", error);
}

static GArray *
read_boxes(ZpStore *store, gint64 run, GPtrArray *streams, GError **error)
{
    g_autoptr(ZpStatement) statement =
        zp_store_prepare(store,
                         "SELECT stream, kind, start_ps, end_ps FROM operations WHERE run = ?1 AND"
                         " rank = (SELECT min(rank) FROM operation WHERE run = ?1)"
                         " AND end_ps > start_ps ORDER BY start_ps, ordinal",
                         error);
    if (statement == NULL)
        return NULL;
    sqlite3_bind_int64(statement, 1, run);
    g_autoptr(GArray) boxes = g_array_new(FALSE, FALSE, sizeof(Box));
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *stream = (const char *)sqlite3_column_text(statement, 0);
        guint index = 0;
        if (!g_ptr_array_find_with_equal_func(streams, stream, g_str_equal, &index))
            continue;
        Box box = {.stream = (int)index,
                   .kind = zp_plot_kind_of((const char *)sqlite3_column_text(statement, 1)),
                   .start = sqlite3_column_int64(statement, 2),
                   .end = sqlite3_column_int64(statement, 3)};
        if (box.kind >= 0)
            g_array_append_val(boxes, box);
    }
    if (code != SQLITE_DONE) {
        zp_store_fail(store, "read", error);
        return NULL;
    }
    return g_steal_pointer(&boxes);
}

/* Boxes of one stream and kind with a gap that no picture shows become one. */
static GArray *
merge_boxes(const GArray *boxes, guint n_streams, ZpTime end)
{
    GArray *merged = g_array_new(FALSE, FALSE, sizeof(Box));
    ZpTime gap = boxes->len > MAX_BOXES_PER_STREAM * n_streams ? end / MAX_BOXES_PER_STREAM : -1;
    g_autofree gint64 *last_of = g_new(gint64, n_streams + 1);
    for (guint s = 0; s < n_streams; s++)
        last_of[s] = -1;
    for (guint i = 0; i < boxes->len; i++) {
        const Box *box = &g_array_index(boxes, Box, i);
        gint64 at = last_of[box->stream];
        Box *last = at >= 0 ? &g_array_index(merged, Box, at) : NULL;
        if (gap >= 0 && last != NULL && last->kind == box->kind && box->start - last->end <= gap) {
            last->end = MAX(last->end, box->end);
            continue;
        }
        last_of[box->stream] = merged->len;
        g_array_append_vals(merged, box, 1);
    }
    return merged;
}

static ZpTime
write_boxes(GString *script, const GArray *boxes, guint n_streams)
{
    gboolean used[ZP_N_KINDS] = {FALSE};
    ZpTime end = 1;
    for (guint i = 0; i < boxes->len; i++)
        end = MAX(end, g_array_index(boxes, Box, i).end);
    g_autoptr(GArray) merged = merge_boxes(boxes, n_streams, end);
    g_string_append(script, "$works << EOD\n");
    for (guint i = 0; i < merged->len; i++) {
        const Box *box = &g_array_index(merged, Box, i);
        used[box->kind] = TRUE;
        zp_plot_number(script, (double)box->start / ZP_PLOT_MS);
        zp_plot_number(script, (double)box->end / ZP_PLOT_MS);
        gboolean wide = box->end - box->start > end / WIDE_SHARE;
        g_string_append_printf(script, "%d 0x%s %d\n", (int)n_streams - box->stream,
                               zp_plot_kind_color((ZpKind)box->kind) + 1, wide ? 1 : 0);
    }
    g_string_append(script, "EOD\n");
    const char *names[ZP_N_KINDS], *colors[ZP_N_KINDS];
    gsize n = 0;
    for (int k = 0; k < ZP_N_KINDS; k++) {
        if (!used[k])
            continue;
        names[n] = zp_vocabulary_kind_name((ZpKind)k);
        colors[n++] = zp_plot_kind_color((ZpKind)k);
    }
    zp_plot_set_number(script, "zp_n", (double)n);
    zp_plot_set_texts(script, "zp_kind", names, n);
    zp_plot_set_texts(script, "zp_color", colors, n);
    return end;
}

gboolean
zp_plot_streams(ZpStore *store, const ZpPlotRequest *request, GString *script, GError **error)
{
    g_auto(ZpPlotRun) run = {0};
    g_autoptr(GPtrArray) streams = g_ptr_array_new_with_free_func(g_free);
    if (!zp_plot_read_run(store, request->runs[0], &run, error) ||
        !zp_plot_phases(store, request->runs[0], script, error) ||
        !read_streams(store, request->runs[0], streams, error))
        return FALSE;
    g_autoptr(GArray) boxes = read_boxes(store, request->runs[0], streams, error);
    if (boxes == NULL)
        return FALSE;
    if (boxes->len == 0) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "run %" G_GINT64_FORMAT " was recorded without operations", request->runs[0]);
        return FALSE;
    }
    ZpTime end = write_boxes(script, boxes, streams->len);
    zp_plot_title(script, request->title, run.name, "work on the streams of a rank");
    zp_plot_set_number(script, "zp_end", (double)MAX(end, run.step_ps) / ZP_PLOT_MS);
    zp_plot_set_number(script, "zp_n_streams", (double)streams->len);
    zp_plot_set_texts(script, "zp_stream", (const char *const *)streams->pdata, streams->len);
    return TRUE;
}
