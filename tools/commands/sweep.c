/* zeropeak sweep: every point of a scenario's axes. */
#include <stdio.h>
#include <unistd.h>

#include "reports/receipts/receipt.h"
#include "reports/store/store.h"
#include "reports/summary/sweep.h"
#include "reports/text/merit.h"
#include "scenarios/sweeps/sweep.h"
#include "tools/commands/commands.h"
#include "tools/line/input.h"
#include "tools/line/interrupt.h"
#include "tools/line/progress.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption sweep_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "Override a key of the scenario, or add an axis (sweep.zero.stage=0,1,2,3); may be repeated"},
    {"database", 'd', G_OPTION_ARG_FILENAME, OPTION(database), "FILE",
     "Database to add the sweep to (default: zeropeak.db)"},
    {"no-database", 0, G_OPTION_ARG_NONE, OPTION(no_database), NULL, "Record nothing"},
    {"jobs", 'J', G_OPTION_ARG_INT, OPTION(jobs), "N", "Threads (default: one per processor)"},
    {"top", 't', G_OPTION_ARG_INT, OPTION(top), "N", "How many of the best points to print (10)"},
    {"json", 'j', G_OPTION_ARG_NONE, OPTION(json), NULL,
     "Print all points as JSON (schema zeropeak-sweep/1)"},
    {"no-color", 0, G_OPTION_ARG_NONE, OPTION(no_color), NULL, "No colour on a terminal"},
    {0},
};

static const char *const sweep_examples[] = {
    "zeropeak sweep scenarios/llama3-8b-granularity.ini",
    "zeropeak sweep scenarios/llama3-8b-zero3.ini --set sweep.zero.stage=0,1,2,3 --no-database",
    NULL,
};

/* A finished sweep as reports take it. */
typedef struct {
    ZpReportSweep sweep;
    GArray *inputs;
    const char **axes;
    const char **values; /* n_points x n_axes */
    ZpReportPoint *points;
    gsize n_points;
} Finished;

static void
finished_clear(Finished *finished)
{
    g_clear_pointer(&finished->inputs, g_array_unref);
    g_free(finished->axes);
    g_free(finished->values);
    g_free(finished->points);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Finished, finished_clear)

static void
finish(Finished *out, const ZpSweep *sweep, const ZpSweepRunResult *result)
{
    const ZpScenario *base = zp_sweep_base(sweep);
    gsize n_axes = zp_sweep_n_axes(sweep);
    out->n_points = (gsize)result->n_points;
    out->inputs = zp_input_list(base);
    out->axes = g_new0(const char *, n_axes + 1);
    out->values = g_new0(const char *, out->n_points *n_axes + 1);
    out->points = g_new0(ZpReportPoint, out->n_points + 1);
    for (gsize a = 0; a < n_axes; a++)
        out->axes[a] = zp_sweep_axis(sweep, a)->key;
    for (gsize p = 0; p < out->n_points; p++) {
        const char **values = out->values + p * n_axes;
        for (gsize a = 0; a < n_axes; a++)
            values[a] = zp_sweep_value(sweep, (gint64)p, a);
        const ZpSweepRunPoint *point = &result->points[p];
        out->points[p] = (ZpReportPoint){
            .values = values,
            .summary = point->error == NULL ? &point->summary : NULL,
            .error = point->error,
        };
    }
    out->sweep = (ZpReportSweep){
        .name = base->name,
        .source = base->path,
        .inputs = (const ZpReportInput *)(gpointer)out->inputs->data,
        .n_inputs = out->inputs->len,
        .axes = out->axes,
        .n_axes = n_axes,
    };
}

static gboolean
store_sweep(const ZpCommandOptions *options, const Finished *finished, GError **error)
{
    if (options->no_database)
        return TRUE;
    const char *path = zp_command_database(options);
    g_autoptr(ZpStore) store = zp_store_open(path, ZP_STORE_APPEND, error);
    if (store == NULL)
        return FALSE;
    gint64 id = zp_store_begin_sweep(store, &finished->sweep, error);
    if (id < 0)
        return FALSE;
    for (gsize p = 0; p < finished->n_points; p++) {
        if (!zp_store_add_point(store, &finished->points[p], error))
            return FALSE;
    }
    if (!zp_store_end_sweep(store, error))
        return FALSE;
    if (!options->json)
        printf("\nrecorded as sweep %" G_GINT64_FORMAT " in %s\n", id, path);
    return TRUE;
}

static void
show_progress(gint64 done, gpointer data)
{
    zp_progress_update(data, done);
}

static void
note_idle_axes(const Finished *finished)
{
    const ZpReportSweep *sweep = &finished->sweep;
    for (gsize a = 0; a < sweep->n_axes; a++)
        if (zp_merit_is_idle(finished->points, finished->n_points, sweep->n_axes, a))
            fprintf(stderr,
                    "warning: %s does nothing here: points that differ in it alone are the same\n",
                    sweep->axes[a]);
}

static void
print_sweep(const ZpCommandOptions *options, const Finished *finished)
{
    g_autofree char *text = NULL;
    if (options->json) {
        text = zp_receipt_sweep_json(&finished->sweep, finished->points, finished->n_points);
    } else {
        g_autoptr(GString) out = g_string_new(NULL);
        gboolean color = !options->no_color && isatty(STDOUT_FILENO) == 1;
        zp_summary_sweep(&finished->sweep, finished->points, finished->n_points,
                         options->top > 0 ? options->top : 10, color, out);
        text = g_string_free(g_steal_pointer(&out), FALSE);
    }
    fputs(text, stdout);
    note_idle_axes(finished);
}

/* A sweep that has nothing to show is wrong input, as a run of any of its points would be. */
static gboolean
any_figures(const ZpSweepRunResult *result, GError **error)
{
    for (gint64 p = 0; p < result->n_points; p++) {
        if (result->points[p].error == NULL)
            return TRUE;
    }
    g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_INPUT,
                "every point is refused; the first: %s", result->points[0].error);
    return FALSE;
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || arguments[1] != NULL || options->jobs < 0 || options->jobs > 1024 ||
        options->top < 0) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give exactly one scenario file, --jobs up to 1024 (0: one per processor), and "
                    "--top from 1 (0: 10)");
        return ZP_EXIT_USAGE;
    }
    const volatile gint *cancelled = zp_interrupt_watch();
    g_autoptr(ZpScenario) scenario =
        zp_scenario_load(arguments[0], (const char *const *)options->set, error);
    if (scenario == NULL)
        return ZP_EXIT_INPUT;
    g_autoptr(ZpSweep) sweep = zp_sweep_new(scenario, error);
    if (sweep == NULL)
        return ZP_EXIT_INPUT;
    if (!options->no_database && !zp_store_check(zp_command_database(options), error))
        return ZP_EXIT_IO;
    ZpProgress progress;
    zp_progress_begin(&progress, "sweep", zp_sweep_n_points(sweep));
    g_auto(ZpSweepRunResult) result = {0};
    gboolean done =
        zp_sweep_run(sweep, options->jobs, cancelled, show_progress, &progress, &result, error);
    zp_progress_end(&progress);
    if (!done || !any_figures(&result, error))
        return ZP_EXIT_INPUT;
    g_auto(Finished) finished = {0};
    finish(&finished, sweep, &result);
    print_sweep(options, &finished);
    return store_sweep(options, &finished, error) ? ZP_EXIT_OK : ZP_EXIT_IO;
}

const ZpCommand zp_command_sweep = {
    .name = "sweep",
    .arguments = "FILE",
    .summary = "Simulate every point of a scenario's [sweep] axes",
    .description =
        "Simulates the cross product of the axes on all processors, prints the best points and "
        "the\n"
        "Pareto front of peak memory against step time with its knee, and records the points.",
    .options = sweep_options,
    .examples = sweep_examples,
    .run = run,
};
