/* zeropeak plot: pictures of what a database holds. */
#include <stdio.h>

#include "reports/pictures/plot.h"
#include "tools/commands/commands.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption plot_options[] = {
    {"kind", 'k', G_OPTION_ARG_STRING, OPTION(kind), "KIND",
     "memory (default): one run's memory over time by class; streams: one run's operations; sweep: "
     "peak and step time against an axis; stages: peaks by class side by side; runs: several "
     "runs over each other; pareto: peak against step time"},
    {"output", 'o', G_OPTION_ARG_FILENAME, OPTION(output), "FILE",
     "Picture to write, .svg or .png (default: KIND.svg)"},
    {"run", 'r', G_OPTION_ARG_STRING_ARRAY, OPTION(runs), "ID",
     "Run to draw, by id or name; may be repeated (default: the latest; all for runs and stages)"},
    {"sweep", 's', G_OPTION_ARG_STRING, OPTION(sweep), "ID",
     "Sweep to draw, by id or name (default: the latest)"},
    {"axis", 'a', G_OPTION_ARG_STRING, OPTION(axis), "KEY",
     "Axis of the sweep to draw against (default: its first)"},
    {"title", 't', G_OPTION_ARG_STRING, OPTION(title), "TEXT", "Title of the picture"},
    {"script", 0, G_OPTION_ARG_NONE, OPTION(script), NULL,
     "Print the gnuplot script instead of drawing"},
    {0},
};

static const char *const plot_examples[] = {
    "zeropeak plot zeropeak.db --output memory.svg",
    "zeropeak plot zeropeak.db --kind streams --run 1 --output streams.png",
    "zeropeak plot zeropeak.db --kind sweep --axis zero.wrap_blocks --output sweep.svg",
    NULL,
};

static gboolean
add_run(ZpStore *store, const char *name, GArray *ids, GError **error)
{
    gint64 id = zp_store_find_run(store, name, error);
    if (id < 0)
        return FALSE;
    g_array_append_val(ids, id);
    return TRUE;
}

/* The runs asked for; else all of them where the kind compares, the latest where it does not. */
static gboolean
find_runs(ZpStore *store, const ZpCommandOptions *options, ZpPlotKind kind, GArray *ids,
          GError **error)
{
    for (char **name = options->runs; name != NULL && *name != NULL; name++) {
        if (!add_run(store, *name, ids, error))
            return FALSE;
    }
    if (ids->len > 0)
        return TRUE;
    if (kind == ZP_PLOT_MEMORY || kind == ZP_PLOT_STREAMS)
        return add_run(store, NULL, ids, error);
    g_autoptr(GArray) entries = zp_store_list_runs(store, error);
    for (guint i = 0; entries != NULL && i < entries->len; i++)
        g_array_append_val(ids, g_array_index(entries, ZpStoreEntry, i).id);
    return entries != NULL;
}

static gboolean
draw(ZpStore *store, const ZpCommandOptions *options, ZpPlotKind kind, const char *output,
     GError **error)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(gint64));
    ZpPlotRequest request = {.kind = kind, .axis = options->axis, .title = options->title};
    gboolean from_sweep = zp_plot_kind_needs_sweep(kind) || options->sweep != NULL;
    if (from_sweep) {
        request.sweep = zp_store_find_sweep(store, options->sweep, error);
        if (request.sweep < 0)
            return FALSE;
    } else if (!find_runs(store, options, kind, ids, error)) {
        return FALSE;
    }
    request.runs = (const gint64 *)(gpointer)ids->data;
    request.n_runs = ids->len;
    if (!options->script)
        return zp_plot_draw(store, &request, output, error);
    g_autofree char *script = zp_plot_script(store, &request, error);
    if (script == NULL)
        return FALSE;
    fputs(script, stdout);
    return TRUE;
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || arguments[1] != NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE, "give exactly one database");
        return ZP_EXIT_USAGE;
    }
    ZpPlotKind kind = ZP_PLOT_MEMORY;
    if (options->kind != NULL && !zp_plot_kind_parse(options->kind, &kind, error))
        return ZP_EXIT_USAGE;
    g_autoptr(ZpStore) store = zp_store_open(arguments[0], ZP_STORE_READ, error);
    if (store == NULL)
        return ZP_EXIT_IO;
    g_autofree char *output = options->output != NULL
                                  ? g_strdup(options->output)
                                  : g_strconcat(zp_plot_kind_name(kind), ".svg", NULL);
    if (!draw(store, options, kind, output, error))
        return ZP_EXIT_PLOT;
    if (!options->script)
        printf("%s\n", output);
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_plot = {
    .name = "plot",
    .arguments = "DATABASE",
    .summary = "Draw a picture of recorded runs or sweeps",
    .description = "Draws through gnuplot what a database holds, so that a picture can be redone\n"
                   "without simulating again.",
    .options = plot_options,
    .examples = plot_examples,
    .run = run,
};
