#include "reports/pictures/points_internal.h"

static void
clear_point(gpointer data)
{
    ZpPlotPoint *point = data;
    g_free(point->axis_value);
    g_free(point->others);
}

void
zp_plot_points_clear(ZpPlotPoints *points)
{
    g_free(points->name);
    g_free(points->axis);
    g_clear_pointer(&points->points, g_array_unref);
    *points = (ZpPlotPoints){0};
}

static gboolean
read_name(ZpStore *store, gint64 sweep, ZpPlotPoints *points, GError **error)
{
    g_autoptr(ZpStatement) statement =
        zp_store_prepare(store, "SELECT name FROM sweep WHERE id = ?1", error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, sweep);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        points->name = g_strdup((const char *)sqlite3_column_text(statement, 0));
        return TRUE;
    }
    if (code != SQLITE_DONE)
        return zp_store_fail(store, "read", error);
    g_set_error(error, ZP_STORE_ERROR, ZP_STORE_ERROR_MISSING, "%s: no sweep %" G_GINT64_FORMAT,
                store->path, sweep);
    return FALSE;
}

/* Finds the axis; its number or -1. */
static gint64
read_axis(ZpStore *store, gint64 sweep, const char *wanted, ZpPlotPoints *points, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store, "SELECT axis, key FROM sweep_axis WHERE sweep = ?1 ORDER BY axis", error);
    if (statement == NULL)
        return -1;
    sqlite3_bind_int64(statement, 1, sweep);
    g_autoptr(GString) keys = g_string_new(NULL);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *key = (const char *)sqlite3_column_text(statement, 1);
        if (wanted == NULL || g_strcmp0(wanted, key) == 0) {
            points->axis = g_strdup(key);
            return sqlite3_column_int64(statement, 0);
        }
        g_string_append_printf(keys, "%s%s", keys->len > 0 ? ", " : "", key);
    }
    if (code != SQLITE_DONE)
        zp_store_fail(store, "read", error);
    else
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "sweep '%s' has no axis '%s'; there is %s", points->name,
                    wanted != NULL ? wanted : "", keys->len > 0 ? keys->str : "none");
    return -1;
}

static gboolean
read_rows(ZpStore *store, gint64 sweep, gint64 axis, ZpPlotPoints *points, GError **error)
{
    g_autoptr(ZpStatement) statement = zp_store_prepare(
        store,
        "SELECT p.point, p.step_ps, p.peak_bytes, p.capacity_bytes, coalesce(p.fits, 1), p.error "
        "IS NOT NULL,"
        " (SELECT n.text FROM sweep_value v JOIN name n ON n.id = v.value"
        "   WHERE v.sweep = p.sweep AND v.point = p.point AND v.axis = ?2),"
        " (SELECT group_concat(t, ' ') FROM (SELECT substr(a.key, instr(a.key, '.') + 1) || '=' || "
        "n.text AS t"
        "   FROM sweep_value v JOIN sweep_axis a ON a.sweep = v.sweep AND a.axis = v.axis"
        "   JOIN name n ON n.id = v.value WHERE v.sweep = p.sweep AND v.point = p.point"
        "   AND v.axis <> ?2 ORDER BY v.axis)), m.time_ps, m.is_per_token"
        " FROM sweep_point p LEFT JOIN (SELECT * FROM sweep_merit WHERE sweep = ?1) m"
        "   ON m.point = p.point WHERE p.sweep = ?1 ORDER BY p.point",
        error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_int64(statement, 1, sweep);
    sqlite3_bind_int64(statement, 2, axis);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *value = (const char *)sqlite3_column_text(statement, 6);
        const char *others = (const char *)sqlite3_column_text(statement, 7);
        ZpPlotPoint point = {.point = sqlite3_column_int64(statement, 0),
                             .step_ps = sqlite3_column_int64(statement, 1),
                             .peak_bytes = sqlite3_column_int64(statement, 2),
                             .capacity_bytes = sqlite3_column_int64(statement, 3),
                             .fits = sqlite3_column_int(statement, 4) != 0,
                             .refused = sqlite3_column_int(statement, 5) != 0,
                             .time_ps = sqlite3_column_int64(statement, 8),
                             .axis_value = g_strdup(value != NULL ? value : ""),
                             .others = g_strdup(others != NULL ? others : "")};
        g_array_append_val(points->points, point);
        points->per_token = points->per_token || sqlite3_column_int(statement, 9) != 0;
        points->n_valid += point.refused ? 0 : 1;
        points->highest_bytes = MAX(points->highest_bytes, point.peak_bytes);
        points->capacity_bytes = MAX(points->capacity_bytes, point.capacity_bytes);
    }
    return code == SQLITE_DONE || zp_store_fail(store, "read", error);
}

gboolean
zp_plot_read_points(ZpStore *store, gint64 sweep, const char *axis, ZpPlotPoints *points,
                    GError **error)
{
    points->points = g_array_new(FALSE, FALSE, sizeof(ZpPlotPoint));
    g_array_set_clear_func(points->points, clear_point);
    if (!read_name(store, sweep, points, error))
        return FALSE;
    gint64 index = read_axis(store, sweep, axis, points, error);
    if (index < 0 || !read_rows(store, sweep, index, points, error))
        return FALSE;
    if (points->n_valid == 0) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "sweep '%s' has no point with figures", points->name);
        return FALSE;
    }
    return TRUE;
}
