#include "reports/pictures/points_internal.h"

#include "reports/text/format.h"

#define MAX_BARS 60

typedef struct {
    char *name;
    gint64 bytes[ZP_N_CLASSES];
} Bar;

static void
clear_bar(gpointer data)
{
    g_free(((Bar *)data)->name);
}

/* `sql` gives class and bytes for ?1 (and ?2). */
static gboolean
read_bar(ZpStore *store, const char *sql, gint64 owner, gint64 point, Bar *bar, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(store, sql, error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, owner);
    sqlite3_bind_int64(statement, 2, point);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        int class_id = zp_plot_class_of((const char *)sqlite3_column_text(statement, 0));
        if (class_id >= 0)
            bar->bytes[class_id] = sqlite3_column_int64(statement, 1);
    }
    return code == SQLITE_DONE || zp_store_fail(store, "read", error);
}

static gboolean
bars_of_runs(ZpStore *store, const ZpPlotRequest *request, GArray *bars, gint64 *capacity,
             GError **error)
{
    for (gsize r = 0; r < request->n_runs; r++) {
        g_auto(ZpPlotRun) run = {0};
        if (!zp_plot_read_run(store, request->runs[r], &run, error))
            return FALSE;
        Bar bar = {.name = g_strdup(run.name)};
        gboolean ok = read_bar(store,
                               "SELECT c.text, p.bytes FROM peak p JOIN name c ON c.id = p.class"
                               " WHERE p.run = ?1",
                               request->runs[r], 0, &bar, error);
        g_array_append_val(bars, bar);
        if (!ok)
            return FALSE;
        *capacity = MAX(*capacity, run.capacity_bytes);
    }
    return TRUE;
}

static gboolean
bars_of_sweep(ZpStore *store, const ZpPlotRequest *request, ZpPlotPoints *points, GArray *bars,
              GError **error)
{
    if (!zp_plot_read_points(store, request->sweep, request->axis, points, error))
        return FALSE;
    if (points->n_valid > MAX_BARS) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "sweep '%s' has %" G_GSIZE_FORMAT " points; at most %d bars are drawn",
                    points->name, points->n_valid, MAX_BARS);
        return FALSE;
    }
    for (guint i = 0; i < points->points->len; i++) {
        const ZpPlotPoint *point = &g_array_index(points->points, ZpPlotPoint, i);
        if (point->refused)
            continue;
        Bar bar = {.name = g_strconcat(point->axis_value, point->others[0] != '\0' ? " " : "",
                                       point->others, NULL)};
        gboolean ok = read_bar(store,
                               "SELECT c.text, p.bytes FROM sweep_peak p JOIN name c ON"
                               " c.id = p.class WHERE p.sweep = ?1 AND p.point = ?2",
                               request->sweep, point->point, &bar, error);
        g_array_append_val(bars, bar);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

/* Rectangles: bar, bottom, top, colour; totals on top; the legend's classes, top of stack first. */
static gint64
write_bars(GString *script, const GArray *bars)
{
    gboolean used[ZP_N_CLASSES] = {FALSE};
    gint64 highest = 0;
    g_autoptr(GString) totals = g_string_new("$totals << EOD\n");
    g_string_append(script, "$parts << EOD\n");
    for (guint b = 0; b < bars->len; b++) {
        const Bar *bar = &g_array_index(bars, Bar, b);
        gint64 sum = 0;
        for (int i = 0; i < ZP_N_CLASSES; i++) {
            ZpClass class_id = zp_plot_stack[i];
            if (bar->bytes[class_id] <= 0)
                continue;
            used[class_id] = TRUE;
            g_string_append_printf(script, "%u ", b + 1);
            zp_plot_number(script, (double)sum / ZP_PLOT_GIB);
            sum += bar->bytes[class_id];
            zp_plot_number(script, (double)sum / ZP_PLOT_GIB);
            g_string_append_printf(script, "0x%s\n", zp_plot_class_color(class_id) + 1);
        }
        highest = MAX(highest, sum);
        g_string_append_printf(totals, "%u ", b + 1);
        zp_plot_number(totals, (double)sum / ZP_PLOT_GIB);
        zp_format_double(totals, (double)sum / ZP_PLOT_GIB, 1);
        g_string_append_c(totals, '\n');
    }
    g_string_append_printf(script, "EOD\n%sEOD\n", totals->str);
    const char *names[ZP_N_CLASSES], *colors[ZP_N_CLASSES];
    gsize n = 0;
    for (int i = ZP_N_CLASSES - 1; i >= 0; i--) {
        if (!used[zp_plot_stack[i]])
            continue;
        names[n] = zp_vocabulary_class_name(zp_plot_stack[i]);
        colors[n++] = zp_plot_class_color(zp_plot_stack[i]);
    }
    zp_plot_set_number(script, "zp_n", (double)n);
    zp_plot_set_texts(script, "zp_class", names, n);
    zp_plot_set_texts(script, "zp_color", colors, n);
    return highest;
}

gboolean
zp_plot_stages(ZpStore *store, const ZpPlotRequest *request, GString *script, GError **error)
{
    g_autoptr(GArray) bars = g_array_new(FALSE, TRUE, sizeof(Bar));
    g_array_set_clear_func(bars, clear_bar);
    g_auto(ZpPlotPoints) points = {0};
    gint64 capacity = 0;
    gboolean ok = request->sweep > 0 ? bars_of_sweep(store, request, &points, bars, error)
                                     : bars_of_runs(store, request, bars, &capacity, error);
    if (!ok)
        return FALSE;
    gint64 highest = write_bars(script, bars);
    if (highest == 0) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA, "nothing is ever allocated");
        return FALSE;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    gsize longest = 0;
    for (guint b = 0; b < bars->len; b++) {
        char *name = g_array_index(bars, Bar, b).name;
        longest = MAX(longest, (gsize)g_utf8_strlen(name, -1));
        g_ptr_array_add(names, name);
    }
    zp_plot_title(script, request->title, request->sweep > 0 ? points.name : "Runs compared",
                  "peak of a rank by tensor class");
    zp_plot_set_text(script, "zp_axis", request->sweep > 0 ? points.axis : "");
    zp_plot_capacity(script, request->sweep > 0 ? points.capacity_bytes : capacity, highest);
    zp_plot_set_number(script, "zp_n_bars", bars->len);
    zp_plot_set_number(script, "zp_longest", (double)longest);
    zp_plot_set_texts(script, "zp_bar", (const char *const *)names->pdata, names->len);
    return TRUE;
}
