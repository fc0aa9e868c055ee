#include "reports/pictures/plot_internal.h"

#include <gio/gio.h>
#include <string.h>

#include "reports/text/data.h"

typedef struct {
    const char *name, *template;
    gboolean (*write)(ZpStore *store, const ZpPlotRequest *request, GString *script,
                      GError **error);
    int min_runs, max_runs;
    gboolean sweep, sweep_or_runs;
} Kind;

static const Kind kinds[ZP_PLOT_N_KINDS] = {
    [ZP_PLOT_MEMORY] = {"memory", "memory.gp", zp_plot_memory, 1, 1, FALSE, FALSE},
    [ZP_PLOT_STREAMS] = {"streams", "streams.gp", zp_plot_streams, 1, 1, FALSE, FALSE},
    [ZP_PLOT_SWEEP] = {"sweep", "sweep.gp", zp_plot_sweep, 0, 0, TRUE, FALSE},
    [ZP_PLOT_STAGES] = {"stages", "stages.gp", zp_plot_stages, 1, 60, TRUE, TRUE},
    [ZP_PLOT_RUNS] = {"runs", "runs.gp", zp_plot_runs, 1, 16, FALSE, FALSE},
    [ZP_PLOT_PARETO] = {"pareto", "pareto.gp", zp_plot_pareto, 0, 0, TRUE, FALSE},
};

const char *
zp_plot_kind_name(ZpPlotKind kind)
{
    return kinds[kind].name;
}

gboolean
zp_plot_kind_needs_sweep(ZpPlotKind kind)
{
    return kinds[kind].sweep && !kinds[kind].sweep_or_runs;
}

gboolean
zp_plot_kind_parse(const char *text, ZpPlotKind *kind, GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (int k = 0; k < ZP_PLOT_N_KINDS; k++) {
        if (strcmp(text, kinds[k].name) == 0) {
            *kind = (ZpPlotKind)k;
            return TRUE;
        }
        g_string_append_printf(names, "%s%s", k > 0 ? ", " : "", kinds[k].name);
    }
    g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_KIND, "no plot '%s'; there is %s", text,
                names->str);
    return FALSE;
}

static gboolean
check_request(const ZpPlotRequest *request, GError **error)
{
    const Kind *kind = &kinds[request->kind];
    if (kind->sweep && request->sweep > 0)
        return TRUE;
    if (kind->sweep && !kind->sweep_or_runs) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA, "plot '%s' draws a sweep; none given",
                    kind->name);
        return FALSE;
    }
    if (request->n_runs < (gsize)kind->min_runs || request->n_runs > (gsize)kind->max_runs) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_DATA,
                    "plot '%s' draws %s%d run%s, not %" G_GSIZE_FORMAT, kind->name,
                    kind->max_runs > 1 ? "1 to " : "", kind->max_runs,
                    kind->max_runs > 1 ? "s" : "", request->n_runs);
        return FALSE;
    }
    return TRUE;
}

char *
zp_plot_script(ZpStore *store, const ZpPlotRequest *request, GError **error)
{
    const Kind *kind = &kinds[request->kind];
    g_autoptr(GString) script = g_string_new(NULL);
    if (!check_request(request, error) || !kind->write(store, request, script, error))
        return NULL;
    g_string_append(script, zp_data_text("common.gp"));
    g_string_append(script, zp_data_text(kind->template));
    return g_string_free(g_steal_pointer(&script), FALSE);
}

static const char *
terminal_for(const char *output, GError **error)
{
    const char *dot = strrchr(output, '.');
    if (dot != NULL && g_ascii_strcasecmp(dot, ".svg") == 0)
        return "set terminal svg size 1600, 900 dynamic noenhanced font 'DejaVu Sans,16' "
               "background rgb 'white'\n";
    if (dot != NULL && g_ascii_strcasecmp(dot, ".png") == 0)
        return "set terminal pngcairo size 1600, 900 noenhanced font 'DejaVu Sans,13' "
               "background rgb 'white'\n";
    g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_FORMAT,
                "%s: a plot's name ends in .svg or .png", output);
    return NULL;
}

/* gnuplot repeats the script's line first; its complaint is the last line that says something. */
static char *
complaint(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    char *last = NULL;
    for (char **line = lines; *line != NULL; line++) {
        if (g_strstrip(*line)[0] != '\0')
            last = *line;
    }
    return g_strdup(last != NULL ? last : "it drew nothing");
}

/* What gnuplot draws comes back through a pipe: no file to leave behind, no path to quote. */
static GBytes *
run_gnuplot(const char *script, GError **error)
{
    g_autoptr(GError) local = NULL;
    /* -d: the user's initialisation files must not change a report. */
    g_autoptr(GSubprocess) process =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                             G_SUBPROCESS_FLAGS_STDERR_PIPE,
                         &local, "gnuplot", "-d", "-", NULL);
    if (process == NULL) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_GNUPLOT,
                    "cannot start gnuplot (package gnuplot-nox): %s", local->message);
        return NULL;
    }
    g_autoptr(GBytes) input = g_bytes_new(script, strlen(script));
    g_autoptr(GBytes) picture = NULL, messages = NULL;
    if (!g_subprocess_communicate(process, input, NULL, &picture, &messages, &local)) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_GNUPLOT, "gnuplot: %s", local->message);
        return NULL;
    }
    if (!g_subprocess_get_successful(process) || g_bytes_get_size(picture) == 0) {
        gsize length;
        const char *text = g_bytes_get_data(messages, &length);
        g_autofree char *copy = g_strndup(text, length);
        g_autofree char *reason = complaint(copy);
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_GNUPLOT, "gnuplot failed: %s", reason);
        return NULL;
    }
    return g_steal_pointer(&picture);
}

gboolean
zp_plot_draw(ZpStore *store, const ZpPlotRequest *request, const char *output, GError **error)
{
    const char *terminal = terminal_for(output, error);
    g_autofree char *body = terminal != NULL ? zp_plot_script(store, request, error) : NULL;
    if (body == NULL)
        return FALSE;
    g_autofree char *script = g_strconcat(terminal, body, NULL);
    g_autoptr(GBytes) picture = run_gnuplot(script, error);
    if (picture == NULL)
        return FALSE;
    g_autoptr(GError) local = NULL;
    gsize size;
    const char *data = g_bytes_get_data(picture, &size);
    if (!g_file_set_contents_full(output, data, (gssize)size, G_FILE_SET_CONTENTS_CONSISTENT, 0666,
                                  &local)) {
        g_set_error(error, ZP_PLOT_ERROR, ZP_PLOT_ERROR_WRITE, "%s", local->message);
        return FALSE;
    }
    return TRUE;
}
