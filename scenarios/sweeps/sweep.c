#include "scenarios/sweeps/sweep.h"

#include "scenarios/language/axis.h"

struct _ZpSweep {
    const ZpScenario *base;
    GArray *axes; /* ZpSweepAxis */
    gint64 n_points;
};

static void
clear_axis(gpointer data)
{
    ZpSweepAxis *axis = data;
    g_strfreev(axis->values);
}

/* Counts the points, or fails; no axis is expanded. */
static gint64
count_points(const ZpScenario *base, GError **error)
{
    gint64 limit = MIN(base->sweep_limit, ZP_SWEEP_MAX_POINTS);
    gint64 n = 1;
    gboolean too_many = FALSE;
    g_autoptr(GString) product = g_string_new(NULL);
    for (guint a = 0; a < base->axes->len; a++) {
        const ZpSettingsAxis *axis = &g_array_index(base->axes, ZpSettingsAxis, a);
        g_autofree char *full = NULL;
        const ZpSchemaKey *key = zp_axis_key(axis->key, &full, error);
        gint64 n_values = key ? zp_axis_count(key, axis->text, error) : -1;
        if (n_values < 0)
            return -1;
        g_string_append_printf(product, "%s%" G_GINT64_FORMAT, a > 0 ? " x " : "", n_values);
        too_many |= n_values > limit / n;
        if (!too_many)
            n *= n_values;
    }
    if (!too_many)
        return n;
    g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_RANGE,
                "%s: [sweep]: %s points are more than the limit of %" G_GINT64_FORMAT
                " (sweep.limit, at most %" G_GINT64_FORMAT ")",
                base->path, product->str, limit, ZP_SWEEP_MAX_POINTS);
    return -1;
}

ZpSweep *
zp_sweep_new(const ZpScenario *base, GError **error)
{
    if (base->axes->len == 0) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_MISSING,
                    "%s: no [sweep] axes: write for example 'zero.stage = 0, 1, 2, 3' there",
                    base->path);
        return NULL;
    }
    gint64 n_points = count_points(base, error);
    if (n_points < 0)
        return NULL;
    ZpSweep *sweep = g_new0(ZpSweep, 1);
    sweep->base = base;
    sweep->n_points = n_points;
    sweep->axes = g_array_new(FALSE, FALSE, sizeof(ZpSweepAxis));
    g_array_set_clear_func(sweep->axes, clear_axis);
    for (guint a = 0; a < base->axes->len; a++) {
        const ZpSettingsAxis *given = &g_array_index(base->axes, ZpSettingsAxis, a);
        g_autofree char *full = NULL;
        const ZpSchemaKey *key = zp_axis_key(given->key, &full, NULL);
        ZpSweepAxis axis = {.key = given->key, .values = zp_axis_expand(key, given->text)};
        axis.n_values = g_strv_length(axis.values);
        g_array_append_val(sweep->axes, axis);
    }
    return sweep;
}

void
zp_sweep_free(ZpSweep *sweep)
{
    if (sweep == NULL)
        return;
    g_array_unref(sweep->axes);
    g_free(sweep);
}

const ZpScenario *
zp_sweep_base(const ZpSweep *sweep)
{
    return sweep->base;
}

gint64
zp_sweep_n_points(const ZpSweep *sweep)
{
    return sweep->n_points;
}

gsize
zp_sweep_n_axes(const ZpSweep *sweep)
{
    return sweep->axes->len;
}

const ZpSweepAxis *
zp_sweep_axis(const ZpSweep *sweep, gsize index)
{
    g_assert(index < sweep->axes->len);
    return &g_array_index(sweep->axes, ZpSweepAxis, index);
}

const char *
zp_sweep_value(const ZpSweep *sweep, gint64 point, gsize axis)
{
    g_assert(point >= 0 && point < sweep->n_points && axis < sweep->axes->len);
    for (gsize a = sweep->axes->len - 1; a > axis; a--)
        point /= zp_sweep_axis(sweep, a)->n_values;
    const ZpSweepAxis *own = zp_sweep_axis(sweep, axis);
    return own->values[point % own->n_values];
}

char **
zp_sweep_point_sets(const ZpSweep *sweep, gint64 point)
{
    gsize n = sweep->axes->len;
    char **sets = g_new0(char *, n + 1);
    for (gsize a = 0; a < n; a++)
        sets[a] =
            g_strconcat(zp_sweep_axis(sweep, a)->key, "=", zp_sweep_value(sweep, point, a), NULL);
    return sets;
}

ZpScenario *
zp_sweep_point(const ZpSweep *sweep, gint64 point, GError **error)
{
    g_auto(GStrv) sets = zp_sweep_point_sets(sweep, point);
    return zp_scenario_with(sweep->base, (const char *const *)sets, error);
}
