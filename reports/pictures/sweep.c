#include "reports/pictures/points_internal.h"

#include <string.h>

#include "reports/text/pareto.h"

#define MAX_AXIS_VALUES 200
#define MAX_SERIES 16

/* Index of `text` among `texts`, appended if new. */
static guint
index_of(GPtrArray *texts, const char *text)
{
    guint index = 0;
    if (!g_ptr_array_find_with_equal_func(texts, text, g_str_equal, &index)) {
        index = texts->len;
        g_ptr_array_add(texts, (gpointer)text);
    }
    return index;
}

/* One data set, values in the axis' order; a refused point leaves a gap. */
static void
write_series(GString *script, const ZpPlotPoints *points, GPtrArray *values, const char *series)
{
    for (guint v = 0; v < values->len; v++) {
        for (guint i = 0; i < points->points->len; i++) {
            const ZpPlotPoint *point = &g_array_index(points->points, ZpPlotPoint, i);
            if (!g_str_equal(point->others, series) ||
                !g_str_equal(point->axis_value, g_ptr_array_index(values, v)))
                continue;
            g_string_append_printf(script, "%u ", v + 1);
            if (point->refused) {
                g_string_append(script, "NaN NaN 1\n");
                continue;
            }
            zp_plot_number(script, (double)point->peak_bytes / ZP_PLOT_GIB);
            zp_plot_number(script, (double)point->step_ps / ZP_PLOT_MS);
            g_string_append_printf(script, "%d\n", point->fits ? 1 : 0);
        }
    }
    g_string_append(script, "\n\n");
}

gboolean
zp_plot_sweep(ZpStore *store, const ZpPlotRequest *request, GString *script, GError **error)
{
    g_auto(ZpPlotPoints) points = {0};
    if (!zp_plot_read_points(store, request->sweep, request->axis, &points, error))
        return FALSE;
    g_autoptr(GPtrArray) values = g_ptr_array_new(), series = g_ptr_array_new();
    ZpTime slowest = 0;
    glong longest = 0;
    gboolean all_fit = TRUE;
    for (guint i = 0; i < points.points->len; i++) {
        const ZpPlotPoint *point = &g_array_index(points.points, ZpPlotPoint, i);
        index_of(values, point->axis_value);
        index_of(series, point->others);
        slowest = MAX(slowest, point->step_ps);
        longest = MAX(longest, g_utf8_strlen(point->others, -1));
        all_fit = all_fit && (point->fits || point->refused);
    }
    if (values->len > MAX_AXIS_VALUES || series->len > MAX_SERIES) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "sweep '%s' is too large for one picture: %u values of %s in %u lines; at most "
                    "%d values and %d lines are drawn",
                    points.name, values->len, points.axis, series->len, MAX_AXIS_VALUES,
                    MAX_SERIES);
        return FALSE;
    }
    g_string_append(script, "$series << EOD\n");
    for (guint s = 0; s < series->len; s++)
        write_series(script, &points, values, g_ptr_array_index(series, s));
    g_string_append(script, "EOD\n");
    g_autofree char *what = g_strdup_printf("peak and step time against %s", points.axis);
    zp_plot_title(script, request->title, points.name, what);
    zp_plot_set_text(script, "zp_axis", points.axis);
    zp_plot_capacity(script, points.capacity_bytes, points.highest_bytes);
    zp_plot_set_number(script, "zp_slowest", (double)MAX(slowest, 1) / ZP_PLOT_MS);
    zp_plot_set_number(script, "zp_longest", (double)longest);
    zp_plot_set_number(script, "zp_all_fit", all_fit ? 1 : 0);
    zp_plot_set_number(script, "zp_n_values", values->len);
    zp_plot_set_texts(script, "zp_value", (const char *const *)values->pdata, values->len);
    zp_plot_set_number(script, "zp_n", series->len);
    zp_plot_set_texts(script, "zp_name", (const char *const *)series->pdata, series->len);
    zp_plot_series_colors(script);
    return TRUE;
}

/* "wrap" of "zero.wrap": a legend has little room. */
static const char *
short_key(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot != NULL ? dot + 1 : key;
}

static void
write_label(GString *script, const char *name, const char *what, const ZpPlotPoints *points,
            gint32 index)
{
    if (index == ZP_PARETO_NONE) {
        zp_plot_set_text(script, name, "");
        return;
    }
    const ZpPlotPoint *point = &g_array_index(points->points, ZpPlotPoint, index);
    g_autofree char *text =
        g_strdup_printf("%s: %s=%s%s%s", what, short_key(points->axis), point->axis_value,
                        point->others[0] != '\0' ? " " : "", point->others);
    zp_plot_set_text(script, name, text);
}

static double
time_unit_ps(const ZpPlotPoints *points)
{
    return points->per_token ? 1e6 : ZP_PLOT_MS;
}

/* A block of one point, or of none. */
static void
write_point(GString *script, const char *name, const ZpPlotPoints *points, gint32 index)
{
    g_string_append_printf(script, "$%s << EOD\n", name);
    if (index != ZP_PARETO_NONE) {
        const ZpPlotPoint *point = &g_array_index(points->points, ZpPlotPoint, index);
        zp_plot_number(script, (double)point->peak_bytes / ZP_PLOT_GIB);
        zp_plot_number(script, (double)point->time_ps / time_unit_ps(points));
    } else {
        g_string_append(script, "NaN NaN");
    }
    g_string_append(script, "\nEOD\n");
}

static void
write_all(GString *script, const ZpPlotPoints *points)
{
    g_string_append(script, "$points << EOD\n");
    for (guint i = 0; i < points->points->len; i++) {
        const ZpPlotPoint *point = &g_array_index(points->points, ZpPlotPoint, i);
        if (point->refused)
            continue;
        zp_plot_number(script, (double)point->peak_bytes / ZP_PLOT_GIB);
        zp_plot_number(script, (double)point->time_ps / time_unit_ps(points));
        g_string_append_printf(script, "%d\n", point->fits ? 1 : 0);
    }
    g_string_append(script, "EOD\n");
}

gboolean
zp_plot_pareto(ZpStore *store, const ZpPlotRequest *request, GString *script, GError **error)
{
    g_auto(ZpPlotPoints) points = {0};
    if (!zp_plot_read_points(store, request->sweep, request->axis, &points, error))
        return FALSE;
    guint n = points.points->len;
    g_autofree ZpParetoPoint *figures = g_new0(ZpParetoPoint, n);
    for (guint i = 0; i < n; i++) {
        const ZpPlotPoint *point = &g_array_index(points.points, ZpPlotPoint, i);
        figures[i] =
            (ZpParetoPoint){point->peak_bytes, point->time_ps, !point->refused, point->fits};
    }
    g_auto(ZpPareto) pareto = {0};
    zp_pareto_find(figures, n, &pareto);
    write_all(script, &points);
    g_string_append(script, "$front << EOD\n");
    for (gsize i = 0; i < pareto.n_front; i++) {
        zp_plot_number(script, (double)figures[pareto.front[i]].peak_bytes / ZP_PLOT_GIB);
        zp_plot_number(script, (double)figures[pareto.front[i]].time_ps / time_unit_ps(&points));
        g_string_append_c(script, '\n');
    }
    g_string_append(script, "EOD\n");
    write_point(script, "knee", &points, pareto.knee);
    write_point(script, "fastest", &points, pareto.best_time);
    write_point(script, "smallest", &points, pareto.best_memory);
    write_label(script, "zp_knee", "knee", &points, pareto.knee);
    write_label(script, "zp_fastest", "fastest", &points, pareto.best_time);
    write_label(script, "zp_smallest", "lowest peak", &points, pareto.best_memory);
    zp_plot_set_text(script, "zp_time",
                     points.per_token ? "time per token (us)" : "step time (ms)");
    zp_plot_title(script, request->title, points.name,
                  points.per_token ? "peak against time per token" : "peak against step time");
    zp_plot_capacity(script, points.capacity_bytes, points.highest_bytes);
    return TRUE;
}
